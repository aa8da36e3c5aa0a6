"""What a scale adds to results: scores, decisions, figures, reports, commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.running import code_of
from commands import tiebreak
from refusals import refused

import tiebreak as tb

JURY = tb.simulate.crowd(150, 4, scale=5, responses_per_task=4, random_state=2)
KNOWN = dict(list(JURY.gold.to_dict().items())[:30])
pytestmark = pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")


@pytest.fixture(scope="module")
def model() -> tb.VariationalBayes:
    return tb.VariationalBayes(scale="1..5").fit(JURY.responses, gold=KNOWN)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a command where a file of scores is."""
    monkeypatch.chdir(tmp_path)
    crowd = JURY.responses
    rows = zip(
        crowd.tasks.take(crowd.task_of_each()),
        crowd.workers.take(crowd.worker_of_each()),
        crowd.classes.take(crowd.label_of_each()),
        strict=True,
    )
    lines = [f"{task},{worker},{level}" for task, worker, level in rows]
    Path("scores.csv").write_text("\n".join(["item,judge,score", *lines]) + "\n")
    known = [f"{task},{level}.0" for task, level in KNOWN.items()]
    Path("gold.csv").write_text("\n".join(["item,score", *known]) + "\n")
    JURY.gold.write("truth.csv")
    return tiebreak


def test_scores_are_means_and_quantiles_of_probabilities(model: tb.VariationalBayes) -> None:
    q, values = model.probabilities_, np.arange(1.0, 6.0)
    assert model.scores_ == pytest.approx(q @ values)
    intervals = model.score_intervals_
    assert intervals is not None
    below = np.cumsum(q, axis=1)
    for row, (low, high) in zip(below, intervals, strict=True):
        assert low == values[np.flatnonzero(row >= 0.05)[0]]
        assert high == values[np.flatnonzero(row >= 0.95)[0]]
    frame = model.labels_.to_frame("pandas")
    assert list(frame.columns) == [
        *("task", "label", "probability", "score", "score_low", "score_high")
    ]
    plain = tb.VariationalBayes().fit(JURY.responses)
    assert (plain.scores_, plain.score_intervals_, plain.scale_) == (None, None, None)


def test_decisions_are_the_median_and_the_rounded_mean(model: tb.VariationalBayes) -> None:
    q, values = model.probabilities_, np.arange(1.0, 6.0)
    median = values[(np.cumsum(q, axis=1) < 0.5).sum(axis=1)]
    decided = model.decide("absolute")
    assert [float(level) for level in decided.best().values()] == median.tolist()
    decided = model.decide("squared")
    mean = np.rint(np.clip(q @ values, 1, 5))
    assert [float(level) for level in decided.best().values()] == mean.tolist()
    with refused(tb.errors.OptionError, "costs-without-scale"):
        tb.VariationalBayes().fit(JURY.responses).decide("absolute")


def test_figures_by_hand() -> None:
    labels, gold = {"a": 1, "b": 2, "c": 5}, {"a": 1, "b": 4, "c": 4, "z": 1}
    assert tb.evaluate.mean_absolute_error(labels, gold) == 1.0
    found, truth = np.array([1, 2, 5]), np.array([1, 4, 4])
    for weights, power in (("quadratic", 2), ("linear", 1)):
        by_chance = np.mean([abs(i - j) ** power for i in found for j in truth])
        expected = 1 - np.mean(np.abs(found - truth) ** power) / by_chance
        kappa = tb.evaluate.weighted_kappa(labels, gold, weights)  # type: ignore[arg-type]
        assert kappa == pytest.approx(expected)
    assert tb.evaluate.mean_absolute_error(labels, {"a": 1.5}) == 0.5
    words, truth_in_words = {"a": "low"}, {"a": "high"}
    order = ["low", "middle", "high"]
    assert tb.evaluate.mean_absolute_error(words, truth_in_words, scale=order) == 2.0
    with refused(tb.InputError, "no-numbers-to-score"):
        tb.evaluate.mean_absolute_error(words, truth_in_words)
    with refused(tb.InputError, "labels-without-score"):
        tb.evaluate.interval_coverage(labels, gold)
    with refused(tb.errors.OptionError, "wrong-value weights"):
        tb.evaluate.weighted_kappa(labels, gold, "cubic")  # type: ignore[arg-type]


