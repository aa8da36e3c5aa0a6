"""Conformance of sweepers: whatever a backend opens does what plain sums say.

A new backend is one line in BACKENDS. The expected values are worked out here, task by task, not by
a sweeper.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from kernels.test_tasks import assert_same, some_crowd

from tiebreak.kernels import (
    AWAY,
    FREE,
    KNOWN,
    ByTask,
    Floats,
    Logs,
    Mask,
    compiled,
    layout,
    reference,
)

BACKENDS = {"numpy": reference, "numba": compiled}

every_backend = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
with_and_without_weights = pytest.mark.parametrize("weights", [False, True])


def crowd_with_all_roles(weights: bool = False) -> tuple[ByTask, Floats, Logs]:
    """Draw a crowd in which tasks of every role occur."""
    tasks, q, log_prior, log_table = some_crowd(3, 200, 12, weights=weights)
    assert set(tasks.role.tolist()) == {FREE, KNOWN, AWAY}
    return tasks, q, (log_prior, log_table)


def scores_of(tasks: ByTask, logs: Logs) -> Floats:
    """Return log π + Σ weight · log θ over the responses on each task."""
    log_prior, log_table = logs
    scores = np.tile(log_prior, (tasks.n_tasks, 1))
    for i in range(tasks.n_tasks):
        for r in range(tasks.start[i], tasks.start[i + 1]):
            weight = 1.0 if tasks.weight is None else tasks.weight[r]
            scores[i] += weight * log_table[tasks.code[r]]
    return scores


def tally_of(
    q: Floats, tasks: ByTask, chosen: Mask, copies: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return Σ copies · weight · q by code and Σ copies · q over the chosen tasks."""
    counts = np.zeros((tasks.n_codes, q.shape[1]))
    totals = np.zeros(q.shape[1])
    for i in np.flatnonzero(chosen):
        row = q[i] if copies is None else copies[i] * q[i]
        totals += row
        for r in range(tasks.start[i], tasks.start[i + 1]):
            weight = 1.0 if tasks.weight is None else tasks.weight[r]
            counts[tasks.code[r]] += weight * row
    return counts, totals


def entropy_of(q: Floats, copies: Floats | None = None) -> float:
    """Return Σ copies · H(q)."""
    of_each = -(q * np.log(np.where(q > 0.0, q, 1.0))).sum(axis=1)
    return float(of_each.sum() if copies is None else of_each @ copies)


@every_backend
@with_and_without_weights
def test_a_sweep_updates_free_tasks_alone_and_counts_free_and_known(
    backend: ModuleType, weights: bool
) -> None:
    tasks, q, logs = crowd_with_all_roles(weights)
    before = q.copy()
    sweeper = backend.open(tasks, q)
    swept = sweeper.sweep(logs)
    scores = scores_of(tasks, logs)
    free = tasks.role == FREE
    known = tasks.role == KNOWN
    expected = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    assert_same(sweeper.q()[free], expected[free])
    assert (sweeper.q()[~free] == before[~free]).all()
    counts, totals = tally_of(sweeper.q(), tasks, free | known)
    assert_same(swept.counts, counts)
    assert_same(swept.totals, totals)
    assert_same(swept.change, np.abs(expected[free] - before[free]).max())
    assert_same(swept.entropy, entropy_of(expected[free]))
    sweeper.close()


@every_backend
@with_and_without_weights
def test_a_tally_is_of_the_chosen_tasks_whatever_their_role(
    backend: ModuleType, weights: bool
) -> None:
    tasks, q, _ = crowd_with_all_roles(weights)
    everyone = np.ones(tasks.n_tasks, dtype=bool)
    sweeper = backend.open(tasks, q)
    for chosen in (tasks.role == AWAY, tasks.role == KNOWN, np.zeros_like(everyone), everyone):
        for found, expected in zip(sweeper.tally(chosen), tally_of(q, tasks, chosen), strict=True):
            assert_same(found, expected)
    for found, expected in zip(sweeper.tally(), tally_of(q, tasks, everyone), strict=True):
        assert_same(found, expected)
    sweeper.close()


@every_backend
def test_entropy_is_of_the_free_tasks_where_0_log_0_is_0(backend: ModuleType) -> None:
    tasks, q, _ = crowd_with_all_roles()
    first = int(np.flatnonzero(tasks.role == FREE)[0])
    q[first] = [1.0, 0.0, 0.0]
    sweeper = backend.open(tasks, q)
    assert_same(sweeper.entropy(), entropy_of(q[tasks.role == FREE]))
    sweeper.close()


@every_backend
def test_the_sweeper_has_the_q_it_was_given(backend: ModuleType) -> None:
    tasks, q, _ = crowd_with_all_roles()
    given = q.copy()
    sweeper = backend.open(tasks, q)
    assert (sweeper.q() == given).all()
    sweeper.close()


@every_backend
@with_and_without_weights
def test_copies_count_a_row_for_several_tasks(backend: ModuleType, weights: bool) -> None:
    tasks, q, logs = crowd_with_all_roles(weights)
    copies = np.random.default_rng(3).integers(1, 5, tasks.n_tasks).astype(np.float64)
    copies[tasks.role == KNOWN] = 1.0
    sweeper = backend.open(tasks, q, 1, copies)
    swept = sweeper.sweep(logs)
    free = tasks.role == FREE
    counts, totals = tally_of(sweeper.q(), tasks, tasks.is_counted, copies)
    assert_same(swept.counts, counts)
    assert_same(swept.totals, totals)
    assert_same(swept.entropy, entropy_of(sweeper.q()[free], copies[free]))
    assert_same(sweeper.entropy(), swept.entropy)
    sweeper.close()


@every_backend
def test_sums_do_not_depend_on_threads(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "RESPONSES_PER_CHUNK", 100)
    results = []
    for n_threads in (1, 3):
        tasks, q, logs = crowd_with_all_roles()
        assert len(tasks.edges) > 3
        sweeper = backend.open(tasks, q, n_threads)
        swept = sweeper.sweep(logs)
        results.append((*swept, *sweeper.tally(), sweeper.q()))
    for one, other in zip(*results, strict=True):
        assert np.array_equal(np.asarray(one), np.asarray(other))


@every_backend
def test_sums_of_two_parts_are_those_of_the_whole(backend: ModuleType) -> None:
    tasks, q, logs = crowd_with_all_roles()
    whole = backend.open(tasks, q.copy()).sweep(logs)
    parts = []
    for at in np.array_split(np.arange(tasks.n_tasks, dtype=np.int32), 2):
        part = layout.part_of(tasks, at, q.shape[1])
        parts.append(backend.open(part, q[at]).sweep(logs))
    for found, expected in zip(parts[0].plus(parts[1]), whole, strict=True):
        assert_same(found, expected)
