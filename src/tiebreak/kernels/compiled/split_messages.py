"""Messages in huge components, in parts, as probabilities: what `pass_in_parts` runs.

Nodes are cut into parts that threads take. In a part nodes take turns: a node updates its belief
from the messages it has, then sends. What goes to another part waits in the outbox until the pass
is over. The plain version works in logs, an exponential and a logarithm a message and class. Here a
node's cavity is its belief divided by the message of the receiver, which is never below
`SMALLEST_MESSAGE`: nothing is lost to underflow, and a message costs two divisions and hardly a
logarithm. docs/performance.md has what a sweep takes with as many hard links as tasks.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.compiled.exponential import exp_simd
from tiebreak.kernels.compiled.one_row import softmax_into
from tiebreak.kernels.compiled.simd import (
    Like,
    abs_difference,
    fma,
    load,
    max_element,
    maximum,
    minus,
    others,
    over,
    store,
    sum_elements,
    times,
    where_above,
    zeros,
)
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.kernels.network import SMALLEST_MESSAGE

SAFE_NORM = 1e-140  # below, a class may be lost that a cavity brings back
FAR = 1e100  # factors beyond, and products beyond its square, become logarithms


@kernel
def send_simd(
    like: Like,
    scores: Floats,
    start: Offsets,
    later: Offsets,
    target_slot: Codes,
    edge: Codes,
    odds: Floats,
    messages: Floats,
    belief: Floats,
    outbox: Floats,
    damping: float,
    down: bool,
    low: int,
    high: int,
) -> tuple[float, float]:
    """Let the nodes of one part update their beliefs and send, in turn.

    Returns the largest change, and the log partition less expected scores. The sum over the other
    classes is never taken as the sum over all less one: nothing cancels.
    """
    change = zeros(like)
    expected = zeros(like)
    logs = 0.0  # of the product so far, and what went far from 1 before
    product = 1.0
    for step in range(high - low):
        i = low + step if down else high - 1 - step
        score = load(scores, i, 0, like)
        top = max_element(score)
        row = exp_simd(minus(score, top))
        for e in range(start[i], start[i + 1]):
            row = times(row, load(messages, e, 0, like))
        norm = sum_elements(row)
        if norm < SAFE_NORM:
            exact = np.empty(len(like))
            logs += _belief_in_logs(scores[i], messages[start[i] : start[i + 1]], exact)
            row = load(exact, 0, 0, like)
        else:
            logs, product = _times(logs + top, product, norm)
            row = times(row, 1.0 / norm)
        expected = fma(row, where_above(row, 0.0, score), expected)
        change = maximum(change, abs_difference(row, load(belief, i, 0, like)))
        store(belief, i, 0, row)
        for e in range(later[i], start[i + 1]) if down else range(start[i], later[i]):
            cavity = over(row, load(messages, e, 0, like))
            new = others(cavity)
            weight = odds[edge[e]] if len(odds) > 1 else odds[0]
            if weight > 0.0:
                new = fma(cavity, weight, new)
            scale = max_element(new)
            logs, product = _times(logs, product, scale)
            new = maximum(times(new, 1.0 / scale), SMALLEST_MESSAGE)
            target = target_slot[e]
            if target >= 0:
                old = load(messages, target, 0, like)
                store(messages, target, 0, fma(new, 1.0 - damping, times(old, damping)))
            else:
                store(outbox, -1 - target, 0, new)
    return max_element(change), logs + np.log(product) - sum_elements(expected)


@kernel
def receive(
    like: Like, outbox: Floats, target: Codes, messages: Floats, damping: float, low: int, high: int
) -> None:
    """Move messages low … high − 1 of the outbox to their slots."""
    for k in range(0, messages.shape[1], len(like)):
        for t in range(low, high):
            old = load(messages, target[t], k, like)
            new = fma(load(outbox, t, k, like), 1.0 - damping, times(old, damping))
            store(messages, target[t], k, new)


@kernel
def _times(logs: float, product: float, factor: float) -> tuple[float, float]:
    """Multiply by a factor; take logarithms only where the product goes far."""
    if 1.0 / FAR < factor < FAR and 1.0 / FAR**2 < product < FAR**2:
        return logs, product * factor
    return logs + np.log(product) + np.log(factor), 1.0


@kernel
def _belief_in_logs(score: Floats, received: Floats, out: Floats) -> float:
    """Set the belief of one node whose messages leave next to nothing; return its log norm."""
    total = score.copy()
    for e in range(len(received)):
        for k in range(len(total)):
            total[k] += np.log(received[e, k])
    top, norm = softmax_into(total, out)
    return float(top + np.log(norm))


@kernel
def send_by_class(
    scores: Floats,
    start: Offsets,
    later: Offsets,
    target_slot: Codes,
    edge: Codes,
    odds: Floats,
    messages: Floats,
    belief: Floats,
    outbox: Floats,
    damping: float,
    down: bool,
    low: int,
    high: int,
) -> tuple[float, float]:
    """Do the same class by class, for more classes than a vector holds."""
    n = scores.shape[1]
    change = 0.0
    value = 0.0
    row = np.empty(n)
    cavity = np.empty(n)
    new = np.empty(n)
    for step in range(high - low):
        i = low + step if down else high - 1 - step
        value += _belief_in_logs(scores[i], messages[start[i] : start[i + 1]], row)
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
            target = target_slot[e]
            for k in range(n):
                share = max(new[k] / scale, SMALLEST_MESSAGE)
                if target >= 0:
                    old = messages[target, k]
                    messages[target, k] = damping * old + (1.0 - damping) * share
                else:
                    outbox[-1 - target, k] = share
    return change, value


@kernel
def _weighted_others(cavity: Floats, weight: float, out: Floats) -> float:
    """Set out[k] = Σ_{l≠k} cavity_l + weight cavity_k, and return the largest of them."""
    n = len(cavity)
    after = 0.0
    before = 0.0
    largest = 0.0
    for k in range(n - 1, -1, -1):
        out[k] = after
        after += cavity[k]
    for k in range(n):
        out[k] += before + weight * cavity[k]
        before += cavity[k]
        largest = max(largest, out[k])
    return largest