def test_the_report_of_figures_has_them_where_labels_have_scores(
    model: tb.VariationalBayes, tmp_path: Path
) -> None:
    figures = tb.evaluate.report(model.labels_, JURY.gold, given=KNOWN)
    assert figures.mean_absolute_error == tb.evaluate.mean_absolute_error(
        model.labels_, JURY.gold, given=KNOWN
    )
    assert figures.interval_coverage is not None
    assert figures.interval_coverage > 0.9
    model.labels_.write(tmp_path / "labels.csv", probabilities=True)
    read = tb.read_labels(tmp_path / "labels.csv")
    again = tb.evaluate.report(read, JURY.gold, given=KNOWN)
    assert again.interval_coverage == figures.interval_coverage
    assert again.weighted_kappa == pytest.approx(figures.weighted_kappa)


def test_simulated_readers_are_channels() -> None:
    crowd = tb.simulate.crowd(
        50, 3, scale=4, responses_per_task=3, bias=0.0, gain=0.0, blur=(0.01, 0.01), lapse=0.0
    )
    assert list(crowd.responses.classes) == [1, 2, 3, 4]
    assert crowd.confusion == pytest.approx(np.tile(np.eye(4), (3, 1, 1)))
    lapsing = tb.simulate.crowd(50, 5, scale=4, lapse=1.0).confusion
    assert lapsing == pytest.approx(np.full((5, 4, 4), 0.25))
    with refused(tb.errors.OptionError, "wrong-value blur"):
        tb.simulate.crowd(50, 5, scale=4, blur=(0.0, 1.0))


