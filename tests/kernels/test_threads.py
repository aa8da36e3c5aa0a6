"""Pieces of work on several threads: each once, and what one raises is raised."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pytest

from tiebreak.inference import dirichlet
from tiebreak.kernels import for_each


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


def test_functions_of_many_numbers_have_the_same_bits_for_any_number_of_threads() -> None:
    many = np.random.default_rng(0).random((700, 5, 5)) * 30 + 0.1
    for function in (dirichlet.expected_log, dirichlet.log_beta):
        one, two = (function(many, axis=1, n_threads=n) for n in (1, 3))
        assert np.array_equal(one, two)
        alone = np.stack([function(each, axis=0) for each in many])
        assert np.abs(one - alone).max() < 1e-12
