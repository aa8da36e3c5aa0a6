"""Draws of classes, parameters integrated out: the twin of the reference.

A node that is drawn alone and whose items do not depend on each other, as nearly all do, is
scored for all classes in one pass over its items, as a product that is turned into a logarithm
only where it becomes small. Joint classes of a block are walked through as a tree, so that a node's
items are counted once for all joint classes that begin alike.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.draws import PRIOR, Blocks, Couplings, DrawCounts, DrawNodes
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets

SMALL = 1e-200  # a product below becomes a logarithm

Flips = npt.NDArray[np.int8]


def draw_blocks(
    nodes: DrawNodes,
    couplings: Couplings,
    blocks: Blocks,
    counts: DrawCounts,
    state: Codes,
    uniform: Floats,
    marginal: Floats,
) -> None:
    """Draw the classes of all blocks, one block after the other: [eq:gibbs]."""
    n_classes = len(counts.of_class)
    largest = int(np.diff(blocks.start).max(initial=1))
    score = np.empty(n_classes**largest)
    is_set = np.ones(nodes.n_nodes, dtype=np.bool_)
    _draw_arrays(*nodes, *couplings, *blocks, *counts, state, uniform, marginal, score, is_set)


@kernel
def _draw_arrays(
    node_start: Offsets,
    code: Codes,
    flip: Flips,
    weight: Floats,
    in_turn: Mask,
    coupling_start: Offsets,
    other: Codes,
    log_odds: Floats,
    block_start: Offsets,
    node: Codes,
    of_class: Floats,
    of_code: Floats,
    of_worker: Floats,
    state: Codes,
    uniform: Floats,
    marginal: Floats,
    score: Floats,
    is_set: Mask,
) -> None:
    """Name the arrays inside: named tuples as arguments cost 0.2 ms a call, arrays 0.01 ms."""
    nodes = DrawNodes(node_start, code, flip, weight, in_turn)
    couplings = Couplings(coupling_start, other, log_odds)
    counts = DrawCounts(of_class, of_code, of_worker)
    n_classes = len(of_class)
    n_labels = len(of_code) // len(of_worker)
    for b in range(len(block_start) - 1):
        first = block_start[b]
        one = node[first]
        if block_start[b + 1] > first + 1:
            members = node[first : block_start[b + 1]]
            _draw_jointly(
                nodes, couplings, counts, state, is_set, uniform[b], marginal, score, members
            )
            continue
        if in_turn[one] or coupling_start[one] < coupling_start[one + 1]:
            _draw_one(nodes, couplings, counts, state, is_set, uniform[b], marginal, score, one)
            continue
        # What nearly all nodes are, written out: calls with many arrays take ten times as long.
        for sign in (-1.0, 1.0):
            if sign > 0.0:
                for k in range(n_classes):
                    product = 1.0
                    logs = 0.0
                    for at in range(node_start[one], node_start[one + 1]):
                        c = code[at]
                        its_class = k ^ flip[at]
                        if weight[at] != 1.0:
                            logs += _log_item(counts, c, its_class, weight[at], n_labels)
                        elif c == PRIOR:
                            product *= of_class[its_class]
                        else:
                            product *= of_code[c, its_class] / of_worker[c // n_labels, its_class]
                        if product < SMALL:
                            logs += math.log(product)
                            product = 1.0
                    score[k] = logs + math.log(product)
                total = _to_chances(score[:n_classes])
                state[one] = _pick(score[:n_classes], uniform[b] * total)
                for k in range(n_classes):
                    marginal[one, k] += score[k] / total
            for at in range(node_start[one], node_start[one + 1]):
                c = code[at]
                its_class = state[one] ^ flip[at]
                added = sign * weight[at]
                if c == PRIOR:
                    of_class[its_class] += added
                else:
                    of_code[c, its_class] += added
                    of_worker[c // n_labels, its_class] += added


@kernel
def _draw_jointly(
    nodes: DrawNodes,
    couplings: Couplings,
    counts: DrawCounts,
    state: Codes,
    is_set: Mask,
    uniform: float,
    marginal: Floats,
    score: Floats,
    members: Codes,
) -> None:
    """Draw the nodes of one block from all their joint classes."""
    n_classes = len(counts.of_class)
    n_members = len(members)
    for node in members:
        _add_node(nodes, counts, node, state[node], -1.0)
        is_set[node] = False
    n_joint = n_classes**n_members
    _score_joint(nodes, couplings, counts, state, is_set, members, score[:n_joint])
    total = _to_chances(score[:n_joint])
    drawn = _pick(score[:n_joint], uniform * total)
    _add_marginals(score[:n_joint], total, members, marginal)
    for at in range(n_members):
        node = members[n_members - 1 - at]
        k = drawn % n_classes
        drawn //= n_classes
        _add_node(nodes, counts, node, k, 1.0)
        state[node] = k
        is_set[node] = True


@kernel
def _draw_one(
    nodes: DrawNodes,
    couplings: Couplings,
    counts: DrawCounts,
    state: Codes,
    is_set: Mask,
    uniform: float,
    marginal: Floats,
    score: Floats,
    node: int,
) -> None:
    n_classes = len(counts.of_class)
    _add_node(nodes, counts, node, state[node], -1.0)
    of_node = score[:n_classes]
    for k in range(n_classes):
        of_node[k] = _score_node(nodes, counts, node, k)
        of_node[k] += _coupled(couplings, state, is_set, node, k)
    total = _to_chances(of_node)
    drawn = _pick(of_node, uniform * total)
    for k in range(n_classes):
        marginal[node, k] += of_node[k] / total
    _add_node(nodes, counts, node, drawn, 1.0)
    state[node] = drawn


@kernel
def _score_node(nodes: DrawNodes, counts: DrawCounts, node: int, k: int) -> float:
    n_labels = len(counts.of_code) // len(counts.of_worker)
    in_turn = nodes.in_turn[node]
    total = 0.0
    for at in range(nodes.start[node], nodes.start[node + 1]):
        state = k ^ nodes.flip[at]
        total += _log_item(counts, nodes.code[at], state, nodes.weight[at], n_labels)
        if in_turn:
            _add_item(nodes, counts, at, state, 1.0)
    if in_turn:
        _add_node(nodes, counts, node, k, -1.0)
    return total


@kernel
def _log_item(counts: DrawCounts, code: int, state: int, weight: float, n_labels: int) -> float:
    if code == PRIOR:
        return _log_rise(counts.of_class[state], weight)
    of_worker = counts.of_worker[code // n_labels, state]
    return _log_rise(counts.of_code[code, state], weight) - _log_rise(of_worker, weight)


@kernel
def _log_rise(count: float, weight: float) -> float:
    if weight == 1.0:
        return math.log(count)
    return math.lgamma(count + weight) - math.lgamma(count)


@kernel
def _coupled(couplings: Couplings, state: Codes, is_set: Mask, node: int, k: int) -> float:
    total = 0.0
    for at in range(couplings.start[node], couplings.start[node + 1]):
        other = couplings.other[at]
        if is_set[other] and state[other] == k:
            total += couplings.log_odds[at]
    return total


@kernel
def _score_joint(
    nodes: DrawNodes,
    couplings: Couplings,
    counts: DrawCounts,
    state: Codes,
    is_set: Mask,
    members: Codes,
    score: Floats,
) -> None:
    """Set the score of all joint classes; the first member's class is the highest digit."""
    n_classes = len(counts.of_class)
    n_members = len(members)
    begun = np.zeros(n_members + 1)  # the score of the members so far
    index = np.zeros(n_members + 1, dtype=np.int64)
    choice = np.full(n_members, -1)
    score[:] = -np.inf
    depth = 0
    while depth >= 0:
        node = members[depth]
        if is_set[node]:
            _add_node(nodes, counts, node, choice[depth], -1.0)
            is_set[node] = False
        choice[depth] += 1
        k = choice[depth]
        if k == n_classes:
            choice[depth] = -1
            depth -= 1
            continue
        here = begun[depth] + _coupled(couplings, state, is_set, node, k)
        if here == -np.inf:
            continue
        here += _score_node(nodes, counts, node, k)
        place = index[depth] * n_classes + k
        if depth == n_members - 1:
            score[place] = here
            continue
        _add_node(nodes, counts, node, k, 1.0)
        state[node] = k
        is_set[node] = True
        depth += 1
        begun[depth] = here
        index[depth] = place


