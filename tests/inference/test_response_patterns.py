"""Tasks with equal responses are one row, and nobody can tell from the result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.bound import bound_terms

import tiebreak as tb
from tiebreak import simulate
from tiebreak.data import Ids, Responses
from tiebreak.estimators import Estimator
from tiebreak.inference import (
    ClassPrior,
    ConfusionMatrices,
    FitState,
    Independent,
    Problem,
    Rows,
    Stopping,
    climb,
)
from tiebreak.inference import door as rows_module
from tiebreak.inference import lay_out as lay_out_responses
from tiebreak.kernels import Backend, ByTask, compiled, reference

CLOSE = 1e-9


@contextmanager
def collapsing(least_tasks: int) -> Iterator[list[int]]:
    """Collapse equal rows from so many tasks on, however few; note how many rows are left."""
    n_rows: list[int] = []
    find_patterns = rows_module.find_patterns

    def watch(*arguments: Any) -> Rows:
        rows = find_patterns(*arguments)
        n_rows.append(rows.laid.n_tasks)
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "LEAST_TASKS", least_tasks)
        patch.setattr(rows_module, "LARGEST_SHARE", 1.0)
        patch.setattr(rows_module, "SAMPLE_SHARE", 1.0)
        patch.setattr(rows_module, "find_patterns", watch)
        yield n_rows


def fit_both(model: Estimator, responses: Any, **known: Any) -> tuple[Estimator, Estimator, int]:
    """Fit with equal rows collapsed and without; return also how many rows there were."""
    with collapsing(0) as n_rows:
        found = type(model)(**model.get_params()).fit(responses, **known)
    with collapsing(1 << 60) as n_tasks:
        expected = type(model)(**model.get_params()).fit(responses, **known)
    assert not n_tasks  # so few tasks that nobody looks for equal ones
    return found, expected, n_rows[0]


def assert_same(found: Estimator, expected: Estimator) -> None:
    assert found.n_iter_ == expected.n_iter_
    assert found.converged_ == expected.converged_
    for name in ("probabilities_", "confusion_", "class_prior_"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        assert np.abs(one - other).max() < CLOSE
    top_two = np.sort(expected.probabilities_, axis=1)[:, -2:]
    decided = np.diff(top_two, axis=1)[:, 0] > CLOSE  # of a tie, rounding may take either class
    assert (found.labels_.label == expected.labels_.label)[decided].all()
    scale = 1.0 + max(map(abs, expected.bounds_))
    assert np.abs(np.subtract(found.bounds_, expected.bounds_)).max() < CLOSE * scale


def jury(n_tasks: int, n_workers: int, n_classes: int, seed: int) -> tuple[Responses, np.ndarray]:
    """Draw a small jury on many tasks, some judges silent on some; return also the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    task, worker = (
        part.astype(np.int32) for part in np.nonzero(rng.random((n_tasks, n_workers)) < 0.8)
    )
    noise = rng.integers(0, n_classes, len(task))
    label = np.where(rng.random(len(task)) < 0.7, truth[task], noise).astype(np.int32)
    names = Ids(range(n_tasks)), Ids(range(n_workers)), Ids(range(n_classes))
    return Responses.from_codes(task, worker, label, *names), truth


@st.composite
def juries(draw: st.DrawFn) -> tuple[Responses, dict[int, int], tb.Links]:
    """Draw responses with many equal rows, gold and right links on some tasks."""
    seed = draw(st.integers(0, 2**32 - 1))
    sizes = draw(st.integers(12, 60)), draw(st.integers(1, 3)), draw(st.integers(2, 3))
    responses, truth = jury(*sizes, seed)
    rng = np.random.default_rng(seed)
    known = rng.permutation(sizes[0])[: draw(st.integers(1, 6))].tolist()
    ends = rng.permutation(sizes[0])[: 2 * draw(st.integers(1, 4))].reshape(-1, 2).tolist()
    pairs: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for left, right in ends:
        pairs[bool(truth[left] == truth[right])].append((left, right))
    links = tb.Links.from_pairs(must=pairs[True], cannot=pairs[False])
    return responses, {task: int(truth[task]) for task in known}, links


# Some of these juries do not determine the answer: there rounding decides how a long fit ends, so
# that most fits here have a fixed number of sweeps.
MODELS: list[Estimator] = [
    tb.VariationalBayes(),
    tb.VariationalBayes(confusion_prior="uniform", tol=0.0, max_iter=8),
    tb.DawidSkene(tol=0.0, max_iter=8),
    tb.DawidSkene(smoothing=0.0, tol=0.0, max_iter=8),
    tb.VariationalBayes(worker_model="subtypes"),
    tb.VariationalBayes(worker_model="kinds+subtypes", accelerate=False),
    tb.VariationalBayes(worker_model="subtypes", tol=0.0, max_iter=8),
]
LINK_MODELS: list[tb.VariationalBayes] = [
    tb.VariationalBayes(),
    tb.VariationalBayes(link_options=tb.ExactLinkOptions(error=0.05)),
    tb.VariationalBayes(link_options=tb.ExactLinkOptions(error="learn"), tol=0.0, max_iter=8),
    tb.VariationalBayes(link_options=tb.MeanFieldOptions(strength=1.0), tol=0.0, max_iter=8),
    tb.VariationalBayes(link_options=tb.MeanFieldOptions(schedule="parallel", strength=0.5)),
]


@settings(max_examples=120)
@given(juries(), st.sampled_from(MODELS), st.booleans())
def test_collapsed_fits_equal_whole_ones(
    drawn: tuple[Responses, dict[int, int], tb.Links], model: Estimator, knows: bool
) -> None:
    responses, gold, _ = drawn
    found, expected, n_rows = fit_both(model, responses, gold=gold if knows else None)
    assert_same(found, expected)
    assert n_rows <= responses.n_tasks


