"""The bound never falls, at any step, and stays below the exact evidence."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from oracles import enumeration
from oracles.bound import bound_terms
from oracles.dawid_skene import objective
from properties.strategies import Crowd, crowds, point_problem_of, problem_of

from tiebreak.data import GoldCodes
from tiebreak.inference import FitState, Known, Problem, Stopping, Sweeps, climb


def half_steps(problem: Problem, q: np.ndarray, n_sweeps: int = 6) -> list[float]:
    """Return the bound, term by term, after every half of every sweep."""
    sweeps = Sweeps(problem, q.copy())
    parameters = problem.updated(sweeps.tally())
    bounds = [bound_terms(problem, q, parameters).total]
    for _ in range(n_sweeps):
        sums = sweeps.sweep(parameters, problem.logs(parameters), None)
        q = sweeps.inner.q()
        bounds.append(bound_terms(problem, q, parameters).total)
        parameters = problem.updated(sums)
        bounds.append(bound_terms(problem, q, parameters).total)
        short = problem.bound(parameters, sums.value)
        assert abs(short - bounds[-1]) < 1e-8 * (1 + abs(short))
    return bounds


def assert_never_falls(bounds: list[float]) -> None:
    assert np.diff(bounds).min(initial=0.0) >= -1e-9 * (1 + max(map(abs, bounds)))


def log_evidence(
    crowd: Crowd, gold: GoldCodes | None, links: list[tuple[int, int, float]]
) -> float:
    responses = crowd.responses
    rows = list(
        zip(
            responses.task_of_each().tolist(),
            responses.worker_of_each().tolist(),
            responses.label_of_each().tolist(),
            strict=True,
        )
    )
    by_truth = crowd.confusion_prior.transpose(0, 2, 1)
    prior = np.repeat(by_truth, responses.n_workers, axis=0)
    known = {} if gold is None else dict(zip(gold.task.tolist(), gold.label.tolist(), strict=True))
    every = enumeration.labellings(responses.n_tasks, responses.n_classes, known)
    return enumeration.log_total(
        lambda y: (
            enumeration.log_joint(y, rows, crowd.class_prior, prior)
            + enumeration.link_sum(y, links)
        ),
        every,
    )


@given(crowds(), st.booleans())
def test_bound_never_falls(crowd: Crowd, knows: bool) -> None:
    known = Known.of(crowd.gold if knows else None)
    problem = known.on(problem_of(crowd))
    assert_never_falls(half_steps(problem, known.clamp(problem.votes())))


@given(crowds(), st.booleans())
def test_bound_stays_below_the_exact_evidence(crowd: Crowd, knows: bool) -> None:
    gold = crowd.gold if knows else None
    known = Known.of(gold)
    problem = known.on(problem_of(crowd))
    state = climb(problem, FitState(q=known.clamp(problem.votes())))
    assert state.bounds[-1] <= log_evidence(crowd, gold, []) + 1e-9


@given(crowds(), st.booleans(), st.sampled_from([0.0, 0.01, 1.0]))
def test_dawid_skene_objective_never_falls(crowd: Crowd, knows: bool, smoothing: float) -> None:
    gold = crowd.gold if knows else None
    known = Known.of(gold)
    problem = known.on(point_problem_of(crowd, smoothing))
    q = known.clamp(problem.votes())
    labels = None
    if gold is not None:
        labels = dict(zip(gold.task.tolist(), gold.label.tolist(), strict=True))
    objectives = []
    for n_sweeps in range(1, 9):
        state = climb(problem, FitState(q=q), Stopping(0.0, n_sweeps))
        shares = problem.tasks.shares.mean(state.parameters[0]), problem.confusion(state.parameters)
        objectives.append(objective(crowd.responses, *shares, labels, smoothing))
        assert state.bounds[-1] <= objectives[-1] + 1e-9 * (1 + abs(objectives[-1]))
    assert_never_falls(list(state.bounds))
    assert_never_falls(objectives)
