"""What must not matter: names, the order of rows, threads, the backend."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.strategies import Crowd, crowds, problem_of

import tiebreak as tb
from tiebreak import simulate
from tiebreak.estimators import Estimator
from tiebreak.inference import FitState, Known, climb, lay_out
from tiebreak.inference.tasks.mean_field import with_mean_field
from tiebreak.kernels import compiled, reference, softmax
from tiebreak.links.graph import imply

METHODS = st.sampled_from(["mv", "ds", "vb", "gold"])
Row = tuple[Any, Any, Any]


def rows_of(crowd: Crowd) -> list[Row]:
    responses = crowd.responses
    columns = (
        responses.task_of_each().tolist(),
        responses.worker_of_each().tolist(),
        responses.label_of_each().tolist(),
    )
    return list(zip(*columns, strict=True))


def fit(method: str, rows: list[Row], gold: dict[Any, Any]) -> Estimator:
    models: dict[str, Estimator] = {
        "mv": tb.MajorityVote(),
        "ds": tb.DawidSkene(tol=0.0, max_iter=6),
        "vb": tb.VariationalBayes(tol=0.0, max_iter=6),
        "gold": tb.VariationalBayes(tol=0.0, max_iter=6, calibrate="none"),
    }
    known = gold if method == "gold" and gold else None
    return models[method].fit(rows, gold=known)


def by_name(model: Estimator) -> dict[tuple[Any, Any], float]:
    return {
        (task, label): float(model.probabilities_[i, k])
        for i, task in enumerate(model.tasks_)
        for k, label in enumerate(model.classes_)
    }


def assert_close(found: dict[Any, float], expected: dict[Any, float]) -> None:
    assert found.keys() == expected.keys()
    assert max(abs(found[key] - expected[key]) for key in expected) < 1e-8


def gold_of(crowd: Crowd, rows: list[Row]) -> dict[int, int]:
    """Keep gold for tasks with a response and classes that some worker used."""
    tasks, classes = {row[0] for row in rows}, {row[2] for row in rows}
    pairs = zip(crowd.gold.task.tolist(), crowd.gold.label.tolist(), strict=True)
    return {task: label for task, label in pairs if task in tasks and label in classes}


@settings(max_examples=60)
@given(crowds(), METHODS, st.randoms(use_true_random=False))
def test_reordering_rows_changes_nothing(crowd: Crowd, method: str, random: Any) -> None:
    rows = rows_of(crowd)
    if len({row[2] for row in rows}) < 2:
        return
    shuffled = list(rows)
    random.shuffle(shuffled)
    gold = gold_of(crowd, rows)
    assert_close(by_name(fit(method, shuffled, gold)), by_name(fit(method, rows, gold)))


@settings(max_examples=60)
@given(crowds(), METHODS)
def test_renaming_renames_the_result(crowd: Crowd, method: str) -> None:
    rows = rows_of(crowd)
    if len({row[2] for row in rows}) < 2:
        return
    # Classes change their order too: 0, 1, 2 become "c", "b", "a".
    renamed = [(f"task {t}", f"worker {w}", "cba"[k]) for t, w, k in rows]
    gold = gold_of(crowd, rows)
    new_gold = {f"task {t}": "cba"[k] for t, k in gold.items()}
    found = by_name(fit(method, renamed, new_gold))
    expected = by_name(fit(method, rows, gold))
    assert_close(found, {(f"task {t}", "cba"[k]): p for (t, k), p in expected.items()})


@settings(max_examples=60)
@given(crowds(), st.booleans())
def test_a_compiled_sweep_equals_the_reference(crowd: Crowd, knows: bool) -> None:
    known = Known.of(crowd.gold if knows else None)
    problem = known.on(problem_of(crowd))
    q = known.clamp(problem.votes())
    logs = problem.logs(problem.implied(q.copy()))
    swept = []
    for backend in (compiled, reference):
        sweeper = backend.open(problem.rows, q.copy())
        swept.append((*sweeper.sweep(logs), sweeper.q()))
    for one, other in zip(*swept, strict=True):
        assert np.abs(one - other).max() < 1e-12 * (1 + np.abs(other).max())


@settings(max_examples=60)
@given(
    crowds(),
    st.sampled_from([0.5, 5.0]),
    st.booleans(),
    st.sampled_from(["in-turn", "parallel", "damped"]),
)
def test_compiled_link_updates_equal_the_reference(
    crowd: Crowd, strength: float, weigh: bool, schedule: str
) -> None:
    if not len(crowd.links.left):
        return
    rng = np.random.default_rng(3)
    weight = rng.uniform(0.1, 3.0, crowd.links.n_links) if weigh else None
    links = crowd.links._replace(weight=weight)
    implied = imply(links, crowd.responses.n_classes)
    u = rng.normal(0, 1, (crowd.responses.n_tasks, crowd.responses.n_classes))
    results = []
    for backend in (reference, compiled):
        options = tb.MeanFieldOptions(schedule=schedule)
        tasks: Any = with_mean_field(problem_of(crowd, backend), implied, options)[0].tasks
        own = u[tasks.own.at]
        found = replace(tasks, strength=strength).infer((), own, softmax(own), None)
        results.append((found.q, found.value))
    for one, other in zip(*results, strict=True):
        assert np.abs(np.asarray(one) - np.asarray(other)).max() < 1e-12 * (1 + np.abs(other).max())


@settings(max_examples=40)
@given(crowds())
def test_whole_fits_of_both_backends_agree(crowd: Crowd) -> None:
    fits = []
    for backend in (reference, compiled):
        problem = problem_of(crowd, backend)
        fits.append(climb(problem, FitState(q=problem.votes())).q)
    assert np.abs(fits[0] - fits[1]).max() < 1e-8


@pytest.mark.parametrize("n_classes", [2, 3, 11])
def test_one_and_two_threads_give_the_same_bits(n_classes: int) -> None:
    crowd = simulate.crowd(100_000, 30, n_classes, responses_per_task=5, random_state=0)
    fits = [
        tb.VariationalBayes(backend="numba", n_threads=n, tol=0.0, max_iter=3).fit(crowd.responses)
        for n in (1, 2)
    ]
    assert (fits[0].probabilities_ == fits[1].probabilities_).all()
    assert (fits[0].confusion_ == fits[1].confusion_).all()
    assert fits[0].bounds_ == fits[1].bounds_
    assert len(lay_out(crowd.responses).edges) > 3
