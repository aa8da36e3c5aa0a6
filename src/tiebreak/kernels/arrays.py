"""What backends and the rooms above do with plain arrays: probabilities of scores, votes, threads.

Threads are ours: they suit kernels that release Python's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from threading import Lock

import numpy as np

from tiebreak.kernels.layout import TIED, ByTask, Codes, Floats, Offsets

LARGE = 5_000_000  # responses: below, NumPy counts votes in no time
TASKS_AT_ONCE = 1 << 20
ROWS_AT_ONCE = 1 << 13


def entropy(q: Floats) -> float:
    """Return Σ H(q) over rows, with 0 log 0 = 0."""
    return float(-(q * np.log(np.where(q > 0.0, q, 1.0))).sum())


def likeliest(q: Floats) -> tuple[Codes, Floats]:
    """Return the likeliest class of each row of q, the first one on ties, and its q.

    >>> likeliest(np.array([[0.5 - 1e-12, 0.5 + 1e-12], [0.4, 0.6]]))[0].tolist()
    [0, 1]
    """
    label = np.zeros(len(q), dtype=np.int32)
    largest = q[:, 0].copy()
    for k in range(1, q.shape[1]):
        is_larger = q[:, k] > largest + TIED
        label[is_larger] = k
        np.copyto(largest, q[:, k], where=is_larger)
    return label, largest


def by_class(scores: Floats, n_classes: int) -> Floats:
    """Return the score of each class from those of its states, which lie side by side.

    It is the log of the sum over them, exponentiated.
    """
    n_states = scores.shape[1]
    if n_states == n_classes:
        return scores
    of_subtypes = scores.reshape(len(scores), n_classes, n_states // n_classes)
    return np.asarray(np.logaddexp.reduce(of_subtypes, axis=2))


def softmax(score: Floats, scale: Floats | None = None) -> Floats:
    """Return exp(scale · score) with rows that sum to 1; `scale` has a number for each row.

    A class at a time: a loop over three or four classes takes longer than its work.
    """
    column = np.array(score.T, order="C")
    if scale is not None:
        column *= scale
    column -= np.maximum.reduce(column)
    np.exp(column, out=column)
    column /= column.sum(axis=0)
    return np.ascontiguousarray(column.T)


def count_codes(code: Codes, n_codes: int) -> Offsets:
    """Return how often each code occurs, (n_codes,).

    >>> count_codes(np.array([3, 1, 3]), 4).tolist()
    [0, 1, 0, 2]
    """
    counts = np.zeros(n_codes, dtype=np.int64)
    at_once = max(n_codes, TASKS_AT_ONCE)  # memory for some codes, not for all
    for low in range(0, len(code), at_once):
        counts += np.bincount(code[low : low + at_once], minlength=n_codes)
    return counts


def majority(tasks: ByTask, n_classes: int) -> Floats:
    """Return vote shares, uniform where a task has no votes: [eq:majority]."""
    if len(tasks.code) >= LARGE:  # a vote is a score of 1
        from tiebreak.kernels.compiled import score_tasks

        table = np.tile(np.eye(n_classes), (tasks.n_codes // n_classes, 1))
        shares = score_tasks(tasks, np.zeros(n_classes), table, default_threads())
    else:
        cells = tasks.task_of_each() * n_classes + tasks.code % n_classes
        votes = np.bincount(cells, tasks.weight, tasks.n_tasks * n_classes)
        shares = votes.reshape(-1, n_classes).astype(np.float64)
    totals = shares.sum(axis=1, keepdims=True)
    shares[totals[:, 0] == 0.0] = 1.0 / n_classes
    shares /= np.where(totals > 0.0, totals, 1.0)
    return shares


def default_threads() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def for_each(work: Callable[[int], None], n: int, n_threads: int) -> None:
    """Call work(0), …, work(n - 1), on several threads where that can help.

    The caller works too, and who is done takes what is next: waking a thread for each piece would
    take longer than small pieces do. The lock keeps two threads from taking the same piece, also
    where Python has no global lock.
    """
    lock = Lock()
    pieces = iter(range(n))

    def take() -> None:
        while True:
            with lock:
                piece = next(pieces, None)
            if piece is None:
                return
            work(piece)

    n_helpers = min(n_threads, n) - 1
    helpers = [_pool(os.getpid(), n_threads - 1).submit(take) for _ in range(n_helpers)]
    try:
        take()
    finally:
        if helpers:
            wait(helpers)
    for helper in helpers:
        helper.result()  # raises what was raised there


def in_parts(work: Callable[[slice], None], n: int, n_threads: int) -> None:
    """Call work on slices of n rows, small enough to stay in the cache; on several threads."""
    parts = range(0, n, ROWS_AT_ONCE)
    for_each(lambda p: work(slice(parts[p], parts[p] + ROWS_AT_ONCE)), len(parts), n_threads)


def largest_change(new: Floats, old: Floats, n_threads: int) -> float:
    """Return max |new − old|, 0 of nothing."""
    found = [0.0]
    in_parts(lambda part: found.append(np.abs(new[part] - old[part]).max()), len(new), n_threads)
    return float(max(found))


@lru_cache(maxsize=4)
def _pool(process: int, n_threads: int) -> ThreadPoolExecutor:
    # Keyed by process: a forked child inherits the object but not its threads.
    return ThreadPoolExecutor(n_threads, thread_name_prefix="tiebreak")
