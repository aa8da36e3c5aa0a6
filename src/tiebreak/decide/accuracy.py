"""How many decisions are right: what is expected, and how far that is known.

Probabilities are scaled by how much workers err together (`inference/calibration.py`). Without gold
that is a guess, with gold an estimate; either way it has a spread. At another scale s' the
probabilities of a task are p^(s' / s), up to their sum. So the accuracy of some tasks is known for
every scale, and its mean and quantiles follow from how probable each scale is. What is promised is
such a quantile, low enough to be kept.

No scale says that labels are surely wrong, as they are where all who err give the same wrong class.
Gold does: known tasks that would be decided too, by fits that have not seen their classes, are
counted, and what the model says of itself counts as a few more of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri
from scipy.stats import beta

from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.options import require_number

if TYPE_CHECKING:
    from tiebreak.inference.calibration import Calibration

N_SCALES = 12  # of ρ, and as many of t: quantiles of each, equally probable
MOST_TASKS = 5_000  # more say the same of the scales
LOWEST = 1e-300
HALVINGS = 40
# What the model says of itself counts as so many known tasks at most. Chosen among 10, 20 and 40 on
# simulated crowds and eight of the ten datasets; shown on other crowds (docs/decide.md).
MODEL_COUNTS_AS = 10.0
JEFFREYS = 0.5
# The quantile that is promised: the largest of 5 %, 10 %, … 45 % that accuracy kept, within two
# points, in 95 % of the simulated decisions with and without gold whose calibration error is at
# most 0.05; shown on the ten datasets and on other crowds (docs/decide.md).
PROMISED_QUANTILE = 0.2


class AccuracyEstimate(NamedTuple):
    """The share of right labels: as expected, an interval that holds it with `level`, a promise.

    `promised` is the figure to state: so many are right, or more, by four chances in five. It does
    not hang on `level`. `n_known` says how many known tasks were counted for all of this.
    """

    expected: float
    low: float
    high: float
    level: float
    promised: float
    n_known: int = 0


class Stated(NamedTuple):
    """What was decided, with the probabilities it was decided on."""

    q: Floats  # (n_tasks, n_classes)
    label: Codes  # (n_tasks,) below 0: left open
    n_responses: Floats  # (n_tasks,)
    calibration: Calibration | None
    known: Codes | None = None  # tasks whose class was told
    # How many known tasks would be decided by fits that were not told, and how many rightly.
    recount: Callable[[], tuple[int, int]] | None = None


def estimate_accuracy(stated: Stated, level: float) -> AccuracyEstimate:
    """Return the accuracy of what was decided: [eq:promise], and with gold [eq:promise-known]."""
    require_number("level", level, "between 0 and 1, both excluded", above=0.0, below=1.0)
    decided = np.flatnonzero(stated.label >= 0)
    if not len(decided):
        return AccuracyEstimate(np.nan, np.nan, np.nan, level, np.nan)
    known = np.empty(0, dtype=np.int32) if stated.known is None else stated.known
    others = decided[~np.isin(decided, known)]
    if stated.recount is not None and len(others):
        n, n_right = stated.recount()
        if n:
            mean, _ = _over_scales(stated, others)
            found = _by_known(mean, n, n_right, len(others), level)
            share = len(others) / len(decided)  # what was told is right
            expected, low, high, promised = (1.0 - share * (1.0 - found[i]) for i in (0, 1, 2, 4))
            return AccuracyEstimate(expected, low, high, level, promised, n)
    mean, chance = _over_scales(stated, decided)
    low, high, promised = (_quantile(mean, chance, at) for at in _quantiles(level))
    return AccuracyEstimate(float(mean.mean()), low, high, level, promised)


def _quantiles(level: float) -> tuple[float, float, float]:
    """Return where the interval begins and ends, and where the promise is."""
    tail = (1.0 - level) / 2.0
    return tail, 1.0 - tail, PROMISED_QUANTILE


def _by_known(
    by_scale: Floats, n_known: int, n_right: int, n_tasks: int, level: float
) -> AccuracyEstimate:
    """Return a Beta posterior: known tasks, and what the scales say as the prior.

    The prior has the mean and the variance that the scales give, or is as wide as a few known tasks
    leave it; half a task on each side, as Jeffreys has it, lets nothing be sure. Labels that are
    right or wrong by chance make the interval of n tasks wider.
    """
    mean = float(np.clip(by_scale.mean(), 1e-6, 1.0 - 1e-6))
    variance = float(by_scale.var())
    even = MODEL_COUNTS_AS
    if variance > 0.0:
        even = float(np.clip(mean * (1.0 - mean) / variance - 1.0, 1.0, MODEL_COUNTS_AS))
    right = even * mean + n_right + JEFFREYS
    n = even + n_known + 2.0 * JEFFREYS
    size = 1.0 / (1.0 / n + 1.0 / n_tasks)
    found = beta.ppf(_quantiles(level), size * right / n, size * (n - right) / n)
    low, high, promised = found.tolist()
    return AccuracyEstimate(right / n, low, high, level, promised, n_known)


def _over_scales(stated: Stated, decided: Offsets) -> tuple[Floats, Floats]:
    """Return the accuracy of some tasks at equally probable scales, and its spread by chance."""
    some = decided[:: -(-len(decided) // MOST_TASKS)].astype(np.int32)
    right = _by_scale(stated, some)  # (n_scales, n_some)
    of_each = (right * (1.0 - right)).mean(axis=1)
    return right.mean(axis=1), np.sqrt(of_each / len(decided))


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


def _scales(found: Calibration) -> tuple[Floats, Floats]:
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
