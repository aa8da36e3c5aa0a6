"""Labels of tasks by workers as they are known, compiled: see `reference.classify`.

The plain version is five passes over memory: how many responses tasks have, scores, probabilities,
the largest of each row, and its place. Here tasks go in blocks that stay in the nearest cache, and
nothing is written but what is returned. At 1e7 responses that takes about as long as a sweep, with
two, four or ten classes; most of it is for scores, exponentials and new memory (docs/life.md).

Rows of classes that sweeps hold whole (`whole_rows.py`) are held whole here too. Where classes have
subtypes their scores are joined to one of the class, in the block.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.arrays import for_each
from tiebreak.kernels.compile import kernel, summing_kernel
from tiebreak.kernels.compiled.blocks import block_size, largest
from tiebreak.kernels.compiled.exponential import EXP_IS_ZERO, exp, exp_normal, log
from tiebreak.kernels.compiled.rows import ONE, ResponseArrays, Scoring, score_listed
from tiebreak.kernels.compiled.scalar import LEAST_NORMAL
from tiebreak.kernels.compiled.scores import AS_COLUMNS, columns_of, scoring_of
from tiebreak.kernels.compiled.simd import (
    WHOLE_ROWS,
    Like,
    load,
    load_column,
    max_element,
    maximum,
    minus,
    store,
    sum_elements,
    times,
    vector_for,
    where_above,
)
from tiebreak.kernels.compiled.whole_rows import ROWS_PER_BLOCK, score_rows
from tiebreak.kernels.layout import TIED, ByTask, Codes, Floats, Offsets

JUST_BELOW = 1.0 - 2.0**-53  # times a number: the one before it
# Rows of the workspace after those of states and classes:
SCALE = 0
TOP = 1
NORM = 2
BEST = 3
N_EXTRA = 4

Design = tuple[float, float]  # ρ and t of [eq:design-effect]


def classify(
    tasks: ByTask,
    log_prior: Floats,
    log_table: Floats,
    n_classes: int,
    dependence: float,
    multiplier: float,
    n_threads: int = 1,
) -> tuple[Floats, Codes, Floats]:
    """Return probabilities, labels and the probability of each: see `reference.classify`."""
    n_states = len(log_prior)
    q = np.empty((tasks.n_tasks, n_classes))
    label = np.empty(tasks.n_tasks, dtype=np.int32)
    top = np.empty(tasks.n_tasks)
    responses = columns_of(tasks)
    scoring = scoring_of(log_prior, log_table)
    design = (float(dependence), float(multiplier))
    workspace_shape = (n_states + n_classes + N_EXTRA, block_size(n_states))
    like = vector_for(n_classes)
    is_whole = n_states == n_classes and n_classes in WHOLE_ROWS
    if is_whole:
        scoring = scoring._replace(like=(0,) * n_classes)

    def work(c: int) -> None:
        bounds = tasks.edges[c : c + 2]
        if is_whole:
            _classify_whole_rows(bounds, responses, scoring, design, q, label, top)
        else:
            workspace = np.empty(workspace_shape)
            _classify(bounds, responses, scoring, design, like, workspace, q, label, top)

    for_each(work, len(tasks.edges) - 1, n_threads)
    return q, label, top


@kernel
def _classify(
    bounds: Offsets,
    responses: ResponseArrays,
    scoring: Scoring,
    design: Design,
    like: Like,
    workspace: Floats,
    q: Floats,
    label: Codes,
    top: Floats,
) -> None:
    """Set what is returned of the tasks within bounds, in blocks of columns."""
    low, high = bounds
    n = q.shape[1]
    n_states = len(scoring.log_prior)
    size = workspace.shape[1]
    of_states = workspace[:n_states]
    score = workspace[n_states : n_states + n] if n_states > n else of_states
    extra = workspace[n_states + n :]
    listed = np.empty(size, np.int64)
    for first in range(low, high, size):
        m = min(first + size, high) - first
        for t in range(m):
            listed[t] = first + t
        score_listed(listed[:m], scoring, responses, of_states, AS_COLUMNS)
        if n_states > n:
            _join_subtypes(of_states, score, extra[NORM], m)
        _scales(first, responses, design, extra[SCALE], m)
        if n == 2:
            _shares_of_two(score[0], score[1], extra, m)
        else:
            _find_largest(score, extra[SCALE], extra[TOP], m)
            _shares(score, extra, m)
        _store_rows(first, like, score, m, q)
        for t in range(m):
            label[first + t] = np.int32(extra[BEST, t])
            top[first + t] = extra[TOP, t]


@kernel
def _join_subtypes(of_states: Floats, score: Floats, norm: Floats, m: int) -> None:
    """Set the score of each class: the log of the sum over its subtypes, exponentiated."""
    n_subtypes = of_states.shape[0] // score.shape[0]
    for k in range(score.shape[0]):
        own = of_states[k * n_subtypes : (k + 1) * n_subtypes]
        largest(own, score[k], m)
        for t in range(m):
            norm[t] = 0.0
        for subtype in range(n_subtypes):
            _exponentials(own[subtype], score[k], norm, m)
        _add_logs(norm, score[k], m)


@kernel
def _add_logs(norm: Floats, score: Floats, m: int) -> None:
    for t in range(m):
        score[t] += log(norm[t])  # of 0, which has no log, some number: −∞ stays what it is


@kernel
def _scales(first: int, responses: ResponseArrays, design: Design, scale: Floats, m: int) -> None:
    """Set by how much the score of each task counts: [eq:design-effect]."""
    dependence, multiplier = design
    for t in range(m):
        others = _n_responses(responses.weight, responses.start, np.uint64(first + t)) - 1.0
        others = others if others > 0.0 else 0.0
        scale[t] = multiplier / (1.0 + dependence * others)


@kernel
def _n_responses(weight: Floats | None, start: Offsets, i: np.uint64) -> float:
    """Return how many responses task i has, by weight."""
    begin = start[i]
    end = start[i + ONE]
    if weight is None:
        return float(end - begin)
    total = 0.0
    for r in range(begin, end):
        total += weight[r]
    return total


@kernel
def _find_largest(score: Floats, scale: Floats, top: Floats, m: int) -> None:
    """Scale the scores, and set the largest one of each task."""
    for t in range(m):
        top[t] = -np.inf
    for k in range(score.shape[0]):
        row = score[k]
        for t in range(m):
            scaled = row[t] * scale[t]
            row[t] = scaled
            top[t] = scaled if scaled > top[t] else top[t]


@kernel
def _shares(score: Floats, extra: Floats, m: int) -> None:
    """Turn scaled scores into probabilities; set the likeliest class, and its probability as TOP.

    The largest exponential is exp(0) = 1, so the inverse of the norm is the largest probability.
    """
    n = score.shape[0]
    norm = extra[NORM]
    best = extra[BEST]
    for t in range(m):
        norm[t] = 0.0
        best[t] = 0.0
    for k in range(n):
        _exponentials(score[k], extra[TOP], norm, m)
    _invert(norm, extra[TOP], m)
    for k in range(n - 1, -1, -1):  # from the last on, so that the first one wins ties
        _normalise(score[k], extra[TOP], best, float(k), m)


@summing_kernel
def _exponentials(score: Floats, top: Floats, norm: Floats, m: int) -> None:
    """Set score = exp(score − top) of one class, and add it up."""
    for t in range(m):
        gap = score[t] - top[t]
        gap = gap if gap > EXP_IS_ZERO else EXP_IS_ZERO
        e = exp(gap)
        score[t] = e
        norm[t] += e


@kernel
def _invert(norm: Floats, top: Floats, m: int) -> None:
    """Set the largest probability of each task; where no class is possible, it is none."""
    for t in range(m):
        top[t] = 1.0 / norm[t] if norm[t] > 0.0 else np.nan


@kernel
def _normalise(share: Floats, top: Floats, best: Floats, k: float, m: int) -> None:
    """Set the shares of class k, and where they are the largest ones say so.

    The class is kept as a float, as wide as what is compared: both become vector instructions.
    """
    for t in range(m):
        new = share[t] * top[t]
        share[t] = new
        best[t] = k if new >= top[t] - TIED else best[t]


@kernel
def _shares_of_two(one: Floats, other: Floats, extra: Floats, m: int) -> None:
    """Do all of it for two classes, to the same bits: one exponential a task, not two."""
    scale = extra[SCALE]
    top = extra[TOP]
    best = extra[BEST]
    for t in range(m):
        odds = other[t] * scale[t] - one[t] * scale[t]
        is_other = odds > 0.0
        gap = -odds if is_other else odds
        gap = gap if gap > EXP_IS_ZERO else EXP_IS_ZERO
        e = exp(gap)
        larger = 1.0 / (1.0 + e) if odds == odds else np.nan
        smaller = e * larger
        one[t] = smaller if is_other else larger
        other[t] = larger if is_other else smaller
        top[t] = larger
        best[t] = 1.0 if is_other and larger > smaller + TIED else 0.0


@kernel
def _store_rows(first: int, like: Like, share: Floats, m: int, q: Floats) -> None:
    """Set rows of q to columns of shares."""
    for k in range(0, share.shape[0], len(like)):
        for t in range(m):
            store(q, first + t, k, load_column(share, k, t, like))


@kernel
def _classify_whole_rows(
    bounds: Offsets,
    responses: ResponseArrays,
    scoring: Scoring,
    design: Design,
    q: Floats,
    label: Codes,
    top: Floats,
) -> None:
    """Do what `_classify` does, with rows held whole."""
    low, high = bounds
    n = q.shape[1]
    like = scoring.like
    block = np.empty((ROWS_PER_BLOCK, n))
    extra = np.empty((N_EXTRA, ROWS_PER_BLOCK))
    listed = np.empty(ROWS_PER_BLOCK, np.int64)
    places = np.arange(n, 0, -1).astype(np.float64)  # n for the first class, 1 for the last
    for first in range(low, high, ROWS_PER_BLOCK):
        m = min(first + ROWS_PER_BLOCK, high) - first
        for t in range(m):
            listed[t] = first + t
        score_rows(listed[:m], scoring, responses, block, extra[TOP])
        _scales(first, responses, design, extra[SCALE], m)
        for t in range(m):
            gap = times(minus(load(block, t, 0, like), extra[TOP, t]), extra[SCALE, t])
            e = exp_normal(maximum(gap, LEAST_NORMAL))
            extra[NORM, t] = sum_elements(e)
            store(block, t, 0, e)
        _invert(extra[NORM], extra[TOP], m)
        for t in range(m):
            share = extra[TOP, t]
            row = times(load(block, t, 0, like), share)
            store(q, first + t, 0, row)
            top[first + t] = share
            place = max_element(where_above(row, share * JUST_BELOW, load(places, 0, 0, like)))
            label[first + t] = n - np.int32(place) if place > 0.0 else 0
