"""The likely best worker: heard as often as gold makes it the best of those who answered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiebreak as tb
from tiebreak.gold import GoldCodes
from tiebreak.inference import likely_best, opinion_weights
from tiebreak.inference.best_worker import BestWorker
from tiebreak.inference.likely_best import LikelyBest
from tiebreak.inference.stages import lay_out
from tiebreak.kernels import layout

EVEN = np.array([0.5, 0.5])


def _tasks(rows: list[tuple[str, str, str]]) -> tuple[Any, Any]:
    crowd = tb.Responses.from_rows(rows)
    return crowd, lay_out(crowd)


@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
@settings(max_examples=30)
def test_chances_are_those_of_draws(seed: int, n_workers: int) -> None:
    rng = np.random.default_rng(seed)
    best = LikelyBest(rng.uniform(1.0, 60.0, n_workers), rng.uniform(1.0, 30.0, n_workers))
    _, tasks = _tasks([("t", f"w{j:02}", "xy"[j % 2]) for j in range(n_workers)])
    heard = likely_best._Chances.of(best).heard(tasks, 2)
    drawn = rng.beta(best.right, best.wrong, (40_000, n_workers)).argmax(axis=1)
    expected = np.bincount(drawn, minlength=n_workers) / len(drawn)
    np.testing.assert_allclose(heard, expected, atol=0.03)
    assert heard.sum() == pytest.approx(1.0)


def test_who_is_far_ahead_is_heard_alone_and_who_is_level_in_equal_shares() -> None:
    _, tasks = _tasks([("t", "a", "x"), ("t", "b", "y"), ("t", "c", "y")])
    ahead = LikelyBest(np.array([95.0, 50.0, 50.0]), np.array([5.0, 50.0, 50.0]))
    level = LikelyBest(np.full(3, 60.0), np.full(3, 40.0))
    everything = np.zeros(1, dtype=np.int32)
    np.testing.assert_allclose(ahead.probabilities(tasks, everything, EVEN), [[0.95, 0.05]], 1e-6)
    found = level.probabilities(tasks, everything, EVEN)
    np.testing.assert_allclose(found, [[(0.6 + 0.4 + 0.4) / 3, (0.4 + 0.6 + 0.6) / 3]])


def test_one_who_answers_alone_says_what_the_best_worker_says() -> None:
    crowd, tasks = _tasks([("a", "j", "x"), ("b", "j", "y"), ("b", "k", "x"), ("c", "k", "z")])
    gold = tb.Gold.from_dict({"a": "x", "b": "y"}).on(crowd.tasks, crowd.classes)
    shares = np.array([0.5, 0.3, 0.2])
    alone = np.array([0, 2], dtype=np.int32)
    found = LikelyBest.of(tasks, 3, gold).probabilities(tasks, alone, shares)
    expected = np.exp(BestWorker.of(tasks, shares, gold).scores())[alone]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_task_without_responses_has_the_shares_of_classes() -> None:
    start = np.array([0, 1, 1])
    code = np.zeros(1, dtype=np.int32)
    tasks = layout.lay_out(start, code, np.zeros(2, np.int8), 2, 2)
    shares = np.array([0.7, 0.3])
    best = LikelyBest(np.array([9.0]), np.array([1.0]))
    found = best.probabilities(tasks, np.arange(2, dtype=np.int32), shares)
    np.testing.assert_allclose(found, [[0.9, 0.1], [0.7, 0.3]])


def test_runs_of_one_worker_share_one_chance() -> None:
    """Ten runs of one judge are not ten judges."""
    code = np.array([0] * 10 + [3], dtype=np.int32)  # worker 0 says 0 ten times, worker 1 says 1
    weight = np.array([0.2] * 10 + [1.0])
    tasks = layout.lay_out(np.array([0, 11]), code, np.zeros(1, np.int8), 4, 2, weight)
    heard = likely_best._Chances.of(LikelyBest(np.full(2, 8.0), np.full(2, 2.0))).heard(tasks, 2)
    assert heard[:10].sum() == pytest.approx(0.5)


def test_parts_of_the_tasks_give_what_all_give(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = tb.simulate.crowd(200, 8, 3, responses_per_task=4, random_state=1)
    tasks = lay_out(crowd.responses)
    gold = crowd.gold.on(crowd.responses.tasks, crowd.responses.classes)
    known = GoldCodes(gold.task[:50], gold.label[:50])
    best = LikelyBest.of(tasks, 3, known)
    asked = np.arange(200, dtype=np.int32)[::-1].copy()
    whole = best.probabilities(tasks, asked, np.full(3, 1 / 3))
    monkeypatch.setattr(likely_best, "CELLS", 1_000)
    np.testing.assert_array_equal(best.probabilities(tasks, asked, np.full(3, 1 / 3)), whole)
    np.testing.assert_allclose(whole.sum(axis=1), 1.0)


def test_with_the_crowd_behind_it_knows_more_than_the_best_worker_alone() -> None:
    """A star among judges of six classes: where it errs, the crowd says which class it may be."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 6, 500)
    rights = [0.85] + [0.6] * 9
    rows = [
        (f"t{i:03}", f"j{j}", f"c{k if rng.random() < right else rng.integers(0, 6)}")
        for i, k in enumerate(truth)
        for j, right in enumerate(rights)
    ]
    auto = tb.Auto().fit(rows, gold={f"t{i:03}": f"c{truth[i]}" for i in range(60)})
    by_name = {each.name: each for each in auto.members_}
    assert by_name["best+crowd"].log_loss < by_name["best worker"].log_loss
    assert auto.best_worker_ == "j0"


def test_opinions_are_weighed_as_the_pool_weighs_vb() -> None:
    """With VB's opinion alone, and no votes, it is the pool under a ridge that lets nobody move."""
    crowd = tb.simulate.crowd(120, 6, 3, responses_per_task=4, random_state=2)
    tasks = lay_out(crowd.responses)
    rng = np.random.default_rng(0)
    table = np.log(rng.dirichlet(np.ones(3), tasks.n_codes))
    table -= table.mean(axis=1, keepdims=True)
    terms = opinion_weights.Terms(tasks, table, np.full(120, 0.5), np.full(3, 1 / 3))
    gold = crowd.gold.on(crowd.responses.tasks, crowd.responses.classes)
    known = opinion_weights._lay_out(terms, gold)
    penalty = opinion_weights._penalty(known, terms, opinion_weights.FIXED)
    expected = opinion_weights._minimise(known, penalty, penalty.centre)
    opinions = known.design[:, 0].reshape(-1, 3, 1)
    weights, offset = opinion_weights.weigh_opinions(terms, opinions, gold)
    np.testing.assert_allclose(weights, expected[:1], atol=1e-4)
    np.testing.assert_allclose(offset, expected[-3:], atol=1e-4)
    one_class = GoldCodes(gold.task, np.zeros_like(gold.label))
    weights, offset = opinion_weights.weigh_opinions(terms, opinions, one_class)
    assert weights.tolist() == [1.0]
    np.testing.assert_allclose(offset, 0.0, atol=1e-12)
