"""Sweeps over tasks, compiled: same names and signatures as the reference, one fused pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tiebreak.kernels.compile import UNROLLED_CLASSES, kernel
from tiebreak.kernels.layout import (
    FREE,
    LINKED,
    ByTask,
    Codes,
    Floats,
    Mask,
    Offsets,
    Roles,
    Swept,
)
from tiebreak.kernels.threads import for_each

LARGE_PRODUCT = 1e250  # of sums between 1 and the number of classes: far from overflow


def sweep_tasks(
    q: Floats, u: Floats, tasks: ByTask, log_prior: Floats, log_table: Floats, n_threads: int = 1
) -> Swept:
    """Update the free tasks, score the linked ones, and count: see `reference.sweep_tasks`."""
    n_chunks, n_classes = len(tasks.edges) - 1, q.shape[1]
    counts = np.zeros((n_chunks, tasks.n_codes, n_classes))
    totals = np.zeros((n_chunks, n_classes))
    figures = np.zeros((n_chunks, 3))
    sweep = _sweep_kernel(n_classes)

    def work(c: int) -> None:
        bounds = tasks.edges[c], tasks.edges[c + 1]
        out = counts[c], totals[c], figures[c]
        sweep(*bounds, q, u, tasks.start, tasks.code, tasks.role, log_prior, log_table, *out)

    for_each(work, n_chunks, n_threads)
    return Swept(
        _add_in_order(counts),
        _add_in_order(totals),
        float(figures[:, 0].max(initial=0.0)),
        float(_add_in_order(figures[:, 1])),
        float(_add_in_order(figures[:, 2])),
    )


def score_tasks(tasks: ByTask, log_prior: Floats, log_table: Floats) -> Floats:
    """Return u of [eq:task-update] for every task: see `reference.score_tasks`."""
    score = np.empty((tasks.n_tasks, len(log_prior)))
    _score(tasks.start, tasks.code, log_prior, log_table, score)
    return score


def tally(q: Floats, tasks: ByTask, chosen: Mask, n_threads: int = 1) -> tuple[Floats, Floats]:
    """Return Σ q by code and over tasks, of the chosen tasks: see `reference.tally`."""
    n_chunks, n_classes = len(tasks.edges) - 1, q.shape[1]
    counts = np.zeros((n_chunks, tasks.n_codes, n_classes))
    totals = np.zeros((n_chunks, n_classes))
    chosen = np.ascontiguousarray(chosen)

    def work(c: int) -> None:
        bounds = tasks.edges[c], tasks.edges[c + 1]
        _tally(*bounds, q, tasks.start, tasks.code, chosen, counts[c], totals[c])

    for_each(work, n_chunks, n_threads)
    return _add_in_order(counts), _add_in_order(totals)


def _add_in_order(parts: np.ndarray[Any, Any]) -> Any:
    """Add along the first axis in its order, so that the bits do not depend on threads."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


@kernel
def _settle(score: Floats, q: Floats, i: int, n: int) -> tuple[float, float, float, float]:
    """Set q_i = softmax(score); return its largest change and what sums are made of.

    With top the largest score, norm = Σ exp(score − top) and mean = Σ q_i (score − top), the
    entropy is log norm − mean and log Σ exp(score) is top + log norm.
    """
    top = score[0]
    for k in range(1, n):
        top = max(top, score[k])
    if top == -np.inf:  # no class is left after underflow: keep the former q
        mean = 0.0
        for k in range(n):
            if q[i, k] > 0.0:
                mean += q[i, k] * np.log(q[i, k])
        return 0.0, mean, 1.0, 0.0
    norm, weighted, change = 0.0, 0.0, 0.0
    for k in range(n):
        gap = score[k] - top
        score[k] = np.exp(gap) if gap < 0.0 else 1.0
        norm += score[k]
        weighted += score[k] * gap if gap > -np.inf else 0.0
    share = 1.0 / norm
    for k in range(n):
        new = score[k] * share
        change = max(change, abs(new - q[i, k]))
        q[i, k] = new
    return change, weighted * share, norm, top


# Two and four classes are written out, so that a task's numbers stay in registers: the compiler
# cannot know that arrays do not overlap. Rows are unsigned: no check for counting from the end.


@kernel
def _gather(
    low: int,
    high: int,
    code: Codes,
    log_prior: Floats,
    log_table: Floats,
    score: Floats,
    n: int,
) -> None:
    """Set score = log_prior + Σ log_table over responses low … high − 1."""
    for k in range(n):
        score[k] = log_prior[k]
    for r in range(low, high):
        row = np.uint32(code[r])
        for k in range(n):
            score[k] += log_table[row, k]


