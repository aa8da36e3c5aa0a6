"""Voting among runs: what a worker said most often on a task is the worker's one response.

    task a, worker gpt: yes yes no     → yes
    task b, worker gpt: yes no         → no vote: a tie

Responses are sorted by task, then by worker · n_classes + label, so that the runs of a worker
on a task lie side by side, equal labels together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Offsets


class Voted(NamedTuple):
    """Responses with one per worker and task; `n_ties` workers had no favourite on a task."""

    start: Offsets
    code: Codes
    n_ties: int


def vote(start: Offsets, code: Codes, n_classes: int) -> Voted:
    """Keep the label that each worker gave most often to each task; a tie keeps none."""
    if not len(code):
        return Voted(start, code, 0)
    task = np.repeat(np.arange(len(start) - 1), np.diff(start))
    first = _starts(task, code)  # of each distinct (task, worker, label)
    count = np.diff(np.append(first, len(code)))
    kept_task = task[first]
    kept_code = code[first]
    first_of_pair = _starts(kept_task, kept_code // n_classes)
    pair = np.repeat(np.arange(len(first_of_pair)), np.diff(np.append(first_of_pair, len(first))))
    most = np.maximum.reduceat(count, first_of_pair)
    is_most = count == most[pair]
    n_winners = np.bincount(pair[is_most], minlength=len(first_of_pair))
    kept = is_most & (n_winners == 1)[pair]
    n_per_task = np.bincount(kept_task[kept], minlength=len(start) - 1)
    new_start = np.concatenate([[0], np.cumsum(n_per_task)]).astype(start.dtype)
    return Voted(new_start, kept_code[kept], int(np.count_nonzero(n_winners > 1)))


def _starts(task: npt.NDArray[np.int64], value: Codes) -> npt.NDArray[np.int64]:
    """Return where a row differs from the one before it."""
    is_new = (np.diff(task) != 0) | (np.diff(value) != 0)
    return np.concatenate([[0], np.flatnonzero(is_new) + 1])
