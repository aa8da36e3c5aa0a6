"""Network layout: when nodes are visited, and how huge networks are cut into parts.

Host-side planning for belief propagation (`kernels/network.py`): arrays in, arrays out.

Take the path 0 – 2 – 1 of nodes. Breadth first from node 0, they are visited as 0, 2, 1: node 1
has visit 2, node 2 has visit 1, and the edges join visits 0 – 1 and 1 – 2. Each edge has a slot at
both of its ends; slots are sorted by visit, then by neighbour:

    visit   0 | 1     | 2
    slot    0 | 1  2  | 3
    other   1 | 0  2  | 1       the visit at the other end
    mate    1 | 0  3  | 2       the slot of the same edge at the other end
    edge    0 | 0  1  | 1
    start   0, 1, 3, 4          where the slots of each visit begin
    later   0, 2, 4             the first slot of each visit that leads to a later one
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tiebreak.inference.exact_links.numbers import TiedCodes, VisitCodes
from tiebreak.kernels.layout import MAX_CHUNKS, Codes, Mask, Offsets
from tiebreak.kernels.network import Forest, Network, Parts

TREE_NODES_PER_CHUNK = 5_000
HUGE_NODES = 100_000  # of components with loops: messages are then passed in parts
PARTS = 16

# How a component is inferred; visits are sorted by it.
Kinds = npt.NDArray[np.int8]
FOREST = 0
SMALL = 1
LARGE = 2


def visiting_order(
    n_tied: int, left: TiedCodes, right: TiedCodes, component: Codes, kind: Kinds
) -> VisitCodes:
    """Return the visit of each tied node; kind[c] says how component c is inferred.

    Nodes are visited by kind of component, then by component, then breadth first, or depth first
    where a component is huge (`kernels/network.py` says why).
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, depth_first_order

    # One more node, tied to the first node of each component, lets one search reach them all.
    _, first = np.unique(component, return_index=True)
    rows = np.concatenate([left, np.full(len(first), n_tied)])
    columns = np.concatenate([right, first])
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_tied + 1, n_tied + 1))
    is_huge = (np.bincount(component)[kind == LARGE] >= HUGE_NODES).any()
    search = depth_first_order if is_huge else breadth_first_order
    found = search(graph, n_tied, directed=False, return_predecessors=False)
    turn = np.empty(n_tied + 1, dtype=np.int64)
    turn[found] = np.arange(n_tied + 1)
    by_visit = np.lexsort((turn[:n_tied], component, kind[component]))
    visit = np.empty(n_tied, dtype=np.int32)
    visit[by_visit] = np.arange(n_tied, dtype=np.int32)
    return VisitCodes(visit)


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
    kept back until the pass is over. In the path above, cut into visits {0} and {1, 2}, slot 0
    sends down to the other part and slot 1 up. Both messages are kept back as number 0, which is
    written −1 − 0: the targets of slots are [−1, −1, 3, 2]. When the pass is over, number 0 is
    delivered at slot 1 where messages went down, at slot 0 where they went up.
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
