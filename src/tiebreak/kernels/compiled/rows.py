"""Gather and scatter the rows of listed tasks' responses, for as many classes as there are lanes.

A task has few responses: a loop that counts to five takes longer than what is done in it. So they
go four at a time, then two, then one. All positions are unsigned, so that none is checked for
counting from the end of its array.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.compiled.simd import (
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
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


class Scoring(NamedTuple):
    """What a task scores: the prior, and a row of the table for each response."""

    like: Like
    log_prior: Floats  # (n,) of as many classes as are scored
    log_table: Floats  # (n_codes, n)


@kernel
def score_listed(
    at: Offsets, scoring: Scoring, start: Offsets, code: Codes, score: Floats, as_columns: bool
) -> None:
    """Set log_prior + Σ log_table over the responses on each listed task.

    That of task at[t] becomes column t of `score`, or else row at[t].
    """
    like, log_prior, log_table = scoring
    for k in range(0, len(log_prior), len(like)):
        for t in range(len(at)):
            total = load(log_prior, 0, k, like)
            r, stop = first(start, at[t]), first(start, at[t] + 1)
            while r + FOUR <= stop:
                two = plus(
                    _row(r, code, log_table, k, like), _row(r + ONE, code, log_table, k, like)
                )
                total = plus(total, two)
                r += TWO
                two = plus(
                    _row(r, code, log_table, k, like), _row(r + ONE, code, log_table, k, like)
                )
                total = plus(total, two)
                r += TWO
            if (stop - r) & TWO:
                two = plus(
                    _row(r, code, log_table, k, like), _row(r + ONE, code, log_table, k, like)
                )
                total = plus(total, two)
                r += TWO
            if (stop - r) & ONE:
                total = plus(total, _row(r, code, log_table, k, like))
            if as_columns:
                store_column(score, k, t, total)
            else:
                store(score, at[t], k, total)


@kernel
def first(start: Offsets, i: int) -> Any:
    """Return where the responses on task i start."""
    return np.uint64(start[np.uint64(i)])


@kernel
def _row(r: Any, code: Codes, table: Floats, k: int, like: Like) -> Any:
    """Return the row of the table that response r looks up."""
    return load(table, np.uint32(code[r]), k, like)


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
    new: Floats,
    q: Floats,
    moved: Floats,
    counts: Floats,
    totals: Floats,
) -> None:
    """Add the rows of q of the listed tasks to totals and, if any, the counts of their responses.

    Where there are columns of new rows, these take their places first, as in `store_rows`.
    Without counts (none have room), `count_codes` does the rest.
    """
    for k in range(0, len(totals), len(like)):
        total, far = load(totals, 0, k, like), load(moved, 0, k, like)
        for t in range(len(at)):
            i = at[t]
            row = load(q, i, k, like)
            if len(new):
                far = larger(far, apart(load_column(new, k, t, like), row))
                row = load_column(new, k, t, like)
                store(q, i, k, row)
            total = plus(total, row)
            r = first(start, i)
            stop = first(start, i + 1) if len(counts) else r
            while r + FOUR <= stop:
                _count(row, r, code, counts, k, like)
                _count(row, r + ONE, code, counts, k, like)
                _count(row, r + TWO, code, counts, k, like)
                _count(row, r + THREE, code, counts, k, like)
                r += FOUR
            if (stop - r) & TWO:
                _count(row, r, code, counts, k, like)
                _count(row, r + ONE, code, counts, k, like)
                r += TWO
            if (stop - r) & ONE:
                _count(row, r, code, counts, k, like)
        store(totals, 0, k, total)
        store(moved, 0, k, far)


@kernel
def _count(row: Any, r: Any, code: Codes, counts: Floats, k: int, like: Like) -> None:
    c = np.uint32(code[r])
    store(counts, c, k, plus(load(counts, c, k, like), row))


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
