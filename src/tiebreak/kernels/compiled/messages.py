"""Messages in logs, in turn: what `belief_propagation.pass_messages` runs.

The plain version is the reference: each message is K sums of exponentials, in logs. Up to eight
classes it is one vector here (`pass_simd`): one exponential and one logarithm a message, of all
classes at once. Above, or without SIMD, it goes class by class (`pass_by_class`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.compiled.exponential import exp_simd, log_simd
from tiebreak.kernels.compiled.one_row import (
    LARGEST_COUPLING,
    SMALLEST_SUM,
    exact_message,
    message,
    softmax_into,
)
from tiebreak.kernels.compiled.simd import (
    Like,
    abs_difference,
    fma,
    load,
    max_element,
    maximum,
    min_element,
    minus,
    others,
    plus,
    store,
    sum_elements,
    times,
    zeros,
)
from tiebreak.kernels.layout import Floats
from tiebreak.kernels.network import LOWEST_LOG_MESSAGE, Network


@kernel
def pass_simd(
    like: Like,
    scores: Floats,
    network: Network,
    coupling: Floats,
    messages: Floats,
    belief: Floats,
    span: tuple[int, int],
    damping: float,
    down: bool,
    update_beliefs: bool,
) -> tuple[float, float]:
    """Pass messages of up to `MAX_WIDTH` classes: see `reference.pass_messages`."""
    low, high = span
    log_partition = 0.0
    change = zeros(like)
    for step in range(high - low):
        i = low + step if down else high - 1 - step
        total = load(scores, i, 0, like)
        for e in range(network.start[i], network.start[i + 1]):
            total = plus(total, load(messages, e, 0, like))
        n_sent = 0
        for e in range(network.start[i], network.start[i + 1]):
            if (network.other[e] > i) != down:
                continue
            n_sent += 1
            cavity = minus(total, load(messages, e, 0, like))
            new, scale = _message_simd(like, cavity, coupling[network.edge[e]])
            log_partition += scale
            if damping > 0.0:
                old = load(messages, network.mate[e], 0, like)
                new = fma(new, 1.0 - damping, times(old, damping))
                new = minus(new, max_element(new))
            store(messages, network.mate[e], 0, maximum(new, LOWEST_LOG_MESSAGE))
        if not update_beliefs:
            continue
        top = max_element(total)
        new = exp_simd(minus(total, top))
        norm = sum_elements(new)
        log_partition += (1 - n_sent) * (top + np.log(norm))
        new = times(new, 1.0 / norm)
        change = maximum(change, abs_difference(new, load(belief, i, 0, like)))
        store(belief, i, 0, new)
    return max_element(change), log_partition if update_beliefs else 0.0


@kernel
def _message_simd(like: Like, cavity: Any, coupling: float) -> tuple[Any, float]:
    """Return log Σ_l exp(cavity_l + θ 1(k = l)) − scale of each k, and the scale: the largest.

    The sum over the others is never taken as the sum over all less one, so that nothing cancels;
    where it underflows, exact logs take over.
    """
    top = max_element(cavity)
    each = exp_simd(minus(cavity, top))
    rest = others(each)
    if min_element(rest) < SMALLEST_SUM or coupling > LARGEST_COUPLING:
        return _exact_message_simd(like, cavity, coupling)
    if coupling > -np.inf:
        rest = fma(each, np.exp(coupling), rest)
    new = log_simd(rest)
    largest = max_element(new)
    return minus(new, largest), top + largest


@kernel
def _exact_message_simd(like: Like, cavity: Any, coupling: float) -> tuple[Any, float]:
    given = np.empty(len(like))
    new = np.empty(len(like))
    store(given, 0, 0, cavity)
    scale = exact_message(given, coupling, new)
    return minus(load(new, 0, 0, like), scale), scale


@kernel
def pass_by_class(
    scores: Floats,
    network: Network,
    coupling: Floats,
    messages: Floats,
    belief: Floats,
    span: tuple[int, int],
    damping: float,
    down: bool,
    update_beliefs: bool,
) -> tuple[float, float]:
    """Do the same class by class, for more classes than a vector holds."""
    n = scores.shape[1]
    total = np.empty(n)
    cavity = np.empty(n)
    new = np.empty(n)
    change = 0.0
    log_partition = 0.0
    low, high = span
    for step in range(high - low):
        i = low + step if down else high - 1 - step
        for k in range(n):
            total[k] = scores[i, k]
        for e in range(network.start[i], network.start[i + 1]):
            for k in range(n):
                total[k] += messages[e, k]
        n_sent = 0
        for e in range(network.start[i], network.start[i + 1]):
            if (network.other[e] > i) != down:
                continue
            n_sent += 1
            for k in range(n):
                cavity[k] = total[k] - messages[e, k]
            scale = message(cavity, coupling[network.edge[e]], new)
            log_partition += scale
            top = -np.inf
            for k in range(n):
                new[k] = damping * messages[network.mate[e], k] + (1.0 - damping) * (new[k] - scale)
                top = max(top, new[k])
            for k in range(n):
                messages[network.mate[e], k] = max(new[k] - top, LOWEST_LOG_MESSAGE)
        if not update_beliefs:
            continue
        top, norm = softmax_into(total, new)
        log_partition += (1 - n_sent) * (top + np.log(norm))
        for k in range(n):
            change = max(change, abs(new[k] - belief[i, k]))
            belief[i, k] = new[k]
    return change, log_partition if update_beliefs else 0.0
