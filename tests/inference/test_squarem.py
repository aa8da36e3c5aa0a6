"""Leaps: fewer sweeps, a bound that never falls, the same place to end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.bound import bound_terms
from properties.strategies import Crowd, crowds, point_problem_of, problem_of
from properties.test_bound import assert_never_falls

import tiebreak as tb
from tiebreak import simulate
from tiebreak.estimators import Estimator
from tiebreak.inference import FitState, Known, Parameters, Problem, Stopping, Sums, climb
from tiebreak.kernels import Floats

LIMIT, RATE = 3.0, 0.9
climbing: Any = sys.modules[climb.__module__]
FOUR = ("web", "trec", "product", "music_genre")
ROUNDING = 1e-12


Sweep = Callable[[Parameters], tuple[Parameters, float, float]]  # to parameters, bound, change


def run(sweep: Sweep, *, tol: float, max_iter: int) -> FitState:
    """Climb where sweeps are these, whatever the problem."""

    def step(problem: Any, sweeps: Any, at: Parameters, memory: Any) -> Any:
        new, bound, change = sweep(at)
        return new, bound, Sums(np.empty((0, 0)), (), change=change)

    nobody: Any = mock.MagicMock(spec=Problem)
    nobody.tasks.exact = True
    nobody.tasks.own = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(climbing, "step", step)
        patch.setattr(climbing, "Sweeps", NoSweeps)
        start = FitState(np.zeros((1, 2)), (np.ones(1),))
        return climb(nobody, start, Stopping(tol, max_iter))


class NoSweeps:
    """Rows of nobody."""

    def __init__(self, problem: Any, q: Floats, remote: Any) -> None:
        self.q = q

    def value(self) -> None:
        return

    def watch(self, bound: float) -> None:
        return

    def close(self) -> tuple[Floats, None]:
        return self.q, None


def run_towards_a_limit(
    bound: Callable[[int, float], float], *, tol: float = 1e-9, max_iter: int = 300
) -> tuple[FitState, list[float]]:
    """Climb where the log parameter comes nearer to a limit by a tenth; note where it was."""
    visited: list[float] = []
    last = [-1.0]

    def sweep(at: Parameters) -> tuple[Parameters, float, float]:
        x = float(np.log(at[0][0]))
        visited.append(x)
        change, last[0] = abs(x - last[0]) / 10.0, x
        implied = LIMIT + RATE * (x - LIMIT)
        return (np.exp([implied]),), bound(len(visited), x), change

    return run(sweep, tol=tol, max_iter=max_iter), visited


def rising(n: int, x: float) -> float:
    return -abs(x - LIMIT)


def test_one_leap_finds_the_limit_of_a_steady_path() -> None:
    found, visited = run_towards_a_limit(rising)
    assert found.converged
    assert len(visited) == len(found.bounds) < 15  # plain sweeps need 170
    assert visited[-1] == pytest.approx(LIMIT, abs=1e-8)


@pytest.mark.parametrize("bad", [-1e6, np.nan, -np.inf])
def test_a_leap_that_lowers_the_bound_is_taken_back(bad: float) -> None:
    found, visited = run_towards_a_limit(lambda n, x: bad if n == 3 else rising(n, x), max_iter=4)
    # The third sweep starts from a leap; the fourth goes on where the second ended.
    plain = [LIMIT * (1.0 - RATE**n) for n in range(4)]
    assert visited[:2] + visited[3:] == pytest.approx(plain[:3])
    assert visited[2] > 2.5
    assert found.bounds[2] == found.bounds[1]
    assert np.log(found.parameters[0][0]) == pytest.approx(plain[3])


@pytest.mark.parametrize("fails", [True, False])
def test_only_a_sweep_that_goes_on_from_the_last_ends_the_climb(fails: bool) -> None:
    # Sweep 2 starts from a leap. If that is taken back, sweep 3 does not go on from it either.
    def sweep(at: Parameters) -> tuple[Parameters, float, float]:
        n = len(seen)
        seen.append(at)
        still = n == 2 or (fails and n == 3)
        bound = -np.inf if fails and n == 2 else float(n)
        return (at[0] * 1.1,), bound, 0.0 if still else 0.05

    seen: list[Parameters] = []
    found = run(sweep, tol=1e-6, max_iter=5)
    assert not found.converged
    assert len(seen) == 5


@pytest.mark.parametrize("max_iter", range(1, 12))
def test_the_last_sweep_never_starts_from_a_leap(max_iter: int) -> None:
    found, visited = run_towards_a_limit(rising, tol=1e-300, max_iter=max_iter)
    assert len(visited) == len(found.bounds) == max_iter
    before = visited[-2] if max_iter > 1 else None
    if before is not None:
        assert visited[-1] == pytest.approx(LIMIT + RATE * (before - LIMIT), abs=1e-9)


@settings(max_examples=150)
@given(crowds(max_tasks=8), st.booleans(), st.sampled_from([1e-3, 1e-9]), st.integers(3, 60))
def test_bound_never_falls_and_belongs_to_what_is_returned(
    crowd: Crowd, knows: bool, tol: float, max_iter: int
) -> None:
    known = Known.of(crowd.gold if knows else None)
    problem = known.on(problem_of(crowd))
    state = climb(problem, FitState(q=known.clamp(problem.votes())), Stopping(tol, max_iter))
    assert_never_falls(list(state.bounds))
    assert len(state.bounds) == state.n_sweeps + 1 <= max_iter + 1
    terms = bound_terms(problem, state.q, state.parameters)
    assert state.bounds[-1] == pytest.approx(terms.total)
    for found, expected in zip(state.parameters, problem.implied(state.q), strict=True):
        assert np.abs(found - expected).max() < 1e-9
    assert (state.q[known.task, known.label] == 1.0).all()


@settings(max_examples=100)
@given(crowds(max_tasks=8), st.booleans(), st.sampled_from([0.0, 0.01, 1.0]))
def test_objective_of_dawid_skene_never_falls(crowd: Crowd, knows: bool, smoothing: float) -> None:
    known = Known.of(crowd.gold if knows else None)
    problem = known.on(point_problem_of(crowd, smoothing))
    state = climb(problem, FitState(q=known.clamp(problem.votes())), Stopping(1e-9, 60))
    assert_never_falls(list(state.bounds))
    for found, expected in zip(state.parameters, problem.implied(state.q), strict=True):
        assert np.abs(found - expected).max() < 1e-9


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")  # such a crowd deserves a note
@pytest.mark.parametrize("model", [tb.VariationalBayes, tb.DawidSkene])
def test_fewer_sweeps_end_at_the_same_place(model: Callable[..., Estimator]) -> None:
    crowd = simulate.crowd(600, 20, 3, responses_per_task=4, accuracy=0.55, random_state=3)
    gold = dict(list(crowd.gold.to_dict().items())[:30])
    for known in (None, gold):
        options = {"max_iter": 5000, "gold_weight": 1}
        plain = model(accelerate=False, **options).fit(crowd.responses, gold=known)
        fast = model(**options).fit(crowd.responses, gold=known)
        assert fast.converged_
        assert plain.converged_
        assert 2 * fast.n_iter_ < plain.n_iter_
        assert fast.bounds_[-1] >= plain.bounds_[-1] - ROUNDING * abs(plain.bounds_[-1])
        assert np.abs(fast.probabilities_ - plain.probabilities_).max() < 1e-3


def test_without_a_tolerance_sweeps_are_plain() -> None:
    crowd = simulate.crowd(60, 8, 3, responses_per_task=4, random_state=1)
    for model in (tb.VariationalBayes, tb.DawidSkene):
        fits = [
            model(tol=0.0, max_iter=30, accelerate=each).fit(crowd.responses)
            for each in (True, False)
        ]
        assert fits[0].n_iter_ == 30
        assert fits[0].bounds_ == fits[1].bounds_
        assert (fits[0].probabilities_ == fits[1].probabilities_).all()


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")  # such a crowd deserves a note
def test_a_fit_that_goes_on_from_another_needs_few_sweeps() -> None:
    crowd = simulate.crowd(600, 20, 3, responses_per_task=4, accuracy=0.55, random_state=3)
    first = tb.VariationalBayes().fit(crowd.responses)
    again = tb.VariationalBayes(init=first._state.q).fit(crowd.responses)
    assert again.n_iter_ <= 2
    assert again.bounds_[-1] >= first.bounds_[-1] - ROUNDING * abs(first.bounds_[-1])


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")  # such a crowd deserves a note
@pytest.mark.data
@pytest.mark.parametrize("prior", ["diagonal", "uniform"])
def test_real_crowds_need_half_the_sweeps(prior: str, data_dir: Path) -> None:
    plain_sweeps = fast_sweeps = 0
    for name in FOUR:
        responses = tb.read_responses(data_dir / name / "responses.csv")
        plain = tb.VariationalBayes(confusion_prior=prior, accelerate=False).fit(responses)
        fast = tb.VariationalBayes(confusion_prior=prior).fit(responses)
        assert fast.converged_
        assert fast.bounds_[-1] >= plain.bounds_[-1] - ROUNDING * abs(plain.bounds_[-1])
        plain_sweeps += plain.n_iter_
        fast_sweeps += fast.n_iter_
    assert 2 * fast_sweeps <= plain_sweeps


class Foreign(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that is elsewhere, as CuPy's are: NumPy's functions work, conversion does not."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    def __array__(self, *given: Any, **named: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **named: Any) -> Foreign:
        out = named.pop("out", None)
        if out is not None:
            named["out"] = tuple(each.values for each in out)
        inner = [each.values if isinstance(each, Foreign) else each for each in given]
        return Foreign(getattr(ufunc, method)(*inner, **named))

    def __array_function__(self, function: Any, types: Any, given: Any, named: Any) -> Any:
        inner = [each.values if isinstance(each, Foreign) else each for each in given]
        named = {k: v.values if isinstance(v, Foreign) else v for k, v in named.items()}
        return Foreign(function(*inner, **named))

    def sum(self) -> float:
        return float(self.values.sum())


def test_parameters_that_lie_elsewhere_are_extrapolated_there() -> None:
    rng = np.random.default_rng(0)
    path = [(rng.uniform(1.0, 9.0, (3, 2)),) for _ in range(3)]
    here = climbing.extrapolated(*path)
    foreign: list[Any] = [(Foreign(part.copy()),) for (part,) in path]
    there = climbing.extrapolated(*foreign)
    assert isinstance(there[0], Foreign)
    np.testing.assert_array_equal(there[0].values, here[0])
