"""Calibration: let links and known labels say how sure the crowd may be.

The scores of variational Bayes are too large: workers err together on hard tasks. One temperature,
fitted to links and gold that were not used in the scores, scales them once at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from tiebreak.gold import GoldCodes
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.link_graph import LinkCodes, each_once

LOG_RANGE = (-4.0, 0.5)
LOG_SPREAD = 0.5  # of the prior on log τ around what is expected: decides where links are few
ALIKE = 0.25  # how alike the errors of two workers on one task are, as expected
TRUSTED_ERROR = 0.02  # a floor: where the whole crowd errs together, no temperature explains it


class Evidence(NamedTuple):
    """What a temperature is fitted to: links, the error rate of each, and gold."""

    links: LinkCodes | None
    error: Floats  # (n_links,)
    gold: GoldCodes | None

    def tasks(self) -> Codes:
        """Return the tasks that links or gold name, each once."""
        links = [] if self.links is None else [self.links.left, self.links.right]
        known = [] if self.gold is None else [self.gold.task]
        return each_once(np.concatenate([*links, *known])).astype(np.int32)

    def among(self, tasks: Codes) -> Evidence:
        """Return the same with tasks numbered by their places in `tasks`, which is sorted."""
        links = None if self.links is None else self.links.among(tasks)
        return Evidence(links, self.error, None if self.gold is None else self.gold.among(tasks))


def expected_temperature(votes: float) -> float:
    """Return the τ that one expects of tasks with so many votes: [eq:expected-temperature].

    n votes whose errors are alike by ρ say as much as n / (1 + ρ (n − 1)) that err independently.

    >>> round(expected_temperature(1.0), 2), round(expected_temperature(11.0), 2)
    (1.0, 0.29)
    """
    return 1.0 / (1.0 + ALIKE * max(votes - 1.0, 0.0))


def fit_temperature(u: Floats, evidence: Evidence, votes: float) -> float:
    """Return the τ that makes softmax(τ u) fit links and gold best: [eq:temperature].

    Departs from the specification: the prior on log τ stands around what so many votes a task
    lead one to expect, not around 0; every crowd that was measured is too sure of itself.

    Parameters
    ----------
    u
        (n_tasks, n_classes) scores that have seen neither the links nor the gold.
    votes
        Mean number of responses of a task.
    """
    expected = float(np.log(expected_temperature(votes)))

    def cost(log_tau: float) -> float:
        fit = _log_likelihood(float(np.exp(log_tau)), u, evidence)
        return ((log_tau - expected) / LOG_SPREAD) ** 2 / 2.0 - fit

    found = minimize_scalar(cost, bounds=LOG_RANGE, method="bounded", options={"xatol": 1e-5})
    return float(np.exp(found.x))


def _log_likelihood(tau: float, u: Floats, evidence: Evidence) -> float:
    total, q = 0.0, softmax(tau * u)
    links, gold = evidence.links, evidence.gold
    if links is not None:
        same = np.clip((q[links.left] * q[links.right]).sum(axis=1), 0.0, 1.0)
        says = np.where(links.must, same, 1.0 - same)
        total += np.log((1.0 - evidence.error) * says + evidence.error * (1.0 - says)).sum()
    if gold is not None:
        shares = q[gold.task, gold.label]
        total += np.log(np.maximum(shares, TRUSTED_ERROR)).sum()
    return float(total)
