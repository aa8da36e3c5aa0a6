"""Network layout: nodes in the order of visits, and how huge networks are cut into parts.

Host-side planning for the kernels of `kernels/network.py`: arrays in, arrays out.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import MAX_CHUNKS, Codes, Mask
from tiebreak.kernels.network import Network, Parts

TREE_NODES_PER_CHUNK = 5_000
HUGE_NODES = 100_000  # of components with loops: messages are then passed in parts
PARTS = 16
FOREST, SMALL, LARGE = 0, 1, 2  # how a component is settled


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
