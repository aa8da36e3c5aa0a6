"""A pool of threads for kernels that release the lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache


def default_threads() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def for_each(work: Callable[[int], None], n: int, n_threads: int) -> None:
    """Call work(0), …, work(n - 1), on several threads where that can help."""
    if n_threads <= 1 or n <= 1:
        for i in range(n):
            work(i)
        return
    for _ in _pool(os.getpid(), n_threads).map(work, range(n)):
        pass


@lru_cache(maxsize=4)
def _pool(process: int, n_threads: int) -> ThreadPoolExecutor:
    # Keyed by process: a forked child inherits the object but not its threads.
    return ThreadPoolExecutor(n_threads, thread_name_prefix="tiebreak")
