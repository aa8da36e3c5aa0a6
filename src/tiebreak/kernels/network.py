"""How a network of nodes lies: tasks that must agree are one node, links are edges.

Nodes are numbered in the order of visits: by kind of component, then by component, then breadth
first. In a component without loops every node but the first then has exactly one earlier
neighbour, so that one pass up and one pass down settle it exactly.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import MAX_CHUNKS, Codes, Offsets

MEMBERS_PER_CHUNK = 20_000
TREE_NODES_PER_CHUNK = 5_000
HUGE_NODES = 100_000  # of components with loops: messages are then passed together
PARTS = 16
SMALLEST = 1e-150  # of a message passed together, where the largest is 1

FOREST, SMALL, LARGE = 0, 1, 2  # how a component is settled


class Network(NamedTuple):
    """Nodes and the edges between them, each edge from both ends.

    Slot e of node i (start[i] ≤ e < start[i + 1]) leads to other[e]; the same edge seen from
    there is slot mate[e]; edge[e] numbers it. What other[e] tells i is kept at slot e.
    """

    start: Offsets  # (n_nodes + 1,)
    other: Codes  # (2 · n_edges,)
    mate: Offsets  # (2 · n_edges,)
    edge: Codes  # (2 · n_edges,)

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.start) - 1


class Speakers(NamedTuple):
    """Who speaks in a pass: a message each, in the order of nodes."""

    slot: Offsets  # (n_messages,) where the hearer is, seen from who speaks
    node: Codes  # (n_messages,) who speaks


class Members(NamedTuple):
    """The tasks of each node, sorted by node and cut into chunks between nodes, or by task."""

    task: Codes  # (n_members,)
    node: Codes  # (n_members,)
    flip: Codes  # (n_members,) 1: the task has the other one of two classes
    edges: Offsets  # (n_chunks + 1,) where chunks of members begin
    n_nodes: int


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


def members(task: Codes, node: Codes, flip: Codes, n_nodes: int) -> Members:
    """Sort tasks by node; the number of chunks depends on the input alone."""
    order = np.argsort(node, kind="stable")
    n_chunks = max(1, min(MAX_CHUNKS, len(task) // MEMBERS_PER_CHUNK))
    first = np.linspace(0, n_nodes, n_chunks + 1).astype(np.int64)
    edges = np.searchsorted(node[order], first)
    return Members(task[order], node[order], flip[order], edges.astype(np.int64), n_nodes)


def in_task_order(members: Members) -> Members:
    """Return the same members sorted by task, so that what tasks are given goes side by side."""
    order = np.argsort(members.task, kind="stable")
    edges = np.linspace(0, len(order), len(members.edges)).astype(np.int64)
    columns = members.task[order], members.node[order], members.flip[order]
    return Members(*columns, edges, members.n_nodes)


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
    ends = np.concatenate([left, right])
    order = np.lexsort((np.concatenate([right, left]), ends))
    start = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=n_nodes), out=start[1:])
    slot_of = np.empty(2 * n_edges, dtype=np.int64)
    slot_of[order] = np.arange(2 * n_edges)
    opposite = (order + n_edges) % (2 * n_edges) if n_edges else order
    return Network(
        start,
        np.concatenate([right, left])[order].astype(np.int32),
        slot_of[opposite],
        (order % n_edges if n_edges else order).astype(np.int32),
    )


def speakers(network: Network, first: int, *, down: bool) -> Speakers:
    """Return who speaks to later nodes, or up, to earlier ones, from node `first` on.

    Slots are sorted by node, so that a later mate is that of a later node.
    """
    slots = np.arange(network.start[first], network.start[-1])
    slot = slots[(network.mate[slots] > slots) == down]
    owner = np.repeat(np.arange(network.n_nodes, dtype=np.int32), np.diff(network.start))
    return Speakers(slot, owner[slot])


def visiting_order(
    n_nodes: int, left: Codes, right: Codes, component: Codes, kind: npt.NDArray[np.int8]
) -> Codes:
    """Return nodes in the order of visits; kind[c] says how component c is settled."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    # One more node, tied to the first node of each component, lets one search visit them all.
    _, first = np.unique(component, return_index=True)
    rows = np.concatenate([left, np.full(len(first), n_nodes)])
    columns = np.concatenate([right, first])
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_nodes + 1, n_nodes + 1))
    visited = breadth_first_order(graph, n_nodes, directed=False, return_predecessors=False)
    rank = np.empty(n_nodes + 1, dtype=np.int64)
    rank[visited] = np.arange(n_nodes + 1)
    huge = (np.bincount(component) >= HUGE_NODES) & (kind == LARGE)
    as_numbered = huge[component]
    rank[:n_nodes][as_numbered] = np.flatnonzero(as_numbered)
    return np.lexsort((rank[:n_nodes], component, kind[component])).astype(np.int32)


def no_cliques() -> Cliques:
    """Return an empty elimination order."""
    none, zero = np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    return Cliques(none, none, zero, none, none, zero, none, none, zero, zero)
