"""A pool of threads for kernels that release the lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from threading import Lock


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


@lru_cache(maxsize=4)
def _pool(process: int, n_threads: int) -> ThreadPoolExecutor:
    # Keyed by process: a forked child inherits the object but not its threads.
    return ThreadPoolExecutor(n_threads, thread_name_prefix="tiebreak")
