"""Stated confidence and soft votes: evidence with a slope learnt for each worker.

A judge that says "95 %" is rarely right in 95 of 100 cases, and some say it always. What its
confidence is worth shows in how often others agree with it: with x = logit c, the chance that
another worker's vote is the same is σ(a + b x), [eq:confidence]. The slope b is drawn towards that
of all workers, and theirs towards 0. A response counts for the log-odds that this gives, against
those of the worker's mean response; where b is 0 all its responses count once.

    judge    c     others agree    log-odds    weight
    gpt      .60   .64             0.6         0.4
    gpt      .95   .86             1.8         1.2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tiebreak.errors import note
from tiebreak.kernels.layout import Codes, Floats

if TYPE_CHECKING:
    from tiebreak.data.responses import Responses

EDGE = 0.02  # confidence is cut to [EDGE, 1 − EDGE]
LEVELS = np.linspace(-1.0, 1.0, 33) * np.log((1.0 - EDGE) / EDGE)  # of x: sums are kept by level
POOLED_SPREAD = 0.5  # of the slope of all workers around 0: some tens of responses overrule it
OWN_SPREAD = 0.3  # of a worker's slope around it
OFFSET_SPREAD = 2.0  # of a
LEAST_WEIGHT = 0.2
MOST_WEIGHT = 3.0
LEAST_ODDS = 0.1  # mean log-odds below which confidence is not used
SCALES = (1.0, 5.0, 10.0, 100.0)  # what confidence may go up to
N_STEPS = 30  # of Newton's method; it converges in ten


def scaled(confidence: Floats, table: str) -> Floats | None:
    """Return stated confidence between 0 and 1; None, with a note, where it is no such number.

    Scales up to 1, 5, 10 and 100 are known by the largest value.
    """
    known = confidence[np.isfinite(confidence)]
    reason = "holds no number"
    if len(known):
        scale = next((each for each in SCALES if known.min() >= 0.0 and known.max() <= each), None)
        if scale is not None:
            return np.asarray(confidence / scale)
        low, high = known.min(), known.max()
        reason = f"goes from {low:g} to {high:g}, which is no scale from 0 to 1, 5, 10 or 100"
    note("confidence-unused", table=table, reason=reason)
    return None


def level_of(confidence: Floats) -> Codes:
    """Return the place of each confidence among LEVELS."""
    step = LEVELS[1] - LEVELS[0]
    return np.asarray(np.rint((_logit(confidence) - LEVELS[0]) / step), dtype=np.int32)


def learn_slopes(agree: Floats, count: Floats) -> Floats:
    """Return the offset and the slope of each worker, (2, n_workers).

    `count`, (n_workers, n_levels), is how many responses there are at each level of confidence,
    `agree` with how many of them others agree.
    """
    pooled = _fit(agree.sum(axis=0)[None], count.sum(axis=0)[None], 0.0, POOLED_SPREAD)
    offset, slope = _fit(agree, count, max(float(pooled[1, 0]), 0.0), OWN_SPREAD)
    return np.stack([offset, np.maximum(slope, 0.0)])


def weights(responses: Responses, confidence: Floats, slopes: Floats) -> Floats:
    """Return how much each response counts by its stated confidence; 1 where it has none."""
    worker = responses.worker_of_each()
    given = np.isfinite(confidence)
    x = np.where(given, _logit(confidence), 0.0)
    n_others = max(responses.n_classes - 1, 1)
    odds = slopes[0, worker] + slopes[1, worker] * x + np.log(n_others)
    n_each = np.bincount(worker[given], minlength=responses.n_workers)
    total = np.bincount(worker[given], weights=odds[given], minlength=responses.n_workers)
    mean = (total / np.maximum(n_each, 1))[worker]
    usable = given & (mean > LEAST_ODDS)
    ratio = np.divide(odds, mean, out=np.ones_like(odds), where=usable)
    return np.where(usable, np.clip(ratio, LEAST_WEIGHT, MOST_WEIGHT), 1.0)


def _logit(confidence: Floats) -> Floats:
    p = np.clip(confidence, EDGE, 1.0 - EDGE)
    return np.log(p) - np.log1p(-p)


def _fit(agree: Floats, count: Floats, centre: float, spread: float) -> Floats:
    """Return offset and slope, (2, n), of logistic curves by Newton's method."""
    a = np.zeros(len(agree))
    b = np.full(len(agree), centre)
    for _ in range(N_STEPS):
        p = 1.0 / (1.0 + np.exp(-(a[:, None] + b[:, None] * LEVELS)))
        left = agree - count * p
        curve = count * p * (1.0 - p)
        gradient_a = left.sum(axis=1) - a / OFFSET_SPREAD**2
        gradient_b = (left * LEVELS).sum(axis=1) - (b - centre) / spread**2
        aa = curve.sum(axis=1) + 1.0 / OFFSET_SPREAD**2
        ab = (curve * LEVELS).sum(axis=1)
        bb = (curve * LEVELS**2).sum(axis=1) + 1.0 / spread**2
        free = aa * bb - ab**2
        a = a + np.clip((bb * gradient_a - ab * gradient_b) / free, -1.0, 1.0)
        b = b + np.clip((aa * gradient_b - ab * gradient_a) / free, -1.0, 1.0)
    return np.stack([a, b])
