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
from tiebreak.kernels.layout import Codes, Floats
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
    not depend on `level`. `n_known` says how many known tasks were counted for all of this.
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
    tail = (1.0 - level) / 2.0
    at = (tail, 1.0 - tail, PROMISED_QUANTILE)
    others = decided if stated.known is None else np.setdiff1d(decided, stated.known)
    n, n_right = stated.recount() if stated.recount is not None and len(others) else (0, 0)
    if not n:
        by_scale, spread = _by_scale(stated, decided.astype(np.int32))
        low, high, promised = (_quantile(by_scale, spread, each) for each in at)
        return AccuracyEstimate(float(by_scale.mean()), low, high, level, promised)
    by_scale, _ = _by_scale(stated, others.astype(np.int32))
    share = len(others) / len(decided)  # what was told is right
    found = 1.0 - share * (1.0 - _by_known(by_scale, n, n_right, len(others), at))
    expected, low, high, promised = found.tolist()
    return AccuracyEstimate(expected, low, high, level, promised, n)


def _by_scale(stated: Stated, decided: Codes) -> tuple[Floats, Floats]:
    """Return the accuracy of some tasks at equally probable scales, and its spread by chance."""
    some = decided[:: -(-len(decided) // MOST_TASKS)]
    q, label, n = stated.q[some], stated.label[some], stated.n_responses[some]
    every = np.arange(len(some))
    found = stated.calibration
    if found is None:
        right = q[every, label][None]
    else:
        scores = np.log(np.maximum(q, LOWEST)) / found.scale(n)[:, None]
        # logit ρ and log t are normal, and correlated.
        first, second = np.meshgrid(*[ndtri((np.arange(N_SCALES) + 0.5) / N_SCALES)] * 2)
        one = np.sqrt(found.dependence_variance)
        slope = found.covariance / one if one > 0.0 else 0.0
        rest = np.sqrt(max(found.multiplier_variance - slope**2, 0.0))
        rho = expit(logit(np.clip(found.dependence, 1e-9, 1.0 - 1e-9)) + one * first)
        t = found.multiplier * np.exp(slope * first + rest * second)
        pairs = np.stack([rho.ravel(), t.ravel()], axis=1)
        scales = [found._replace(dependence=a, multiplier=b) for a, b in pairs]
        right = np.stack([softmax(scores, each.scale(n))[every, label] for each in scales])
    by_chance = (right * (1.0 - right)).mean(axis=1)
    return right.mean(axis=1), np.sqrt(by_chance / len(decided))


def _by_known(
    by_scale: Floats, n_known: int, n_right: int, n_tasks: int, at: tuple[float, ...]
) -> Floats:
    """Return the mean and quantiles of a Beta: known tasks, and what the scales say as the prior.

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
    return np.append(right / n, beta.ppf(at, size * right / n, size * (n - right) / n))


def _quantile(mean: Floats, spread: Floats, at: float) -> float:
    """Return a quantile of equally probable normals, by halving."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        with np.errstate(divide="ignore", invalid="ignore"):
            below = np.where(spread > 0.0, ndtr((middle - mean) / spread), mean <= middle)
        low, high = (middle, high) if below.mean() < at else (low, middle)
    return high
