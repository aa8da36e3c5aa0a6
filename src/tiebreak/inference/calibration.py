"""Calibration: honest probabilities from scores that are too sure of themselves.

Workers err together on hard tasks, and the model believes that they err apart, so that scores grow
too fast with the number of responses. A task with n responses is scaled by 1 / (1 + ρ (n − 1)), the
design effect of n answers whose errors are alike by ρ; a multiplier t serves all tasks. Both have
priors that gold and links overrule as they grow. Labels stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from tiebreak.gold import GoldCodes
from tiebreak.inference.nelder_mead import Point, minimise
from tiebreak.kernels import reference
from tiebreak.kernels.contract import SweepBackend
from tiebreak.kernels.layout import CalibrationData, Codes, Floats
from tiebreak.link_graph import LinkCodes, each_once

DEPENDENCE = 0.35  # ρ expected of people; chosen on ten datasets, see docs/probabilities.md
LOGIT_SPREAD = 1.5  # of the prior on logit ρ: some tens of known labels overrule it
LOG_SPREAD = 0.5  # of the prior on log t around 0
LOWEST_DEPENDENCE = 1e-3
BEND = 0.1  # the step over which the bend of the cost is measured
TRUSTED_ERROR = 0.01  # how often a gold label or hard link may be wrong; .02 hid shared errors


class Calibration(NamedTuple):
    """How scores become probabilities: p ∝ exp(t X / (1 + ρ (n − 1))), [eq:design-effect]."""

    dependence: float = DEPENDENCE  # ρ
    multiplier: float = 1.0  # t
    dependence_variance: float = LOGIT_SPREAD**2  # of logit ρ; before any evidence, the prior's
    multiplier_variance: float = LOG_SPREAD**2  # of log t
    covariance: float = 0.0  # of both

    def scale(self, n_responses: Floats) -> Floats:
        """Return by how much the scores of tasks with so many responses count.

        >>> Calibration(0.25).scale(np.array([0.0, 1.0, 11.0])).round(2).tolist()
        [1.0, 1.0, 0.29]
        """
        others = np.maximum(n_responses - 1.0, 0.0)
        return np.asarray(self.multiplier / (1.0 + self.dependence * others))


class Evidence(NamedTuple):
    """What a calibration is fitted to: links, the error rate of each, and gold."""

    links: LinkCodes | None
    error: Floats  # (n_links,)
    gold: GoldCodes | None
    is_sample: bool = True  # gold is of any tasks; not so where doubtful ones were asked about

    def tasks(self) -> Codes:
        """Return the tasks that links or gold name, each once."""
        links = [] if self.links is None else [self.links.left, self.links.right]
        known = [] if self.gold is None else [self.gold.task]
        return each_once(np.concatenate([*links, *known])).astype(np.int32)

    def among(self, tasks: Codes) -> Evidence:
        """Return the same with tasks numbered by their places in `tasks`, which is sorted."""
        links = None if self.links is None else self.links.among(tasks)
        gold = None if self.gold is None else self.gold.among(tasks)
        return self._replace(links=links, gold=gold)


class Honesty(NamedTuple):
    """What the user wants of probabilities."""

    mode: str = "auto"  # "auto", "votes" or "none"
    dependence: float = DEPENDENCE


def fit(
    scores: Floats,
    n_responses: Floats,
    evidence: Evidence,
    dependence: float,
    backend: SweepBackend = reference,
) -> Calibration:
    """Return ρ and t that make probabilities fit links and gold best: [eq:calibration].

    Parameters
    ----------
    scores
        (n_tasks, n_classes) that have seen neither the links nor the gold.
    n_responses
        (n_tasks,) by weight.
    dependence
        ρ as expected before any evidence.
    """
    expected = float(logit(max(dependence, LOWEST_DEPENDENCE)))
    data = _data_of(scores, n_responses, evidence)

    def cost(x: Point) -> float:
        prior = ((x[0] - expected) / LOGIT_SPREAD) ** 2 + (x[1] / LOG_SPREAD) ** 2
        dependence = float(expit(x[0]))
        multiplier = float(np.exp(x[1]))
        return prior / 2.0 - backend.calibration_log_likelihood(data, dependence, multiplier)

    x = minimise(cost, (expected, 0.0))
    best = Calibration(float(expit(x[0])), float(np.exp(x[1])))
    return _with_spread(best, cost, x)


def _with_spread(best: Calibration, cost: Callable[[Point], float], at: Point) -> Calibration:
    """Say how far it is known, by Laplace's method: the inverse of how the cost bends there."""

    def beside(one: int, other: int) -> float:
        return cost((at[0] + one * BEND, at[1] + other * BEND))

    least = cost(at)
    first = beside(1, 0) - 2.0 * least + beside(-1, 0)
    second = beside(0, 1) - 2.0 * least + beside(0, -1)
    mixed = (beside(1, 1) - beside(1, -1) - (beside(-1, 1) - beside(-1, -1))) / 4.0
    size = first * second - mixed**2
    if first <= 0.0 or size <= 0.0:  # no bowl: the priors still hold
        return best
    step = BEND**2 / size
    return best._replace(
        dependence_variance=second * step,
        multiplier_variance=first * step,
        covariance=-mixed * step,
    )


def _data_of(scores: Floats, n_responses: Floats, evidence: Evidence) -> CalibrationData:
    """Lay out what is asked for a hundred times; all of it copied, so that kernels can write it."""
    links = evidence.links
    gold = evidence.gold
    nobody = np.empty(0, dtype=np.int32)
    return CalibrationData(
        scores - scores.max(axis=1, keepdims=True),
        np.maximum(n_responses - 1.0, 0.0),
        np.array(nobody if links is None else links.left),
        np.array(nobody if links is None else links.right),
        np.array(nobody if links is None else links.must, dtype=bool),
        np.array(evidence.error, dtype=np.float64),
        np.array(nobody if gold is None else gold.task),
        np.array(nobody if gold is None else gold.label),
        least_share(scores.shape[1] if evidence.is_sample else 2),
    )


def least_share(n_classes: int) -> float:
    """Return the least probability that a known class counts with.

    A gold label that is wrong is any of the other classes: of 21, each is the wrong one in 2,000.
    One floor for all, 0.01, hid how sure the scores are of wrong classes where there are many.
    Of a task that was asked about because two classes are near, it is the other one of the two.

    >>> [least_share(n) for n in (2, 21)]
    [0.01, 0.0005]
    """
    return TRUSTED_ERROR / max(n_classes - 1, 1)
