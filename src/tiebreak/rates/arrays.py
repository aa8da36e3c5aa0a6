"""Rates on arrays: prediction-powered, Rogan-Gladen, and the model's posterior set right by gold.

All three estimate the share of tasks that are of one class, from what judges say of every task and
the known class of some. `f` is the chance that the judges give each task, `known` the tasks whose
class is known, `y` whether it is that class, `chance` the probability with which each known task
was drawn to be labelled (equal numbers for a random sample).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta
from scipy.stats import t as student

from tiebreak.kernels.layout import Codes, Floats, Mask

PRIOR_RESIDUALS = 3.0  # residuals of the size that judges expect, added to the known ones
LEAST_KNOWN = 5.0  # known tasks of a class, and of the others, for its predictions to be used
LEAST_VARIANCE = 0.05  # that is expected of a residual, however sure the judges are
N_DRAWS = 4000
OFFSET_SPREAD = 1.0  # of the posterior's offset, before gold
SLOPE_SPREAD = 0.5  # of its slope around 1
SYSTEM_SPREAD = 0.7  # of a system's own offset around that of all
EDGE = 1e-3
N_STEPS = 30


class KnownSample(NamedTuple):
    """Tasks of known class: their places, whether they are of the class, and 1 / chance."""

    task: Codes
    y: Floats
    weight: Floats  # sum n


class RateEstimate(NamedTuple):
    """A rate with its standard error and draws of it, for differences."""

    value: float
    low: float
    high: float
    draws: Floats
    is_gold_alone: bool = False  # of ppi that makes no use of predictions


def known_of(task: Codes, y: Floats, chance: Floats) -> KnownSample:
    """Turn chances of being drawn into weights whose mean is 1."""
    weight = 1.0 / chance
    return KnownSample(task, y, weight * len(weight) / max(weight.sum(), 1e-300))


def prediction_powered(
    f: Floats, known: KnownSample, level: float, rng: np.random.Generator
) -> RateEstimate:
    """Return the mean of f corrected by what gold says of it, PPI++: [eq:ppi].

    θ = λ mean(f) + mean over known of (y − λ f), λ the slope that makes the variance least. Gold is
    a sample of these very tasks, so that its variance shrinks as it covers them. Where fewer than
    five known tasks are of the class, or of the others, residuals are too rare to be trusted, and
    gold stands alone.
    """
    n = len(known.task)
    n_of_class = float((known.weight * known.y).sum())
    if min(n_of_class, n - n_of_class) < LEAST_KNOWN:
        return gold_alone(known, len(f), level, rng)._replace(is_gold_alone=True)
    on_known = f[known.task]
    power = _power(on_known, known)
    residual = known.y - power * on_known
    shift = float(np.average(residual, weights=known.weight))
    value = float(np.clip(power * f.mean() + shift, 0.0, 1.0))
    spread = known.weight**2 * np.square(residual - shift)
    expected = max(float((f * (1.0 - f)).mean()), LEAST_VARIANCE)
    variance = (spread.sum() + PRIOR_RESIDUALS * expected) / (n - 1.0 + PRIOR_RESIDUALS)
    error = float(np.sqrt(variance * max(1.0 - n / len(f), 0.0) / n))
    return _on_log_odds(value, error, n - 1.0 + PRIOR_RESIDUALS, level, rng, n)


def _power(on_known: Floats, known: KnownSample) -> float:
    """Return λ, between 0 and 1, drawn to 1 where there is little gold."""
    mean_f = np.average(on_known, weights=known.weight)
    mean_y = np.average(known.y, weights=known.weight)
    both = float((known.weight * (on_known - mean_f) * (known.y - mean_y)).sum())
    square = float((known.weight * np.square(on_known - mean_f)).sum())
    return float(np.clip((both + 0.1) / (square + 0.1), 0.0, 1.0))


def gold_alone(
    known: KnownSample, n_tasks: int, level: float, rng: np.random.Generator
) -> RateEstimate:
    """Return the share among the known tasks, judges left aside: Jeffreys' interval.

    Known tasks count for more as they cover all tasks, and for less where their weights differ.
    """
    n = len(known.task)
    value = float(np.average(known.y, weights=known.weight))
    if n >= n_tasks:
        return RateEstimate(value, value, value, np.full(N_DRAWS, value))
    even = float(known.weight.sum() ** 2 / np.square(known.weight).sum())
    counted = even / (1.0 - n / n_tasks)
    a = value * counted + 0.5
    b = (1.0 - value) * counted + 0.5
    tail = (1.0 - level) / 2.0
    low = float(beta.ppf(tail, a, b)) if value > 0.0 else 0.0
    high = float(beta.ppf(1.0 - tail, a, b)) if value < 1.0 else 1.0
    return RateEstimate(value, low, high, rng.beta(a, b, N_DRAWS))


def _on_log_odds(
    value: float, error: float, freedom: float, level: float, rng: np.random.Generator, n: int
) -> RateEstimate:
    """Return an interval that is even on the scale of log-odds: it stays within 0 and 1."""
    if error <= 0.0:
        return RateEstimate(value, value, value, np.full(N_DRAWS, value))
    centre = float(np.clip(value, 0.5 / (n + 1.0), 1.0 - 0.5 / (n + 1.0)))
    scale = error / (centre * (1.0 - centre))
    reach = float(student.ppf((1.0 + level) / 2.0, freedom)) * scale
    low = float(expit(logit(centre) - reach))
    high = float(expit(logit(centre) + reach))
    draws = expit(logit(centre) + scale * rng.standard_t(freedom, N_DRAWS))
    return RateEstimate(value, min(low, value), max(high, value), draws)


def rogan_gladen(
    said: Mask, members: Mask, known: KnownSample, level: float, rng: np.random.Generator
) -> RateEstimate | None:
    """Return (p + specificity − 1) / (sensitivity + specificity − 1), [eq:rogan-gladen].

    `said` tells which tasks the judges call of the class, `members` whose rate is asked.
    Sensitivity and specificity are those of all known tasks: judges are taken to err alike on every
    system. None where gold lacks one of the two classes, or does not show that what judges say has
    to do with it: the divisor may then be 0. It may be negative, where judges say the opposite.
    """
    positive = known.y > 0.5
    if not (positive.any() and (~positive).any()):
        return None
    hit = said[known.task]
    weight = known.weight
    design = float(weight.sum() ** 2 / np.square(weight).sum() / len(weight))
    counts = [
        design * float(weight[part].sum())
        for part in (positive & hit, positive & ~hit, ~positive & ~hit, ~positive & hit)
    ]
    sensitivity = rng.beta(counts[0] + 0.5, counts[1] + 0.5, N_DRAWS)
    specificity = rng.beta(counts[2] + 0.5, counts[3] + 0.5, N_DRAWS)
    share = float(said[members].mean())  # of these very tasks: nothing is uncertain about it
    power = sensitivity + specificity - 1.0
    tail = 50.0 * (1.0 - level)
    least, most = np.percentile(power, [tail, 100.0 - tail])
    if least <= 0.0 <= most:
        return None
    power = np.maximum(power, EDGE) if least > 0.0 else np.minimum(power, -EDGE)
    draws = np.clip((share + specificity - 1.0) / power, 0.0, 1.0)
    low, value, high = np.percentile(draws, [tail, 50.0, 100.0 - tail])
    return RateEstimate(float(value), float(low), float(high), draws)


class Posterior(NamedTuple):
    """Chances of a class, set right by gold: σ(a + b logit f), with draws of a and b."""

    offset: Floats  # (n_draws,)
    slope: Floats


def posterior(f: Floats, known: KnownSample, rng: np.random.Generator) -> Posterior:
    """Fit the offset and the slope by gold, with priors 0 and 1; draw them: [eq:posterior-rate]."""
    x = logit(np.clip(f[known.task], EDGE, 1.0 - EDGE))
    mean, covariance = _logistic(x, known, np.array([0.0, 1.0]))
    drawn = rng.multivariate_normal(mean, covariance, N_DRAWS)
    return Posterior(drawn[:, 0], drawn[:, 1])


def _logistic(x: Floats, known: KnownSample, centre: Floats) -> tuple[Floats, Floats]:
    design = np.stack([np.ones_like(x), x], axis=1)
    precision = np.diag([OFFSET_SPREAD**-2.0, SLOPE_SPREAD**-2.0])
    at = centre.copy()
    hessian = precision
    for _ in range(N_STEPS):
        p = expit(design @ at)
        gradient = design.T @ (known.weight * (known.y - p)) - precision @ (at - centre)
        hessian = (design * (known.weight * p * (1.0 - p))[:, None]).T @ design + precision
        at = at + np.clip(np.linalg.solve(hessian, gradient), -1.0, 1.0)
    inverse = np.linalg.inv(hessian)
    if len(x) < 2 or np.ptp(known.weight) < EDGE:
        return at, inverse
    # Known tasks of unequal weight: the sandwich, as the weighted sum is no likelihood.
    score = known.weight * (known.y - expit(design @ at))
    middle = (design * np.square(score)[:, None]).T @ design + precision
    return at, np.asarray(inverse @ middle @ inverse)


def posterior_rate(
    f: Floats,
    members: Mask,
    known: KnownSample,
    of_all: Posterior,
    level: float,
    rng: np.random.Generator,
    *,
    has_own_offset: bool,
) -> RateEstimate:
    """Return the rate of some tasks by the posterior that gold has set right.

    A system's own offset is fitted to its own gold, around that of all systems.
    """
    mine = members[known.task]
    rest = members.copy()
    rest[known.task] = False
    x = logit(np.clip(f[rest], EDGE, 1.0 - EDGE))
    own = np.zeros(N_DRAWS)
    if has_own_offset:
        own = _own_offset(f, known, mine, of_all, rng)
    sure = float(known.y[mine].sum())
    levels, counts = np.unique(np.round(x, 2), return_counts=True)
    p = expit(of_all.offset[:, None] + own[:, None] + of_all.slope[:, None] * levels)
    mean = p @ counts
    noise = np.sqrt(np.maximum((p * (1.0 - p)) @ counts, 0.0)) * rng.standard_normal(N_DRAWS)
    n = int(np.count_nonzero(members))
    draws = np.clip((sure + mean + noise) / max(n, 1), 0.0, 1.0)
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(draws, [tail, 100.0 - tail])
    return RateEstimate(float(draws.mean()), float(low), float(high), draws)


def _own_offset(
    f: Floats, known: KnownSample, mine: Mask, of_all: Posterior, rng: np.random.Generator
) -> Floats:
    """Return draws of how far a system lies from all others, by its own gold."""
    x = logit(np.clip(f[known.task[mine]], EDGE, 1.0 - EDGE))
    base = float(of_all.offset.mean()) + float(of_all.slope.mean()) * x
    weight = known.weight[mine]
    at = 0.0
    bend = SYSTEM_SPREAD**-2.0
    for _ in range(N_STEPS):
        p = expit(base + at)
        slope = float((weight * (known.y[mine] - p)).sum()) - at * SYSTEM_SPREAD**-2.0
        bend = float((weight * p * (1.0 - p)).sum()) + SYSTEM_SPREAD**-2.0
        at += float(np.clip(slope / bend, -1.0, 1.0))
    return np.asarray(at + rng.standard_normal(N_DRAWS) / np.sqrt(bend))
