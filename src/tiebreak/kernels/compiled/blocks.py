"""Softmax of a block of tasks at once: a class is a row, so that tasks stand side by side.

Every loop runs over the tasks of the block and becomes vector instructions.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import kernel, summing_kernel
from tiebreak.kernels.compiled.exponential import LOWEST, exp
from tiebreak.kernels.layout import Floats

BLOCK = 128  # tasks; the product of as many sums of up to 32 exponentials does not overflow
BLOCK_NUMBERS = 4096  # in a block with many classes: it stays in the nearest cache
TOP, NORM, MEAN = 0, 1, 2  # rows beside the classes


def block_size(n_classes: int) -> int:
    """Return how many tasks a block has."""
    return max(8, min(BLOCK, BLOCK_NUMBERS // n_classes))


@kernel
def settle(score: Floats, beside: Floats, m: int) -> tuple[float, float, float]:
    """Turn the scores of m tasks into probabilities.

    With top the largest score of a task and norm = Σ exp(score − top), returns over all tasks
    Σ top, Σ log norm and Σ ⟨q, score − top⟩.

    Parameters
    ----------
    score
        (n_classes, block). Overwritten with the probabilities.
    beside
        (3, block), room for top, norm and mean. The tops must stand there: see `largest`.
    """
    n = score.shape[0]
    for t in range(m):
        beside[NORM, t] = beside[MEAN, t] = 0.0
    for k in range(n):
        _exponentials(score[k], beside[TOP], beside[NORM], beside[MEAN], m)
    tops, product, means = _shares(beside[TOP], beside[NORM], beside[MEAN], m)
    for k in range(n):
        for t in range(m):
            score[k, t] *= beside[NORM, t]
    return tops, np.log(product), means


@summing_kernel
def largest(score: Floats, top: Floats, m: int) -> int:
    """Set top to the largest score of each task; return how many have none above −∞."""
    for t in range(m):
        top[t] = score[0, t]
    for k in range(1, score.shape[0]):
        row = score[k]
        for t in range(m):
            top[t] = row[t] if row[t] > top[t] else top[t]
    n_without = 0
    for t in range(m):
        n_without += top[t] == -np.inf
    return n_without


@summing_kernel
def _exponentials(score: Floats, top: Floats, norm: Floats, mean: Floats, m: int) -> None:
    """Set score = exp(score − top) of one class, and add it up."""
    for t in range(m):
        gap = score[t] - top[t]
        gap = gap if gap > LOWEST else LOWEST  # 0 · −∞ must be 0
        e = exp(gap)
        score[t] = e
        norm[t] += e
        mean[t] += e * gap


@summing_kernel
def _shares(top: Floats, norm: Floats, mean: Floats, m: int) -> tuple[float, float, float]:
    """Replace each norm by its inverse; return Σ top, Π norm and Σ mean / norm."""
    tops, product, means = 0.0, 1.0, 0.0
    for t in range(m):
        tops += top[t]
        product *= norm[t]
        norm[t] = 1.0 / norm[t]
        means += mean[t] * norm[t]
    return tops, product, means


@kernel
def settle_odds(score: Floats, m: int) -> tuple[float, float, float]:
    """Do the same for two classes, of which row 0 holds the log-odds of the second.

    It is the score of the second where that of the first is 0.
    """
    tops, product, means = _settle_odds(score[0], score[1], m)
    return tops, np.log(product), means


@summing_kernel
def _settle_odds(odds: Floats, second: Floats, m: int) -> tuple[float, float, float]:
    """Set odds to the share of the first class: one exponential a task, one division."""
    tops, product, means = 0.0, 1.0, 0.0
    for t in range(m):
        is_second = odds[t] > 0.0
        gap = -odds[t] if is_second else odds[t]
        tops += odds[t] if is_second else 0.0
        gap = gap if gap > LOWEST else LOWEST
        e = exp(gap)
        share = 1.0 / (1.0 + e)
        product *= 1.0 + e
        means += e * gap * share
        odds[t] = e * share if is_second else share
        second[t] = share if is_second else e * share
    return tops, product, means
