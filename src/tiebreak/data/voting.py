"""Voting among runs: what a worker said most often on a task is the worker's one response.

    task a, worker gpt: yes yes no     → yes
    task b, worker gpt: yes no         → no vote: a tie

Responses are sorted by task, then by worker · n_classes + label, so that the runs of a worker
on a task lie side by side, equal labels together. Runs that carry weights vote by them, and the
response has the mean weight of the runs that won.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Floats, Offsets

EQUAL = 1e-12  # sums of weights that differ by less, as a share, are a tie


class Voted(NamedTuple):
    """Responses with one per worker and task; `n_ties` workers had no favourite on a task."""

    start: Offsets
    code: Codes
    n_ties: int
    weight: Floats | None = None


def vote(start: Offsets, code: Codes, n_classes: int, weight: Floats | None = None) -> Voted:
    """Keep the label that each worker gave most often to each task; a tie keeps none."""
    if not len(code):
        return Voted(start, code, 0, weight)
    task = np.repeat(np.arange(len(start) - 1), np.diff(start))
    first = _starts(task, code)  # of each distinct (task, worker, label)
    n_runs = np.diff(np.append(first, len(code)))
    count = n_runs if weight is None else np.add.reduceat(weight, first)
    kept_task = task[first]
    kept_code = code[first]
    first_of_pair = _starts(kept_task, kept_code // n_classes)
    pair = np.repeat(np.arange(len(first_of_pair)), np.diff(np.append(first_of_pair, len(first))))
    most = np.maximum.reduceat(count, first_of_pair)
    is_most = count >= most[pair] * (1.0 - EQUAL)
    n_winners = np.bincount(pair[is_most], minlength=len(first_of_pair))
    kept = is_most & (n_winners == 1)[pair]
    n_per_task = np.bincount(kept_task[kept], minlength=len(start) - 1)
    new_start = np.concatenate([[0], np.cumsum(n_per_task)]).astype(start.dtype)
    mean = None if weight is None else (count / n_runs)[kept]
    return Voted(new_start, kept_code[kept], int(np.count_nonzero(n_winners > 1)), mean)


def _starts(task: npt.NDArray[np.int64], value: Codes) -> npt.NDArray[np.int64]:
    """Return where a row differs from the one before it."""
    is_new = (np.diff(task) != 0) | (np.diff(value) != 0)
    return np.concatenate([[0], np.flatnonzero(is_new) + 1])
