"""Sweeps over tasks, compiled: same names and signatures as the reference, one fused pass.

The plain version is the reference: all scores, then all probabilities, then all counts, each a pass
over memory. Here tasks go in blocks that stay in the nearest cache: score them (`rows.py`), turn
scores into probabilities (`blocks.py`), count these, block after block. A sweep then takes two to
four times as long as reading its input does (docs/performance.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak.kernels.arrays import for_each
from tiebreak.kernels.compile import kernel
from tiebreak.kernels.compiled.blocks import (
    N_EXTRA,
    TASKS_PER_BLOCK,
    TOP,
    block_size,
    largest,
    softmax_block,
    softmax_block_of_odds,
)
from tiebreak.kernels.compiled.rows import (
    ResponseArrays,
    Scoring,
    count_codes,
    count_rows,
    score_listed,
    weight_of,
)
from tiebreak.kernels.compiled.scores import AS_COLUMNS, AS_ROWS, columns_of, scoring_of
from tiebreak.kernels.compiled.simd import WHOLE_ROWS, Like, vector_for
from tiebreak.kernels.compiled.whole_rows import N_FIGURES, ROWS_PER_BLOCK, sweep_rows
from tiebreak.kernels.layout import (
    FREE,
    KNOWN,
    LINKED,
    ByTask,
    Floats,
    Mask,
    Offsets,
    Roles,
    Swept,
)

LINE = 64  # bytes of a line of the cache


# Typed constants: a function that is given a plain number or bool is compiled for each value.
IS_FREE = np.int8(FREE)
IS_KNOWN = np.int8(KNOWN)
IS_LINKED = np.int8(LINKED)
IS_CHOSEN = np.int8(1)


def sweep_tasks(
    q: Floats,
    u: Floats,
    tasks: ByTask,
    log_prior: Floats,
    log_table: Floats,
    n_threads: int = 1,
    *,
    counting: bool = True,
) -> Swept:
    """Update the free tasks, score the linked ones, and count: see `reference.sweep_tasks`."""
    n_classes = q.shape[1]
    n_chunks = len(tasks.edges) - 1
    counts, totals = _accumulators(tasks, n_classes, counting=counting)
    figures = np.zeros((n_chunks, 3))
    workspace_shape = (n_classes + N_EXTRA, block_size(n_classes))
    responses = columns_of(tasks)
    scoring = scoring_of(log_prior, log_table)
    odds = _against_first(scoring) if counting else None  # which needs counts at the end
    whole = _in_whole_rows(scoring) if n_classes in WHOLE_ROWS else None

    def work(c: int) -> None:
        bounds = tasks.edges[c : c + 2]
        sums = counts[c], totals[c], figures[c]
        if whole is not None:
            _sweep_whole_rows(bounds, q, u, responses, tasks.role, scoring, whole, *sums)
            return
        workspace = np.empty(workspace_shape)
        _sweep(bounds, q, u, responses, tasks.role, scoring, odds or scoring, workspace, *sums)

    for_each(work, n_chunks, n_threads)
    if counting and tasks.by_code is not None:
        counts = _count_by_code(tasks, q, tasks.is_counted, n_threads)
    counted = _add_in_order(counts)
    total = _add_in_order(totals)
    log_norm = float(_add_in_order(figures[:, 2]))
    if odds is not None:  # against the first class: what all tasks score there was left out
        log_norm += float(total.sum() * log_prior[0] + counted.sum(axis=1) @ log_table[:, 0])
    change = figures[:, 0].max(initial=0.0)
    entropy = _add_in_order(figures[:, 1])
    return Swept(counted, total, float(change), float(entropy), log_norm)


def _in_whole_rows(scoring: Scoring) -> Scoring:
    """Return the same with rows that are held whole, in memory that starts with a cache line."""
    table = _zeros_in_lines(scoring.log_table.shape)
    table[:] = scoring.log_table
    return Scoring((0,) * len(scoring.log_prior), scoring.log_prior, table)


def _zeros_in_lines(shape: tuple[int, ...]) -> Floats:
    """Return zeros that start where a line of the cache does, so that fewer rows cross one.

    A sweep with 20 states and 1,000 workers takes a tenth less for it.
    """
    size = int(np.prod(shape))
    room = np.zeros(size + LINE // 8)
    first = -room.ctypes.data % LINE // 8
    return room[first : first + size].reshape(shape)


def _against_first(scoring: Scoring) -> Scoring | None:
    """Return the log-odds of the second of two classes; None of more, or where they are unknown.

    One number a response, and one exponential a task. ∞ − ∞ has no value. Without SIMD both classes
    are scored.
    """
    like, prior, table = scoring
    if len(prior) != 2 or len(like) != 2:
        return None
    if not (np.isfinite(prior).all() and np.isfinite(table).all()):
        return None
    return Scoring((0,), np.diff(prior), np.diff(table, axis=1))


def tally(q: Floats, tasks: ByTask, chosen: Mask, n_threads: int = 1) -> tuple[Floats, Floats]:
    """Return Σ weight · q by code and Σ q over tasks: see `reference.tally`."""
    counts, totals = _accumulators(tasks, q.shape[1])
    q = np.ascontiguousarray(q)
    as_roles = np.ascontiguousarray(chosen).view(np.int8)
    like = vector_for(q.shape[1])
    responses = columns_of(tasks)

    def work(c: int) -> None:
        bounds = tasks.edges[c : c + 2]
        _tally(bounds, like, q, responses, as_roles, counts[c], totals[c])

    for_each(work, len(tasks.edges) - 1, n_threads)
    if tasks.by_code is not None:
        counts = _count_by_code(tasks, q, chosen, n_threads)
    return _add_in_order(counts), _add_in_order(totals)


def _accumulators(tasks: ByTask, n_classes: int, *, counting: bool = True) -> tuple[Floats, Floats]:
    """Return counts and totals of each chunk; no counts where they are taken by code."""
    n_codes = tasks.n_codes if counting and tasks.by_code is None else 0
    n_chunks = len(tasks.edges) - 1
    shape = (n_chunks, n_codes, n_classes)
    counts = _zeros_in_lines(shape) if n_classes in WHOLE_ROWS else np.zeros(shape)
    return counts, np.zeros((n_chunks, n_classes))


def _count_by_code(tasks: ByTask, q: Floats, chosen: Mask, n_threads: int) -> Floats:
    """Return the counts as those of one chunk, each code by one thread."""
    by_code = tasks.by_code
    assert by_code is not None
    like = vector_for(q.shape[1])
    counts = np.zeros((1, len(by_code.start) - 1, q.shape[1]))
    as_roles = np.ascontiguousarray(chosen).view(np.int8)

    def work(s: int) -> None:
        low, high = by_code.edges[s : s + 2]
        count_codes(low, high, like, by_code, tasks.rounder, as_roles, q, counts[0])

    for_each(work, len(by_code.edges) - 1, n_threads)
    return counts


def _add_in_order(parts: Floats) -> Any:
    """Add along the first axis in its order, so that the bits do not depend on threads."""
    total = parts[0] if len(parts) == 1 else parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


@kernel
def _sweep(
    bounds: Offsets,
    q: Floats,
    u: Floats,
    responses: ResponseArrays,
    role: Roles,
    scoring: Scoring,
    alone: Scoring,
    workspace: Floats,
    counts: Floats,
    totals: Floats,
    figures: Floats,
) -> None:
    """Sweep over tasks within bounds, in blocks: list them by role, then treat each list.

    Tasks without links are scored by `alone`: the same, or against the first of two classes.
    """
    low, high = bounds
    like = scoring.like
    n = q.shape[1]
    size = workspace.shape[1]
    has_odds = len(alone.like) < len(scoring.like)  # known when this is compiled
    score = workspace[:n]
    extra = workspace[n:]
    listed = np.empty(size, np.int64)
    # Sums are local: side by side in memory, threads would fight for the same cache line.
    total = np.zeros(n)
    moved = np.zeros(n)
    tops = 0.0
    log_norms = 0.0
    means = 0.0
    for first in range(low, high, size):
        last = min(first + size, high)
        n_free = _list(IS_FREE, role, first, last, listed)
        free = listed[:n_free]
        if n_free:
            score_listed(free, alone, responses, score, AS_COLUMNS)
            if has_odds:
                top, log_norm, mean = softmax_block_of_odds(score, n_free)
            else:
                if largest(score, extra[TOP], n_free) > 0:
                    _keep_former(score, extra[TOP], free, q)
                top, log_norm, mean = softmax_block(score, extra, n_free)
            tops += top
            log_norms += log_norm
            means += mean
            count_rows(free, like, responses, score, q, moved, counts, total)
        if n_free < last - first:
            known = listed[: _list(IS_KNOWN, role, first, last, listed)]
            tops += _known_scores(known, alone, responses, q)
            count_rows(known, like, responses, workspace[:0], q, moved, counts, total)
            linked = listed[: _list(IS_LINKED, role, first, last, listed)]
            score_listed(linked, scoring, responses, u, AS_ROWS)
    for k in range(n):
        totals[k] = total[k]
        figures[0] = max(figures[0], moved[k])
    figures[1] = log_norms - means
    figures[2] = tops + log_norms


@kernel
def _sweep_whole_rows(
    bounds: Offsets,
    q: Floats,
    u: Floats,
    responses: ResponseArrays,
    role: Roles,
    scoring: Scoring,
    whole: Scoring,
    counts: Floats,
    totals: Floats,
    figures: Floats,
) -> None:
    """Do what `_sweep` does, with the rows of free tasks held whole."""
    low, high = bounds
    n = q.shape[1]
    block = np.empty((ROWS_PER_BLOCK, n))
    of_each = np.empty((N_FIGURES, ROWS_PER_BLOCK))
    listed = np.empty(ROWS_PER_BLOCK, np.int64)
    total = np.zeros(n)
    moved = np.zeros(n)
    tops = 0.0
    log_norms = 0.0
    means = 0.0
    for first in range(low, high, ROWS_PER_BLOCK):
        last = min(first + ROWS_PER_BLOCK, high)
        free = listed[: _list(IS_FREE, role, first, last, listed)]
        top, log_norm, mean = sweep_rows(
            free, whole, responses, block, of_each, q, moved, counts, total
        )
        tops += top
        log_norms += log_norm
        means += mean
        if len(free) < last - first:
            span = (first, last)
            tops += _treat_others(
                span, q, u, responses, role, scoring, listed, moved, counts, total
            )
    for k in range(n):
        totals[k] = total[k]
        figures[0] = max(figures[0], moved[k])
    figures[1] = log_norms - means
    figures[2] = tops + log_norms


@kernel
def _treat_others(
    span: tuple[int, int],
    q: Floats,
    u: Floats,
    responses: ResponseArrays,
    role: Roles,
    scoring: Scoring,
    listed: Offsets,
    moved: Floats,
    counts: Floats,
    total: Floats,
) -> float:
    """Count known tasks and score linked ones; return the scores of the former.

    Apart from the loop over free tasks, which is a tenth slower with this in it.
    """
    first, last = span
    known = listed[: _list(IS_KNOWN, role, first, last, listed)]
    tops = _known_scores(known, scoring, responses, q)
    count_rows(known, scoring.like, responses, q[:0], q, moved, counts, total)
    linked = listed[: _list(IS_LINKED, role, first, last, listed)]
    score_listed(linked, scoring, responses, u, AS_ROWS)
    return tops


@kernel
def _list(wanted: np.int8, role: Roles, first: int, last: int, listed: Offsets) -> int:
    """List the tasks from first to last that have the role; return how many they are."""
    n = 0
    for i in range(first, last):
        listed[n] = i
        n += role[i] == wanted
    return n


@kernel
def _keep_former(score: Floats, top: Floats, at: Offsets, q: Floats) -> None:
    """Where underflow leaves no class, let the former q stand: its logs become the scores."""
    for t in range(len(at)):
        if top[t] == -np.inf:
            for k in range(score.shape[0]):
                score[k, t] = np.log(q[at[t], k])
                top[t] = max(top[t], score[k, t])


@kernel
def _known_scores(at: Offsets, alone: Scoring, responses: ResponseArrays, q: Floats) -> float:
    """Return the sum of the scores of known tasks' classes; the first may have none."""
    _, log_prior, log_table = alone
    n_left_out = q.shape[1] - len(log_prior)
    total = 0.0
    for i in at:
        known = 0
        for k in range(1, q.shape[1]):
            known = k if q[i, k] > q[i, known] else known
        if known >= n_left_out:
            total += log_prior[known - n_left_out]
            for r in range(responses.start[i], responses.start[i + 1]):
                score = log_table[responses.code[r], known - n_left_out]
                total += score * weight_of(responses.weight, r)
    return total


@kernel
def _tally(
    bounds: Offsets,
    like: Like,
    q: Floats,
    responses: ResponseArrays,
    chosen: Roles,
    counts: Floats,
    totals: Floats,
) -> None:
    low, high = bounds
    listed = np.empty(TASKS_PER_BLOCK, np.int64)
    total = np.zeros(q.shape[1])
    moved = np.zeros(q.shape[1])
    for first in range(low, high, TASKS_PER_BLOCK):
        n = _list(IS_CHOSEN, chosen, first, min(first + TASKS_PER_BLOCK, high), listed)
        count_rows(listed[:n], like, responses, q[:0], q, moved, counts, total)
    for k in range(len(total)):
        totals[k] = total[k]
