"""Compiled sweeps against the reference, for every number of classes and every role."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from tiebreak import kernels, simulate
from tiebreak.inference import lay_out
from tiebreak.kernels import compiled, layout, likeliest, reference
from tiebreak.kernels.layout import ByTask, Codes, Floats, Roles
from tiebreak.kernels.numba_sweep import sweep_for

Sweep = tuple[ByTask, Floats, Floats, Floats]


def by_task(
    task: Codes, worker: Codes, label: Codes, role: Roles, n_workers: int, n_classes: int
) -> ByTask:
    """Lay out responses that are sorted by task."""
    start = np.searchsorted(task, np.arange(len(role) + 1)).astype(np.int64)
    code = (worker * n_classes + label).astype(np.int32)
    return layout.lay_out(start, code, role, n_workers * n_classes, n_classes)


def some_crowd(
    n_classes: int,
    n_tasks: int,
    n_workers: int,
    *,
    sparse: bool = False,
    weights: bool = False,
    by_code: bool = False,
) -> Sweep:
    """Draw responses, roles, q, prior and table; tasks have up to nine responses, some none."""
    rng = np.random.default_rng(7)
    n_responses = rng.integers(0, 10, n_tasks)
    task = np.repeat(np.arange(n_tasks), n_responses).astype(np.int32)
    worker = rng.integers(0, n_workers, len(task)).astype(np.int32)
    label = rng.integers(0, n_classes, len(task)).astype(np.int32)
    role = rng.choice(3, n_tasks, p=[0.6, 0.3, 0.1]).astype(np.int8)
    tasks = by_task(task, worker, label, role, n_workers, n_classes)
    q = rng.dirichlet(np.ones(n_classes), n_tasks)
    known = role == layout.KNOWN
    q[known] = np.eye(n_classes)[rng.integers(0, n_classes, known.sum())]
    log_table = np.log(rng.dirichlet(np.full(n_classes, 0.3), n_workers * n_classes))
    if sparse:
        log_table[rng.random(log_table.shape) < 0.3] = -np.inf
    log_prior = np.log(rng.dirichlet(np.ones(n_classes)))
    if weights:
        tasks = tasks._replace(weight=rng.gamma(2.0, 0.5, len(task)))
    return in_order_of_codes(tasks) if by_code else tasks, q, log_prior, log_table


def in_order_of_codes(tasks: ByTask) -> ByTask:
    """Lay out the same responses by code too, as where there are many workers."""
    by_code = layout._by_code(tasks.start, tasks.code, tasks.n_codes, 4, tasks.weight)
    return tasks._replace(by_code=by_code)


def assert_same(found: Any, expected: Any) -> None:
    one, other = np.atleast_1d(found), np.atleast_1d(expected)
    finite = np.isfinite(other)
    assert (one[~finite] == other[~finite]).all()
    one, other = one[finite], other[finite]
    assert np.abs(one - other).max(initial=0.0) < 1e-12 * (1 + np.abs(other).max(initial=0.0))


def assert_sweeps_agree(sweep: Sweep) -> None:
    """Compare all that sweeping, counting and scoring give with the reference."""
    tasks, q, log_prior, log_table = sweep
    logs = log_prior, log_table
    ours, theirs = q.copy(), q.copy()
    found = compiled.sweep_tasks(ours, tasks, *logs)
    expected = reference.sweep_tasks(theirs, tasks, *logs)
    assert_same(ours, theirs)
    away = tasks.role == layout.AWAY
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)
    for one, other in zip(
        compiled.tally(q, tasks, away), reference.tally(q, tasks, away), strict=True
    ):
        assert_same(one, other)
    assert_same(compiled.score_tasks(tasks, *logs), reference.score_tasks(tasks, *logs))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 7, 8, 20, 22, 43])
def test_a_compiled_sweep_equals_the_reference(n_classes: int, sparse: bool) -> None:
    assert_sweeps_agree(some_crowd(n_classes, 700, 20, sparse=sparse))


@pytest.mark.parametrize("by_code", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 20, 43])
def test_a_compiled_sweep_of_weighted_responses_equals_the_reference(
    n_classes: int, sparse: bool, by_code: bool
) -> None:
    sweep = some_crowd(n_classes, 700, 20, sparse=sparse, weights=True, by_code=by_code)
    assert_sweeps_agree(sweep)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 20, 43])
def test_compiled_scaled_probabilities_equal_the_reference(
    n_classes: int, weights: bool, n_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "RESPONSES_PER_CHUNK", 500)  # several chunks
    tasks, _, log_prior, log_table = some_crowd(n_classes, 700, 20, weights=weights)
    scale = np.random.default_rng(2).gamma(2.0, 0.5, 700)
    found = compiled.scaled_probabilities(tasks, log_prior, log_table, scale, n_threads)
    assert_same(found, reference.scaled_probabilities(tasks, log_prior, log_table, scale))
    assert_same(found.sum(axis=1), np.ones(700))
    even = compiled.scaled_probabilities(tasks, log_prior, log_table, np.zeros(700))
    assert_same(even, np.full((700, n_classes), 1.0 / n_classes))


@pytest.mark.parametrize("n_classes", [2, 3, 20])
def test_scaled_probabilities_of_impossible_classes_are_zero(n_classes: int) -> None:
    tasks, _, log_prior, log_table = some_crowd(n_classes, 700, 20, sparse=True)
    has_class = np.isfinite(reference.score_tasks(tasks, log_prior, log_table)).any(axis=1)
    part = layout.part_of(tasks, np.flatnonzero(has_class).astype(np.int32), n_classes)
    scale = np.full(part.n_tasks, 0.4)
    found = compiled.scaled_probabilities(part, log_prior, log_table, scale)
    assert_same(found, reference.scaled_probabilities(part, log_prior, log_table, scale))
    assert (found == 0.0).any()


@pytest.mark.parametrize("by_code", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("backend", [reference, compiled], ids=["numpy", "numba"])
def test_a_weight_of_two_is_the_response_given_twice(
    backend: Any, n_classes: int, by_code: bool
) -> None:
    plain, q, *logs = some_crowd(n_classes, 300, 20)
    times = np.random.default_rng(1).integers(1, 3, len(plain.code))
    weighted = plain._replace(weight=times.astype(float))
    start = np.concatenate([[0], np.cumsum(times)])[plain.start]
    code = np.repeat(plain.code, times)
    repeated = layout.lay_out(start, code, plain.role, plain.n_codes, n_classes)
    if by_code:
        weighted = in_order_of_codes(weighted)
    results = []
    for tasks in (weighted, repeated):
        new = q.copy()
        swept = backend.sweep_tasks(new, tasks, *logs)
        tallied = backend.tally(q, tasks, plain.role == layout.AWAY)
        results.append((new, *swept, *tallied, backend.score_tasks(tasks, *logs)))
    for one, two in zip(*results, strict=True):
        assert_same(one, two)


@pytest.mark.parametrize("by_code", [False, True])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("n_classes", [2, 20, 43])
def test_sums_of_rounded_q_are_exact_in_any_order(
    n_classes: int, weights: bool, by_code: bool
) -> None:
    plain, q, *_ = some_crowd(n_classes, 700, 20, weights=weights)
    tasks = plain._replace(rounder=layout.rounder_for(4 * 700))
    order = np.random.default_rng(3).permutation(700).astype(np.int32)
    for backend in (reference, compiled):
        laid_out = in_order_of_codes(tasks) if by_code else tasks
        counts, totals = backend.tally(q, laid_out, tasks.is_counted)
        sums = []
        for some in np.split(order, [90, 91, 400]):
            part = layout.part_of(tasks, some, n_classes)
            sums.append(backend.tally(q[some], part, part.is_counted))
        assert np.array_equal(sum(each[0] for each in sums), counts)
        assert np.array_equal(sum(each[1] for each in sums), totals)
        expected = reference.tally(q, plain, tasks.is_counted)
        assert np.abs(expected[0] - counts).max() < 1e-9
        assert np.abs(expected[1] - totals).max() < 1e-9


@pytest.mark.parametrize("at_once", [7, 90, 1000])
def test_a_part_has_the_responses_of_its_tasks(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "TASKS_AT_ONCE", at_once)
    tasks = some_crowd(3, 700, 20, weights=True)[0]
    assert tasks.weight is not None
    at = np.random.default_rng(1).permutation(700)[:90].astype(np.int32)
    part = layout.part_of(tasks, at, 3)
    assert part.weight is not None
    for whole, some in ((tasks.code, part.code), (tasks.weight, part.weight)):
        rows = np.split(whole, tasks.start[1:-1])
        for i, row in zip(at, np.split(some, part.start[1:-1]), strict=True):
            assert row.tolist() == rows[i].tolist()
    assert layout.part_of(tasks._replace(weight=None), at, 3).weight is None
    assert part.role.tolist() == tasks.role[at].tolist()
    assert part.edges[[0, -1]].tolist() == [0, 90]


def test_weights_are_laid_out_with_their_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "RESPONSES_PER_CHUNK", 500)
    monkeypatch.setattr(layout, "ACCUMULATOR_BYTES_A_RESPONSE", 0)
    plain = some_crowd(3, 700, 20)[0]
    weight: Floats = plain.code + np.float64(0.5)  # by code, so that it can be told whose it is
    tasks = layout.lay_out(plain.start, plain.code, plain.role, plain.n_codes, 3, weight)
    assert tasks.weight is not None
    assert tasks.by_code is not None
    assert tasks.by_code.weight is not None
    assert tasks.weight.tolist() == weight.tolist()
    assert tasks.by_code.weight.tolist() == sorted(weight)
    monkeypatch.undo()
    tasks = layout.lay_out(plain.start, plain.code, plain.role, plain.n_codes, 3, weight)
    assert tasks.by_code is None
    assert tasks.weight is not None
    assert tasks.weight.tolist() == weight.tolist()


@pytest.mark.parametrize("n_classes", [2, 3, 20])
def test_a_task_that_underflow_leaves_without_a_class_keeps_its_q(n_classes: int) -> None:
    tasks, q, log_prior, log_table = some_crowd(n_classes, 300, 5)
    log_table[:] = -np.inf
    before = q.copy()
    swept = compiled.sweep_tasks(q, tasks, log_prior, log_table)
    free = (tasks.role == layout.FREE) & (np.diff(tasks.start) > 0)
    assert np.abs(q[free] - before[free]).max() < 1e-15
    assert np.isfinite(swept.entropy)


@pytest.mark.parametrize("n_classes", [2, 20])
def test_tiny_probabilities_are_not_lost(n_classes: int) -> None:
    """A count of 1e-280 is not none: without smoothing its log matters."""
    tasks, q, log_prior, log_table = some_crowd(n_classes, 50, 3)
    tasks.role[:] = layout.FREE
    log_table[:] = log_table[:, :1]
    log_table[:, 1] -= 75.0
    ours, theirs = q.copy(), q.copy()
    compiled.sweep_tasks(ours, tasks, log_prior, log_table)
    reference.sweep_tasks(theirs, tasks, log_prior, log_table)
    assert 0.0 < theirs.min() < 1e-280
    assert np.abs(ours / theirs - 1.0).max() < 1e-12


@pytest.mark.parametrize("n_classes", [2, 3, 20, 43])
def test_counts_by_code_equal_the_reference(
    n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "RESPONSES_PER_CHUNK", 500)
    monkeypatch.setattr(layout, "ACCUMULATOR_BYTES_A_RESPONSE", 0)
    tasks, q, log_prior, log_table = some_crowd(n_classes, 700, 20)
    assert tasks.by_code is not None
    assert len(tasks.edges) > 3
    assert len(tasks.by_code.edges) > 3
    swept = []
    for n_threads in (1, 2):
        ours = q.copy()
        swept.append(compiled.sweep_tasks(ours, tasks, log_prior, log_table, n_threads))
    theirs = q.copy()
    expected = reference.sweep_tasks(theirs, tasks, log_prior, log_table)
    assert_same(ours, theirs)
    for one, two, other in zip(*swept, expected, strict=True):
        assert_same(one, two)
        assert_same(one, other)
    chosen = tasks.role == layout.AWAY
    for found, wanted in zip(
        compiled.tally(q, tasks, chosen, 2), reference.tally(q, tasks, chosen), strict=True
    ):
        assert_same(found, wanted)


def test_rows_are_swept_in_pieces_where_vectors_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Vector code is made for the inside of numba, which may move."""
    monkeypatch.setitem(sys.modules, "tiebreak.kernels.whole_rows", None)
    monkeypatch.delattr(kernels, "whole_rows", raising=False)
    sweep_for.cache_clear()
    assert_sweeps_agree(some_crowd(8, 300, 20, by_code=True, weights=True))
    assert_sweeps_agree(some_crowd(11, 300, 20))
    sweep_for.cache_clear()


