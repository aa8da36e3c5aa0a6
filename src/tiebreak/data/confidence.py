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

from typing import Any, NamedTuple

import numpy as np

from tiebreak.data.runs import parts, sittings
from tiebreak.kernels.layout import Codes, Floats, Offsets


def logit(p: Any) -> Any:
    """Return log(p / (1 − p))."""
    return np.log(p) - np.log1p(-p)


def expit(x: Floats) -> Floats:
    """Return 1 / (1 + exp(−x))."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


EDGE = 0.02  # confidence is cut to [EDGE, 1 − EDGE]
LEVELS = np.linspace(logit(EDGE), logit(1.0 - EDGE), 33)  # of x: sums are kept by level
POOLED_SPREAD = 0.5  # of the slope of all workers around 0: some tens of responses overrule it
OWN_SPREAD = 0.3  # of a worker's slope around it
OFFSET_SPREAD = 2.0  # of a
LEAST_WEIGHT = 0.2
MOST_WEIGHT = 3.0
LEAST_ODDS = 0.1  # mean log-odds below which confidence is not used
N_STEPS = 30  # of Newton's method; it settles in ten


class Slopes(NamedTuple):
    """Offset and slope of each worker; each (n_workers,)."""

    offset: Floats
    slope: Floats
    pooled: float


def learn_slopes(
    start: Offsets, code: Codes, n_workers: int, n_classes: int, confidence: Floats
) -> Slopes:
    """Learn what the stated confidence of each worker is worth, from how others voted."""
    agree = np.zeros((n_workers, len(LEVELS)))
    count = np.zeros((n_workers, len(LEVELS)))
    for low, high in parts(start, n_classes):
        each = sittings(start, code, low, high, n_classes)
        here = slice(int(start[low]), int(start[high]))
        said = confidence[here]
        used = np.isfinite(said) & each.has_others[each.response]
        label = code[here][used] % n_classes
        same = each.others[each.response[used], label]
        cell = each.worker[each.response[used]] * len(LEVELS) + _level(said[used])
        agree += np.bincount(cell, weights=same, minlength=agree.size).reshape(agree.shape)
        count += np.bincount(cell, minlength=agree.size).reshape(agree.shape)
    pooled = _fit(agree.sum(axis=0)[None], count.sum(axis=0)[None], 0.0, POOLED_SPREAD)
    centre = max(float(pooled[1, 0]), 0.0)
    offset, slope = _fit(agree, count, centre, OWN_SPREAD)
    return Slopes(offset, np.maximum(slope, 0.0), centre)


def weights(code: Codes, n_classes: int, confidence: Floats, slopes: Slopes) -> Floats:
    """Return how much each response counts by its stated confidence; 1 where it has none."""
    worker = code // n_classes
    given = np.isfinite(confidence)
    x = np.where(given, logit(np.clip(confidence, EDGE, 1.0 - EDGE)), 0.0)
    odds = slopes.offset[worker] + slopes.slope[worker] * x + np.log(max(n_classes - 1, 1))
    n_each = np.bincount(worker[given], minlength=len(slopes.slope))
    total = np.bincount(worker[given], weights=odds[given], minlength=len(slopes.slope))
    mean = (total / np.maximum(n_each, 1))[worker]
    usable = given & (mean > LEAST_ODDS)
    ratio = np.divide(odds, mean, out=np.ones_like(odds), where=usable)
    return np.where(usable, np.clip(ratio, LEAST_WEIGHT, MOST_WEIGHT), 1.0)


def _level(confidence: Floats) -> Codes:
    x = logit(np.clip(confidence, EDGE, 1.0 - EDGE))
    step = LEVELS[1] - LEVELS[0]
    return np.asarray(np.rint((x - LEVELS[0]) / step), dtype=np.int32)


def _fit(agree: Floats, count: Floats, centre: float, spread: float) -> Floats:
    """Return offset and slope, (2, n), of logistic curves by Newton's method."""
    a = np.zeros(len(agree))
    b = np.full(len(agree), centre)
    for _ in range(N_STEPS):
        p = expit(a[:, None] + b[:, None] * LEVELS)
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
