"""Sweeps over tasks, scores and probabilities in plain NumPy: what the other backends mean.

Below about 2e5 responses they are also the fastest choice, since nothing has to be compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak.kernels.arrays import entropy, softmax
from tiebreak.kernels.layout import (
    FREE,
    ByTask,
    Codes,
    Floats,
    Mask,
    Swept,
    rounded,
    weights_or_ones,
)

__all__ = ["scaled_probabilities", "score_tasks", "sweep_tasks", "tally"]

MANY_CLASSES = 32  # from here on, a product of matrices is faster than a sum by class


def sweep_tasks(
    q: Floats,
    tasks: ByTask,
    log_prior: Floats,
    log_table: Floats,
    n_threads: int = 1,
) -> Swept:
    """Update the free tasks, and count what free and known ones say.

    Implements [eq:task-update], (w, l) over the responses on task i, each times its weight if any:

        u_i(k) = E[log π_k] + Σ_(w,l) E[log θ_wkl],   q_i = softmax(u_i)

    and, fused with it, the sums of [eq:class-prior-update] and [eq:confusion-update].

    Parameters
    ----------
    q
        (n_tasks, n_classes), rows sum to 1. Rows of free tasks are overwritten.
    log_prior, log_table
        E[log π], (n_classes,), and E[log θ], (n_codes, truth).
    """
    score = score_tasks(tasks, log_prior, log_table)
    free = tasks.role == FREE
    with np.errstate(invalid="ignore"):
        new = softmax(score)
    free &= np.isfinite(new[:, 0])  # no class is left after underflow: keep the former q
    change = float(np.abs(new[free] - q[free]).max(initial=0.0))
    q[free] = new[free]
    sums = tally(q, tasks, tasks.is_counted)
    return Swept(*sums, change, entropy(q[tasks.role == FREE]))


def score_tasks(tasks: ByTask, log_prior: Floats, log_table: Floats, n_threads: int = 1) -> Floats:
    """Return u of [eq:task-update] for every task, (n_tasks, n_classes)."""
    if len(log_prior) >= MANY_CLASSES:
        return np.asarray(_responses_matrix(tasks) @ log_table) + log_prior
    by_response = _weighted(log_table.take(tasks.code, axis=0), tasks)
    task = np.repeat(np.arange(tasks.n_tasks, dtype=np.int32), np.diff(tasks.start))
    return np.asarray(_sum_by(task, by_response, tasks.n_tasks) + log_prior)


def scaled_probabilities(
    tasks: ByTask, log_prior: Floats, log_table: Floats, scale: Floats, n_threads: int = 1
) -> Floats:
    """Return softmax(scale_i · u_i), (n_tasks, n_classes): [eq:design-effect]."""
    return softmax(score_tasks(tasks, log_prior, log_table), scale)


def tally(q: Floats, tasks: ByTask, chosen: Mask, n_threads: int = 1) -> tuple[Floats, Floats]:
    """Return Σ weight · q over responses by code, and Σ q over tasks, of the chosen tasks alone.

    Implements the sums of [eq:confusion-update] and [eq:class-prior-update]. With a rounder sums
    are exact, and so the same in any order.
    """
    counted = rounded(np.where(chosen[:, None], q, 0.0), tasks.rounder)
    if q.shape[1] >= MANY_CLASSES and (tasks.weight is None or tasks.rounder is None):
        return np.asarray(_responses_matrix(tasks).T @ counted), counted.sum(axis=0)
    by_response = _weighted(np.repeat(counted, np.diff(tasks.start), axis=0), tasks)
    if tasks.weight is not None:
        by_response = rounded(by_response, tasks.rounder)
    return _sum_by(tasks.code, by_response, tasks.n_codes), counted.sum(axis=0)


def _weighted(by_response: Floats, tasks: ByTask) -> Floats:
    """Multiply the row of each response by its weight, where responses have one."""
    return by_response if tasks.weight is None else tasks.weight[:, None] * by_response


def _responses_matrix(tasks: ByTask) -> Any:
    """Return the sparse matrix (n_tasks, n_codes) with the weight of each response.

    Its products add in the order of the responses, as the sums by class do: the same bits, but a
    row of all classes at a time. 300 classes, 25,000 responses: a sweep takes 0.06 s, not 0.2 s.
    """
    from scipy import sparse

    weight = weights_or_ones(tasks.weight, len(tasks.code))
    return sparse.csr_array((weight, tasks.code, tasks.start), shape=(tasks.n_tasks, tasks.n_codes))


def _sum_by(place: Codes, rows: Floats, n_places: int) -> Floats:
    """Add up the rows that have the same place, (n_places, n_classes)."""
    columns = (np.bincount(place, weights=column, minlength=n_places) for column in rows.T)
    return np.stack(list(columns), axis=1)
