"""Messages between nodes, compiled: same names and signatures as the reference.

Up to eight classes a message is worked out on lanes; above, class by class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.compiled.exponential import exp_lanes, log_lanes
from tiebreak.kernels.compiled.one_message import (
    LARGEST_THETA,
    SMALLEST_SUM,
    exact_message,
    message,
)
from tiebreak.kernels.compiled.simd import (
    MOST_LANES,
    Like,
    apart,
    fused,
    larger,
    largest_lane,
    load,
    minus,
    others,
    plus,
    smallest_lane,
    store,
    sum_lanes,
    times,
    zeros,
)
from tiebreak.kernels.compiled.softmax import softmax_into
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.kernels.network import LOWEST, Network


def pass_messages(
    scores: Floats,
    network: Network,
    coupling: Floats,
    messages: Floats,
    belief: Floats,
    span: tuple[int, int],
    damping: float,
    *,
    down: bool,
    believing: bool = True,
) -> tuple[float, float]:
    """Pass messages up or down: see `reference.pass_messages`."""
    slots = network.start, network.other, network.mate, network.edge, coupling
    said = scores, *slots, messages, belief, span, damping, down, believing
    n_classes = scores.shape[1]
    if n_classes <= MOST_LANES:
        return _pass_on_lanes((0,) * n_classes, *said)
    return _pass(*said)


@kernel
def _pass_on_lanes(
    like: Like,
    scores: Floats,
    start: Offsets,
    other: Codes,
    mate: Offsets,
    edge: Codes,
    coupling: Floats,
    messages: Floats,
    belief: Floats,
    span: tuple[int, int],
    damping: float,
    down: bool,
    believing: bool,
) -> tuple[float, float]:
    low, high = span
    log_partition = 0.0
    change = zeros(like)
    for step in range(high - low):
        i = low + step if down else high - 1 - step
        total = load(scores, i, 0, like)
        for e in range(start[i], start[i + 1]):
            total = plus(total, load(messages, e, 0, like))
        n_spoken = 0
        for e in range(start[i], start[i + 1]):
            if (other[e] > i) != down:
                continue
            n_spoken += 1
            cavity = minus(total, load(messages, e, 0, like))
            new, scale = _message_on_lanes(like, cavity, coupling[edge[e]])
            log_partition += scale
            if damping > 0.0:
                old = load(messages, mate[e], 0, like)
                new = fused(new, 1.0 - damping, times(old, damping))
                new = minus(new, largest_lane(new))
            store(messages, mate[e], 0, larger(new, LOWEST))
        if not believing:
            continue
        top = largest_lane(total)
        new = exp_lanes(minus(total, top))
        norm = sum_lanes(new)
        log_partition += (1 - n_spoken) * (top + np.log(norm))
        new = times(new, 1.0 / norm)
        change = larger(change, apart(new, load(belief, i, 0, like)))
        store(belief, i, 0, new)
    return largest_lane(change), log_partition if believing else 0.0


@kernel
def _message_on_lanes(like: Like, cavity: Any, coupling: float) -> tuple[Any, float]:
    """Return log Σ_l exp(cavity_l + θ 1(k = l)) − scale of each k, and the scale: the largest.

    The sum over the others is never taken as the sum over all less one, so that nothing cancels;
    where it underflows, exact logs take over.
    """
    top = largest_lane(cavity)
    each = exp_lanes(minus(cavity, top))
    rest = others(each)
    if smallest_lane(rest) < SMALLEST_SUM or coupling > LARGEST_THETA:
        return _exact_message_on_lanes(like, cavity, coupling)
    if coupling > -np.inf:
        rest = fused(each, np.exp(coupling), rest)
    new = log_lanes(rest)
    largest = largest_lane(new)
    return minus(new, largest), top + largest


@kernel
def _exact_message_on_lanes(like: Like, cavity: Any, coupling: float) -> tuple[Any, float]:
    written, new = np.empty(len(like)), np.empty(len(like))
    store(written, 0, 0, cavity)
    scale = exact_message(written, coupling, new)
    return minus(load(new, 0, 0, like), scale), scale


@kernel
def _pass(
    scores: Floats,
    start: Offsets,
    other: Codes,
    mate: Offsets,
    edge: Codes,
    coupling: Floats,
    messages: Floats,
    belief: Floats,
    span: tuple[int, int],
    damping: float,
    down: bool,
    believing: bool,
) -> tuple[float, float]:
    n = scores.shape[1]
    total, cavity, new = np.empty(n), np.empty(n), np.empty(n)
    change, log_partition = 0.0, 0.0
    low, high = span
    for step in range(high - low):
        i = low + step if down else high - 1 - step
        for k in range(n):
            total[k] = scores[i, k]
        for e in range(start[i], start[i + 1]):
            for k in range(n):
                total[k] += messages[e, k]
        n_spoken = 0
        for e in range(start[i], start[i + 1]):
            if (other[e] > i) != down:
                continue
            n_spoken += 1
            for k in range(n):
                cavity[k] = total[k] - messages[e, k]
            scale = message(cavity, coupling[edge[e]], new)
            log_partition += scale
            top = -np.inf
            for k in range(n):
                new[k] = damping * messages[mate[e], k] + (1.0 - damping) * (new[k] - scale)
                top = max(top, new[k])
            for k in range(n):
                messages[mate[e], k] = max(new[k] - top, LOWEST)
        if not believing:
            continue
        top, norm = softmax_into(total, new)
        log_partition += (1 - n_spoken) * (top + np.log(norm))
        for k in range(n):
            change = max(change, abs(new[k] - belief[i, k]))
            belief[i, k] = new[k]
    return change, log_partition if believing else 0.0
