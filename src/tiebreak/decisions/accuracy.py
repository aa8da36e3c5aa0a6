"""How many decisions are right: what is expected, and how far that is known.

Probabilities are scaled by how much workers err together (`inference/calibration.py`). Without gold
that is a guess, with gold an estimate; either way it has a spread. At another scale s' the
probabilities of a task are p^(s' / s), up to their sum. So the accuracy of some tasks is known for
every scale, and its mean and quantiles follow from how probable each scale is.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from tiebreak.errors import OptionError
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats

N_SCALES = 12  # of ρ, and as many of t: quantiles of each, equally probable
MOST_TASKS = 5_000  # more say the same of the scales
LOWEST = 1e-300
HALVINGS = 40


class Scaling(Protocol):
    """How scores became probabilities: `inference.calibration.Calibration`."""

    @property
    def dependence(self) -> float:
        """How much errors are shared, ρ."""

    @property
    def multiplier(self) -> float:
        """What serves all tasks, t."""

    @property
    def dependence_variance(self) -> float:
        """Of logit ρ."""

    @property
    def multiplier_variance(self) -> float:
        """Of log t."""

    @property
    def covariance(self) -> float:
        """Of both."""

    def scale(self, n_responses: Floats) -> Floats:
        """Return by how much the scores of tasks with so many responses count."""


class AccuracyEstimate(NamedTuple):
    """The share of right labels: as expected, and an interval that holds it with `level`."""

    expected: float
    low: float
    high: float
    level: float


class Stated(NamedTuple):
    """What was decided, with the probabilities it was decided on."""

    q: Floats  # (n_tasks, n_classes)
    label: Codes  # (n_tasks,) below 0: left open
    n_responses: Floats  # (n_tasks,)
    calibration: Scaling | None


def estimate_accuracy(stated: Stated, level: float) -> AccuracyEstimate:
    """Return the accuracy of what was decided, over all scales of probabilities: [eq:promise]."""
    if not 0.0 < level < 1.0:
        raise OptionError(f"level lies between 0 and 1; got {level!r}.")
    decided = np.flatnonzero(stated.label >= 0)
    if not len(decided):
        return AccuracyEstimate(np.nan, np.nan, np.nan, level)
    some = decided[:: -(-len(decided) // MOST_TASKS)].astype(np.int32)
    right = _by_scale(stated, some)  # (n_scales, n_some)
    mean = right.mean(axis=1)
    of_each = (right * (1.0 - right)).mean(axis=1)
    chance = np.sqrt(of_each / len(decided))  # each label is right or wrong by chance
    tail = (1.0 - level) / 2.0
    low, high = (_quantile(mean, chance, at) for at in (tail, 1.0 - tail))
    return AccuracyEstimate(float(mean.mean()), low, high, level)


def _by_scale(stated: Stated, some: Codes) -> Floats:
    """Return the probability that each label is right, for each of the scales."""
    q = stated.q[some]
    label = stated.label[some]
    found = stated.calibration
    every = np.arange(len(some))
    if found is None:
        return q[every, label][None]
    others = np.maximum(stated.n_responses[some] - 1.0, 0.0)
    scale = found.scale(stated.n_responses[some])
    scores = np.log(np.maximum(q, LOWEST)) / scale[:, None]
    dependence, multiplier = _scales(found)
    right = np.empty((len(dependence), len(some)))
    for i, (rho, t) in enumerate(zip(dependence, multiplier, strict=True)):
        right[i] = softmax(scores, t / (1.0 + rho * others))[every, label]
    return right


def _scales(found: Scaling) -> tuple[Floats, Floats]:
    """Return equally probable pairs of ρ and t, as normal as logit ρ and log t are."""
    middle = ndtri((np.arange(N_SCALES) + 0.5) / N_SCALES)
    first, second = (each.ravel() for each in np.meshgrid(middle, middle))
    one = np.sqrt(found.dependence_variance)
    slope = found.covariance / one if one > 0.0 else 0.0
    rest = np.sqrt(max(found.multiplier_variance - slope**2, 0.0))
    rho = expit(logit(np.clip(found.dependence, 1e-9, 1.0 - 1e-9)) + one * first)
    t = found.multiplier * np.exp(slope * first + rest * second)
    return rho, t


def _quantile(mean: Floats, spread: Floats, at: float) -> float:
    """Return a quantile of equally probable normals, by halving."""
    low = 0.0
    high = 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        with np.errstate(divide="ignore", invalid="ignore"):
            below = np.where(spread > 0.0, ndtr((middle - mean) / spread), mean <= middle)
        if below.mean() < at:
            low = middle
        else:
            high = middle
    return high