@kernel
def _add_marginals(chance: Floats, total: float, members: Codes, marginal: Floats) -> None:
    n_classes = marginal.shape[1]
    for joint in range(len(chance)):
        rest = joint
        share = chance[joint] / total
        for at in range(len(members)):
            marginal[members[len(members) - 1 - at], rest % n_classes] += share
            rest //= n_classes


@kernel
def _to_chances(score: Floats) -> float:
    """Exponentiate scores in place, the largest as 1; return their sum."""
    largest = score.max()
    total = 0.0
    for e in range(len(score)):
        score[e] = math.exp(score[e] - largest)
        total += score[e]
    return total


@kernel
def _pick(chance: Floats, wanted: float) -> int:
    """Return the first place at which the running sum exceeds what is wanted."""
    total = 0.0
    last = 0
    for e in range(len(chance)):
        if chance[e] > 0.0:
            total += chance[e]
            last = e
            if total > wanted:
                return e
    return last


@kernel
def _add_node(nodes: DrawNodes, counts: DrawCounts, node: int, k: int, sign: float) -> None:
    for at in range(nodes.start[node], nodes.start[node + 1]):
        _add_item(nodes, counts, at, k ^ nodes.flip[at], sign)


@kernel
def _add_item(nodes: DrawNodes, counts: DrawCounts, at: int, state: int, sign: float) -> None:
    n_labels = len(counts.of_code) // len(counts.of_worker)
    code = nodes.code[at]
    weight = sign * nodes.weight[at]
    if code == PRIOR:
        counts.of_class[state] += weight
    else:
        counts.of_code[code, state] += weight
        counts.of_worker[code // n_labels, state] += weight
