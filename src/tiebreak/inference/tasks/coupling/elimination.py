"""Elimination order by min-fill: in which order to sum out the nodes of a small loopy component.

Summing out a node makes one table over the node and its remaining neighbours (a clique), and ties
those neighbours to each other. Min-fill takes next the node that adds the fewest such ties.

A square 0 – 1 – 2 – 3 – 0: node 0 goes first, with the clique {0, 1, 3}, and ties 1 to 3. Then 1
goes with {1, 2, 3}, 2 with {2, 3}, and 3 alone. Tables have K³, K³, K² and K entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, combinations

import numpy as np

from tiebreak.kernels.layout import Codes, Mask, Offsets
from tiebreak.kernels.network import Cliques

LARGEST_TABLE = 10_000  # entries of one clique, K^(width + 1)
LARGEST_COMPONENT = 20_000  # entries of all cliques of a component: some milliseconds per sweep
LARGEST_CORE = 150  # nodes with three neighbours or more that are worth a search
MOST_LOOPS = 2_000  # independent loops of a component that is worth a look
NO_PARENT = -1  # of a clique whose node is the last of its component

Edges = dict[tuple[int, int], int]  # ends, the smaller first, to the number of the edge
Clique = tuple[int, list[int]]  # a node and the later nodes it is tied to
Orders = list[tuple[list[Clique], Edges]]  # of each component


def worth_a_try(n_nodes: Offsets, n_edges: Offsets, n_classes: int) -> Mask:
    """Say which components, by their sizes alone, might be summed out cheaply."""
    return (n_nodes * n_classes**2 <= LARGEST_COMPONENT) & (n_edges - n_nodes < MOST_LOOPS)


def elimination_order(edges: Edges, n_classes: int) -> list[Clique] | None:
    """Return a good order to sum out the nodes of one component, or None where none is cheap.

    Nodes with at most two neighbours go first, which is never worse; the rest go by min-fill.

    >>> elimination_order({(0, 1): 0, (1, 2): 1, (2, 3): 2, (0, 3): 3}, 3)
    [(0, [1, 3]), (1, [2, 3]), (2, [3]), (3, [])]
    """
    neighbours = _neighbours(edges)
    order: list[Clique] = []
    n_entries = 0
    searched = False
    light = sorted((v for v in neighbours if len(neighbours[v]) <= 2), reverse=True)
    while neighbours:
        if light:
            node = light.pop()
        elif not searched and len(neighbours) > LARGEST_CORE:
            return None
        else:
            searched = True
            node = min(neighbours, key=lambda v: (_fill(neighbours, v), len(neighbours[v]), v))
        if node not in neighbours:
            continue
        later = sorted(neighbours[node])
        table_size = n_classes ** (len(later) + 1)
        n_entries += table_size
        if table_size > LARGEST_TABLE or n_entries > LARGEST_COMPONENT:
            return None
        order.append((node, later))
        _sum_out(neighbours, node)
        light.extend(v for v in reversed(later) if len(neighbours[v]) <= 2)
    return order


def cliques_of(orders: Orders, n_classes: int) -> Cliques:
    """Lay out the cliques of several components for the kernels.

    The message of a clique goes to the clique that sums out the next of its nodes: in the square
    above, that of {0, 1, 3} over (1, 3) goes to {1, 2, 3}, where 1 is digit 0 and 3 is digit 2.

    >>> edges = {(0, 1): 0, (1, 2): 1, (2, 3): 2, (0, 3): 3}
    >>> cliques = cliques_of([(elimination_order(edges, 3), edges)], 3)
    >>> cliques.parent.tolist(), cliques.rest.tolist(), cliques.place.tolist()
    ([1, 2, 3, -1], [1, 3, 2, 3, 3], [0, 2, 0, 1, 0])
    >>> cliques.edge.tolist(), cliques.edge_start.tolist()  # 1 – 3 is a tie, not an edge
    ([0, 3, 1, 2], [0, 2, 3, 4, 4])
    """
    node: list[int] = []
    parent: list[int] = []
    rest: list[list[int]] = []
    place: list[list[int]] = []
    inside: list[list[int]] = []  # edges between the node and the rest, and the digits of these
    digit: list[list[int]] = []
    for order, edges in orders:
        number_of = {each: len(node) + turn for turn, (each, _) in enumerate(order)}
        later_of = dict(order)
        for each, later in order:
            node.append(each)
            rest.append(later)
            heir = min(later, key=number_of.__getitem__) if later else NO_PARENT
            parent.append(number_of.get(heir, NO_PARENT))
            above = [heir, *later_of.get(heir, [])]
            place.append([above.index(other) for other in later])
            pairs = [(min(each, other), max(each, other)) for other in later]
            inside.append([edges[pair] for pair in pairs if pair in edges])
            digit.append([d for d, pair in enumerate(pairs, start=1) if pair in edges])
    width = np.array([len(later) for later in rest], dtype=np.int64)
    return Cliques(
        np.array(node, dtype=np.int32),
        np.array(parent, dtype=np.int32),
        _starts(width),
        _end_to_end(rest),
        _end_to_end(place),
        _starts(np.array([len(each) for each in inside], dtype=np.int64)),
        _end_to_end(inside),
        _end_to_end(digit),
        _starts(n_classes ** (width + 1)),
        _starts(n_classes**width),
    )


def _end_to_end(lists: Iterable[list[int]]) -> Codes:
    return np.fromiter(chain.from_iterable(lists), dtype=np.int32)


def _neighbours(edges: Edges) -> dict[int, set[int]]:
    neighbours: dict[int, set[int]] = {}
    for left, right in edges:
        neighbours.setdefault(left, set()).add(right)
        neighbours.setdefault(right, set()).add(left)
    return neighbours


def _fill(neighbours: dict[int, set[int]], node: int) -> int:
    """Return how many pairs of a node's neighbours are not yet tied."""
    pairs = combinations(neighbours[node], 2)
    return sum(right not in neighbours[left] for left, right in pairs)


def _sum_out(neighbours: dict[int, set[int]], node: int) -> None:
    """Remove a node and tie its neighbours to each other."""
    around = neighbours.pop(node)
    for v in around:
        neighbours[v].discard(node)
    for left, right in combinations(around, 2):
        neighbours[left].add(right)
        neighbours[right].add(left)


def _starts(sizes: Offsets) -> Offsets:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