@settings(max_examples=50)
@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@given(juries(), st.sampled_from(LINK_MODELS), st.booleans())
def test_collapsed_fits_with_links_equal_whole_ones(
    drawn: tuple[Responses, dict[int, int], tb.Links], model: Estimator, knows: bool
) -> None:
    responses, gold, links = drawn
    found, expected, _ = fit_both(model, responses, links=links, gold=gold if knows else None)
    assert_same(found, expected)
    assert found.violations_ is not None
    assert expected.violations_ is not None
    assert found.violations_.pairs() == expected.violations_.pairs()


@pytest.mark.parametrize("backend", [reference, compiled], ids=["numpy", "numba"])
def test_every_term_of_the_bound_counts_all_tasks(backend: Backend) -> None:
    responses, _ = jury(400, 4, 3, 5)
    tasks = lay_out_responses(responses)
    with collapsing(0):
        rows = rows_module.find_patterns(tasks, 3, np.zeros(400, dtype=bool))
    assert rows.laid.n_tasks < 200
    assert rows.copies is not None
    workers = ConfusionMatrices(np.ones((1, 3, 3)) + np.eye(3), responses.n_workers)
    whole = Problem(tasks, Independent(ClassPrior(np.ones(3))), workers, backend)
    small = whole._replace(rows=rows.laid, copies=rows.copies)
    terms = []
    for problem in (whole, small):
        state = climb(problem, FitState(q=problem.votes()), Stopping(0.0, 5))
        terms.append([*bound_terms(problem, state.q, state.parameters)])
    assert np.abs(np.subtract(terms[0], terms[1])).max() < CLOSE * np.abs(terms).max()


def lay_out(rows: list[list[int]], n_codes: int = 9) -> ByTask:
    code = np.array([code for row in rows for code in row], dtype=np.int32)
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    role = np.zeros(len(rows), dtype=np.int8)
    return ByTask(start, code, role, np.array([0, len(rows)]), n_codes)


def test_rows_keep_the_order_of_tasks_and_those_alone_stay_alone() -> None:
    tasks = lay_out([[1, 4], [], [1, 4], [2], [1, 4], [], [2], [1, 4, 7]])
    alone = np.zeros(8, dtype=bool)
    alone[2] = True
    with collapsing(0):
        rows = rows_module.find_patterns(tasks, 3, alone)
    assert rows.row is not None
    assert rows.row.tolist() == [0, 1, 2, 3, 0, 1, 3, 4]
    assert rows.first is not None
    assert rows.first.tolist() == [0, 1, 2, 3, 7]
    assert rows.copies is not None
    assert rows.copies.tolist() == [2, 2, 1, 2, 1]
    assert rows.laid.start.tolist() == [0, 2, 2, 4, 5, 8]
    assert rows.laid.code.tolist() == [1, 4, 1, 4, 2, 1, 4, 7]


@pytest.mark.parametrize("rows", [[[1, 4], [2, 3], [1, 4]], [[1, 4], [1], [1, 4]]])
def test_equal_keys_are_no_proof(rows: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, alone = lay_out(rows), np.zeros(3, dtype=bool)
    with collapsing(0):
        assert rows_module.find_patterns(tasks, 3, alone).laid.n_tasks == 2
        monkeypatch.setattr(
            rows_module, "_salt", lambda n_codes: np.zeros(n_codes, dtype=np.uint64)
        )
        assert rows_module.find_patterns(tasks, 3, alone).row is None


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    responses, _ = jury(500, 3, 3, 1)
    tasks, alone = lay_out_responses(responses), np.zeros(500, dtype=bool)
    with collapsing(0):
        expected = rows_module.find_patterns(tasks, 3, alone)
        monkeypatch.setattr(rows_module, "BLOCK", 7)
        found = rows_module.find_patterns(tasks, 3, alone)
    assert expected.row is not None
    assert found.row is not None
    assert (found.row == expected.row).all()
    # Against tuples, one task after the other:
    rows = [tuple(part) for part in np.split(tasks.code, tasks.start[1:-1])]
    numbered = {row: n for n, row in enumerate(dict.fromkeys(rows))}
    assert found.row.tolist() == [numbered[row] for row in rows]


def test_rows_collapse_by_themselves_only_where_that_pays() -> None:
    few = simulate.crowd(20_000, 4, 3, responses_per_task=4, random_state=0)
    many = simulate.crowd(20_000, 500, 3, responses_per_task=4, random_state=0)
    for crowd, collapses in ((few, True), (many, False)):
        tasks = lay_out_responses(crowd.responses)
        rows = rows_module.find_patterns(tasks, 3, np.zeros(20_000, dtype=bool))
        assert (rows.row is not None) == collapses
    small = simulate.crowd(200, 4, 3, responses_per_task=4, random_state=0)
    tasks = lay_out_responses(small.responses)
    assert rows_module.find_patterns(tasks, 3, np.zeros(200, dtype=bool)).row is None


def test_a_start_that_tells_equal_rows_apart_is_kept() -> None:
    responses, truth = jury(300, 3, 2, 2)
    apart = np.full((300, 2), 0.1)
    apart[np.arange(300), truth] = 0.9
    model = tb.VariationalBayes(init=apart, max_iter=1, tol=0.0)
    found, expected, n_rows = fit_both(model, responses)
    assert_same(found, expected)
    assert n_rows == 300
    again = tb.VariationalBayes(init=expected.probabilities_, max_iter=2, tol=0.0)
    found, expected, n_rows = fit_both(again, responses)
    assert_same(found, expected)
    assert n_rows < 50
