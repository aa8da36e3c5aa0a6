"""Votes of large crowds: shares of each class, and how often each code occurs."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.arrays import default_threads, for_each
from tiebreak.kernels.compile import kernel
from tiebreak.kernels.layout import Codes, Floats, Offsets

PIECE = 1 << 20  # tasks, or codes


def vote_shares(start: Offsets, code: Codes, n_classes: int) -> Floats:
    """Return shares of votes, uniform where a task has no votes: [eq:majority]."""
    n_tasks = len(start) - 1
    shares = np.empty((n_tasks, n_classes))

    def work(piece: int) -> None:
        low = piece * PIECE
        _share(start, code, low, min(low + PIECE, n_tasks), shares)

    for_each(work, -(-n_tasks // PIECE), default_threads())
    return shares


def count_codes(code: Codes, n_codes: int) -> Offsets:
    """Return how often each code occurs, (n_codes,)."""
    n_parts = min(default_threads(), max(1, len(code) // PIECE))
    edges = np.linspace(0, len(code), n_parts + 1).astype(np.int64)
    counts = np.zeros((n_parts, n_codes), dtype=np.int64)
    for_each(lambda i: _count(code, edges[i], edges[i + 1], counts[i]), n_parts, n_parts)
    return np.asarray(counts.sum(axis=0))


@kernel
def _share(start: Offsets, code: Codes, first: int, last: int, shares: Floats) -> None:
    n_classes = np.uint32(shares.shape[1])  # to divide 32 bits takes less than 64
    for task in range(first, last):
        n_votes = start[task + 1] - start[task]
        for label in range(n_classes):
            shares[task, label] = 0.0 if n_votes else 1.0 / n_classes
        for place in range(start[task], start[task + 1]):
            shares[task, np.uint32(code[place]) % n_classes] += 1.0
        if n_votes:
            for label in range(n_classes):
                shares[task, label] /= n_votes


@kernel
def _count(code: Codes, first: int, last: int, counts: Offsets) -> None:
    for place in range(first, last):
        counts[code[place]] += 1
