"""Sweeps over tasks, in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak.kernels.layout import FREE, KNOWN, ByTask, Codes, Floats, Mask, Swept

MANY_CLASSES = 32  # from here on, a product of matrices is faster than a sum by class


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
    """Update the free tasks, score the linked ones, and count what free and known ones say.

    Implements [eq:task-update], (w, l) over the responses on task i:

        u_i(k) = E[log π_k] + Σ_(w,l) E[log θ_wkl],   q_i = softmax(u_i)

    and, fused with it, the sums of [eq:class-prior-update] and [eq:confusion-update].

    Parameters
    ----------
    q
        (n_tasks, n_classes), rows sum to 1. Rows of free tasks are overwritten.
    u
        (n_tasks, n_classes), or (0, n_classes) when no task is linked. Rows of linked tasks are
        overwritten with their scores.
    log_prior, log_table
        E[log π], (n_classes,), and E[log θ], (n_codes, truth).
    counting
        Whether to count by code; (0, n_classes) counts where not.
    """
    score = score_tasks(tasks, log_prior, log_table)
    if len(u):
        u[:] = score
    free = tasks.role == FREE
    top = score.max(axis=1, keepdims=True, initial=-np.inf)
    free &= np.isfinite(top[:, 0])  # no class is left after underflow: keep the former q
    with np.errstate(invalid="ignore"):
        new = np.exp(score - top)
        norm = new.sum(axis=1, keepdims=True)
        new /= norm
    change = float(np.abs(new[free] - q[free]).max(initial=0.0))
    q[free] = new[free]
    counts, totals = tally(q, tasks, tasks.is_counted)
    counts = counts if counting else counts[:0]
    known = np.flatnonzero(tasks.role == KNOWN)
    log_norm = (top[free] + np.log(norm[free])).sum()
    log_norm += score[known, q[known].argmax(axis=1)].sum() if len(known) else 0.0
    return Swept(counts, totals, change, entropy(q[tasks.role == FREE]), float(log_norm))


def score_tasks(tasks: ByTask, log_prior: Floats, log_table: Floats) -> Floats:
    """Return u of [eq:task-update] for every task, (n_tasks, n_classes)."""
    if len(log_prior) >= MANY_CLASSES:
        return np.asarray(_responses_matrix(tasks) @ log_table) + log_prior
    task = np.repeat(np.arange(tasks.n_tasks), np.diff(tasks.start))
    return np.stack(
        [
            np.bincount(task, weights=log_table[tasks.code, k], minlength=tasks.n_tasks)
            + log_prior[k]
            for k in range(len(log_prior))
        ],
        axis=1,
    )


def likeliest(q: Floats) -> tuple[Codes, Floats]:
    """Return the likeliest class of each row of q, the first one on ties, and its q."""
    return q.argmax(axis=1).astype(np.int32), q.max(axis=1)


def tally(q: Floats, tasks: ByTask, chosen: Mask, n_threads: int = 1) -> tuple[Floats, Floats]:
    """Return Σ q over responses by code, and Σ q over tasks, of the chosen tasks alone.

    Implements the sums of [eq:confusion-update] and [eq:class-prior-update].
    """
    weight = np.where(chosen[:, None], q, 0.0)
    if q.shape[1] >= MANY_CLASSES:
        return np.asarray(_responses_matrix(tasks).T @ weight), weight.sum(axis=0)
    by_response = np.repeat(weight, np.diff(tasks.start), axis=0)
    counts: Floats = np.stack(
        [
            np.bincount(tasks.code, weights=by_response[:, k], minlength=tasks.n_codes)
            for k in range(q.shape[1])
        ],
        axis=1,
    )
    return counts, weight.sum(axis=0)


def _responses_matrix(tasks: ByTask) -> Any:
    """Return the sparse matrix (n_tasks, n_codes) with a 1 for each response.

    Its products add in the order of the responses, as the sums by class do: the same bits, but a
    row of all classes at a time. 300 classes, 25,000 responses: a sweep takes 0.06 s, not 0.2 s.
    """
    from scipy import sparse

    ones = np.ones(len(tasks.code))
    return sparse.csr_array((ones, tasks.code, tasks.start), shape=(tasks.n_tasks, tasks.n_codes))


def entropy(q: Floats) -> float:
    """Return Σ H(q) over rows, with 0 log 0 = 0."""
    return float(-(q * np.log(np.where(q > 0.0, q, 1.0))).sum())


def softmax(score: Floats) -> Floats:
    """Return exp(score) with rows that sum to 1."""
    new = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(new / new.sum(axis=1, keepdims=True))
