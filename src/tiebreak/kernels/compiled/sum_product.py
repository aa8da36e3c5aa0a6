"""Sum-product along links, compiled: same names and signatures as the reference."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tiebreak.kernels.compile import UNROLLED_CLASSES, kernel
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.kernels.network import Members, Network
from tiebreak.kernels.threads import for_each

SMALLEST_SUM = 1e-290  # below, sums of exponentials lose digits to underflow
LARGEST_THETA = 600.0  # above, exp(θ) overflows


def node_scores(u: Floats, members: Members, n_threads: int = 1) -> Floats:
    """Add up the scores of the tasks of each node: see `reference.node_scores`."""
    scores = np.zeros((members.n_nodes, u.shape[1]))
    of = members.task, members.node, members.flip

    def work(c: int) -> None:
        _node_scores(members.edges[c], members.edges[c + 1], u, *of, scores)

    for_each(work, len(members.edges) - 1, n_threads)
    return scores


def spread_beliefs(
    q: Floats, u: Floats, belief: Floats, members: Members, n_threads: int = 1
) -> tuple[float, float]:
    """Give tasks the beliefs of their nodes: see `reference.spread_beliefs`."""
    n_chunks = len(members.edges) - 1
    figures = np.zeros((n_chunks, 2))
    of = members.task, members.node, members.flip

    def work(c: int) -> None:
        _spread_beliefs(members.edges[c], members.edges[c + 1], q, u, belief, *of, figures[c])

    for_each(work, n_chunks, n_threads)
    return float(figures[:, 0].max(initial=0.0)), float(figures[:, 1].sum())


def pass_messages(
    scores: Floats,
    network: Network,
    theta: Floats,
    messages: Floats,
    belief: Floats,
    span: tuple[int, int],
    damping: float,
    *,
    down: bool,
    n_parts: int = 1,
    n_threads: int = 1,
) -> tuple[float, float]:
    """Pass messages up or down: see `reference.pass_messages`."""
    slots = network.start, network.other, network.mate, theta[network.edge]
    run = _pass_kernel(scores.shape[1])
    heard = messages if n_parts == 1 else np.empty_like(messages)
    cuts = np.linspace(*span, n_parts + 1).astype(np.int64)
    figures = np.zeros((n_parts, 2))

    def speak(p: int) -> None:
        part = cuts[p], cuts[p + 1]
        figures[p] = run(scores, *slots, messages, heard, belief, part, damping, down)

    def hear(p: int) -> None:
        _hear(network.start, network.other, heard, messages, cuts[p], cuts[p + 1], down)

    for_each(speak, n_parts, n_threads)
    if n_parts > 1:
        for_each(hear, n_parts, n_threads)
    return float(figures[:, 0].max(initial=0.0)), float(figures[:, 1].sum())


def agreement(scores: Floats, network: Network, theta: Floats, messages: Floats) -> Floats:
    """Return for each edge the probability that its two ends agree: see `reference.agreement`."""
    agree = np.zeros(len(theta))
    _agreement(scores, network, theta, messages, agree)
    return agree


def decode_forest(
    scores: Floats, network: Network, theta: Floats, span: tuple[int, int], label: Codes
) -> None:
    """Set the likeliest joint labels of nodes without loops: see `reference.decode_forest`."""
    low, high = span
    _decode_forest(scores.copy(), network, theta, low, high, label)


def decode_greedily(
    wish: Floats, network: Network, theta: Floats, order: Codes, label: Codes
) -> None:
    """Give nodes, in order, the best class that breaks fewest: see `reference`."""
    _decode_greedily(wish, network, theta, order, label)


@kernel
def _node_scores(
    low: int, high: int, u: Floats, task: Codes, node: Codes, flip: Codes, scores: Floats
) -> None:
    n = u.shape[1]
    for at in range(low, high):
        for k in range(n):
            scores[node[at], k] += u[task[at], n - 1 - k if flip[at] == 1 else k]


@kernel
def _spread_beliefs(
    low: int,
    high: int,
    q: Floats,
    u: Floats,
    belief: Floats,
    task: Codes,
    node: Codes,
    flip: Codes,
    figures: Floats,
) -> None:
    n = q.shape[1]
    change, dot = 0.0, 0.0  # not in place: threads would share the line of memory
    for at in range(low, high):
        i = task[at]
        for k in range(n):
            new = belief[node[at], n - 1 - k if flip[at] == 1 else k]
            change = max(change, abs(new - q[i, k]))
            q[i, k] = new
            if new > 0.0:
                dot += new * u[i, k]
    figures[0], figures[1] = change, dot


@kernel
def _others(cavity: Floats, out: Floats) -> None:
    """Set out[k] = log Σ_{l≠k} exp(cavity_l), exact however far apart the scores are."""
    n = len(cavity)
    first, second = 0, -1
    for k in range(1, n):
        if cavity[k] > cavity[first]:
            second, first = first, k
        elif second < 0 or cavity[k] > cavity[second]:
            second = k
    top = cavity[first]
    rest = 0.0  # Σ over all but the first, relative to the second: no cancellation
    for k in range(n):
        if k != first:
            out[k] = np.exp(cavity[k] - cavity[second])
            rest += out[k]
    shift = np.exp(cavity[second] - top)
    for k in range(n):
        if k == first:
            out[k] = cavity[second] + np.log(rest)
        else:
            out[k] = top + np.log1p(max(rest - out[k], 0.0) * shift)


@kernel
def _total(i: int, scores: Floats, network: Network, messages: Floats, total: Floats) -> None:
    for k in range(len(total)):
        total[k] = scores[i, k]
    for e in range(network.start[i], network.start[i + 1]):
        for k in range(len(total)):
            total[k] += messages[e, k]


@cache
def _pass_kernel(n_classes: int) -> Callable[..., tuple[float, float]]:
    """Make the passes for a number of classes, so that their class loops unroll."""
    unrolled = n_classes if n_classes <= UNROLLED_CLASSES else 0

    @kernel
    def run(
        scores: Floats,
        start: Offsets,
        other: Codes,
        mate: Offsets,
        theta: Floats,
        messages: Floats,
        heard: Floats,
        belief: Floats,
        span: tuple[int, int],
        damping: float,
        down: bool,
    ) -> tuple[float, float]:
        n = unrolled if unrolled > 0 else scores.shape[1]
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
                scale = _message(cavity, theta[e], new, n)
                log_partition += scale
                top = -np.inf
                for k in range(n):
                    new[k] = damping * messages[mate[e], k] + (1.0 - damping) * (new[k] - scale)
                    top = max(top, new[k])
                inside = low <= other[e] < high
                for k in range(n):
                    if inside:
                        messages[mate[e], k] = new[k] - top
                    else:
                        heard[mate[e], k] = new[k] - top
            log_partition += (1 - n_spoken) * _normalise(total, new, n)
            for k in range(n):
                change = max(change, abs(new[k] - belief[i, k]))
                belief[i, k] = new[k]
        return change, log_partition

    return run


@kernel
def _hear(
    start: Offsets,
    other: Codes,
    heard: Floats,
    messages: Floats,
    low: int,
    high: int,
    down: bool,
) -> None:
    """Take in what nodes of other parts said."""
    for i in range(low, high):
        for e in range(start[i], start[i + 1]):
            if (low <= other[e] < high) or (other[e] < i) != down:
                continue
            for k in range(messages.shape[1]):
                messages[e, k] = heard[e, k]


@kernel
def _message(cavity: Floats, theta: float, out: Floats, n: int) -> float:
    """Set out[k] = log Σ_l exp(cavity_l + θ 1(k = l)) and return the largest of them.

    Sums go over classes relative to the likeliest one, which is left out of the sum over the
    others, so that nothing cancels; where that sum underflows, exact logs take over.
    """
    first = 0
    for k in range(1, n):
        if cavity[k] > cavity[first]:
            first = k
    top = cavity[first]
    rest = 0.0
    for k in range(n):
        if k != first:
            out[k] = np.exp(cavity[k] - top)
            rest += out[k]
    if rest < SMALLEST_SUM or theta > LARGEST_THETA:
        return _exact_message(cavity, theta, out, n)
    weight = np.exp(theta) if theta > -np.inf else 0.0
    largest = -np.inf
    for k in range(n):
        if k == first:
            out[k] = top + np.log(rest + weight)
        else:
            out[k] = top + np.log(1.0 + (rest - out[k]) + weight * out[k])
        largest = max(largest, out[k])
    return float(largest)


@kernel
def _exact_message(cavity: Floats, theta: float, out: Floats, n: int) -> float:
    """Do what `_message` does, in logs throughout."""
    _others(cavity, out)
    largest = -np.inf
    for k in range(n):
        if theta > -np.inf:
            high, low = out[k], theta + cavity[k]
            if low > high:
                high, low = low, high
            out[k] = high + np.log1p(np.exp(low - high))
        largest = max(largest, out[k])
    return float(largest)


@kernel
def _normalise(total: Floats, out: Floats, n: int) -> float:
    """Set out = softmax(total) and return log Σ exp(total)."""
    top = total[0]
    for k in range(1, n):
        top = max(top, total[k])
    norm = 0.0
    for k in range(n):
        out[k] = np.exp(total[k] - top)
        norm += out[k]
    for k in range(n):
        out[k] /= norm
    return float(top + np.log(norm))


@kernel
def _agreement(
    scores: Floats, network: Network, theta: Floats, messages: Floats, agree: Floats
) -> None:
    n = scores.shape[1]
    here, there, others = np.empty(n), np.empty(n), np.empty(n)
    totals = np.empty_like(scores)
    for i in range(len(scores)):
        _total(i, scores, network, messages, totals[i])
    for i in range(len(scores)):
        for e in range(network.start[i], network.start[i + 1]):
            j, back = network.other[e], network.mate[e]
            if j < i:
                continue
            for k in range(n):
                here[k] = totals[i, k] - messages[e, k]
                there[k] = totals[j, k] - messages[back, k]
            _others(there, others)
            same = theta[network.edge[e]] + _log_dot(here, there)
            agree[network.edge[e]] = 1.0 / (1.0 + np.exp(_log_dot(here, others) - same))


@kernel
def _log_dot(a: Floats, b: Floats) -> float:
    """Return log Σ_k exp(a_k + b_k)."""
    top = -np.inf
    for k in range(len(a)):
        top = max(top, a[k] + b[k])
    total = 0.0
    for k in range(len(a)):
        total += np.exp(a[k] + b[k] - top)
    return float(top + np.log(total))


@kernel
def _decode_forest(
    best: Floats, network: Network, theta: Floats, low: int, high: int, label: Codes
) -> None:
    n = best.shape[1]
    for i in range(high - 1, low - 1, -1):
        for e in range(network.start[i], network.start[i + 1]):
            j = network.other[e]
            if j > i:
                continue
            for k in range(n):
                message = best[i, k] + theta[network.edge[e]]
                for other in range(n):
                    if other != k:
                        message = max(message, best[i, other])
                best[j, k] += message
    for i in range(low, high):
        for e in range(network.start[i], network.start[i + 1]):
            j = network.other[e]
            if j < i:
                best[i, label[j]] += theta[network.edge[e]]
        label[i] = best[i].argmax()


@kernel
def _decode_greedily(
    wish: Floats, network: Network, theta: Floats, order: Codes, label: Codes
) -> None:
    n = wish.shape[1]
    broken = np.empty(n)
    for i in order:
        broken[:] = 0.0
        for e in range(network.start[i], network.start[i + 1]):
            other = label[network.other[e]]
            if other >= 0 and theta[network.edge[e]] == -np.inf:
                broken[other] += 1.0
        best = -1
        for k in range(n):
            if wish[i, k] == -np.inf:
                continue
            if (
                best < 0
                or broken[k] < broken[best]
                or (broken[k] == broken[best] and wish[i, k] > wish[i, best])
            ):
                best = k
        label[i] = max(best, 0)
