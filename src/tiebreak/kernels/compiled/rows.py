"""Gather and scatter the rows of listed tasks' responses, for as many classes as there are lanes.

Rows are unsigned: no check for counting from the end.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.compiled.lanes import (
    Like,
    apart,
    larger,
    load,
    load_column,
    plus,
    prefetch,
    store,
    store_column,
    zeros,
)
from tiebreak.kernels.layout import Codes, Floats, Offsets, Roles

AHEAD = 16  # responses


@kernel
def score_columns(
    at: Offsets,
    like: Like,
    start: Offsets,
    code: Codes,
    log_prior: Floats,
    log_table: Floats,
    score: Floats,
) -> None:
    """Set column t of `score` to log_prior + Σ log_table over the responses on task at[t]."""
    for k in range(0, len(log_prior), len(like)):
        for t in range(len(at)):
            total = load(log_prior, 0, k, like)
            for r in range(start[at[t]], start[at[t] + 1]):
                total = plus(total, load(log_table, np.uint32(code[r]), k, like))
            store_column(score, k, t, total)


@kernel
def score_rows(
    at: Offsets,
    like: Like,
    start: Offsets,
    code: Codes,
    log_prior: Floats,
    log_table: Floats,
    score: Floats,
) -> None:
    """Set row i of `score` to log_prior + Σ log_table over the responses on task i, i in `at`."""
    for k in range(0, len(log_prior), len(like)):
        for i in at:
            total = load(log_prior, 0, k, like)
            for r in range(start[i], start[i + 1]):
                total = plus(total, load(log_table, np.uint32(code[r]), k, like))
            store(score, i, k, total)


@kernel
def store_rows(at: Offsets, like: Like, new: Floats, q: Floats, moved: Floats) -> None:
    """Set the rows of q of tasks at[t] to columns t of `new`; keep the largest moves."""
    for k in range(0, len(moved), len(like)):
        far = load(moved, 0, k, like)
        for t in range(len(at)):
            row = load_column(new, k, t, like)
            far = larger(far, apart(row, load(q, at[t], k, like)))
            store(q, at[t], k, row)
        store(moved, 0, k, far)


@kernel
def count_rows(
    at: Offsets,
    like: Like,
    start: Offsets,
    code: Codes,
    q: Floats,
    counts: Floats,
    totals: Floats,
) -> None:
    """Add the rows of q of the listed tasks to totals and, if any, the counts of their responses.

    Without counts (none have room), `count_codes` does the rest.
    """
    for k in range(0, len(totals), len(like)):
        total = load(totals, 0, k, like)
        for i in at:
            row = load(q, i, k, like)
            total = plus(total, row)
            for r in range(start[i], start[i + 1] if len(counts) else start[i]):
                c = np.uint32(code[r])
                store(counts, c, k, plus(load(counts, c, k, like), row))
        store(totals, 0, k, total)


@kernel
def count_codes(
    low: int,
    high: int,
    like: Like,
    start: Offsets,
    task: Codes,
    chosen: Roles,
    q: Floats,
    counts: Floats,
) -> None:
    """Set the counts of codes low … high − 1 to the sums of q over their chosen tasks."""
    last = start[high] - 1
    for k in range(0, q.shape[1], len(like)):
        for c in range(low, high):
            total = zeros(like)
            for r in range(start[c], start[c + 1]):
                prefetch(q, task[min(r + AHEAD, last)], k)  # tasks lie anywhere
                if chosen[task[r]]:
                    total = plus(total, load(q, task[r], k, like))
            store(counts, c, k, total)
