"""Pieces of work on several threads: each once, and what one raises is raised."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from tiebreak.kernels.threads import for_each


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 40])
def test_every_piece_is_done_once(n: int, n_threads: int) -> None:
    done: Counter[int] = Counter()
    lock = threading.Lock()

    def work(piece: int) -> None:
        with lock:
            done[piece] += 1

    for_each(work, n, n_threads)
    assert done == Counter(range(n))


def test_threads_share_the_pieces() -> None:
    meet = threading.Barrier(3, timeout=30)

    def work(piece: int) -> None:
        meet.wait()  # nobody goes on before all three came

    for_each(work, 3, 3)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("bad", [0, 7])
def test_what_a_piece_raises_is_raised_when_all_threads_rest(bad: int, n_threads: int) -> None:
    working = threading.Semaphore(0)

    def work(piece: int) -> None:
        working.release()
        if piece == bad:
            raise ValueError(f"piece {piece}")
        working.acquire()

    with pytest.raises(ValueError, match=f"piece {bad}"):
        for_each(work, 8, n_threads)
    assert working.acquire(blocking=False)  # the one that raised
    assert not working.acquire(blocking=False)
