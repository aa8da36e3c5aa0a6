"""The weight of gold: known tasks count more often for their workers, and nothing else changes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.special import gammaln

import tiebreak as tb
from tiebreak import simulate
from tiebreak.data import Ids

CROWD = simulate.crowd(120, 6, 3, responses_per_task=4, random_state=2)
TRUTH = CROWD.gold.to_dict()
KNOWN = dict(list(TRUTH.items())[:30])
MODELS = ("confusion", "coin", "kinds", "subtypes", "kinds+subtypes")


def _log_marginal(rows: list[tuple[int, int, int]], weights: Any, fixed: dict[int, int]) -> float:
    """Return log Σ_y ∫ p of the weighted model, enumerated: two classes, (task, worker, label)."""
    n_tasks = 1 + max(row[0] for row in rows)
    n_workers = 1 + max(row[1] for row in rows)
    total = []
    for y in product(range(2), repeat=n_tasks):
        if any(y[i] != k for i, k in fixed.items()):
            continue
        counts = np.bincount(y, minlength=2)
        value = gammaln(2.0) - gammaln(2.0 + n_tasks) + gammaln(1.0 + counts).sum()
        beta = np.full((n_workers, 2, 2), 1.0) + np.eye(2)
        prior = (gammaln(beta).sum(-1) - gammaln(beta.sum(-1))).sum()
        for (i, w, label), weight in zip(rows, weights, strict=True):
            beta[w, y[i], label] += weight
        value += (gammaln(beta).sum(-1) - gammaln(beta.sum(-1))).sum() - prior
        total.append(value)
    return float(np.logaddexp.reduce(total))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.3, 12.0), st.sampled_from(["confusion", "kinds"]))
def test_the_bound_never_falls_and_stays_below_the_enumerated_marginal(
    seed: int, weight: float, worker_model: str
) -> None:
    rng = np.random.default_rng(seed)
    rows = [(i, w, int(rng.integers(2))) for i in range(6) for w in range(3) if rng.random() < 0.8]
    rows = rows or [(0, 0, 0)]
    rows += [(5, 0, 1)] if not any(row[0] == 5 for row in rows) else []
    rows += [(0, 2, 0)] if not any(row[1] == 2 for row in rows) else []
    fixed = {row[0]: int(rng.integers(2)) for row in rows[:2]}
    named = [(f"t{i}", f"w{w}", f"c{k}") for i, w, k in rows]
    crowd = tb.Responses.from_rows(named).with_classes(Ids(["c0", "c1"]))
    gold = {f"t{i}": f"c{k}" for i, k in fixed.items()}
    model = tb.VariationalBayes(
        gold_weight=weight, worker_model=worker_model, tol=0, max_iter=25
    ).fit(crowd, gold=gold)
    assert np.diff(model.bounds_).min() > -1e-9
    if worker_model == "confusion" and len({row[0] for row in rows}) == 6:
        weights = [weight if i in fixed else 1.0 for i, _, _ in rows]
        assert model.bounds_[-1] <= _log_marginal(rows, weights, fixed) + 1e-9


def test_where_all_is_known_the_bound_is_the_enumerated_marginal() -> None:
    rows = [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1), (2, 1, 0)]
    fixed = {0: 0, 1: 1, 2: 0}
    named = [(f"t{i}", f"w{w}", f"c{k}") for i, w, k in rows]
    gold = {f"t{i}": f"c{k}" for i, k in fixed.items()}
    model = tb.VariationalBayes(gold_weight=3.5).fit(named, gold=gold)
    expected = _log_marginal(rows, [3.5] * len(rows), fixed)
    assert model.bounds_[-1] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("worker_model", ["confusion", "coin"])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_whole_weight_is_that_many_copies_of_each_response(
    worker_model: str, backend: str
) -> None:
    """Weight 3 for the workers: as if each response on a known task had been given three times."""
    crowd = CROWD.responses
    task = crowd.tasks.take(crowd.task_of_each())
    worker = crowd.workers.take(crowd.worker_of_each())
    label = crowd.classes.take(crowd.label_of_each())
    rows = list(zip(task, worker, label, strict=True))
    copies = rows + 2 * [row for row in rows if row[0] in KNOWN]
    columns = dict(zip(("task", "worker", "label"), zip(*copies, strict=True), strict=True))
    with pytest.warns(tb.InputNote, match="each counts as one more"):
        many = tb.read_responses({k: list(v) for k, v in columns.items()}, repeats="count")
    options: dict[str, Any] = {
        "worker_model": worker_model,
        "backend": backend,
        "calibrate": "none",
        "tol": 0,
        "max_iter": 15,
        "init": tb.MajorityVote().fit(crowd).probabilities_,
    }
    weighed = tb.VariationalBayes(gold_weight=3, **options).fit(crowd, gold=KNOWN)
    counted = tb.VariationalBayes(gold_weight=1, **options).fit(many, gold=KNOWN)
    assert list(weighed.tasks_) == list(counted.tasks_)
    np.testing.assert_allclose(weighed.probabilities_, counted.probabilities_, atol=1e-9)
    assert weighed.bounds_[-1] == pytest.approx(counted.bounds_[-1], rel=1e-12)


@pytest.mark.parametrize("worker_model", MODELS)
def test_the_bound_never_falls_whatever_the_worker_model(worker_model: str) -> None:
    model = tb.VariationalBayes(gold_weight=7.5, worker_model=worker_model, tol=0, max_iter=40)
    assert np.diff(model.fit(CROWD.responses, gold=KNOWN).bounds_).min() > -1e-8


def test_weight_one_weighs_nothing_and_a_weight_without_gold_neither() -> None:
    one = tb.VariationalBayes(gold_weight=1).fit(CROWD.responses, gold=KNOWN)
    again = tb.VariationalBayes(gold_weight=1.0).fit(CROWD.responses, gold=KNOWN)
    assert (one.probabilities_ == again.probabilities_).all()
    assert one.bounds_ == again.bounds_
    plain = tb.VariationalBayes().fit(CROWD.responses)
    heavy = tb.VariationalBayes(gold_weight=5).fit(CROWD.responses)
    assert (plain.probabilities_ == heavy.probabilities_).all()


def test_dawid_skene_weighs_gold_too_and_its_objective_never_falls() -> None:
    model = tb.DawidSkene(gold_weight=4, tol=0, max_iter=30, smoothing=0.1)
    fitted = model.fit(CROWD.responses, gold=KNOWN)
    assert np.diff(fitted.bounds_).min() > -1e-8
    once = tb.DawidSkene(gold_weight=1, tol=0, max_iter=30, smoothing=0.1)
    once.fit(CROWD.responses, gold=KNOWN)
    assert np.abs(once.confusion_ - fitted.confusion_).max() > 1e-3


@pytest.mark.parametrize("options", [None, tb.MeanFieldOptions(), tb.ExactLinkOptions(error=0.1)])
def test_it_works_with_links(options: Any) -> None:
    links = simulate.links(CROWD.gold, 40, random_state=1)
    model = tb.VariationalBayes(gold_weight="auto", link_options=options)
    model.fit(CROWD.responses, gold=KNOWN, links=links)
    best = model.labels_.best()
    assert all(best[task] == k for task, k in KNOWN.items())
    right = np.mean([best[task] == k for task, k in TRUTH.items()])
    assert right > 0.8


def test_workers_with_many_responses_have_more_weighty_gold() -> None:
    rows = [(f"t{i}", "busy", "xy"[i % 2]) for i in range(202)] + [("t0", "rare", "x")]
    model = tb.VariationalBayes().fit(rows, gold={"t0": "x"})
    assert model.gold_weight == "auto"
    twice = tb.VariationalBayes(gold_weight=1).fit(rows, gold={"t0": "x"})
    busy = list(model.workers_).index("busy")
    rare = 1 - busy
    assert (model.confusion_[rare] == twice.confusion_[rare]).all()
    assert model.confusion_[busy, 0, 0] > twice.confusion_[busy, 0, 0]


@pytest.mark.parametrize("wrong", ["much", 0, -1.0, np.inf, np.nan])
def test_a_weight_that_means_nothing_is_refused(wrong: Any) -> None:
    for estimator in (tb.VariationalBayes, tb.DawidSkene):
        with refused(tb.errors.OptionError, "wrong-value gold_weight"):
            estimator(gold_weight=wrong).fit(CROWD.responses, gold=KNOWN)


def test_with_links_a_known_task_counts_once() -> None:
    """A known label settles whole groups there, which are no sample of what a worker sees."""
    crowd = tb.simulate.crowd(120, 6, 2, responses_per_task=4, random_state=1)
    links = tb.simulate.links(crowd.gold, 60, random_state=1)
    known = dict(list(crowd.gold.to_dict().items())[:20])
    auto = tb.VariationalBayes().fit(crowd.responses, links=links, gold=known)
    once = tb.VariationalBayes(gold_weight=1).fit(crowd.responses, links=links, gold=known)
    assert (auto.probabilities_ == once.probabilities_).all()
    heavy = tb.VariationalBayes(gold_weight=5).fit(crowd.responses, links=links, gold=known)
    assert (heavy.probabilities_ != once.probabilities_).any()
