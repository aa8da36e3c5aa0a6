"""Messages in huge components, as probabilities: hardly a logarithm.

Nodes are cut into parts that threads take. In a part they take turns: a node believes what it was
told, then speaks. What goes to another part is kept back, and heard when the pass is over. A node's
cavity is its belief divided by what the hearer told it, which is never below `SMALLEST`: nothing is
lost to underflow.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.compiled.exponential import exp_lanes
from tiebreak.kernels.compiled.simd import (
    MOST_LANES,
    Like,
    apart,
    fused,
    lanes_for,
    larger,
    largest_lane,
    load,
    minus,
    others,
    over,
    store,
    sum_lanes,
    times,
    where_above,
    zeros,
)
from tiebreak.kernels.compiled.softmax import softmax_into
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.kernels.network import SMALLEST, Network, Parts
from tiebreak.kernels.threads import for_each

SAFE_NORM = 1e-140  # below, a class may be lost that a cavity brings back
FAR = 1e100  # factors beyond, and products beyond its square, become logarithms


def pass_in_parts(
    scores: Floats,
    network: Network,
    coupling: Floats,
    messages: Floats,
    belief: Floats,
    parts: Parts,
    damping: float,
    *,
    down: bool,
    n_threads: int = 1,
) -> tuple[float, float]:
    """Pass messages in parts: see `reference.pass_in_parts`."""
    if len(coupling) and (coupling == coupling[0]).all():
        coupling = coupling[:1]  # hard links alone: nothing to look up
    odds = np.exp(np.minimum(coupling, -np.log(SMALLEST)))
    n_parts, like = len(parts.edges) - 1, (0,) * scores.shape[1]
    figures, on_lanes = np.zeros((n_parts, 2)), len(like) <= MOST_LANES
    heard = parts.down if down else parts.up
    some = np.linspace(0, len(heard), n_parts + 1).astype(np.int64)
    slots = network.start, network.later, parts.hear, network.edge
    fixed = scores, *slots, odds, messages, belief, parts.told, damping, down

    def talk(p: int) -> None:
        span = parts.edges[p], parts.edges[p + 1]
        figures[p] = _talk_on_lanes(like, *fixed, *span) if on_lanes else _talk(*fixed, *span)

    def deliver(p: int) -> None:
        span = some[p], some[p + 1]
        _deliver(lanes_for(len(like)), parts.told, heard, messages, damping, *span)

    for_each(talk, n_parts, n_threads)
    for_each(deliver, n_parts, n_threads)
    return float(figures[:, 0].max(initial=0.0)), float(figures[:, 1].sum())


@kernel
def _talk_on_lanes(
    like: Like,
    scores: Floats,
    start: Offsets,
    later: Offsets,
    hear: Codes,
    edge: Codes,
    odds: Floats,
    messages: Floats,
    belief: Floats,
    told: Floats,
    damping: float,
    down: bool,
    low: int,
    high: int,
) -> tuple[float, float]:
    """Let the nodes of one part believe and speak, in turn.

    Returns the largest change, and the log partition less expected scores. The sum over the other
    classes is never taken as the sum over all less one: nothing cancels.
    """
    change, expected, logs, product = zeros(like), zeros(like), 0.0, 1.0
    for step in range(high - low):
        i = low + step if down else high - 1 - step
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
        for e in range(later[i], start[i + 1]) if down else range(start[i], later[i]):
            cavity = over(row, load(messages, e, 0, like))
            new = others(cavity)
            weight = odds[edge[e]] if len(odds) > 1 else odds[0]
            if weight > 0.0:
                new = fused(cavity, weight, new)
            scale = largest_lane(new)
            logs, product = _times(logs, product, scale)
            new = larger(times(new, 1.0 / scale), SMALLEST)
            back = hear[e]
            if back >= 0:
                old = load(messages, back, 0, like)
                store(messages, back, 0, fused(new, 1.0 - damping, times(old, damping)))
            else:
                store(told, -1 - back, 0, new)
    return largest_lane(change), logs + np.log(product) - sum_lanes(expected)


@kernel
def _deliver(
    like: Like, told: Floats, heard: Codes, messages: Floats, damping: float, low: int, high: int
) -> None:
    """Let messages that were kept back be heard."""
    for k in range(0, messages.shape[1], len(like)):
        for t in range(low, high):
            old = load(messages, heard[t], k, like)
            new = fused(load(told, t, k, like), 1.0 - damping, times(old, damping))
            store(messages, heard[t], k, new)


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


@kernel
def _talk(
    scores: Floats,
    start: Offsets,
    later: Offsets,
    hear: Codes,
    edge: Codes,
    odds: Floats,
    messages: Floats,
    belief: Floats,
    told: Floats,
    damping: float,
    down: bool,
    low: int,
    high: int,
) -> tuple[float, float]:
    """Do the same with more classes than lanes, class by class."""
    n = scores.shape[1]
    change, value, row, cavity, new = 0.0, 0.0, np.empty(n), np.empty(n), np.empty(n)
    for step in range(high - low):
        i = low + step if down else high - 1 - step
        value += _believe_in_logs(scores[i], messages[start[i] : start[i + 1]], row)
        for k in range(n):
            change = max(change, abs(row[k] - belief[i, k]))
            belief[i, k] = row[k]
            if row[k] > 0.0:
                value -= row[k] * scores[i, k]
        for e in range(later[i], start[i + 1]) if down else range(start[i], later[i]):
            for k in range(n):
                cavity[k] = row[k] / messages[e, k]
            scale = _weighted_others(cavity, odds[edge[e]] if len(odds) > 1 else odds[0], new)
            value += np.log(scale)
            for k in range(n):
                share = max(new[k] / scale, SMALLEST)
                if hear[e] >= 0:
                    old = messages[hear[e], k]
                    messages[hear[e], k] = damping * old + (1.0 - damping) * share
                else:
                    told[-1 - hear[e], k] = share
    return change, value


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
