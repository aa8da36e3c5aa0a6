"""Whether chains agree: R-hat of Gelman and Rubin, as Vehtari et al. (2021) compute it."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from tiebreak.kernels.layout import Floats

MIXED = 1.05  # R-hat up to which chains count as mixed


def r_hat(draws: Floats) -> Floats:
    """Return R-hat of each quantity, (n_quantities,), of draws (n_chains, n_draws, n_quantities).

    Each chain is split in two, so that a drift within a chain shows too; values are replaced by
    normal scores of their ranks, so that long tails do no harm. 1 is perfect; a quantity that
    never moved has mixed.

    >>> rng = np.random.default_rng(0)
    >>> alike = rng.normal(size=(4, 500, 1))
    >>> apart = alike + np.arange(4.0)[:, None, None]
    >>> bool(r_hat(alike)[0] < 1.01), bool(r_hat(apart)[0] > 1.5)
    (True, True)
    """
    half = draws.shape[1] // 2
    if half < 2:
        return np.full(draws.shape[2], np.inf)
    split = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    scores = _normal_scores(split)
    within = scores.var(axis=1, ddof=1).mean(axis=0)
    between = scores.mean(axis=1).var(axis=0, ddof=1)
    varied = (half - 1) / half * within + between
    ratio = np.divide(varied, within, out=np.ones_like(varied), where=within > 0.0)
    return np.asarray(np.sqrt(ratio))


def _normal_scores(values: Floats) -> Floats:
    """Replace values by normal quantiles of their ranks among all chains; ties share a rank."""
    n_all = values.shape[0] * values.shape[1]
    flat = values.reshape(n_all, -1)
    scores = np.empty_like(flat)
    for column in range(flat.shape[1]):
        _, inverse, count = np.unique(flat[:, column], return_inverse=True, return_counts=True)
        last = np.cumsum(count)
        rank = last - (count - 1) / 2.0
        scores[:, column] = ndtri((rank[inverse] - 0.375) / (n_all + 0.25))
    return scores.reshape(values.shape)
