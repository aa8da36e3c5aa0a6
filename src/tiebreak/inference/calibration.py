"""Calibration: let trusted links and known labels say how sure the crowd may be.

The scores of variational Bayes are too large: workers err together on hard tasks. One temperature,
fitted to links and gold that were not used in the scores, scales them once at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from tiebreak.gold import GoldCodes
from tiebreak.kernels.layout import Floats
from tiebreak.kernels.reference import softmax
from tiebreak.link_graph import LinkCodes

LOG_RANGE = (-4.0, 0.5)
LOG_SPREAD = 1.5  # of the prior on log τ: decides where links are few
TRUSTED_ERROR = 1e-4


class Evidence(NamedTuple):
    """What a temperature is fitted to: links, the error rate of each, and gold."""

    links: LinkCodes | None
    error: Floats  # (n_links,)
    gold: GoldCodes | None


def fit_temperature(u: Floats, evidence: Evidence) -> float:
    """Return the τ that makes softmax(τ u) fit links and gold best: [eq:temperature].

    Parameters
    ----------
    u
        (n_tasks, n_classes) scores that have seen neither the links nor the gold.
    """

    def cost(log_tau: float) -> float:
        fit = _log_likelihood(float(np.exp(log_tau)), u, evidence)
        return (log_tau / LOG_SPREAD) ** 2 / 2.0 - fit

    found = minimize_scalar(cost, bounds=LOG_RANGE, method="bounded", options={"xatol": 1e-5})
    return float(np.exp(found.x))


def _log_likelihood(tau: float, u: Floats, evidence: Evidence) -> float:
    total = 0.0
    links, gold = evidence.links, evidence.gold
    if links is not None:
        left, right = softmax(tau * u[links.left]), softmax(tau * u[links.right])
        same = np.clip((left * right).sum(axis=1), 0.0, 1.0)
        says = np.where(links.must, same, 1.0 - same)
        total += np.log((1.0 - evidence.error) * says + evidence.error * (1.0 - says)).sum()
    if gold is not None:
        shares = softmax(tau * u[gold.task])[np.arange(len(gold.task)), gold.label]
        total += np.log(np.maximum(shares, TRUSTED_ERROR)).sum()
    return float(total)