def test_a_file_of_scores_is_fused_by_one_command(run: Callable[..., Any]) -> None:
    done = run("fuse", "scores.csv", "--scale", "1..5", "-o", "labels.csv", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["scale"]["levels"] == [1, 2, 3, 4, 5]
    assert 0 < summary["scale"]["n_differ_from_mean"] < 150
    labels = tb.read_labels("labels.csv")
    expected = tb.Auto(scale="1..5").fit(JURY.responses)
    assert {t: str(k) for t, k in expected.labels_.best().items()} == labels.best()
    columns = Path("labels.csv").read_text().splitlines()[0].split(",")
    assert columns[-2:] == ["vote", "mean"]
    done = run("evaluate", "labels.csv", "truth.csv", "--json")
    assert json.loads(done.stdout)["mean_absolute_error"] < 0.5


@pytest.mark.parametrize("scale", ["auto", "1..5/0.5", "1,2,3,4,5"])
def test_every_way_of_naming_a_scale_is_one_option(run: Callable[..., Any], scale: str) -> None:
    done = run(
        *("fuse", "scores.csv", "--scale", scale, "--gold", "gold.csv"),
        *("--method", "vb", "-o", "labels.csv", "--save", "m.tbm", "--json"),
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["worker_model"] == "scale"
    done = run("describe", "m.tbm", "--json")
    assert json.loads(done.stdout)["worker_model"] == "scale"
    done = run("predict", "m.tbm", "scores.csv", "-o", "new.csv")
    assert done.exit_code == 0, done.output
    assert "score_low" in Path("new.csv").read_text().splitlines()[0]


def test_the_median_is_decided_for(run: Callable[..., Any]) -> None:
    given = ("fuse", "scores.csv", "--scale", "1..5")
    done = run(*given, "--decide", "median", "-o", "labels.csv")
    assert done.exit_code == 0, done.output
    assert "decision" in Path("labels.csv").read_text().splitlines()[0]
    assert code_of(run("fuse", "scores.csv", "--decide", "median")) == "option-needs"
    costs = run(*given, "--decide", "mean", "--cost-matrix", "costs.csv")
    assert code_of(costs) == "options-exclude"


@pytest.mark.parametrize(
    ("scale", "code"),
    [
        ("1..4", "off-scale"),
        ("5..1", "levels-fall"),
        ("0..100", "too-many-levels"),
        ("high", "no-scale"),
        ("a,b", "off-scale"),
    ],
)
def test_bad_scales_are_refused_with_their_code(
    run: Callable[..., Any], scale: str, code: str
) -> None:
    done = run("fuse", "scores.csv", "--scale", scale)
    assert code_of(done) == code
    assert done.stdout == ""


def test_methods_without_scales_say_so(run: Callable[..., Any]) -> None:
    for method in ("ds", "mv"):
        done = run("fuse", "scores.csv", "--scale", "1..5", "--method", method)
        assert code_of(done) == "method-without-scale"


def test_words_and_many_numbers_are_refused_where_the_scale_is_to_be_found(
    run: Callable[..., Any],
) -> None:
    Path("words.csv").write_text("task,worker,label\na,x,low\na,y,high\n")
    assert code_of(run("fuse", "words.csv", "--scale", "auto")) == "scale-of-words"
    rows = [f"t{i},x,{i}" for i in range(40)]
    Path("many.csv").write_text("\n".join(["task,worker,score", *rows]))
    assert code_of(run("fuse", "many.csv", "--scale", "auto")) == "too-many-numbers"
    done = run("fuse", "many.csv", "--scale", "0..40/10", "-o", "labels.csv")
    assert done.exit_code == 0, done.output


def test_describe_tells_what_an_order_does(run: Callable[..., Any]) -> None:
    done = run("describe", "scores.csv", "--json")
    assert done.exit_code == 0, done.output
    agreement = json.loads(done.stdout)["agreement"]
    assert agreement["interval_alpha"] > agreement["alpha"]
    low, high = agreement["interval_alpha_interval"]
    assert low < agreement["interval_alpha"] < high
    assert "interval" in run("describe", "scores.csv").stdout
    assert agreement["share_of_orders"] <= 0.035
    rows = [f"t{i},w{j},{i + j}" for i in range(30) for j in range(2)]
    Path("points.csv").write_text("\n".join(["task,worker,points", *rows]))
    done = run("describe", "points.csv", "--columns", "label=points", "--json")
    found = json.loads(done.stdout)
    assert found["mean"] == pytest.approx(15.0)
    assert found["standard_error"] == pytest.approx(np.std(np.arange(30), ddof=1) / np.sqrt(30))


def test_the_report_has_a_line_and_a_chart_for_each_judge(
    model: tb.VariationalBayes, tmp_path: Path
) -> None:
    from tiebreak.report import measure

    found = measure(model)["sections"]["scale"]
    assert len(found["readers"]) == 4
    assert found["has_gold"]
    assert {"bias", "gain_low", "lapse_high"} <= found["readers"][0].keys()
    assert measure(tb.VariationalBayes().fit(JURY.responses))["sections"]["scale"] is None
    alone = tb.Auto(scale="1..5").fit(JURY.responses)
    assert not measure(alone)["sections"]["scale"]["has_gold"]
    page = alone.report(tmp_path / "report.html").read_text("utf-8")
    assert "How judges read the scale" in page


def test_the_panel_names_each_judge(model: tb.VariationalBayes) -> None:
    found = tb.judges.panel_report(model, JURY.gold, sub_panels=False)
    assert [each.worker for each in found.readers] == list(model.workers_)
    assert json.dumps(found.to_dict())
    assert len(found.sentences()) >= 4


@pytest.mark.data
def test_web_is_a_scale(data_dir: Path) -> None:
    folder = data_dir / "web"
    gold = tb.read_gold(folder / "gold.csv")
    model = tb.VariationalBayes(scale="auto").fit(folder / "responses.csv")
    assert model.scale_ is not None
    assert model.scale_.levels == (1, 2, 3, 4, 5)
    assert tb.evaluate.accuracy(model.labels_, gold) > 0.85
    assert tb.evaluate.mean_absolute_error(model.labels_, gold) < 0.2
