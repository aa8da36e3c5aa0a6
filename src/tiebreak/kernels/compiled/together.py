"""Messages that are heard only when a pass is over, as probabilities: hardly a logarithm.

First every node believes what it was told, then all speak. A node's cavity is its belief divided by
what the hearer told it, which is never below `SMALLEST`: nothing is lost to underflow.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.compiled.exponential import exp_lanes
from tiebreak.kernels.compiled.lanes import (
    MOST_LANES,
    Like,
    apart,
    fused,
    larger,
    largest_lane,
    load,
    minus,
    others,
    over,
    prefetch,
    store,
    sum_lanes,
    times,
    where_above,
    zeros,
)
from tiebreak.kernels.compiled.softmax import softmax_into
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.kernels.network import SMALLEST, Network, Speakers
from tiebreak.kernels.threads import for_each

SAFE_NORM = 1e-140  # below, a class may be lost that a cavity brings back
AHEAD = 16  # messages: the places of these lie anywhere, and are fetched early
FAR = 1e100  # factors beyond, and products beyond its square, become logarithms


def pass_together(
    scores: Floats,
    network: Network,
    theta: Floats,
    messages: Floats,
    belief: Floats,
    span: tuple[int, int],
    damping: float,
    speakers: Speakers,
    *,
    n_parts: int,
    n_threads: int = 1,
) -> tuple[float, float]:
    """Pass messages that are heard at the end: see `reference.pass_together`."""
    odds = np.exp(np.minimum(theta, -np.log(SMALLEST)))
    if len(odds) and (odds == odds[0]).all():
        odds = odds[:1]  # hard links alone: nothing to look up
    nodes, told = (_parts(*ends, n_parts) for ends in (span, (0, len(speakers.slot))))
    figures = np.zeros((n_parts, 3))
    like = (0,) * scores.shape[1]
    on_lanes = len(like) <= MOST_LANES

    def believe(p: int) -> None:
        fixed = scores, network.start, messages, belief, nodes[p]
        figures[p, :2] = _believe_on_lanes(like, *fixed) if on_lanes else _believe(*fixed)

    def speak(p: int) -> None:
        slots = *speakers, network.mate, network.edge
        fixed = belief, *slots, odds, messages, told[p], damping
        figures[p, 2] = _speak_on_lanes(like, *fixed) if on_lanes else _speak(*fixed)

    for_each(believe, n_parts, n_threads)
    for_each(speak, n_parts, n_threads)
    return float(figures[:, 0].max(initial=0.0)), float(figures[:, 1:].sum())


def _parts(low: int, high: int, n_parts: int) -> list[tuple[int, int]]:
    return list(pairwise(np.linspace(low, high, n_parts + 1).astype(np.int64).tolist()))


@kernel
def _believe_on_lanes(
    like: Like,
    scores: Floats,
    start: Offsets,
    messages: Floats,
    belief: Floats,
    span: tuple[int, int],
) -> tuple[float, float]:
    """Set beliefs; return the largest change, and the sum of log norms less expected scores."""
    change, expected, logs, product = zeros(like), zeros(like), 0.0, 1.0
    for i in range(span[0], span[1]):
        score = load(scores, i, 0, like)
        top = largest_lane(score)
        row = exp_lanes(minus(score, top))
        for e in range(start[i], start[i + 1]):
            row = times(row, load(messages, e, 0, like))
        norm = sum_lanes(row)
        if norm < SAFE_NORM:
            written = np.empty(len(like))
            logs += _believe_in_logs(scores[i], messages[start[i] : start[i + 1]], written)
            row = load(written, 0, 0, like)
        else:
            logs, product = _times(logs + top, product, norm)
            row = times(row, 1.0 / norm)
        expected = fused(row, where_above(row, 0.0, score), expected)
        change = larger(change, apart(row, load(belief, i, 0, like)))
        store(belief, i, 0, row)
    return largest_lane(change), logs + np.log(product) - sum_lanes(expected)


@kernel
def _speak_on_lanes(
    like: Like,
    belief: Floats,
    slot: Offsets,
    node: Codes,
    mate: Offsets,
    edge: Codes,
    odds: Floats,
    messages: Floats,
    span: tuple[int, int],
    damping: float,
) -> float:
    """Let nodes speak; return the sum of the logs of the messages' scales.

    The sum over the other classes is never taken as the sum over all less one: nothing cancels.
    """
    logs, product, last = 0.0, 1.0, span[1] - 1
    for t in range(span[0], span[1]):
        prefetch(messages, mate[slot[min(t + AHEAD, last)]], 0)
        e, back = slot[t], mate[slot[t]]
        cavity = over(load(belief, node[t], 0, like), load(messages, e, 0, like))
        new = others(cavity)
        weight = odds[edge[e]] if len(odds) > 1 else odds[0]
        if weight > 0.0:
            new = fused(cavity, weight, new)
        scale = largest_lane(new)
        logs, product = _times(logs, product, scale)
        new = larger(times(new, 1.0 / scale), SMALLEST)
        old = load(messages, back, 0, like)
        store(messages, back, 0, fused(new, 1.0 - damping, times(old, damping)))
    return float(logs + np.log(product))


@kernel
def _times(logs: float, product: float, factor: float) -> tuple[float, float]:
    """Multiply by a factor; take logarithms only where the product goes far."""
    if 1.0 / FAR < factor < FAR and 1.0 / FAR**2 < product < FAR**2:
        return logs, product * factor
    return logs + np.log(product) + np.log(factor), 1.0


@kernel
def _believe_in_logs(score: Floats, told: Floats, out: Floats) -> float:
    """Set the belief of one node whose messages leave next to nothing; return its log norm."""
    total = score.copy()
    for e in range(len(told)):
        for k in range(len(total)):
            total[k] += np.log(told[e, k])
    top, norm = softmax_into(total, out)
    return float(top + np.log(norm))


# More classes than lanes: class by class.


@kernel
def _believe(
    scores: Floats, start: Offsets, messages: Floats, belief: Floats, span: tuple[int, int]
) -> tuple[float, float]:
    n = scores.shape[1]
    change, logs, row = 0.0, 0.0, np.empty(n)
    for i in range(span[0], span[1]):
        logs += _believe_in_logs(scores[i], messages[start[i] : start[i + 1]], row)
        for k in range(n):
            change = max(change, abs(row[k] - belief[i, k]))
            belief[i, k] = row[k]
            if row[k] > 0.0:
                logs -= row[k] * scores[i, k]
    return change, logs


@kernel
def _speak(
    belief: Floats,
    slot: Offsets,
    node: Codes,
    mate: Offsets,
    edge: Codes,
    odds: Floats,
    messages: Floats,
    span: tuple[int, int],
    damping: float,
) -> float:
    n = belief.shape[1]
    logs, cavity, new = 0.0, np.empty(n), np.empty(n)
    for t in range(span[0], span[1]):
        e, i, back = slot[t], node[t], mate[slot[t]]
        for k in range(n):
            cavity[k] = belief[i, k] / messages[e, k]
        scale = _weighted_others(cavity, odds[edge[e]] if len(odds) > 1 else odds[0], new)
        logs += np.log(scale)
        for k in range(n):
            told = max(new[k] / scale, SMALLEST)
            messages[back, k] = damping * messages[back, k] + (1.0 - damping) * told
    return logs


@kernel
def _weighted_others(cavity: Floats, weight: float, out: Floats) -> float:
    """Set out[k] = Σ_{l≠k} cavity_l + weight cavity_k, and return the largest of them."""
    n, before, after, largest = len(cavity), 0.0, 0.0, 0.0
    for k in range(n - 1, -1, -1):
        out[k] = after
        after += cavity[k]
    for k in range(n):
        out[k] += before + weight * cavity[k]
        before += cavity[k]
        largest = max(largest, out[k])
    return largest
