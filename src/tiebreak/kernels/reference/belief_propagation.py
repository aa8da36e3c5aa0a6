"""Belief propagation (sum-product) along links, and max-product decoding, in plain NumPy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tiebreak.kernels.layout import Codes, Floats
from tiebreak.kernels.network import LOWEST_LOG_MESSAGE, SMALLEST_MESSAGE, Network, Parts


def expected_score(belief: Floats, scores: Floats, n_threads: int = 1) -> float:
    """Return Σ ⟨belief, score⟩ over nodes; impossible classes add nothing."""
    return float((belief * np.where(belief > 0.0, scores, 0.0)).sum())


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
    """Pass messages up or down among nodes span[0] … span[1] − 1, and set their beliefs.

    Implements [eq:messages], c_i the score of node i with all messages but j's:

        log m_{i→j}(k) = log(Σ_{l≠k} exp c_i(l) + exp(θ_ij + c_i(k))) − scale

    Up, every node sends to its earlier neighbours, last node first; down, to its later ones,
    first node first. Without loops, beliefs are exact after one pass up and one down, and so is
    the returned log partition [eq:log-partition]; with loops it is Bethe's.

    Parameters
    ----------
    coupling
        (n_edges,) log-odds that the two ends agree; −∞ where they cannot.
    messages
        (2 · n_edges, n_classes) logs, largest 0 and none below `LOWEST_LOG_MESSAGE`. Overwritten.
    belief
        (n_nodes, n_classes), rows sum to 1. Rows of the span are overwritten.
    update_beliefs
        Whether to set beliefs; where not, nothing is known of change and log partition: 0.

    Returns
    -------
    The largest change of any belief, and the log partition of the span.
    """
    change = 0.0
    log_partition = 0.0
    for i in range(*span) if down else range(span[1] - 1, span[0] - 1, -1):
        slots = np.arange(network.start[i], network.start[i + 1])
        total = scores[i] + messages[slots].sum(axis=0)
        sending = slots[(network.other[slots] > i) == down]
        for e in sending:
            new = _message(total - messages[e], coupling[network.edge[e]])
            log_partition += new.max()
            back = network.mate[e]
            mixed = damping * messages[back] + (1.0 - damping) * (new - new.max())
            messages[back] = np.maximum(mixed - mixed.max(), LOWEST_LOG_MESSAGE)
        if not update_beliefs:
            continue
        log_norm = np.logaddexp.reduce(total)
        new = np.exp(total - log_norm)
        change = max(change, float(np.abs(new - belief[i]).max()))
        belief[i] = new
        log_partition += (1 - len(sending)) * log_norm
    return change, float(log_partition) if update_beliefs else 0.0


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
    """Pass messages up or down, in turn within a part; other parts receive them at the end.

    Implements [eq:messages] like `pass_messages`, with the same fixed points. Messages are
    probabilities here, at most 1 (the largest 1 where settled) and none below `SMALLEST_MESSAGE`;
    damping mixes them as such.

    Returns
    -------
    The largest change of any belief, and the log partition of the parts, Bethe's, less the expected
    scores of their nodes.
    """
    change = 0.0
    value = 0.0
    outbox = {}  # by slot: messages to other parts
    for low, high in pairwise(parts.edges.tolist()):
        for i in range(low, high) if down else range(high - 1, low - 1, -1):
            slots = range(network.start[i], network.start[i + 1])
            total = scores[i] + np.log(messages[slots]).sum(axis=0)
            log_norm = np.logaddexp.reduce(total)
            new = np.exp(total - log_norm)
            change = max(change, float(np.abs(new - belief[i]).max()))
            belief[i] = new
            value += log_norm - expected_score(belief[i], scores[i])
            for e in slots:
                if (network.other[e] > i) != down:
                    continue
                log_odds = min(coupling[network.edge[e]], -np.log(SMALLEST_MESSAGE))
                log_message = _message(total - log_norm - np.log(messages[e]), log_odds)
                value += log_message.max()
                new = np.maximum(np.exp(log_message - log_message.max()), SMALLEST_MESSAGE)
                back = network.mate[e]
                mixed = damping * messages[back] + (1.0 - damping) * new
                if low <= network.other[e] < high:
                    messages[back] = mixed
                else:
                    outbox[back] = mixed
    for slot, message in outbox.items():
        messages[slot] = message
    return change, float(value)


def _message(cavity: Floats, coupling: float) -> Floats:
    """Return log Σ_l exp(cavity_l + θ 1(k = l)) for each k."""
    return np.logaddexp(_others(cavity), coupling + cavity)


def _others(cavity: Floats) -> Floats:
    """Return log Σ_{l≠k} exp(cavity_l) for each k."""
    n_classes = len(cavity)
    without = np.broadcast_to(cavity, (n_classes, n_classes))[~np.eye(n_classes, dtype=bool)]
    return np.asarray(np.logaddexp.reduce(without.reshape(n_classes, -1), axis=1))


def agreement(scores: Floats, network: Network, coupling: Floats, messages: Floats) -> Floats:
    """Return for each edge the probability that its two ends agree: [eq:agreement]."""
    agree = np.zeros(len(coupling))
    totals = scores.copy()
    owner = np.repeat(np.arange(network.n_nodes), np.diff(network.start))
    np.add.at(totals, owner, messages)
    for e in range(len(owner)):
        i = owner[e]
        j = network.other[e]
        if i > j:
            continue
        here = totals[i] - messages[e]
        there = totals[j] - messages[network.mate[e]]
        edge = network.edge[e]
        same = coupling[edge] + np.logaddexp.reduce(here + there)
        differ = np.logaddexp.reduce(here + _others(there))
        agree[edge] = np.exp(same - np.logaddexp(same, differ))
    return agree


def decode_forest(
    scores: Floats, network: Network, coupling: Floats, span: tuple[int, int], label: Codes
) -> None:
    """Set the likeliest joint labels of nodes in components without loops: [eq:decode].

    Max-product up, then each node takes its best class given its earlier neighbour's.
    """
    low, high = span
    best = scores.copy()
    for i in range(high - 1, low - 1, -1):
        for e in range(network.start[i], network.start[i + 1]):
            if network.other[e] < i:
                best[network.other[e]] += _best_message(best[i], coupling[network.edge[e]])
    for i in range(low, high):
        choice = best[i].copy()
        for e in range(network.start[i], network.start[i + 1]):
            if network.other[e] < i:
                choice[label[network.other[e]]] += coupling[network.edge[e]]
        label[i] = choice.argmax()


def _best_message(total: Floats, coupling: float) -> Floats:
    """Return max_l (total_l + θ 1(k = l)) for each k."""
    message = total + coupling
    for k in range(len(total)):
        others = np.delete(total, k)
        if len(others):
            message[k] = max(message[k], others.max())
    return np.asarray(message)


def decode_greedily(
    wish: Floats, network: Network, coupling: Floats, order: Codes, label: Codes
) -> None:
    """Give nodes, in order, their best class of those that break fewest hard links.

    Neighbours with label −1 have no class yet and do not count.
    """
    for i in order:
        broken = np.zeros(wish.shape[1])
        for e in range(network.start[i], network.start[i + 1]):
            other = label[network.other[e]]
            if other >= 0 and coupling[network.edge[e]] == -np.inf:
                broken[other] += 1.0
        broken[np.isneginf(wish[i])] = np.inf
        label[i] = np.where(broken == broken.min(), wish[i], -np.inf).argmax()