@kernel
def _gather2(
    low: int, high: int, code: Codes, log_prior: Floats, log_table: Floats, score: Floats
) -> None:
    a, b = log_prior[0], log_prior[1]
    for r in range(low, high):
        row = np.uint32(code[r])
        a += log_table[row, 0]
        b += log_table[row, 1]
    score[0], score[1] = a, b


@kernel
def _gather4(
    low: int, high: int, code: Codes, log_prior: Floats, log_table: Floats, score: Floats
) -> None:
    a, b, c, d = log_prior[0], log_prior[1], log_prior[2], log_prior[3]
    for r in range(low, high):
        row = np.uint32(code[r])
        a += log_table[row, 0]
        b += log_table[row, 1]
        c += log_table[row, 2]
        d += log_table[row, 3]
    score[0], score[1], score[2], score[3] = a, b, c, d


@kernel
def _scatter(low: int, high: int, code: Codes, q: Floats, i: int, counts: Floats, n: int) -> None:
    """Add q_i to the counts of responses low … high − 1."""
    for r in range(low, high):
        row = np.uint32(code[r])
        for k in range(n):
            counts[row, k] += q[i, k]


@kernel
def _scatter2(low: int, high: int, code: Codes, q: Floats, i: int, counts: Floats) -> None:
    a, b = q[i, 0], q[i, 1]
    for r in range(low, high):
        row = np.uint32(code[r])
        counts[row, 0] += a
        counts[row, 1] += b


@kernel
def _scatter4(low: int, high: int, code: Codes, q: Floats, i: int, counts: Floats) -> None:
    a, b, c, d = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
    for r in range(low, high):
        row = np.uint32(code[r])
        counts[row, 0] += a
        counts[row, 1] += b
        counts[row, 2] += c
        counts[row, 3] += d


@cache
def _sweep_kernel(n_classes: int) -> Callable[..., None]:
    """Make the sweep for a number of classes, so that its class loops unroll.

    Above `UNROLLED_CLASSES` one kernel reads the number from the arrays.
    """
    unrolled = n_classes if n_classes <= UNROLLED_CLASSES else 0

    @kernel
    def sweep(
        low: int,
        high: int,
        q: Floats,
        u: Floats,
        start: Offsets,
        code: Codes,
        role: Roles,
        log_prior: Floats,
        log_table: Floats,
        counts: Floats,
        totals: Floats,
        figures: Floats,
    ) -> None:
        n = unrolled if unrolled > 0 else q.shape[1]
        score, total = np.empty(n), np.zeros(n)
        # Sums are local: side by side in memory, threads would fight for the same cache line.
        change, means, tops, log_norms, product = 0.0, 0.0, 0.0, 0.0, 1.0
        for i in range(low, high):
            if unrolled == 4:
                _gather4(start[i], start[i + 1], code, log_prior, log_table, score)
            elif unrolled == 2:
                _gather2(start[i], start[i + 1], code, log_prior, log_table, score)
            else:
                _gather(start[i], start[i + 1], code, log_prior, log_table, score, n)
            if role[i] == LINKED:
                for k in range(n):
                    u[i, k] = score[k]
                continue
            if role[i] == FREE:
                moved, mean, norm, top = _settle(score, q, i, n)
                change = max(change, moved)
                means += mean
                tops += top
                product *= norm  # one logarithm serves many tasks
                if product > LARGE_PRODUCT:
                    log_norms += np.log(product)
                    product = 1.0
            else:
                tops += score[q[i].argmax()]
            if unrolled == 4:
                _scatter4(start[i], start[i + 1], code, q, i, counts)
            elif unrolled == 2:
                _scatter2(start[i], start[i + 1], code, q, i, counts)
            else:
                _scatter(start[i], start[i + 1], code, q, i, counts, n)
            for k in range(n):
                total[k] += q[i, k]
        totals[:] = total
        log_norms += np.log(product)
        figures[0], figures[1], figures[2] = change, log_norms - means, tops + log_norms

    return sweep


@kernel
def _score(
    start: Offsets, code: Codes, log_prior: Floats, log_table: Floats, score: Floats
) -> None:
    for i in range(score.shape[0]):
        score[i] = log_prior
        for r in range(start[i], start[i + 1]):
            for k in range(score.shape[1]):
                score[i, k] += log_table[code[r], k]


@kernel
def _tally(
    low: int,
    high: int,
    q: Floats,
    start: Offsets,
    code: Codes,
    chosen: Mask,
    counts: Floats,
    totals: Floats,
) -> None:
    total = np.zeros(q.shape[1])
    for i in range(low, high):
        if not chosen[i]:
            continue
        for r in range(start[i], start[i + 1]):
            for k in range(q.shape[1]):
                counts[code[r], k] += q[i, k]
        for k in range(q.shape[1]):
            total[k] += q[i, k]
    totals[:] = total
