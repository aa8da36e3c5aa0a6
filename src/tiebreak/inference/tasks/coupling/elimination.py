"""Elimination order by min-fill: in which order to sum out the nodes of a small loopy component.

Summing out a node makes one table over the node and its remaining neighbours (a clique), and ties
those neighbours to each other. Min-fill takes next the node that adds the fewest such ties.

A square 0 – 1 – 2 – 3 – 0: node 0 goes first, with the clique {0, 1, 3}, and ties 1 to 3. Then 1
goes with {1, 2, 3}, 2 with {2, 3}, and 3 alone. Tables have K³, K³, K² and K entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, combinations
from typing import NamedTuple

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
    rows: list[_Row] = []
    for order, edges in orders:
        rows += _rows_of(order, edges, len(rows))
    width = np.array([len(row.later) for row in rows], dtype=np.int64)
    n_edges = np.array([len(row.edge) for row in rows], dtype=np.int64)
    return Cliques(
        np.array([row.node for row in rows], dtype=np.int32),
        np.array([row.parent for row in rows], dtype=np.int32),
        _starts(width),
        _end_to_end(row.later for row in rows),
        _end_to_end(row.place for row in rows),
        _starts(n_edges),
        _end_to_end(row.edge for row in rows),
        _end_to_end(row.edge_digit for row in rows),
        _starts(n_classes ** (width + 1)),
        _starts(n_classes**width),
    )


class _Row(NamedTuple):
    """One clique: the fields of `Cliques`."""

    node: int
    parent: int
    later: list[int]
    place: list[int]
    edge: list[int]
    edge_digit: list[int]


def _rows_of(order: list[Clique], edges: Edges, first: int) -> list[_Row]:
    """Return the cliques of one component, which are numbered from `first` on."""
    number_of = {node: first + turn for turn, (node, _) in enumerate(order)}
    later_of = dict(order)
    rows: list[_Row] = []
    for node, later in order:
        parent = NO_PARENT
        place: list[int] = []
        if later:
            next_node = min(later, key=number_of.__getitem__)
            parent = number_of[next_node]
            parent_nodes = [next_node, *later_of[next_node]]
            place = [parent_nodes.index(other) for other in later]
        pairs = [(min(node, other), max(node, other)) for other in later]
        edge = [edges[pair] for pair in pairs if pair in edges]
        edge_digit = [digit for digit, pair in enumerate(pairs, start=1) if pair in edges]
        rows.append(_Row(node, parent, later, place, edge, edge_digit))
    return rows


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
