"""Crowds of workers who can say one class only: no collapse, and the bound is exact."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

import tiebreak as tb
from tiebreak.data import Responses
from tiebreak.inference import (
    FIXED,
    ClassPrior,
    ConfusionMatrices,
    CrowdFacts,
    FitState,
    FixedRows,
    Independent,
    Problem,
    Stopping,
    climb,
    crowd_model,
    lay_out,
)
from tiebreak.kernels import Mask, reference


def rules(n_tasks: int = 600, seed: int = 0, right: float = 0.85) -> tuple[Responses, tb.Gold]:
    """Draw tasks of a common and two rare classes, and rules that fire for one class each."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n_tasks, p=[0.8, 0.1, 0.1])
    rows = []
    for i, k in enumerate(truth):
        for rule in range(12):
            own = rule % 3
            fires = 0.3 if own == k else 0.3 * (1.0 - right) / right / 2.0
            if rng.random() < fires:
                rows.append((f"t{i}", f"rule{rule}", "abc"[own]))
    gold = tb.Gold.from_dict({f"t{i}": "abc"[k] for i, k in enumerate(truth)})
    return Responses.from_rows(rows), gold


def problem_of(responses: Responses, fixed: Mask) -> Problem:
    prior = np.where(np.eye(responses.n_classes, dtype=bool), 2.5, 1.5)[None]
    workers = FixedRows(ConfusionMatrices(prior, responses.n_workers), fixed, prior)
    shares = ClassPrior(np.linspace(1.0, 2.0, responses.n_classes), FIXED)
    return Problem(lay_out(responses), Independent(shares), workers, reference)


@given(seed=st.integers(0, 200))
def test_the_bound_is_exact_and_never_falls(seed: int) -> None:
    """All labellings are enumerated; rows that are known are known, the others integrated out."""
    rng = np.random.default_rng(seed)
    each = rng.integers(0, (4, 2, 3), size=(9, 3))
    rows = dict.fromkeys((f"t{t}", f"w{w}", "abc"[label]) for t, w, label in each)
    responses = Responses.from_rows({row[:2]: row for row in rows}.values())
    fixed = rng.random((responses.n_workers, responses.n_classes)) < 0.5
    problem = problem_of(responses, fixed)
    run = climb(problem, FitState(q=problem.votes()), Stopping(0.0, 20))
    assert np.diff(run.bounds).min() >= -1e-9
    every = list(product(range(problem.n_classes), repeat=problem.rows.n_tasks))
    logs = np.array([_log_joint(responses, fixed, states) for states in every])
    assert run.bounds[-1] <= np.logaddexp.reduce(logs) + 1e-9
    q = np.eye(problem.n_classes)[list(every[seed % len(every)])]
    bound = problem.bound(problem.implied(q), 0.0)
    assert bound == pytest.approx(logs[seed % len(every)], abs=1e-9)


def _log_joint(responses: Responses, fixed: Mask, states: tuple[int, ...]) -> float:
    n_classes = responses.n_classes
    share = np.linspace(1.0, 2.0, n_classes)
    total = float(np.log(share / share.sum())[list(states)].sum())
    prior = np.where(np.eye(n_classes, dtype=bool), 2.5, 1.5)  # [truth, answer]
    counts = np.zeros((responses.n_workers, n_classes, n_classes))
    columns = (responses.task_of_each(), responses.worker_of_each(), responses.label_of_each())
    for task, worker, label in zip(*columns, strict=True):
        counts[worker, states[task], label] += 1.0
    for w, k in product(range(responses.n_workers), range(n_classes)):
        n = counts[w, k]
        if fixed[w, k]:
            total += float(n @ np.log(prior[k] / prior[k].sum()))
        else:
            after = prior[k] + n
            total += float((gammaln(after) - gammaln(prior[k])).sum())
            total += float(gammaln(prior[k].sum()) - gammaln(after.sum()))
    return total


def test_a_crowd_of_rules_does_not_collapse() -> None:
    responses, gold = rules()
    found = tb.evaluate.accuracy(tb.VariationalBayes().fit(responses).labels_, gold)
    votes = tb.evaluate.accuracy(tb.MajorityVote().fit(responses).labels_, gold)
    assert found >= votes - 0.005
    for model in (tb.VariationalBayes(worker_model="kinds"), tb.Auto()):
        assert tb.evaluate.accuracy(model.fit(responses).labels_, gold) >= votes - 0.005


def test_who_says_one_class_to_every_task_is_learnt_as_ever() -> None:
    """A lazy rule fires on tasks of all classes, and the others contradict it."""
    responses, _ = rules()
    said = zip(
        (responses.tasks[i] for i in responses.task_of_each()),
        (responses.workers[w] for w in responses.worker_of_each()),
        (responses.classes[k] for k in responses.label_of_each()),
        strict=True,
    )
    lazy = [(task, "lazy", "b") for task in responses.tasks[::6]]
    crowd = Responses.from_rows([*said, *lazy])
    fixed = CrowdFacts.of_responses(crowd).rows_to_fix()
    assert fixed is not None
    place = list(crowd.workers).index("lazy")
    assert not fixed[place].any()
    assert fixed.any(axis=1).sum() >= 6


def test_a_crowd_of_people_is_left_as_it_is() -> None:
    crowd = tb.simulate.crowd(300, 12, 3, random_state=1)
    assert CrowdFacts.of_responses(crowd.responses).rows_to_fix() is None
    model = crowd_model("confusion", CrowdFacts.of_responses(crowd.responses))
    assert isinstance(model.workers, ConfusionMatrices)


@pytest.mark.skipif("TIEBREAK_JURIES" not in os.environ, reason="TIEBREAK_JURIES is not set")
@pytest.mark.parametrize(("name", "least"), [("ws_trec", 0.53), ("ws_sms", 0.95)])
def test_real_rules_do_not_collapse(name: str, least: float) -> None:
    folder = Path(os.environ["TIEBREAK_JURIES"]) / name
    model = tb.VariationalBayes().fit(tb.read_responses(folder / "responses.csv"))
    assert tb.evaluate.accuracy(model.labels_, tb.read_gold(folder / "gold.csv")) >= least