def test_chunks_have_accumulators_only_while_they_are_small() -> None:
    start = np.arange(0, 4_000_001, 4, dtype=np.int64)
    n_chunks = [len(layout.chunk_edges(start, 8 * cells)) - 1 for cells in (10**3, 10**6, 10**9)]
    assert n_chunks == [16, 4, 1]


def test_many_workers_are_counted_by_code_in_a_fit() -> None:
    n_tasks = 150_000
    many, few = (
        lay_out(simulate.crowd(n_tasks, n, 4, responses_per_task=3, random_state=0).responses)
        for n in (100_000, 100)
    )
    assert many.by_code is not None
    assert few.by_code is None
    q = np.random.default_rng(0).dirichlet(np.ones(4), n_tasks)
    chosen = np.ones(n_tasks, dtype=bool)
    counts, _ = compiled.tally(q, many, chosen, 2)
    assert_same(counts, reference.tally(q, many, chosen)[0])


@pytest.mark.parametrize("n_classes", [1, 2, 3, 10])
def test_the_likeliest_class_is_the_first_on_ties(n_classes: int) -> None:
    q = np.random.default_rng(0).integers(0, 3, (200, n_classes)) / 4
    label, top = likeliest(q)
    assert label.tolist() == [row.index(max(row)) for row in q.tolist()]
    assert top.tolist() == [max(row) for row in q.tolist()]
    assert label.dtype == np.int32
