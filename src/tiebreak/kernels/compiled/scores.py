"""Scores and probabilities of tasks, compiled, where nothing is counted.

What `tasks.py` does in a sweep, without the counts: for probabilities after the last sweep, for
labels, and for tasks that are new.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.compiled.blocks import N_EXTRA, TOP, block_size, largest, softmax_block
from tiebreak.kernels.compiled.rows import ResponseArrays, Scoring, score_listed
from tiebreak.kernels.compiled.simd import vector_for
from tiebreak.kernels.layout import ByTask, Codes, Floats, Offsets
from tiebreak.kernels.threads import for_each

# Typed constants: a function that is given a plain number or bool is compiled for each value.
AS_COLUMNS = np.bool_(True)
AS_ROWS = np.bool_(False)


def columns_of(tasks: ByTask) -> ResponseArrays:
    """Return the responses as kernels take them."""
    return ResponseArrays(tasks.start, tasks.code, tasks.weight)


def scoring_of(log_prior: Floats, log_table: Floats) -> Scoring:
    """Return what responses are looked up in."""
    return Scoring(vector_for(len(log_prior)), log_prior, np.ascontiguousarray(log_table))


def score_tasks(tasks: ByTask, log_prior: Floats, log_table: Floats) -> Floats:
    """Return u of [eq:task-update] for every task: see `reference.score_tasks`."""
    score = np.empty((tasks.n_tasks, len(log_prior)))
    everyone = np.arange(tasks.n_tasks)
    score_listed(everyone, scoring_of(log_prior, log_table), columns_of(tasks), score, AS_ROWS)
    return score


def scaled_probabilities(
    tasks: ByTask, log_prior: Floats, log_table: Floats, scale: Floats, n_threads: int = 1
) -> Floats:
    """Return softmax(scale_i · u_i): see `reference.scaled_probabilities`."""
    n_classes = len(log_prior)
    q = np.empty((tasks.n_tasks, n_classes))
    workspace_shape = (n_classes + N_EXTRA, block_size(n_classes))
    responses = columns_of(tasks)
    scoring = scoring_of(log_prior, log_table)

    def work(c: int) -> None:
        bounds = tasks.edges[c : c + 2]
        _scaled_probabilities(bounds, responses, scoring, scale, np.empty(workspace_shape), q)

    for_each(work, len(tasks.edges) - 1, n_threads)
    return q


def likeliest(q: Floats) -> tuple[Codes, Floats]:
    """Return the likeliest class of each row of q: see `reference.likeliest`."""
    label = np.empty(len(q), dtype=np.int32)
    top = np.empty(len(q))
    _likeliest(q, label, top)
    return label, top


@kernel
def _scaled_probabilities(
    bounds: Offsets,
    responses: ResponseArrays,
    scoring: Scoring,
    scale: Floats,
    workspace: Floats,
    q: Floats,
) -> None:
    """Set the rows of q of the tasks within bounds, in blocks."""
    low, high = bounds
    n = q.shape[1]
    size = workspace.shape[1]
    score = workspace[:n]
    extra = workspace[n:]
    listed = np.empty(size, np.int64)
    for first in range(low, high, size):
        m = min(first + size, high) - first
        for t in range(m):
            listed[t] = first + t
        score_listed(listed[:m], scoring, responses, score, AS_COLUMNS)
        for k in range(n):
            for t in range(m):
                score[k, t] *= scale[first + t]
        largest(score, extra[TOP], m)
        softmax_block(score, extra, m)
        for t in range(m):
            for k in range(n):
                q[first + t, k] = score[k, t]


@kernel
def _likeliest(q: Floats, label: Codes, top: Floats) -> None:
    for i in range(len(q)):
        best = 0
        largest = q[i, 0]
        for k in range(1, q.shape[1]):  # selects, no branches: which class wins is hard to foretell
            is_larger = q[i, k] > largest
            best = k if is_larger else best
            largest = q[i, k] if is_larger else largest
        label[i] = best
        top[i] = largest
