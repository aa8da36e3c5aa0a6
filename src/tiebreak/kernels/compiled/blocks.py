"""Softmax of a block of tasks at once: a class is a row, so that tasks stand side by side.

The plain version, for each column t of the scores, is

    top = max(score[:, t]);   e = exp(score[:, t] − top);   score[:, t] = e / sum(e)

Here every loop runs over the tasks of the block and becomes vector instructions, whatever the
number of classes. The logarithm of all norms is taken once a block, of their product.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import inlined_kernel, summing_kernel
from tiebreak.kernels.compiled.exponential import EXP_IS_ZERO, exp
from tiebreak.kernels.layout import Floats

TASKS_PER_BLOCK = 128  # the product of as many sums of up to 32 exponentials does not overflow
NUMBERS_PER_BLOCK = 4096  # with many classes: a block stays in the nearest cache
# Rows of the workspace after those of the classes:
TOP = 0
NORM = 1
MEAN = 2
N_EXTRA = 3


def block_size(n_classes: int) -> int:
    """Return how many tasks a block has."""
    return max(8, min(TASKS_PER_BLOCK, NUMBERS_PER_BLOCK // n_classes))


@inlined_kernel
def softmax_block(score: Floats, extra: Floats, m: int) -> tuple[float, float, float]:
    """Turn the scores of m tasks into probabilities.

    With top the largest score of a task and norm = Σ exp(score − top), returns over all tasks
    Σ top, Σ log norm and Σ ⟨q, score − top⟩.

    Parameters
    ----------
    score
        (n_classes, block). Overwritten with the probabilities.
    extra
        (N_EXTRA, block), workspace for top, norm and mean. The tops must be set: see `largest`.
    """
    n = score.shape[0]
    for t in range(m):
        extra[NORM, t] = 0.0
        extra[MEAN, t] = 0.0
    for k in range(n):
        _exponentials(score[k], extra[TOP], extra[NORM], extra[MEAN], m)
    tops, product, means = _shares(extra[TOP], extra[NORM], extra[MEAN], m)
    for k in range(n):
        for t in range(m):
            score[k, t] *= extra[NORM, t]
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
        gap = gap if gap > EXP_IS_ZERO else EXP_IS_ZERO  # 0 · −∞ must be 0
        e = exp(gap)
        score[t] = e
        norm[t] += e
        mean[t] += e * gap


@summing_kernel
def _shares(top: Floats, norm: Floats, mean: Floats, m: int) -> tuple[float, float, float]:
    """Replace each norm by its inverse; return Σ top, Π norm and Σ mean / norm."""
    tops = 0.0
    product = 1.0
    means = 0.0
    for t in range(m):
        tops += top[t]
        product *= norm[t]
        norm[t] = 1.0 / norm[t]
        means += mean[t] * norm[t]
    return tops, product, means


@inlined_kernel
def softmax_block_of_odds(score: Floats, m: int) -> tuple[float, float, float]:
    """Do the same for two classes, of which row 0 holds the log-odds of the second.

    It is the score of the second where that of the first is 0.
    """
    tops, product, means = _softmax_of_odds(score[0], score[1], m)
    return tops, np.log(product), means


@summing_kernel
def _softmax_of_odds(odds: Floats, second: Floats, m: int) -> tuple[float, float, float]:
    """Set odds to the share of the first class: one exponential a task, one division."""
    tops = 0.0
    product = 1.0
    means = 0.0
    for t in range(m):
        is_second = odds[t] > 0.0
        gap = -odds[t] if is_second else odds[t]
        tops += odds[t] if is_second else 0.0
        gap = gap if gap > EXP_IS_ZERO else EXP_IS_ZERO
        e = exp(gap)
        share = 1.0 / (1.0 + e)
        product *= 1.0 + e
        means += e * gap * share
        odds[t] = e * share if is_second else share
        second[t] = share if is_second else e * share
    return tops, product, means
