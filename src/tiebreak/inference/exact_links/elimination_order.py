"""Elimination: the order in which to sum out the nodes of a small loopy component."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from tiebreak.kernels.layout import Mask as Bools
from tiebreak.kernels.layout import Offsets as Ints
from tiebreak.kernels.network import Cliques

LARGEST_TABLE = 10_000  # entries of one clique, K^(width + 1)
LARGEST_COMPONENT = 20_000  # entries of all cliques of a component: some milliseconds a sweep
LARGEST_CORE = 150  # nodes with three neighbours or more that are worth a search
MOST_LOOPS = 2_000  # independent loops of a component that is worth a look

Edges = dict[tuple[int, int], int]  # ends, the smaller first, to the number of the edge
Clique = tuple[int, list[int]]  # a node and the later nodes it is tied to


def worth_a_try(n_nodes: Ints, n_edges: Ints, n_classes: int) -> Bools:
    """Say which components, by their sizes alone, might be summed out cheaply."""
    return (n_nodes * n_classes**2 <= LARGEST_COMPONENT) & (n_edges - n_nodes < MOST_LOOPS)


def elimination_order(edges: Edges, n_classes: int) -> list[Clique] | None:
    """Return a good order to sum out the nodes of one component, or None where none is cheap.

    Nodes with at most two neighbours go first, which is never worse; the rest go by least fill.

    >>> elimination_order({(0, 1): 0, (1, 2): 1, (0, 2): 2}, 3)
    [(0, [1, 2]), (1, [2]), (2, [])]
    """
    near = _neighbours(edges)
    order: list[Clique] = []
    entries = 0
    searched = False
    light = sorted((node for node in near if len(near[node]) <= 2), reverse=True)
    while near:
        if light:
            node = light.pop()
        elif not searched and len(near) > LARGEST_CORE:
            return None
        else:
            searched = True
            node = min(near, key=lambda v: (_fill(near, v), len(near[v]), v))
        if node not in near:
            continue
        rest = sorted(near[node])
        size = n_classes ** (len(rest) + 1)
        entries += size
        if size > LARGEST_TABLE or entries > LARGEST_COMPONENT:
            return None
        order.append((node, rest))
        _take_out(near, node)
        light.extend(v for v in reversed(rest) if len(near[v]) <= 2)
    return order


def cliques_of(orders: Iterable[tuple[list[Clique], Edges]], n_classes: int) -> Cliques:
    """Lay out the cliques of several components for the kernels."""
    node: list[int] = []
    parent: list[int] = []
    rest: list[int] = []
    place: list[int] = []
    edge: list[int] = []
    digit: list[int] = []
    widths: list[int] = []
    n_edges: list[int] = []
    for order, edges in orders:
        turn = {v: len(node) + at for at, (v, _) in enumerate(order)}
        tied = dict(order)
        for v, later in order:
            up = min((turn[x] for x in later), default=-1)
            node.append(v)
            parent.append(up)
            widths.append(len(later))
            rest += later
            if later:
                first = min(later, key=turn.__getitem__)
                digits = {x: at for at, x in enumerate([first, *tied[first]])}
                place += [digits[x] for x in later]
            real = [(at, (min(v, x), max(v, x))) for at, x in enumerate(later, start=1)]
            found = [(at, edges[pair]) for at, pair in real if pair in edges]
            digit += [at for at, _ in found]
            edge += [number for _, number in found]
            n_edges.append(len(found))
    width = np.array(widths, dtype=np.int64)
    return Cliques(
        np.array(node, dtype=np.int32),
        np.array(parent, dtype=np.int32),
        _starts(width),
        np.array(rest, dtype=np.int32),
        np.array(place, dtype=np.int32),
        _starts(np.array(n_edges, dtype=np.int64)),
        np.array(edge, dtype=np.int32),
        np.array(digit, dtype=np.int32),
        _starts(n_classes ** (width + 1)),
        _starts(n_classes**width),
    )


def _neighbours(edges: Edges) -> dict[int, set[int]]:
    near: dict[int, set[int]] = {}
    for a, b in edges:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    return near


def _fill(near: dict[int, set[int]], node: int) -> int:
    """Return how many pairs of a node's neighbours are not yet tied."""
    return sum(b not in near[a] for a, b in combinations(near[node], 2))


def _take_out(near: dict[int, set[int]], node: int) -> None:
    """Remove a node and tie its neighbours to each other."""
    around = near.pop(node)
    for v in around:
        near[v].discard(node)
    for a, b in combinations(around, 2):
        near[a].add(b)
        near[b].add(a)


def _starts(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
