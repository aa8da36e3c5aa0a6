"""Calibration: let links and known labels say how sure the crowd may be, and the crowd links.

The scores of variational Bayes are too large: workers err together on hard tasks. One temperature,
fitted to links and gold that were not used in the scores, scales them once at the end. Fitted
together with it, the error rates of links are not blamed for a crowd that is too sure of itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit

from tiebreak.gold import GoldCodes
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.kernels.reference import softmax
from tiebreak.link_graph import LinkCodes

LOG_RANGE = (-4.0, 0.5)
LOG_SPREAD = 0.5  # of the prior on log τ around what is expected: decides where links are few
ALIKE = 0.25  # how alike the errors of two workers on one task are, as expected
TRUSTED_ERROR = 0.02  # a floor: where the whole crowd errs together, no temperature explains it
LOGIT_RANGE = (-9.0, 0.0)  # of an error rate: never worse than a coin


class Evidence(NamedTuple):
    """What a temperature is fitted to: links, the error rate of each, and gold."""

    links: LinkCodes | None
    error: Floats  # (n_links,)
    gold: GoldCodes | None

    def tasks(self) -> Codes:
        """Return the tasks that links or gold name, each once."""
        links = [] if self.links is None else [self.links.left, self.links.right]
        known = [] if self.gold is None else [self.gold.task]
        return np.unique(np.concatenate([*links, *known])).astype(np.int32)

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


class RatePrior(NamedTuple):
    """What is expected of links and crowd before error rates are estimated."""

    same: tuple[float, float]  # pseudo-answers, wrong and right, about tasks that are the same
    different: tuple[float, float]  # about tasks that differ
    log_tau: float
    spread: float  # of log τ


def rate_prior(n_classes: int, votes: float) -> RatePrior:
    """Return the prior of error rates for so many classes and votes a task.

    With two classes a crowd that is sure and wrong looks much like wrong links, so both the rates
    and the temperature need many links to move. With more, "same" is rare, and a few wrong ones
    are a large share of it: rates move soon, and those of "same" sooner.
    """
    if n_classes == 2:
        expected = float(np.log(expected_temperature(votes)))
        return RatePrior((10.0, 490.0), (10.0, 490.0), expected, 0.2)
    return RatePrior((1.0, 75.0), (1.0, 50.0), 0.0, 1.5)


class ErrorRates(NamedTuple):
    """How often links are wrong, and the temperature that this was found beside."""

    same: float  # says "different" of tasks that are the same
    different: float  # says "same" of tasks that differ
    temperature: float
    prior: RatePrior

    def log_odds(self, must: Mask) -> Floats:
        """Return the log-odds, of each link, that its two tasks agree."""
        said_same = np.log1p(-self.same) - np.log(self.different)
        said_different = np.log(self.same) - np.log1p(-self.different)
        return np.asarray(np.where(must, said_same, said_different))

    def updated(self, must: Mask, agree: Floats) -> ErrorRates:
        """Return the rates that these probabilities of agreement imply, prior included."""
        wrong, right = self.prior.same
        same = (wrong + agree[~must].sum()) / (wrong + right + agree.sum())
        apart = 1.0 - agree
        wrong, right = self.prior.different
        different = (wrong + apart[must].sum()) / (wrong + right + apart.sum())
        return self._replace(same=float(same), different=float(different))


def estimate_error_rates(u: Floats, links: LinkCodes, votes: float) -> ErrorRates:
    """Fit the temperature and both error rates of links at once: [eq:error-rates].

    `votes` is the mean number of responses of a task.
    """
    prior = rate_prior(u.shape[1], votes)
    left, right = u[links.left], u[links.right]

    def cost(x: Floats) -> float:
        tau, same, different = float(np.exp(x[0])), float(expit(x[1])), float(expit(x[2]))
        agree = (softmax(tau * left) * softmax(tau * right)).sum(axis=1)
        says_same = (1.0 - same) * agree + different * (1.0 - agree)
        fit = np.log(np.clip(np.where(links.must, says_same, 1.0 - says_same), 1e-300, None)).sum()
        for rate, (wrong, fair) in ((same, prior.same), (different, prior.different)):
            fit += wrong * np.log(rate) + fair * np.log1p(-rate)
        return float(((x[0] - prior.log_tau) / prior.spread) ** 2 / 2.0 - fit)

    bounds = [LOG_RANGE, LOGIT_RANGE, LOGIT_RANGE]
    found = minimize(cost, [-1.0, -3.0, -3.0], method="L-BFGS-B", bounds=bounds)
    rates = expit(found.x[1:])
    return ErrorRates(float(rates[0]), float(rates[1]), float(np.exp(found.x[0])), prior)
