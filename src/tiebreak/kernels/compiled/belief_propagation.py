"""Belief propagation along links, compiled: same names and signatures as the reference."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.arrays import for_each
from tiebreak.kernels.compile import kernel
from tiebreak.kernels.compiled import messages as in_turn
from tiebreak.kernels.compiled import split_messages as in_parts
from tiebreak.kernels.compiled.one_row import log_others
from tiebreak.kernels.compiled.simd import MAX_WIDTH, vector_for
from tiebreak.kernels.layout import MAX_CHUNKS, Codes, Floats
from tiebreak.kernels.network import SMALLEST_MESSAGE, Network, Parts

NODES_PER_CHUNK = 20_000


def expected_score(belief: Floats, scores: Floats, n_threads: int = 1) -> float:
    """Return Σ ⟨belief, score⟩ over nodes: see `reference.expected_score`."""
    n_chunks = max(1, min(MAX_CHUNKS, len(belief) // NODES_PER_CHUNK))
    edges = np.linspace(0, len(belief), n_chunks + 1).astype(np.int64)
    sums = np.zeros(n_chunks)

    def work(c: int) -> None:
        sums[c] = _expected_score(edges[c], edges[c + 1], belief, scores)

    for_each(work, n_chunks, n_threads)
    return float(sums.sum())


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
    update_beliefs: bool = True,
) -> tuple[float, float]:
    """Pass messages up or down: see `reference.pass_messages`."""
    given = scores, network, coupling, messages, belief, span, damping, down, update_beliefs
    n_classes = scores.shape[1]
    if n_classes <= MAX_WIDTH:
        return in_turn.pass_simd((0,) * n_classes, *given)
    return in_turn.pass_by_class(*given)


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
    odds = np.exp(np.minimum(coupling, -np.log(SMALLEST_MESSAGE)))
    n_classes = scores.shape[1]
    n_parts = len(parts.edges) - 1
    figures = np.zeros((n_parts, 2))
    target = parts.down if down else parts.up
    pieces = np.linspace(0, len(target), n_parts + 1).astype(np.int64)
    slots = network.start, network.later, parts.target_slot, network.edge
    given = scores, *slots, odds, messages, belief, parts.outbox, damping, down

    def send(p: int) -> None:
        span = parts.edges[p : p + 2]
        if n_classes <= MAX_WIDTH:
            figures[p] = in_parts.send_simd((0,) * n_classes, *given, *span)
        else:
            figures[p] = in_parts.send_by_class(*given, *span)

    def receive(p: int) -> None:
        span = pieces[p : p + 2]
        in_parts.receive(vector_for(n_classes), parts.outbox, target, messages, damping, *span)

    for_each(send, n_parts, n_threads)
    for_each(receive, n_parts, n_threads)
    return float(figures[:, 0].max(initial=0.0)), float(figures[:, 1].sum())


def agreement(scores: Floats, network: Network, coupling: Floats, messages: Floats) -> Floats:
    """Return for each edge the probability that its two ends agree: see `reference.agreement`."""
    agree = np.zeros(len(coupling))
    _agreement(scores, network, coupling, messages, agree)
    return agree


def decode_forest(
    scores: Floats, network: Network, coupling: Floats, span: tuple[int, int], label: Codes
) -> None:
    """Set the likeliest joint labels of nodes without loops: see `reference.decode_forest`."""
    low, high = span
    _decode_forest(scores.copy(), network, coupling, low, high, label)


def decode_greedily(
    wish: Floats, network: Network, coupling: Floats, order: Codes, label: Codes
) -> None:
    """Give nodes, in order, the best class that breaks fewest: see `reference`."""
    _decode_greedily(wish, network, coupling, order, label)


@kernel
def _expected_score(low: int, high: int, belief: Floats, scores: Floats) -> float:
    total = 0.0
    for i in range(low, high):
        for k in range(belief.shape[1]):
            if belief[i, k] > 0.0:
                total += belief[i, k] * scores[i, k]
    return total


@kernel
def _total(i: int, scores: Floats, network: Network, messages: Floats, total: Floats) -> None:
    for k in range(len(total)):
        total[k] = scores[i, k]
    for e in range(network.start[i], network.start[i + 1]):
        for k in range(len(total)):
            total[k] += messages[e, k]


@kernel
def _agreement(
    scores: Floats, network: Network, coupling: Floats, messages: Floats, agree: Floats
) -> None:
    n = scores.shape[1]
    here = np.empty(n)
    there = np.empty(n)
    others = np.empty(n)
    totals = np.empty_like(scores)
    for i in range(len(scores)):
        _total(i, scores, network, messages, totals[i])
    for i in range(len(scores)):
        for e in range(network.start[i], network.start[i + 1]):
            j = network.other[e]
            back = network.mate[e]
            if j < i:
                continue
            for k in range(n):
                here[k] = totals[i, k] - messages[e, k]
                there[k] = totals[j, k] - messages[back, k]
            log_others(there, others)
            same = coupling[network.edge[e]] + _log_dot(here, there)
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
    best: Floats, network: Network, coupling: Floats, low: int, high: int, label: Codes
) -> None:
    n = best.shape[1]
    for i in range(high - 1, low - 1, -1):
        for e in range(network.start[i], network.start[i + 1]):
            j = network.other[e]
            if j > i:
                continue
            for k in range(n):
                message = best[i, k] + coupling[network.edge[e]]
                for other in range(n):
                    if other != k:
                        message = max(message, best[i, other])
                best[j, k] += message
    for i in range(low, high):
        for e in range(network.start[i], network.start[i + 1]):
            j = network.other[e]
            if j < i:
                best[i, label[j]] += coupling[network.edge[e]]
        label[i] = best[i].argmax()


@kernel
def _decode_greedily(
    wish: Floats, network: Network, coupling: Floats, order: Codes, label: Codes
) -> None:
    n = wish.shape[1]
    broken = np.empty(n)
    for i in order:
        broken[:] = 0.0
        for e in range(network.start[i], network.start[i + 1]):
            other = label[network.other[e]]
            if other >= 0 and coupling[network.edge[e]] == -np.inf:
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
