"""How a network of nodes lies for belief propagation: merged tasks are nodes, links are edges.

Nodes are numbered in the order of visits: by kind of component, then by component, then breadth
first. In a component without loops every node but the first then has exactly one earlier
neighbour, so that one pass of messages up and one down are exact.

A message lies as it is made: probabilities, the largest of them 1. One below `SMALLEST_MESSAGE`
lies as its logarithm instead, a negative number, so that nothing is lost to underflow.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tiebreak.kernels.layout import MAX_CHUNKS, Codes, Offsets

SMALLEST_MESSAGE = 1e-150  # kept as a probability, where the largest is 1
LOWEST_LOG_MESSAGE = -1e8  # of smaller ones: round loops they run away
TREE_NODES_PER_CHUNK = 5_000


class Network(NamedTuple):
    """Nodes and the edges between them, each edge from both ends.

    Slot e of node i (start[i] ≤ e < start[i + 1]) leads to other[e]; the same edge seen from
    there is slot mate[e]; edge[e] numbers it. The message from other[e] to i is kept at slot e.

    A chain 0 – 1 – 2 with edges 0 and 1 has four slots, two of them those of node 1, sorted by
    node, then by neighbour:

        slot       0 | 1  2 | 3
        node       0 | 1  1 | 2      start = [0, 1, 3, 4]
        other      1 | 0  2 | 1      later = [0, 2, 4]
        mate       1 | 0  3 | 2
        edge       0 | 0  1 | 1
    """

    start: Offsets  # (n_nodes + 1,)
    later: Offsets  # (n_nodes,) the first slot of each node that leads to a later one
    other: Codes  # (2 · n_edges,), sorted by slot of each node
    mate: Offsets  # (2 · n_edges,)
    edge: Codes  # (2 · n_edges,)

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.start) - 1


class Cliques(NamedTuple):
    """The order in which the nodes of small loopy components are summed out.

    Clique c sums out node[c], given the `width[c]` later nodes that it is tied to. An entry of its
    table is numbered Σ_j digit_j K^j: digit 0 is the class of node[c], the others those of the
    nodes in `rest`. Its message, a table over `rest`, goes to clique parent[c] (-1: none), whose
    digits place[rest_start[c]:rest_start[c + 1]] are the same nodes.
    """

    node: Codes  # (n_cliques,)
    parent: Codes  # (n_cliques,), a later clique
    rest_start: Offsets  # (n_cliques + 1,)
    rest: Codes  # nodes of each clique besides its own
    place: Codes  # the digit of each of them in the parent clique
    edge_start: Offsets  # (n_cliques + 1,)
    edge: Codes  # edges between node[c] and one of its rest
    edge_digit: Codes  # the digit of the other end
    table_start: Offsets  # (n_cliques + 1,) sums of K^(width + 1)
    message_start: Offsets  # (n_cliques + 1,) sums of K^width


_NOBODY = np.empty(0, dtype=np.int32)
_NO_START = np.zeros(1, dtype=np.int64)
NO_CLIQUES = Cliques(  # where no component has a loop
    node=_NOBODY,
    parent=_NOBODY,
    rest_start=_NO_START,
    rest=_NOBODY,
    place=_NOBODY,
    edge_start=_NO_START,
    edge=_NOBODY,
    edge_digit=_NOBODY,
    table_start=_NO_START,
    message_start=_NO_START,
)


def network(n_nodes: int, left: Codes, right: Codes) -> Network:
    """Lay out edges (left[e], right[e]) between nodes that are already numbered by visits.

    >>> path = network(3, np.array([0, 1], np.int32), np.array([1, 2], np.int32))
    >>> path.other.tolist(), path.mate.tolist(), path.edge.tolist()
    ([1, 0, 2, 1], [1, 0, 3, 2], [0, 0, 1, 1])
    >>> path.start.tolist(), path.later.tolist()
    ([0, 1, 3, 4], [0, 2, 4])
    """
    n_edges = len(left)
    ends = np.concatenate([left, right])
    others = np.concatenate([right, left])
    # A half edge h < n_edges is edge h seen from its left end, h + n_edges from its right end.
    half_of_slot = np.argsort(ends * np.int64(n_nodes) + others)  # no two are equal
    start = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=n_nodes), out=start[1:])
    slot_of_half = np.empty(2 * n_edges, dtype=np.int64)
    slot_of_half[half_of_slot] = np.arange(2 * n_edges)
    mate_half = (half_of_slot + n_edges) % max(2 * n_edges, 1)
    n_earlier = np.bincount(np.maximum(left, right), minlength=n_nodes)
    return Network(
        start,
        start[:-1] + n_earlier,
        others[half_of_slot].astype(np.int32),
        slot_of_half[mate_half],
        (half_of_slot % max(n_edges, 1)).astype(np.int32),
    )


def tree_spans(network: Network, n_forest: int) -> list[tuple[int, int]]:
    """Cut the visits without loops, 0 … n_forest − 1, between components."""
    n_spans = max(1, min(MAX_CHUNKS, n_forest // TREE_NODES_PER_CHUNK))
    visits = np.arange(n_forest)
    first_visits = np.append(visits[_earlier(network, n_forest) == visits], n_forest)
    wanted = np.linspace(0, n_forest, n_spans + 1).astype(np.int64)
    cuts = first_visits[np.searchsorted(first_visits, wanted)].tolist()
    return [(low, high) for low, high in pairwise(cuts) if low < high]


def _earlier(network: Network, n_forest: int) -> Offsets:
    """Return the earlier neighbour of each visit without loops; a tree's first has itself.

    The slots of a node are sorted by neighbour, so that the first one shows it.
    """
    start = network.start[: n_forest + 1]
    earlier = np.arange(n_forest)
    with_slots = np.flatnonzero(np.diff(start))
    earlier[with_slots] = np.minimum(network.other[start[with_slots]], with_slots)
    return earlier
