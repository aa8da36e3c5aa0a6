"""How a network of nodes lies for belief propagation: merged tasks are nodes, links are edges.

Nodes are numbered in the order of visits: by kind of component, then by component, then breadth
first. In a component without loops every node but the first then has exactly one earlier
neighbour, so that one pass of messages up and one down are exact. The same holds depth first, which
is how huge networks are visited: most neighbours lie close to each other in memory then.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tiebreak.kernels.layout import MAX_CHUNKS, Codes, Floats, Mask, Offsets

SMALLEST_MESSAGE = 1e-150  # passed in parts, where the largest is 1
LOWEST_LOG_MESSAGE = -1e8  # of others, where the largest is 0: round loops they run away
TREE_NODES_PER_CHUNK = 5_000
HUGE_NODES = 100_000  # of components with loops: messages are then passed in parts
PARTS = 16


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


class Parts(NamedTuple):
    """Huge components cut into parts, and the messages between parts.

    The message that slot e sends goes to target_slot[e]: a slot of the same part, or −1 − t: it
    waits as outbox[t] until the pass is over, and then goes to slot down[t] or up[t]. With parts
    {0, 1} and {2} of the chain above, slot 2 sends down to slot 3 and slot 3 up to slot 2:

        target_slot = [1, 0, −1, −1]      down = [3]      up = [2]
    """

    edges: Offsets  # (n_parts + 1,) where parts begin: their nodes follow each other
    target_slot: Codes  # (2 · n_edges,)
    down: Codes  # slots that receive from other parts when messages go down, sorted
    up: Codes
    outbox: Floats  # (max(len(down), len(up)), n_classes)


class Forest(NamedTuple):
    """Small trees of nodes, for devices on which each tree is one thread's work.

    The trees 0 – 1 – 2 and 7 – 8 of visits, each from its first visit on:

        visit    0  1  2 | 7  8        first = [0, 3, 5]
        parent   0  0  1 | 3  3        places here; the first of a tree is its own
    """

    first: Offsets  # (n_trees + 1,) places where trees begin
    visit: Codes  # (n_places,)
    parent: Codes  # (n_places,) the place of the one earlier neighbour


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


def small_trees(
    network: Network, n_forest: int, largest: int
) -> tuple[Forest, list[tuple[int, int]]]:
    """Return the trees of at most `largest` nodes, and the spans of visits of the others.

    >>> two_paths = network(5, np.array([0, 1, 3], np.int32), np.array([1, 2, 4], np.int32))
    >>> forest, others = small_trees(two_paths, 5, 2)
    >>> forest.visit.tolist(), forest.parent.tolist(), forest.first.tolist(), others
    ([3, 4], [0, 0], [0, 2], [(0, 3)])
    """
    earlier = _earlier(network, n_forest)
    visits = np.arange(n_forest)
    first = np.append(visits[earlier == visits], n_forest)
    size = np.diff(first)
    is_small = size <= largest
    chosen = np.flatnonzero(np.repeat(is_small, size))
    place = np.zeros(n_forest, dtype=np.int32)
    place[chosen] = np.arange(len(chosen))
    begin = np.concatenate([[0], np.cumsum(size[is_small])])
    forest = Forest(begin, chosen.astype(np.int32), place[earlier[chosen]])
    others = zip(first[:-1][~is_small].tolist(), first[1:][~is_small].tolist(), strict=True)
    return forest, list(others)


def _earlier(network: Network, n_forest: int) -> Offsets:
    """Return the earlier neighbour of each visit without loops; a tree's first has itself.

    The slots of a node are sorted by neighbour, so that the first one shows it.
    """
    start = network.start[: n_forest + 1]
    earlier = np.arange(n_forest)
    with_slots = np.flatnonzero(np.diff(start))
    earlier[with_slots] = np.minimum(network.other[start[with_slots]], with_slots)
    return earlier


def parts(network: Network, first_visit: int, n_classes: int) -> Parts:
    """Cut the visits from `first_visit` on into parts that threads pass messages in.

    A message within a part goes straight to its slot at the other end. One to another part is
    kept back until the pass is over. In the chain of `Network`, cut into visits {0} and {1, 2},
    slot 0 sends down to the other part and slot 1 up. Both messages are kept back as number 0,
    which is written −1 − 0: the targets of slots are [−1, −1, 3, 2]. When the pass is over, number
    0 is delivered at slot 1 where messages went down, at slot 0 where they went up.
    """
    edges = np.linspace(first_visit, network.n_nodes, PARTS + 1).astype(np.int64)
    slots = np.arange(network.start[first_visit], network.start[-1])
    last_slots = network.start[edges[1:]]
    from_part = np.searchsorted(last_slots, slots, side="right")
    to_part = np.searchsorted(last_slots, network.mate[slots], side="right")
    target = network.mate.astype(np.int32)

    def keep_back(crosses: Mask) -> Codes:
        mates = network.mate[slots[crosses]]
        delivered = np.sort(mates)
        target[slots[crosses]] = -1 - np.searchsorted(delivered, mates)
        return delivered.astype(np.int32)

    down = keep_back(to_part > from_part)
    up = keep_back(to_part < from_part)
    kept_back = np.empty((max(len(down), len(up)), n_classes))
    return Parts(edges, target, down, up, kept_back)
