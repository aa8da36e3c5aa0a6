"""Counting votes: with NumPy, or compiled where the input is large enough to repay it."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.layout import ByTask, Codes, Floats, Offsets

LARGE = 5_000_000  # responses: below, NumPy takes no time
TASKS_AT_ONCE = 1 << 20


def count_codes(code: Codes, n_codes: int, large: int = LARGE) -> Offsets:
    """Return how often each code occurs, (n_codes,); compiled where there are so many.

    >>> count_codes(np.array([3, 1, 3]), 4).tolist()
    [0, 1, 0, 2]
    """
    if len(code) < large:
        return np.bincount(code, minlength=n_codes).astype(np.int64)
    from tiebreak.kernels.compiled import votes

    return votes.count_codes(code, n_codes)


def majority(tasks: ByTask, n_classes: int, large: int = LARGE) -> Floats:
    """Return vote shares, uniform where a task has no votes: [eq:majority]."""
    if len(tasks.code) >= large and tasks.weight is None:
        from tiebreak.kernels.compiled import votes

        return votes.vote_shares(tasks.start, tasks.code, n_classes)
    shares = np.empty((tasks.n_tasks, n_classes))
    for low in range(0, tasks.n_tasks, TASKS_AT_ONCE):  # memory for some tasks, not for all
        start = tasks.start[low : low + TASKS_AT_ONCE + 1]
        task = np.repeat(np.arange(len(start) - 1), np.diff(start))
        cells = task * n_classes + tasks.code[start[0] : start[-1]] % n_classes
        weight = None if tasks.weight is None else tasks.weight[start[0] : start[-1]]
        votes_of = np.bincount(cells, weights=weight, minlength=(len(start) - 1) * n_classes)
        shares[low : low + len(start) - 1] = votes_of.reshape(-1, n_classes)
    totals = shares.sum(axis=1, keepdims=True)
    shares[totals[:, 0] == 0.0] = 1.0 / n_classes
    shares /= np.where(totals > 0.0, totals, 1.0)
    return shares
