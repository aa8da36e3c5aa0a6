"""Draws of classes, parameters integrated out: plain loops.

The probability of a node's class, given the classes of all others, is a product of shares of
counts, [eq:gibbs]. Nodes of one block are drawn from their joint distribution, class by class.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import gammaln

from tiebreak.kernels.draws import PRIOR, Blocks, Couplings, DrawCounts, DrawNodes
from tiebreak.kernels.layout import Codes, Floats, Mask


def draw_blocks(
    nodes: DrawNodes,
    couplings: Couplings,
    blocks: Blocks,
    counts: DrawCounts,
    state: Codes,
    uniform: Floats,
    marginal: Floats,
) -> None:
    """Draw the classes of all blocks, one block after the other: [eq:gibbs].

    Parameters
    ----------
    counts, state
        Of all nodes as they are; changed to what was drawn.
    uniform
        (n_blocks,) between 0 and 1: which of the joint classes each block gets.
    marginal
        (n_nodes, n_classes): the probabilities from which each node was drawn are added.
    """
    is_set = np.ones(nodes.n_nodes, dtype=bool)
    for b in range(blocks.n_blocks):
        members = blocks.node[blocks.start[b] : blocks.start[b + 1]]
        for node in members:
            add_node(nodes, counts, node, state[node], -1.0)
        is_set[members] = False
        _draw(nodes, couplings, members, counts, state, is_set, float(uniform[b]), marginal)


def _draw(
    nodes: DrawNodes,
    couplings: Couplings,
    members: Codes,
    counts: DrawCounts,
    state: Codes,
    is_set: Mask,
    uniform: float,
    marginal: Floats,
) -> None:
    """Draw the nodes of one block from all their joint classes."""
    n_classes = len(counts.of_class)
    every = list(product(range(n_classes), repeat=len(members)))
    score = np.full(len(every), -np.inf)
    for e, classes in enumerate(every):
        total = 0.0
        n_added = 0
        for node, k in zip(members, classes, strict=True):
            total += coupled(couplings, state, is_set, node, k)
            if total == -np.inf:
                break
            total += score_node(nodes, counts, node, k)
            add_node(nodes, counts, node, k, 1.0)
            state[node] = k
            is_set[node] = True
            n_added += 1
        score[e] = total
        for node, k in zip(members[:n_added], classes[:n_added], strict=True):
            add_node(nodes, counts, node, k, -1.0)
            is_set[node] = False
    chance = np.exp(score - score.max())
    drawn = int(np.searchsorted(np.cumsum(chance), uniform * chance.sum(), side="right"))
    drawn = min(drawn, int(np.flatnonzero(chance)[-1]))
    for place, node in enumerate(members):
        add_node(nodes, counts, node, every[drawn][place], 1.0)
        state[node] = every[drawn][place]
        is_set[node] = True
        of_class = np.array([classes[place] for classes in every])
        marginal[node] += np.bincount(of_class, weights=chance, minlength=n_classes) / chance.sum()


def coupled(couplings: Couplings, state: Codes, is_set: Mask, node: int, k: int) -> float:
    """Return the log-odds of links to nodes that have class k."""
    at = slice(couplings.start[node], couplings.start[node + 1])
    other = couplings.other[at]
    equal = is_set[other] & (state[other] == k)
    return float(couplings.log_odds[at][equal].sum())


def score_node(nodes: DrawNodes, counts: DrawCounts, node: int, k: int) -> float:
    """Return the log probability of the node's items, were it of class k."""
    n_labels = len(counts.of_code) // len(counts.of_worker)
    total = 0.0
    for at in range(nodes.start[node], nodes.start[node + 1]):
        code = nodes.code[at]
        state = k ^ int(nodes.flip[at])
        weight = nodes.weight[at]
        if code == PRIOR:
            total += _log_rise(counts.of_class[state], weight)
        else:
            total += _log_rise(counts.of_code[code, state], weight)
            total -= _log_rise(counts.of_worker[code // n_labels, state], weight)
        if nodes.in_turn[node]:
            _add_item(nodes, counts, at, state, 1.0)
    if nodes.in_turn[node]:
        add_node(nodes, counts, node, k, -1.0)
    return total


def add_node(nodes: DrawNodes, counts: DrawCounts, node: int, k: int, sign: float) -> None:
    """Add the items of a node of class k to the counts, or take them away."""
    for at in range(nodes.start[node], nodes.start[node + 1]):
        _add_item(nodes, counts, at, k ^ int(nodes.flip[at]), sign)


def _add_item(nodes: DrawNodes, counts: DrawCounts, at: int, state: int, sign: float) -> None:
    code = nodes.code[at]
    weight = sign * nodes.weight[at]
    if code == PRIOR:
        counts.of_class[state] += weight
        return
    n_labels = len(counts.of_code) // len(counts.of_worker)
    counts.of_code[code, state] += weight
    counts.of_worker[code // n_labels, state] += weight


def _log_rise(count: float, weight: float) -> float:
    """Return log Γ(a + w) − log Γ(a): log a where the item counts once."""
    if weight == 1.0:
        return float(np.log(count))
    return float(gammaln(count + weight) - gammaln(count))
