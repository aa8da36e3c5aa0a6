"""Pairs of workers: which tasks they share, how often they agree, Cohen's κ.

task   answers                shared rows
a      ann x, bob x, eve y    (ann, bob) (ann, eve) (bob, eve)
b      ann y, bob y           (ann, bob)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tiebreak.arguments import checks
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.responses import Responses

MAX_SHARED_ROWS = 4_000_000  # about two seconds; of more, tasks are drawn


class SharedRows(NamedTuple):
    """Two answers of different workers to one task, one row each; `first` < `second` in code."""

    task: Codes
    first: Codes  # worker
    second: Codes
    label_of_first: Codes
    label_of_second: Codes


class CohenKappas(NamedTuple):
    """Cohen's κ of each pair of workers that share a task."""

    first: Codes  # worker
    second: Codes
    n_shared: npt.NDArray[np.int64]  # tasks that both answered
    n_equal: npt.NDArray[np.int64]  # of these, with the same label
    kappa: Floats  # NaN where both gave one and the same label only

    def mean(self) -> float:
        """Return the mean κ, weighted by shared tasks; NaN where no pair has one."""
        known = ~np.isnan(self.kappa)
        weights = self.n_shared[known].astype(np.float64)
        return float(self.kappa[known] @ weights / weights.sum()) if known.any() else float("nan")


def shared_rows(responses: Responses, *, random_state: int = 0) -> SharedRows:
    """Pair the answers of each task; of very many, those of tasks drawn at random."""
    votes = np.diff(responses.start)
    chosen = _choose_tasks(votes, random_state)
    row = np.flatnonzero(chosen[responses.task_of_each()])
    task = responses.task_of_each()[row]
    worker = responses.worker_of_each()[row]
    label = responses.label_of_each()[row]
    end = np.cumsum(np.bincount(task, minlength=responses.n_tasks))[task]
    n_after = end - np.arange(len(row)) - 1  # answers of the same task that come later
    left = np.repeat(np.arange(len(row)), n_after)
    offset = np.arange(len(left)) - np.repeat(np.cumsum(n_after) - n_after, n_after)
    right = left + 1 + offset
    differ = worker[left] != worker[right]  # a worker may have answered twice
    left = left[differ]
    right = right[differ]
    return SharedRows(task[left], worker[left], worker[right], label[left], label[right])


@checks(responses=Responses)
def cohen_kappas(responses: Responses, rows: SharedRows | None = None) -> CohenKappas:
    """Return Cohen's κ of every pair of workers with shared tasks.

    κ = (P − E) / (1 − E): P how often both gave the same label to a shared task, E how often they
    would if each kept to its own shares of labels there.
    """
    rows = shared_rows(responses) if rows is None else rows
    key = rows.first.astype(np.int64) * responses.n_workers + rows.second
    pairs, pair = np.unique(key, return_inverse=True)
    n_pairs = len(pairs)
    n_shared = np.bincount(pair, minlength=n_pairs)
    n_equal = np.bincount(pair[rows.label_of_first == rows.label_of_second], minlength=n_pairs)
    shape = (n_pairs, responses.n_classes)
    ones = np.ones(len(pair))
    of_first = sparse.csr_array(sparse.coo_array((ones, (pair, rows.label_of_first)), shape))
    of_second = sparse.csr_array(sparse.coo_array((ones, (pair, rows.label_of_second)), shape))
    by_chance = (
        np.asarray((of_first * of_second).sum(axis=1)).ravel() / np.maximum(n_shared, 1) ** 2
    )
    observed = n_equal / np.maximum(n_shared, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = (observed - by_chance) / (1.0 - by_chance)
    kappa[by_chance >= 1.0] = np.nan
    first = (pairs // responses.n_workers).astype(np.int32)
    second = (pairs % responses.n_workers).astype(np.int32)
    return CohenKappas(first, second, n_shared, n_equal, kappa)


def _choose_tasks(votes: npt.NDArray[np.int64], random_state: int) -> Mask:
    """Choose all tasks, or as many as keep the number of shared rows below the limit."""
    n_rows = votes * (votes - 1) // 2
    chosen = votes >= 2
    if n_rows.sum() <= MAX_SHARED_ROWS:
        return chosen
    order = np.random.default_rng(random_state).permutation(np.flatnonzero(chosen))
    n_kept = int(np.searchsorted(np.cumsum(n_rows[order]), MAX_SHARED_ROWS))
    few = np.zeros_like(chosen)
    few[order[: max(n_kept, 1)]] = True
    return few
