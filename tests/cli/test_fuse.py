"""tiebreak fuse: labels where they are wanted, and a summary that is true."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.running import code_of

import tiebreak as tb
from tiebreak import simulate

Run = Callable[..., Any]
Write = Callable[[str, str], Path]


@pytest.fixture
def crowd(folder: Path) -> simulate.Crowd:
    """Write responses.csv, gold.csv and links.csv of a small crowd."""
    drawn = simulate.crowd(60, 8, 3, responses_per_task=4, accuracy=(0.4, 0.8), random_state=1)
    drawn.responses.write("responses.csv")
    drawn.gold.write("gold.csv")
    simulate.links(drawn.gold, 40, random_state=1).write("links.csv")
    return drawn


def rows_of(text: str) -> list[list[str]]:
    return [line.split(",") for line in text.splitlines()]


@pytest.mark.parametrize(
    ("method", "estimator"),
    [
        ("auto", tb.Auto()),
        ("vb", tb.VariationalBayes()),
        ("ds", tb.DawidSkene()),
        ("mv", tb.MajorityVote()),
    ],
)
def test_labels_are_those_of_the_estimator(
    run: Run, crowd: simulate.Crowd, method: str, estimator: Any
) -> None:
    result = run("fuse", "responses.csv", "--method", method)
    assert result.exit_code == 0
    header, *rows = rows_of(result.stdout)
    labels = estimator.fit(crowd.responses).labels_
    assert header == ["task", "label", "probability", "vote"]
    assert {task: label for task, label, *_ in rows} == labels.best()
    votes = tb.MajorityVote().fit(crowd.responses)
    top = np.sort(votes.probabilities_, axis=1)
    expected = votes.labels_.best()
    for (task, _, _, vote), is_tie in zip(rows, top[:, -1] == top[:, -2], strict=True):
        assert vote == ("" if is_tie else expected[task])
    assert [float(row[2]) for row in rows] == pytest.approx(labels.probability.tolist())


def test_links_and_gold_take_part(run: Run, crowd: simulate.Crowd) -> None:
    tb.Gold.from_columns(list(crowd.gold.tasks)[:5],
                  crowd.gold.classes.take(crowd.gold.label[:5])).write("some.csv")  # fmt: skip
    run("fuse", "responses.csv", "--links", "links.csv", "--gold", "some.csv", "-o", "labels.csv")
    model = tb.Auto().fit("responses.csv", links="links.csv", gold="some.csv")
    assert tb.read_labels("labels.csv").best() == model.labels_.best()
    plain = tb.Auto().fit("responses.csv")
    assert model.labels_.best() != plain.labels_.best()


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (["--set", "confusion_prior=uniform"], {"confusion_prior": "uniform"}),
        (["--set", "link_options=mean-field"], {"link_options": tb.MeanFieldOptions()}),
        (
            ["--set", "link_options=mean-field", "--set", "link_strength=0.25"],
            {"link_options": tb.MeanFieldOptions(strength=0.25)},
        ),
        (
            ["--set", "link_options=mean-field", "--set", "link_strength=grid"],
            {"link_options": tb.MeanFieldOptions(strength="grid")},
        ),
        (["--set", "link_error=0.125"], {"link_options": tb.ExactLinkOptions(error=0.125)}),
        (["--set", "link_error=learn"], {"link_options": tb.ExactLinkOptions(error="learn")}),
        (
            ["--set", "link_decode=marginal"],
            {"link_options": tb.ExactLinkOptions(decode="marginal")},
        ),
        (["--set", "calibrate=none"], {"calibrate": "none"}),
        (["--set", "accelerate=no"], {"accelerate": False}),
        (["--set", "worker_model=coin"], {"worker_model": "coin"}),
        (["--set", "on_contradiction=drop"], {"on_contradiction": "drop"}),
        (["--set", "max_iter=3", "--set", "tol=0"], {"max_iter": 3, "tol": 0.0}),
    ],
)
def test_every_option_reaches_the_estimator(
    run: Run, crowd: simulate.Crowd, options: list[str], parameters: dict[str, Any]
) -> None:
    arguments = ("responses.csv", "--links", "links.csv", "--method", "vb", "--save", "m.tbm")
    assert run("fuse", *arguments, *options).exit_code == 0
    assert tb.load("m.tbm").get_params() == tb.VariationalBayes(**parameters).get_params()


def test_members_are_named(run: Run, crowd: simulate.Crowd) -> None:
    arguments = ("fuse", "responses.csv", "-o", "labels.csv")
    assert run(*arguments, "--set", "members=votes, first-step").exit_code == 0
    careful = tb.Auto(members=("votes", "first-step")).fit(crowd.responses)
    assert tb.read_labels("labels.csv").best() == careful.labels_.best()
    unknown = run(*arguments, "--set", "members=votes,best")
    assert (unknown.exit_code, code_of(unknown)) == (2, "wrong-value")
    other = run(*arguments, "--set", "members=votes", "--method", "ds")
    assert (other.exit_code, code_of(other)) == (2, "unknown-setting")


def test_an_option_of_one_method_chooses_it(run: Run, crowd: simulate.Crowd) -> None:
    for chosen in ("worker_model=coin", "calibrate=none", "link_options=mean-field"):
        links = ("--links", "links.csv") if chosen.startswith("link") else ()
        arguments = ("responses.csv", "--set", chosen, *links, "-o", "labels.csv", "--json")
        assert json.loads(run("fuse", *arguments).stdout)["method"] == "vb"


def test_standard_input_and_output_are_one_dash(run: Run, crowd: simulate.Crowd) -> None:
    named = run("fuse", "responses.csv")
    piped = run("fuse", "-", "-o", "-", stdin=Path("responses.csv").read_text())
    assert piped.exit_code == 0
    assert piped.stdout == named.stdout


def test_workers_and_probabilities_are_written(run: Run, crowd: simulate.Crowd) -> None:
    run("fuse", "responses.csv", "-o", "labels.csv", "--workers", "w.csv", "--probabilities")
    model = tb.Auto().fit(crowd.responses)
    header, *rows = rows_of(Path("w.csv").read_text())
    assert header == ["worker", "truth", "answer", "probability", "responses"]
    assert [float(row[3]) for row in rows] == pytest.approx(model.confusion_.ravel().tolist())
    labels = tb.read_labels("labels.csv")
    assert labels.probabilities is not None
    assert np.allclose(labels.probabilities, model.probabilities_)


def test_the_summary_says_what_happened(run: Run, crowd: simulate.Crowd) -> None:
    result = run("fuse", "responses.csv", "--links", "links.csv", "-o", "labels.csv")
    model = tb.Auto().fit("responses.csv", links="links.csv")
    assert model.labels_.probability is not None
    assert model.violations_ is not None
    unsure = int((model.labels_.probability < 0.9).sum())
    assert 0 < unsure < 60
    n, more = model.from_vote_
    assert n > 1
    assert result.stderr.splitlines() == [
        "240 responses, 60 tasks, 8 workers, 3 classes, 40 links",
        f"converged in {model.n_iter_} iterations",
        f"{len(model.violations_)} of 40 links broken",
        f"{unsure} of 60 labels below probability 0.9",
        f"{n} of 60 labels differ from the majority vote. The model expects {more:.0f} more of "
        "these to be correct than the vote's; known labels (--gold) would confirm it.",
        "wrote labels.csv",
    ]
    assert result.stdout == ""


def test_the_summary_as_json_says_the_same(run: Run, crowd: simulate.Crowd) -> None:
    result = run(
        "fuse", "responses.csv", "--gold", "gold.csv", "-o", "labels.csv", "--workers", "w.csv",
        "--json",
    )  # fmt: skip
    model = tb.Auto().fit("responses.csv", gold="gold.csv")
    assert json.loads(result.stdout) == {
        "method": "auto", "responses": 240, "tasks": 60, "workers": 8, "classes": 3, "gold": 60,
        "size": "240 responses, 60 tasks, 8 workers",
        "links": 0, "links_broken": None, "link_strength": None, "links_doubtful": None,
        "link_components": None, "calibration": None, "features": None, "constraints": None,
        "worker_model": None, "members": [each._asdict() for each in model.members_],
        "from_vote": {"n_differ": 0, "of": 60, "expected_right": 0.0},
        "ran_on": "processor", "sweeps": model.n_iter_, "converged": True,
        "bound": pytest.approx(model.bounds_[-1]),
        "labels_below_0.9": 0, "out": "labels.csv", "workers_out": "w.csv", "saved": None,
    }  # fmt: skip


def test_trusted_workers_are_named_with_their_counts(run: Run, crowd: simulate.Crowd) -> None:
    name, other = crowd.responses.workers[0], crowd.responses.workers[1]
    options = (
        "--set",
        f"trust={name},{other}=20",
        "-o",
        "labels.csv",
        "--probabilities",
        "--method",
        "vb",
    )
    result = run("fuse", "responses.csv", *options)
    assert result.exit_code == 0, result.stderr
    model = tb.VariationalBayes(trust={name: 50.0, other: 20.0}).fit("responses.csv")
    written = tb.read_labels("labels.csv").probabilities
    assert written is not None
    assert np.allclose(written, model.probabilities_, atol=1e-12)
    wrong = run("fuse", "responses.csv", "--set", f"trust={name}=many")
    assert (wrong.exit_code, code_of(wrong)) == (2, "numbers-expected")
    nobody = run("fuse", "responses.csv", "--set", "trust=nobody")
    assert nobody.exit_code == 2
    assert "'nobody'" in nobody.stderr


def test_links_that_look_wrong_are_written(run: Run, crowd: simulate.Crowd) -> None:
    simulate.links(crowd.gold, 60, wrong=0.3, random_state=0).write("doubtful-links.csv")
    options = (
        "--links",
        "doubtful-links.csv",
        "--set",
        "link_error=learn",
        "--doubtful",
        "wrong.csv",
    )
    result = run("fuse", "responses.csv", *options, "-o", "labels.csv")
    assert result.exit_code == 0, result.stderr
    model = tb.Auto(link_options=tb.ExactLinkOptions(error="learn")).fit(
        "responses.csv", links="doubtful-links.csv"
    )
    found = model.doubtful_links_
    assert found is not None
    header, *rows = rows_of(Path("wrong.csv").read_text())
    assert header == ["left", "right", "link", "wrong"]
    columns = found.links.columns()
    words = zip(columns["left"], columns["right"], columns["link"], strict=True)
    assert [tuple(row[:3]) for row in rows] == [tuple(map(str, row)) for row in words]
    assert [float(row[3]) for row in rows] == pytest.approx(found.probability.tolist())


def test_doubtful_links_need_links(run: Run, crowd: simulate.Crowd) -> None:
    result = run("fuse", "responses.csv", "--doubtful", "wrong.csv")
    assert (result.exit_code, code_of(result)) == (2, "option-needs")
    assert not Path("wrong.csv").exists()


def test_quiet_says_nothing(run: Run, write: Write) -> None:
    write("r.csv", "item,annotator,answer\na,u,x\na,u,y\nb,v,\n")
    loud, quiet = run("fuse", "r.csv"), run("fuse", "r.csv", "--quiet")
    assert quiet.exit_code == 0
    assert quiet.stderr == ""
    assert quiet.stdout == loud.stdout
    for said in ("'item' as task", "empty label", "repeats a worker"):
        assert said in loud.stderr


def test_what_has_not_settled_is_a_warning_even_if_quiet(run: Run, crowd: simulate.Crowd) -> None:
    result = run("fuse", "responses.csv", "--set", "max_iter=1", "--quiet")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: Not converged after 1 iteration")
    assert "--set max_iter" in result.stderr


def test_columns_tasks_and_classes_can_be_named(run: Run, write: Write) -> None:
    write("r.csv", "x,y,z\na,u,no\nb,u,yes\n")
    write("t.csv", "task\nb\nsilent\n")
    result = run(
        "fuse", "r.csv", "--columns", "task=x, worker=y,label=z", "--set", "tasks=t.csv",
        '--set', 'classes=perhaps,"well, no"', "--method", "mv", "--probabilities", "-q",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0].endswith(
        'probability_no,probability_perhaps,"probability_well, no",probability_yes,vote'
    )
    assert [row[0] for row in rows_of(result.stdout)[1:]] == ["a", "b", "silent"]


@pytest.mark.parametrize(("repeats", "label"), [("last", "y"), ("count", "x")])
def test_repeats_count_as_asked(run: Run, write: Write, repeats: str, label: str) -> None:
    write("r.csv", "task,worker,label\na,u,x\na,u,x\na,u,y\n")
    result = run("fuse", "r.csv", "--method", "mv", "--set", f"repeats={repeats}")
    assert rows_of(result.stdout)[1][:2] == ["a", label]


@pytest.mark.parametrize("name", ["labels.parquet", "labels.jsonl", "labels.tsv.gz"])
def test_the_name_of_the_output_says_its_format(run: Run, crowd: simulate.Crowd, name: str) -> None:
    assert run("fuse", "responses.csv", "-o", name).exit_code == 0
    expected = tb.Auto().fit(crowd.responses).labels_.best()
    assert tb.read_labels(name).best() == expected


def test_a_small_crowd_is_fused_without_compiling(run: Run, crowd: simulate.Crowd) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tiebreak", "fuse", "responses.csv"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "pyarrow" in imported
    assert not imported & {"numba", "polars", "sklearn", "matplotlib"}
    assert done.stdout == run("fuse", "responses.csv").stdout


def cost_rows(crowd: simulate.Crowd) -> str:
    names = [str(name) for name in crowd.responses.classes]
    lines = [",".join(["truth", *names, "ask"])]
    for k, truth in enumerate(names):
        cells = ["0" if k == d else "10" if k == 2 else "1" for d in range(3)]
        lines.append(",".join([truth, *cells, "0.4"]))
    return "\n".join(lines) + "\n"


def test_a_worker_summary_has_a_row_for_each_worker(run: Run, crowd: simulate.Crowd) -> None:
    result = run("fuse", "responses.csv", "--worker-summary", "workers.csv", "-o", "labels.csv")
    assert result.exit_code == 0
    header, *rows = rows_of(Path("workers.csv").read_text())
    table = tb.Auto().fit(crowd.responses).workers_table()
    assert header == list(table.columns())
    assert [row[0] for row in rows] == [str(name) for name in table.workers]
    low = header.index("accuracy_low")
    assert [float(row[low]) for row in rows] == pytest.approx(table.accuracy_low.tolist())


def test_majority_vote_has_no_worker_summary(run: Run, crowd: simulate.Crowd) -> None:
    result = run("fuse", "responses.csv", "--method", "mv", "--worker-summary", "w.csv")
    assert (result.exit_code, code_of(result)) == (2, "method-without-workers")
    assert not Path("w.csv").exists()


def test_decisions_stand_beside_labels(run: Run, crowd: simulate.Crowd, write: Write) -> None:
    write("costs.csv", cost_rows(crowd))
    result = run(
        "fuse", "responses.csv", "--cost-matrix", "costs.csv", "-o", "labels.csv",
        "--json",
    )  # fmt: skip
    assert result.exit_code == 0
    model = tb.Auto().fit(crowd.responses)
    decided = model.decide("costs.csv")
    header, *rows = rows_of(Path("labels.csv").read_text())
    assert header == ["task", "label", "probability", "decision", "expected_cost", "saving", "vote"]
    assert {row[0]: row[3] for row in rows} == decided.best()
    summary = json.loads(result.stdout)["decisions"]
    assert summary["expected_cost"] == pytest.approx(decided.total_cost)
    assert summary["left_open"] == decided.n_left_open
    accuracy = decided.estimate_accuracy()
    assert summary["promised_accuracy"] == pytest.approx(accuracy.promised)
    assert summary["expected_accuracy"] == pytest.approx(accuracy.expected)
    assert summary["accuracy_low"] == pytest.approx(accuracy.low)
    assert summary["accuracy_high"] == pytest.approx(accuracy.high)
    assert summary["known_tasks_counted"] == 0
    assert f"{accuracy.promised:.1%}" in result.stderr


def test_a_share_is_left_open_and_the_rest_is_promised(run: Run, crowd: simulate.Crowd) -> None:
    known = dict(list(crowd.gold.to_dict().items())[:24])
    tb.Gold.from_dict(known).write("some.csv")
    result = run(
        "fuse", "responses.csv", "--gold", "some.csv", "--set", "abstain_rate=0.25",
        "-o", "labels.csv", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    model = tb.Auto().fit(crowd.responses, gold=known)
    decided = model.decide(abstain_rate=0.25)
    _, *rows = rows_of(Path("labels.csv").read_text())
    assert {row[0]: row[3] for row in rows} == decided.best()
    summary = json.loads(result.stdout)["decisions"]
    assert summary["left_open"] == decided.n_left_open > 0
    accuracy = decided.estimate_accuracy()
    assert accuracy.n_known > 0
    assert summary["known_tasks_counted"] == accuracy.n_known
    assert summary["promised_accuracy"] == pytest.approx(accuracy.promised)


def test_nothing_is_promised_where_nothing_is_decided(
    run: Run, crowd: simulate.Crowd, write: Write
) -> None:
    write("costs.csv", cost_rows(crowd).replace("0.4", "-1"))
    result = run("fuse", "responses.csv", "--cost-matrix", "costs.csv", "-o", "l.csv", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["decisions"]["promised_accuracy"] is None
    assert "promised" not in result.stderr


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--set", "abstain_rate=1"), "wrong-value"),
        (("--cost-matrix", "nothing.csv"), "file-missing"),
        (("--cost-matrix", "wrong.csv"), "cost-rows"),
    ],
)
def test_costs_that_cannot_be_used_are_refused(
    run: Run, crowd: simulate.Crowd, write: Write, options: tuple[str, ...], code: str
) -> None:
    write("costs.csv", cost_rows(crowd))
    write("wrong.csv", "truth,x\nx,1\n")
    result = run("fuse", "responses.csv", "-o", "labels.csv", *options)
    assert (result.exit_code, code_of(result)) == (2, code)
    assert not Path("labels.csv").exists()


def test_gibbs_says_whether_it_has_mixed(run: Run, crowd: simulate.Crowd) -> None:
    result = run("fuse", "responses.csv", "--method", "gibbs", "--links", "links.csv")
    assert result.exit_code == 0
    assert "R-hat 1.0" in result.stderr
    model = tb.GibbsSampler().fit(crowd.responses, links="links.csv")
    assert {row[0]: row[1] for row in rows_of(result.stdout)[1:]} == model.labels_.best()
    few = run(
        "fuse", "responses.csv", "--method", "gibbs", "--set", "n_draws=4", "--set", "n_chains=2"
    )
    assert few.exit_code == 0


def test_options_of_other_methods_are_refused(run: Run, crowd: simulate.Crowd) -> None:
    result = run("fuse", "responses.csv", "--set", "n_draws=10")
    assert (result.exit_code, code_of(result)) == (2, "unknown-setting")
