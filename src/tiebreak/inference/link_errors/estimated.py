"""Error rates of links, estimated before the fit, and how much links then count.

Rates are fitted together with a temperature: else links would look wrong where scores are too sure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from tiebreak.inference.calibration import Calibration
from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.inference.link_errors.learnt import Rates
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Floats, Mask
from tiebreak.kernels.sweeper import Logs
from tiebreak.link_graph import LinkCodes

LOG_RANGE = (-4.0, 0.5)
LOGIT_RANGE = (-9.0, 0.0)  # of an error rate: never worse than a coin
ROUNDS = 5  # of joint inference that refine the rates
ENOUGH_VOTES = 6.0  # per task: more make the crowd surer, but hardly more accurate
ASKED_POWER = 0.75  # of 1/τ: how many times an answer to a chosen question counts


class Scored(NamedTuple):
    """The responses as plain VB scores them, before any link is used."""

    u: Floats  # (n_soft_linked, n_classes) one row per task that soft links name
    logs: Logs  # expected logs that make up the scores
    votes: float  # mean number of responses per task


class RatePrior(NamedTuple):
    """What is expected of links and crowd before error rates are estimated."""

    same: tuple[float, float]  # pseudo-answers, wrong and right, about tasks that are the same
    different: tuple[float, float]  # about tasks that differ
    log_tau: float
    spread: float  # of log τ


def rate_prior(n_classes: int, votes: float, *, asked: bool = False) -> RatePrior:
    """Return the prior of error rates for so many classes and votes per task.

    With two classes a crowd that is sure and wrong looks much like wrong links, so both the rates
    and the temperature need many links to move. With more, "same" is rare, and a few wrong ones
    are a large share of it: rates move soon, and that of "same" starts high, unless the pairs were
    chosen, when it is not rare.
    """
    if n_classes == 2:
        expected = float(np.log(Calibration(0.25).scale(np.array([votes]))[0]))
        return RatePrior((10.0, 490.0), (10.0, 490.0), expected, 0.2)
    return RatePrior((1.0, 75.0), (1.0, 50.0) if asked else (5.0, 45.0), 0.0, 1.5)


class ErrorRates(NamedTuple):
    """How often links are wrong, and the temperature that was fitted with that."""

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
        differ = 1.0 - agree
        wrong, right = self.prior.different
        different = (wrong + differ[must].sum()) / (wrong + right + differ.sum())
        return self._replace(same=float(same), different=float(different))


def estimate(exact: ExactLinks, links: LinkCodes, crowd: Scored, *, asked: bool) -> Rates:
    """Estimate how often soft links are wrong, and set their log-odds for the ascent.

    Rates and a temperature are fitted to the scores of plain VB, then refined by joint inference
    on the tempered scores, where links also bear on each other. `links` name tasks by their rows of
    `crowd.u`.
    """
    rates = fit_rates(links, crowd, rate_prior(crowd.u.shape[1], crowd.votes, asked=asked))
    log_prior, log_table = crowd.logs
    tempered = (rates.temperature * log_prior, rates.temperature * log_table)
    for _ in range(ROUNDS):
        exact.set_log_odds(rates.log_odds(links.must))
        exact.infer(*tempered, counting=False)
        rates = rates.updated(links.must, exact.agreement())
    times = trust(crowd.votes, rates.temperature, asked=asked)
    exact.set_log_odds(times * rates.log_odds(links.must))
    exact.last_value = None  # what was inferred from tempered scores is no bound
    wrong = np.array([[rates.same], [rates.different]])
    return Rates(wrong, 1.0 - wrong)


def trust(votes: float, tau: float, *, asked: bool) -> float:
    """Return how many times a link counts against scores that are too sure: [eq:link-trust].

    Answers to questions that were chosen where the crowd is unsure count most: 1/τ, as with
    tempered scores, or a little less. Of other links, wrong ones may well concern sure tasks; they
    count more only where tasks have more votes than add accuracy.

    >>> trust(24.0, 0.2, asked=False), trust(5.0, 0.2, asked=False)
    (2.0, 1.0)
    """
    return float(tau**-ASKED_POWER) if asked else float(np.sqrt(max(1.0, votes / ENOUGH_VOTES)))


def fit_rates(links: LinkCodes, crowd: Scored, prior: RatePrior) -> ErrorRates:
    """Fit the temperature and both error rates of links at once: [eq:error-rates]."""
    left_scores = crowd.u[links.left]
    right_scores = crowd.u[links.right]

    def cost(x: Floats) -> float:
        tau = float(np.exp(x[0]))
        same = float(expit(x[1]))
        different = float(expit(x[2]))
        agree = (softmax(tau * left_scores) * softmax(tau * right_scores)).sum(axis=1)
        says_same = (1.0 - same) * agree + different * (1.0 - agree)
        likelihood = np.where(links.must, says_same, 1.0 - says_same)
        log_posterior = np.log(np.clip(likelihood, 1e-300, None)).sum()
        for rate, (wrong, right) in ((same, prior.same), (different, prior.different)):
            log_posterior += wrong * np.log(rate) + right * np.log1p(-rate)
        return float(((x[0] - prior.log_tau) / prior.spread) ** 2 / 2.0 - log_posterior)

    bounds = [LOG_RANGE, LOGIT_RANGE, LOGIT_RANGE]
    found = minimize(cost, [-1.0, -3.0, -3.0], method="L-BFGS-B", bounds=bounds)
    rates = expit(found.x[1:])
    return ErrorRates(float(rates[0]), float(rates[1]), float(np.exp(found.x[0])), prior)
