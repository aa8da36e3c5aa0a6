"""Sum-product along links, compiled: same names and signatures as the reference."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.kernels.network import Network


def node_scores(u: Floats, task: Codes, node: Codes, flip: Codes, n_nodes: int) -> Floats:
    """Add up the scores of the tasks of each node: see `reference.node_scores`."""
    scores = np.zeros((n_nodes, u.shape[1]))
    _node_scores(u, task, node, flip, scores)
    return scores


def pass_messages(
    scores: Floats,
    network: Network,
    theta: Floats,
    messages: Floats,
    belief: Floats,
    span: tuple[int, int],
    damping: float,
) -> tuple[float, float]:
    """Pass messages up and down once: see `reference.pass_messages`."""
    low, high = span
    return _pass_messages(scores, network, theta, messages, belief, low, high, damping)


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
def _node_scores(u: Floats, task: Codes, node: Codes, flip: Codes, scores: Floats) -> None:
    n = u.shape[1]
    for at in range(len(task)):
        for k in range(n):
            scores[node[at], k] += u[task[at], n - 1 - k if flip[at] == 1 else k]


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
def _message(cavity: Floats, theta: float, out: Floats) -> None:
    """Set out[k] = log Σ_l exp(cavity_l + θ 1(k = l))."""
    _others(cavity, out)
    if theta == -np.inf:
        return
    for k in range(len(cavity)):
        high, low = out[k], theta + cavity[k]
        if low > high:
            high, low = low, high
        out[k] = high + np.log1p(np.exp(low - high))


@kernel
def _total(i: int, scores: Floats, network: Network, messages: Floats, total: Floats) -> None:
    for k in range(len(total)):
        total[k] = scores[i, k]
    for e in range(network.start[i], network.start[i + 1]):
        for k in range(len(total)):
            total[k] += messages[e, k]


@kernel
def _speak(
    e: int,
    total: Floats,
    cavity: Floats,
    new: Floats,
    network: Network,
    theta: Floats,
    messages: Floats,
    damping: float,
) -> float:
    """Send along slot e what the others say; return the scale taken off."""
    n = len(total)
    for k in range(n):
        cavity[k] = total[k] - messages[e, k]
    _message(cavity, theta[network.edge[e]], new)
    scale, top = new[0], -np.inf
    for k in range(1, n):
        scale = max(scale, new[k])
    back = network.mate[e]
    for k in range(n):
        new[k] = damping * messages[back, k] + (1.0 - damping) * (new[k] - scale)
        top = max(top, new[k])
    for k in range(n):
        messages[back, k] = new[k] - top
    return float(scale)


@kernel
def _pass_messages(
    scores: Floats,
    network: Network,
    theta: Floats,
    messages: Floats,
    belief: Floats,
    low: int,
    high: int,
    damping: float,
) -> tuple[float, float]:
    n = scores.shape[1]
    total, cavity, new = np.empty(n), np.empty(n), np.empty(n)
    for i in range(high - 1, low - 1, -1):
        _total(i, scores, network, messages, total)
        for e in range(network.start[i], network.start[i + 1]):
            if network.other[e] < i:
                _speak(e, total, cavity, new, network, theta, messages, damping)
    change, log_partition = 0.0, 0.0
    for i in range(low, high):
        _total(i, scores, network, messages, total)
        n_later = 0
        for e in range(network.start[i], network.start[i + 1]):
            if network.other[e] > i:
                n_later += 1
                log_partition += _speak(e, total, cavity, new, network, theta, messages, damping)
        top = total.max()
        norm = 0.0
        for k in range(n):
            new[k] = np.exp(total[k] - top)
            norm += new[k]
        for k in range(n):
            change = max(change, abs(new[k] / norm - belief[i, k]))
            belief[i, k] = new[k] / norm
        log_partition += (1 - n_later) * (top + np.log(norm))
    return change, log_partition


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
