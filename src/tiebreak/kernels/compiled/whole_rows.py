"""Sweep over tasks with many states, each row held whole: subtypes of classes.

The plain version is that of `rows.py` and `blocks.py`. There a row of twenty states is cut into
four vectors of five, responses are passed over four times, and scores are turned from rows into
columns and back. Here a row is five vectors of four from its scores to its counts:

    scores of a block of tasks → exponentials → shares, q and counts

Each arrow is a loop of its own, since the steps of one task wait for each other while those of
different tasks do not. Exponentials need no memory, so meanwhile what comes next is asked for: the
rows of q, which come from far memory; and the rows of counts, and those of the table for the next
block, which together are larger than the second cache. At 1e7 responses of 1,000 workers, four
classes and five subtypes that makes 12 ns a response, not 28 (docs/performance.md).
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import inlined_kernel, kernel
from tiebreak.kernels.compiled.exponential import exp_normal
from tiebreak.kernels.compiled.rows import (
    FOUR,
    ONE,
    THREE,
    TWO,
    ResponseArrays,
    Scoring,
    count_response,
    counted,
    first,
    row_of,
    two_rows,
)
from tiebreak.kernels.compiled.scalar import LEAST_NORMAL
from tiebreak.kernels.compiled.simd import (
    Like,
    abs_difference,
    load,
    max_element,
    maximum,
    minus,
    plus,
    prefetch,
    prefetch_row,
    store,
    sum_elements,
    times,
)
from tiebreak.kernels.layout import Floats, Offsets

NUMBERS_IN_A_LINE = 8  # of the cache
ROWS_PER_BLOCK = 128  # scores and q of a block stay in the nearest cache
# Rows of the figures of a block:
TOP = 0
NORM = 1
MEAN = 2
N_FIGURES = 3


@inlined_kernel
def sweep_rows(
    at: Offsets,
    scoring: Scoring,
    responses: ResponseArrays,
    block: Floats,
    figures: Floats,
    q: Floats,
    moved: Floats,
    counts: Floats,
    totals: Floats,
) -> tuple[float, float, float]:
    """Update the listed tasks and count them; return what `blocks.softmax_block` does.

    Parameters
    ----------
    block, figures
        (n, n_states) and (N_FIGURES, n), workspace for at least as many tasks as are listed.
    moved, counts, totals
        As those of `rows.count_rows`.
    """
    if score_rows(at, scoring, responses, block, figures[TOP]) > 0:
        _keep_former(at, block, figures[TOP], q)
    _exponentials(at, scoring, responses, block, figures, q, counts)
    tops, product, means = _shares(
        at, scoring.like, responses, block, figures, q, moved, counts, totals
    )
    return tops, np.log(product), means


@kernel
def score_rows(
    at: Offsets, scoring: Scoring, responses: ResponseArrays, block: Floats, top: Floats
) -> int:
    """Set the scores of the listed tasks and the largest of each; return how many have none."""
    like, log_prior, log_table = scoring
    n_without = 0
    for t in range(len(at)):
        score = load(log_prior, 0, 0, like)
        r = first(responses.start, at[t])
        stop = first(responses.start, at[t] + 1)
        while r + FOUR <= stop:  # as in `score_listed`; in a function of its own it takes longer
            score = plus(score, two_rows(r, responses, log_table, 0, like))
            r += TWO
            score = plus(score, two_rows(r, responses, log_table, 0, like))
            r += TWO
        if (stop - r) & TWO:
            score = plus(score, two_rows(r, responses, log_table, 0, like))
            r += TWO
        if (stop - r) & ONE:
            score = plus(score, row_of(r, responses, log_table, 0, like))
        store(block, t, 0, score)
        top[t] = max_element(score)
        n_without += top[t] == -np.inf
    return n_without


@kernel
def _keep_former(at: Offsets, block: Floats, top: Floats, q: Floats) -> None:
    """Where underflow leaves no state, let the former q stand: its logs become the scores."""
    for t in range(len(at)):
        if top[t] == -np.inf:
            for k in range(block.shape[1]):
                block[t, k] = np.log(q[at[t], k])
                top[t] = max(top[t], block[t, k])


@kernel
def _exponentials(
    at: Offsets,
    scoring: Scoring,
    responses: ResponseArrays,
    block: Floats,
    figures: Floats,
    q: Floats,
    counts: Floats,
) -> None:
    """Replace scores by exp(score − top), and set norm and mean of each task."""
    like = scoring.like
    for t in range(len(at)):
        for k in range(0, len(like), NUMBERS_IN_A_LINE):
            prefetch(q, at[t], k)
        if len(counts):
            _ask_for_rows(at[t], responses, counts, like)
        _ask_for_rows(at[t] + ROWS_PER_BLOCK, responses, scoring.log_table, like)
        gap = maximum(minus(load(block, t, 0, like), figures[TOP, t]), LEAST_NORMAL)
        e = exp_normal(gap)
        figures[NORM, t] = sum_elements(e)
        figures[MEAN, t] = sum_elements(times(e, gap))
        store(block, t, 0, e)


@inlined_kernel
def _ask_for_rows(i: int, responses: ResponseArrays, table: Floats, like: Like) -> None:
    """Ask for the rows that the responses on task i look up, where there is such a task."""
    if i + 1 < len(responses.start):
        for r in range(first(responses.start, i), first(responses.start, i + 1)):
            prefetch_row(table, np.uint32(responses.code[r]), 0, like)


@kernel
def _shares(
    at: Offsets,
    like: Like,
    responses: ResponseArrays,
    block: Floats,
    figures: Floats,
    q: Floats,
    moved: Floats,
    counts: Floats,
    totals: Floats,
) -> tuple[float, float, float]:
    """Set q of the listed tasks and count it; return Σ top, Π norm and Σ mean / norm."""
    total = load(totals, 0, 0, like)
    far = load(moved, 0, 0, like)
    tops = 0.0
    product = 1.0
    means = 0.0
    for t in range(len(at)):
        share = 1.0 / figures[NORM, t]
        row = times(load(block, t, 0, like), share)
        far = maximum(far, abs_difference(row, load(q, at[t], 0, like)))
        store(q, at[t], 0, row)
        row = counted(row, responses.rounder)
        total = plus(total, row)
        tops += figures[TOP, t]
        product *= figures[NORM, t]
        means += figures[MEAN, t] * share
        r = first(responses.start, at[t])
        stop = first(responses.start, at[t] + 1) if len(counts) else r
        while r + FOUR <= stop:
            count_response(row, r, responses, counts, 0, like)
            count_response(row, r + ONE, responses, counts, 0, like)
            count_response(row, r + TWO, responses, counts, 0, like)
            count_response(row, r + THREE, responses, counts, 0, like)
            r += FOUR
        if (stop - r) & TWO:
            count_response(row, r, responses, counts, 0, like)
            count_response(row, r + ONE, responses, counts, 0, like)
            r += TWO
        if (stop - r) & ONE:
            count_response(row, r, responses, counts, 0, like)
    store(totals, 0, 0, total)
    store(moved, 0, 0, far)
    return tops, product, means
