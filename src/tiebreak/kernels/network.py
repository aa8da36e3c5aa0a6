"""How a network of nodes lies: tasks that must agree are one node, links are edges.

Nodes are numbered in the order of visits: by kind of component, then by component, then breadth
first. In a component without loops every node but the first then has exactly one earlier
neighbour, so that one pass up and one pass down settle it exactly. So it has depth first, which is
how huge networks are visited: most neighbours lie close to each other in memory then.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import MAX_CHUNKS, Codes, Floats, Mask, Offsets

TREE_NODES_PER_CHUNK = 5_000
HUGE_NODES = 100_000  # of components with loops: messages are then passed in parts
PARTS = 16
SMALLEST = 1e-150  # of a message passed in parts, where the largest is 1
LOWEST = -1e8  # of the logs of other messages, where the largest is 0: round loops they run away

FOREST, SMALL, LARGE = 0, 1, 2  # how a component is settled


class Network(NamedTuple):
    """Nodes and the edges between them, each edge from both ends.

    Slot e of node i (start[i] ≤ e < start[i + 1]) leads to other[e]; the same edge seen from
    there is slot mate[e]; edge[e] numbers it. What other[e] tells i is kept at slot e.
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


class Parts(NamedTuple):
    """Huge components cut into parts, and what parts tell each other.

    hear[e] says where the message that slot e sends is heard: a slot in the same part, or −1 − t:
    it is kept as told[t] until the pass is over, and then heard at slot down[t] or up[t].
    """

    edges: Offsets  # (n_parts + 1,) where parts begin: their nodes follow each other
    hear: Codes  # (2 · n_edges,)
    down: Codes  # slots that hear of other parts when messages go down, sorted
    up: Codes
    told: Floats  # (n_kept, n_classes)


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


def tree_spans(network: Network, n_forest: int) -> list[tuple[int, int]]:
    """Cut the nodes without loops, 0 … n_forest − 1, between components.

    A component begins at a node without an earlier neighbour. The slots of a node are sorted by
    neighbour, so that its first one tells.
    """
    n_spans = max(1, min(MAX_CHUNKS, n_forest // TREE_NODES_PER_CHUNK))
    start = network.start[: n_forest + 1]
    tied = np.flatnonzero(np.diff(start))
    is_first = np.ones(n_forest, dtype=bool)
    is_first[tied] = network.other[start[tied]] > tied
    first = np.append(np.flatnonzero(is_first), n_forest)
    wanted = np.linspace(0, n_forest, n_spans + 1).astype(np.int64)
    cuts = first[np.searchsorted(first, wanted)].tolist()
    return [(low, high) for low, high in pairwise(cuts) if low < high]


def network(n_nodes: int, left: Codes, right: Codes) -> Network:
    """Lay out edges (left[e], right[e]) between nodes that are already numbered by visits."""
    n_edges = len(left)
    ends, others = np.concatenate([left, right]), np.concatenate([right, left])
    order = np.argsort(ends * np.int64(n_nodes) + others)  # no two are equal
    start = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=n_nodes), out=start[1:])
    slot_of = np.empty(2 * n_edges, dtype=np.int64)
    slot_of[order] = np.arange(2 * n_edges)
    opposite = (order + n_edges) % (2 * n_edges) if n_edges else order
    return Network(
        start,
        start[:-1] + np.bincount(np.maximum(left, right), minlength=n_nodes),
        others[order].astype(np.int32),
        slot_of[opposite],
        (order % n_edges if n_edges else order).astype(np.int32),
    )


def parts(network: Network, first: int, n_classes: int) -> Parts:
    """Cut the nodes from `first` on into parts."""
    edges = np.linspace(first, network.n_nodes, PARTS + 1).astype(np.int64)
    slots = np.arange(network.start[first], network.start[-1])
    ends = network.start[edges[1:]]
    part, to = (np.searchsorted(ends, at, side="right") for at in (slots, network.mate[slots]))
    hear = network.mate.astype(np.int32)

    def keep(told: Mask) -> Codes:
        heard = np.sort(network.mate[slots[told]])
        hear[slots[told]] = -1 - np.searchsorted(heard, network.mate[slots[told]])
        return heard.astype(np.int32)

    down, up = keep(to > part), keep(to < part)
    return Parts(edges, hear, down, up, np.empty((max(len(down), len(up)), n_classes)))


def visiting_order(
    n_nodes: int, left: Codes, right: Codes, component: Codes, kind: npt.NDArray[np.int8]
) -> Codes:
    """Return nodes in the order of visits; kind[c] says how component c is settled."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, depth_first_order

    # One more node, tied to the first node of each component, lets one search visit them all.
    _, first = np.unique(component, return_index=True)
    rows = np.concatenate([left, np.full(len(first), n_nodes)])
    columns = np.concatenate([right, first])
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_nodes + 1, n_nodes + 1))
    is_huge = (np.bincount(component)[kind == LARGE] >= HUGE_NODES).any()
    search = depth_first_order if is_huge else breadth_first_order
    visited = search(graph, n_nodes, directed=False, return_predecessors=False)
    rank = np.empty(n_nodes + 1, dtype=np.int64)
    rank[visited] = np.arange(n_nodes + 1)
    return np.lexsort((rank[:n_nodes], component, kind[component])).astype(np.int32)


def no_cliques() -> Cliques:
    """Return an empty elimination order."""
    none, zero = np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    return Cliques(none, none, zero, none, none, zero, none, none, zero, zero)
