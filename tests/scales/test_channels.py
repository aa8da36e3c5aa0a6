"""The model of a scale: against enumeration, and in every way that a model is used."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import norm

import tiebreak as tb
from tiebreak.inference import workers
from tiebreak.kernels import Floats
from tiebreak.life import Stream

CROWD = tb.simulate.crowd(200, 8, scale=5, responses_per_task=4, random_state=0)
JURY = tb.simulate.crowd(200, 4, scale=5, responses_per_task=4, random_state=1)
GOLD = dict(list(CROWD.gold.to_dict().items())[:30])
LINKS = tb.simulate.links(CROWD.gold, 60, random_state=1)
ESTIMATORS = pytest.mark.parametrize("kind", [tb.VariationalBayes, tb.Auto])


def made(**options: Any) -> tb.VariationalBayes:
    return tb.VariationalBayes(scale="1..5", **options)


def channels_by_hand(values: Floats, share: Floats) -> tuple[Floats, Floats, Floats]:
    """Return every channel (g, level, answer), the log of its weight, and its four numbers."""
    n = len(values)
    size = (n - 1) / 4
    step, middle = (values[-1] - values[0]) / (n - 1), (values[0] + values[-1]) / 2
    cuts = [-np.inf, *((values[1:] + values[:-1]) / 2), np.inf]
    found, weight, cells = [], [], []
    for bias in np.array([-1.5, -1, -0.5, 0, 0.5, 1, 1.5]) * max(size, 1):
        for gain in (0.6, 1.0, 1.6):
            for blur in np.array([0.25, 0.4, 0.6, 0.9, 1.3, 2, 4]) * size**0.75:
                for lapse in (0.02, 0.15, 0.5, 0.95):
                    rows = [
                        np.diff(
                            norm.cdf(cuts, middle + bias * step + gain * (u - middle), blur * step)
                        )
                        for u in values
                    ]
                    found.append((1 - lapse) * np.array(rows) + lapse * share)
                    weight.append(norm.logpdf(bias, 0, 0.5 * max(size, 1)))
                    weight[-1] += norm.logpdf(np.log(gain), 0, 0.3)
                    cells.append((bias, gain, blur, lapse))
    return np.array(found), np.array(weight) - logsumexp(weight), np.array(cells)


@pytest.mark.parametrize("levels", [(1, 2, 3), (0, 1, 4)])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_below_the_evidence_and_kinds_of_readers_are_exact(
    seed: int, levels: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(seed)
    n_tasks, n_workers = 5, 2
    rows = [
        (f"t{i}", f"w{j}", levels[rng.integers(3)])
        for i in range(n_tasks)
        for j in range(n_workers)
    ]
    model = tb.VariationalBayes(scale=list(levels), tol=1e-12, max_iter=2000).fit(rows)
    crowd = model.responses_
    values = np.array(levels, dtype=float)
    given = crowd.weigh_labels().sum(axis=0)
    share = (given + 1 / 3) / (given.sum() + 1)
    gamma, log_weight, cells = channels_by_hand(values, share)
    label = crowd.label_of_each().reshape(n_tasks, n_workers)

    # Every labelling, times every channel of each worker.
    terms = []
    for truth in itertools.product(range(3), repeat=n_tasks):
        counts = np.bincount(truth, minlength=3)
        log = gammaln(1 + counts).sum() - gammaln(3 + n_tasks) + gammaln(3)
        for j in range(n_workers):
            said = np.log(gamma[:, list(truth), label[:, j]]).sum(axis=1)
            log += logsumexp(log_weight + said)
        terms.append(log)
    assert model.bounds_[-1] <= logsumexp(terms)
    assert np.diff(model.bounds_).min() >= -1e-9

    # r of each worker, by the q where the fit ended.
    q = model._state.q
    r = np.empty((n_workers, len(gamma)))
    for j in range(n_workers):
        log = log_weight + (np.log(gamma)[:, :, label[:, j]] * q.T).sum(axis=(1, 2))
        r[j] = np.exp(log - logsumexp(log))
    order = crowd.workers.codes([f"w{j}" for j in range(n_workers)])
    assert np.abs(model.confusion_[order] - np.einsum("wg,gkc->wkc", r, gamma)).max() < 1e-9
    table = model.workers_table()
    for name, of_cell in zip(("bias", "gain", "blur", "lapse"), cells.T, strict=True):
        assert table.traits[name][order] == pytest.approx(r @ of_cell, abs=1e-9)


def test_the_table_is_the_gradient_of_the_evidence() -> None:
    crowd = made().fit(CROWD.responses, gold=None).responses_
    facts = workers.CrowdFacts.of_responses(crowd, trust={"w1": 5.0})
    model = workers.Channels(values=np.array([1.0, 2.0, 3.0, 5.0, 8.0])).of(facts)
    rng = np.random.default_rng(0)
    shape = (model.n_workers * 5, 5)
    counts = rng.uniform(0.5, 5.0, shape)

    def evidence(at: Floats) -> float:
        return model.log_evidence(model.prior + model.collect(at))

    table = model.log_table(model.prior + model.collect(counts))
    for _ in range(10):
        way = rng.normal(size=shape)
        slope = (evidence(counts + 1e-5 * way) - evidence(counts - 1e-5 * way)) / 2e-5
        assert slope == pytest.approx(float((table * way).sum()), rel=1e-5, abs=1e-5)
    assert evidence(np.zeros(shape)) == pytest.approx(0.0, abs=1e-9)


@ESTIMATORS
def test_fits_climb_with_gold_and_links(kind: Any) -> None:
    every: list[dict[str, Any]] = [{}, {"gold": GOLD}, {"links": LINKS}]
    for given in [*every, {"gold": GOLD, "links": LINKS}]:
        model = kind(scale="1..5").fit(CROWD.responses, **given)
        assert np.diff(model.bounds_).min() >= -1e-9
        plain = kind().fit(CROWD.responses, **given) if not given else None
        accuracy = tb.evaluate.accuracy(model.labels_, CROWD.gold)
        assert accuracy > 0.7
        if plain is not None:
            assert accuracy > tb.evaluate.accuracy(plain.labels_, CROWD.gold)
        if "links" in given:
            assert len(model.violations_) == 0
        known = given.get("gold", {})
        assert all(model.labels_[task].label == level for task, level in known.items())


pytestmark = pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")


def test_a_jury_that_is_off_as_one_is_put_right_by_gold() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 6, 300)
    rows = [
        (
            f"t{i:03d}",
            f"w{j}",
            int(np.clip(truth[i] + 1 + (rng.random() < 0.2) - (rng.random() < 0.2), 1, 5)),
        )
        for i in range(300)
        for j in range(5)
    ]
    gold = {f"t{i:03d}": int(truth[i]) for i in range(300)}
    known = dict(list(gold.items())[:40])
    alone, told = made().fit(rows), made().fit(rows, gold=known)
    of_alone, of_told = (
        tb.evaluate.mean_absolute_error(m.labels_, gold, given=known) for m in (alone, told)
    )
    assert of_told < 0.5 * of_alone
    assert told.workers_table().traits["bias"].mean() > 0.5


@ESTIMATORS
def test_neither_order_nor_names_matter(kind: Any) -> None:
    rows = [
        (task, worker, label)
        for task, worker, label in zip(
            CROWD.responses.tasks.take(CROWD.responses.task_of_each()),
            CROWD.responses.workers.take(CROWD.responses.worker_of_each()),
            CROWD.responses.classes.take(CROWD.responses.label_of_each()),
            strict=True,
        )
    ]
    rng = np.random.default_rng(3)
    other = [(f"x{t}", f"y{w}", f"{k}.0") for t, w, k in rows]
    other = [other[i] for i in rng.permutation(len(other))]
    gold = {f"x{t}": k for t, k in reversed(GOLD.items())}
    one = kind(scale="1..5").fit(rows, gold=GOLD)
    two = kind(scale="1..5").fit(other, gold=gold)
    assert {f"x{t}": k for t, k in one.labels_.best().items()} == two.labels_.best()
    place = two.tasks_.codes([f"x{t}" for t in one.tasks_])
    assert np.abs(one.probabilities_ - two.probabilities_[place]).max() < 1e-6


def test_a_weight_is_a_response_that_is_given_more_often() -> None:
    rng = np.random.default_rng(0)
    crowd = CROWD.responses
    n = crowd.n_responses
    weight = rng.integers(1, 3, n)
    task, worker, label = crowd.task_of_each(), crowd.worker_of_each(), crowd.label_of_each()
    names = crowd.tasks, crowd.workers, crowd.classes
    weighed = tb.Responses.from_codes(task, worker, label, *names, weight=weight)
    each = np.repeat(np.arange(n), weight)
    repeated = tb.Responses.from_codes(task[each], worker[each], label[each], *names)
    one, two = made().fit(weighed), made().fit(repeated)
    assert np.abs(one.probabilities_ - two.probabilities_).max() < 1e-5


def test_the_scale_may_be_turned_round() -> None:
    """What is 1..5 from below is 1..5 from above."""
    crowd = JURY.responses
    turned = crowd.recoded(crowd.classes, np.arange(5, dtype=np.int32)[::-1].copy())
    one, two = made().fit(crowd), made().fit(turned)
    assert np.abs(one.probabilities_ - two.probabilities_[:, ::-1]).max() < 1e-5
    bias = [model.workers_table().traits["bias"] for model in (one, two)]
    assert bias[0] == pytest.approx(-bias[1], abs=1e-4)


def test_judges_are_told_by_bias_and_gain() -> None:
    rng = np.random.default_rng(5)
    truth = rng.integers(1, 6, 400)
    judges = {"low": (-1.0, 1.0), "fair": (0.0, 1.0), "even": (0.0, 1.0), "flat": (0.0, 0.6)}
    rows = [
        (i, name, int(np.clip(np.rint(3 + b + a * (truth[i] - 3) + 0.4 * rng.normal()), 1, 5)))
        for i in range(400)
        for name, (b, a) in judges.items()
    ]
    model = made().fit(rows)
    table = model.workers_table()
    at = table.workers.codes(list(judges))
    bias, gain = table.traits["bias"][at], table.traits["gain"][at]
    assert bias[0] - bias[1] == pytest.approx(-1.0, abs=0.3)
    assert gain[3] < 0.8 < gain[1]
    for name in ("bias", "gain", "blur", "lapse"):
        low, high = table.traits[f"{name}_low"], table.traits[f"{name}_high"]
        assert (low <= high).all()
    assert "bias_low" in table.to_frame("pandas").columns
    assert (table.accuracy_low <= table.accuracy_high).all()


def test_intervals_of_accuracy_cover() -> None:
    covered = []
    for seed in range(6):
        crowd = tb.simulate.crowd(
            200, 8, scale=5, responses_per_task=5, bias=0.4, random_state=100 + seed
        )
        table = made().fit(crowd.responses).workers_table()
        truth = np.einsum("k,wkk->w", crowd.class_prior, crowd.confusion)
        covered += list((table.accuracy_low <= truth) & (truth <= table.accuracy_high))
    assert np.mean(covered) > 0.7


@ESTIMATORS
def test_new_tasks_updates_and_files(kind: Any, tmp_path: Path) -> None:
    model = kind(scale="1..5").fit(CROWD.responses, gold=GOLD)
    worker = CROWD.responses.workers[0]
    asked = [("n", worker, "3.0"), ("n", CROWD.responses.workers[1], 3), ("n", "stranger", "4")]
    asked = [(task, who, str(level)) for task, who, level in asked]
    labels = model.predict(asked)
    assert labels.scores is not None
    assert 1.0 <= labels.scores.mean[0] <= 5.0
    with pytest.raises(tb.errors.ResponseError) as error:
        model.predict([("n", worker, 9)])
    assert error.value.code == "off-scale"
    model.save(tmp_path / "m.tbm")
    opened = tb.load(tmp_path / "m.tbm")
    assert np.array_equal(opened.probabilities_, model.probabilities_)
    assert opened.scale_ == model.scale_
    assert np.array_equal(opened.score_intervals_, model.score_intervals_)
    assert opened.predict(asked).best() == labels.best()
    for each in (opened, model):
        each.update([("new", worker, "5.0"), ("new", "newcomer", "5.0")], gold={"new": 4})
        assert each.labels_["new"].label == 4
        assert each.scale_.levels == (1, 2, 3, 4, 5)
        assert each.scale == "1..5"
    assert np.array_equal(opened.probabilities_, model.probabilities_)
    with pytest.raises(tb.InputError):
        model.update([("late", worker, 0)])


def test_counts_in_the_place_of_responses(tmp_path: Path) -> None:
    model = made().fit(CROWD.responses)
    model.save(tmp_path / "m.tbm", keep="counts")
    opened = tb.load(tmp_path / "m.tbm")
    worker = CROWD.responses.workers[0]
    opened.update([("new", worker, 2)], forget=0.9)
    assert opened.labels_["new"].label in (1, 2, 3)
    assert np.diff(opened.bounds_).min() >= -1e-9


def test_a_stream_ends_where_a_fit_does() -> None:
    crowd = JURY.responses
    rows = (
        list(crowd.tasks.take(crowd.task_of_each())),
        list(crowd.workers.take(crowd.worker_of_each())),
        [f"{level}.0" for level in crowd.classes.take(crowd.label_of_each())],
    )
    first = [column[:200] for column in rows]
    stream = Stream(made().fit(dict(zip(("task", "worker", "label"), first, strict=True))))
    for at in range(200, len(rows[0]), 200):
        stream.visit(stream.add(*(column[at : at + 200] for column in rows)))
    stream.catch_up()
    model = stream.to_model()
    whole = made().fit(crowd)
    agree = np.mean(
        [model.labels_[task].label == whole.labels_[task].label for task in whole.tasks_]
    )
    assert agree > 0.88  # lapses answer as the responses of its first fit did
    assert model.scores_ is not None
    assert model.scores_.shape == (200,)
    with pytest.raises(tb.errors.ResponseError):
        stream.add(["z"], ["w1"], ["7"])


@pytest.mark.parametrize("gold", [None, GOLD], ids=["alone", "gold"])
def test_shards_are_fitted_as_one_table(gold: Any, tmp_path: Path) -> None:
    crowd = CROWD.responses
    (tmp_path / "parts").mkdir()
    for part, tasks in enumerate(np.array_split(np.arange(crowd.n_tasks), 3)):
        crowd.on_tasks(tasks).write(tmp_path / "parts" / f"{part}.csv")
    found = tb.shards.fit(
        str(tmp_path / "parts" / "*.csv"), tmp_path / "out", estimator=made(), gold=gold
    )
    whole = made().fit(crowd, gold=gold)
    table = found.labels_.to_table().to_pandas().set_index("task")
    expected = whole.labels_.best()
    assert {task: row["label"] for task, row in table.iterrows()} == expected
    assert table["score"].to_numpy() == pytest.approx(
        whole.labels_.to_frame("pandas").set_index("task").loc[table.index, "score"], abs=1e-6
    )
    assert found.predict([("n", crowd.workers[0], 3)]).scores is not None
    with pytest.raises(tb.errors.OptionError) as error:
        tb.shards.fit(
            str(tmp_path / "parts" / "*.csv"),
            tmp_path / "auto",
            estimator=tb.VariationalBayes(scale="auto"),
        )
    assert error.value.code == "shards-auto-scale"


def test_questions_routes_and_sessions_take_a_scale() -> None:
    model = made().fit(CROWD.responses, gold=GOLD)
    assert len(tb.selection.questions(model, n=3)) == 3
    assert len(model.decide().expert_first(3)) == 3
    assert model.explain(model.tasks_[0])
