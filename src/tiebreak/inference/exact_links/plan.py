"""Planning: how each component of linked nodes is settled.

A component without loops takes one pass of messages up and down; a small loopy one is summed out
node by node; a large loopy one takes damped sum-product, approximately.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak import link_graph
from tiebreak.inference.exact_links.elimination_order import (
    Clique,
    Edges,
    cliques_of,
    elimination_order,
    worth_a_try,
)
from tiebreak.inference.exact_links.merge import OPEN, Merged, SoftLinks
from tiebreak.inference.exact_links.network_layout import (
    FOREST,
    LARGE,
    SMALL,
    network,
    visiting_order,
)
from tiebreak.kernels.layout import Codes
from tiebreak.kernels.network import Cliques, Network

Kinds = npt.NDArray[np.int8]
Orders = list[tuple[list[Clique], Edges]]


class LinkReport(NamedTuple):
    """How linked tasks were settled, in components of each kind."""

    merged: int  # one node alone: hard links made its tasks one; exact
    forest: int  # no loop: exact
    small: int  # loops, but few enough to sum out: exact
    large: int  # many loops: approximate, by damped sum-product
    by_mean_field: bool = False  # messages in large components never settled: mean field instead

    @property
    def exact(self) -> int:
        """How many components were settled exactly."""
        return self.merged + self.forest + self.small

    @property
    def approximate(self) -> int:
        """How many components were settled approximately."""
        return self.large


class Plan(NamedTuple):
    """The open nodes that links tie to others, numbered by visits, and how each is settled."""

    visit: Codes  # (n_nodes of Merged,) number of each such node, or OPEN
    n_free: int  # open nodes that no link ties to others: settled alone
    network: Network
    left: Codes  # ends of each edge
    right: Codes
    cliques: Cliques
    n_forest: int  # nodes 0 … n_forest − 1 are in components without loops
    n_exact: int  # nodes up to n_exact − 1 are in components settled exactly
    report: LinkReport


def plan(merged: Merged, soft: SoftLinks, n_classes: int) -> Plan:
    """Number the tied open nodes and choose how to settle each component."""
    a, b = np.concatenate([merged.left, soft.a]), np.concatenate([merged.right, soft.b])
    is_open, is_tied = merged.node_class == OPEN, np.zeros(merged.n_nodes, dtype=bool)
    is_tied[a] = is_tied[b] = True
    nodes = np.flatnonzero(is_open & is_tied).astype(np.int32)
    n_free = int(is_open.sum()) - len(nodes)
    number = np.full(merged.n_nodes, OPEN, dtype=np.int32)
    number[nodes] = np.arange(len(nodes), dtype=np.int32)
    a, b = number[a], number[b]
    between = (a != OPEN) & (b != OPEN) & (a != b)
    pairs = link_graph.each_once(link_graph.pair_keys(a[between], b[between], len(nodes)))
    left, right = (end.astype(np.int32) for end in np.divmod(pairs, max(len(nodes), 1)))
    component = link_graph.components(len(nodes), left, right)
    kind, orders, report = _kinds(component, left, right, n_classes)
    order = visiting_order(len(nodes), left, right, component, kind)
    rank = np.empty(len(nodes), dtype=np.int32)
    rank[order] = np.arange(len(nodes), dtype=np.int32)
    visit = np.full(merged.n_nodes, OPEN, dtype=np.int32)
    visit[nodes] = rank
    counts = np.bincount(kind[component], minlength=3)
    return Plan(
        visit,
        n_free,
        network(len(nodes), rank[left], rank[right]),
        rank[left],
        rank[right],
        _renumbered(orders, rank, n_classes),
        int(counts[FOREST]),
        int(counts[FOREST] + counts[SMALL]),
        report._replace(merged=report.merged + n_free),
    )


def _kinds(
    component: Codes, left: Codes, right: Codes, n_classes: int
) -> tuple[Kinds, Orders, LinkReport]:
    """Say how each component is settled, with the order of elimination of small loopy ones."""
    n_nodes = np.bincount(component)
    n_edges = np.bincount(component[left], minlength=len(n_nodes))
    kind = np.where(n_edges >= n_nodes, LARGE, FOREST).astype(np.int8)
    orders: Orders = []
    loopy = np.flatnonzero((kind == LARGE) & worth_a_try(n_nodes, n_edges, n_classes))
    by_component = np.argsort(component[left], kind="stable")
    first = np.searchsorted(component[left], np.arange(len(n_nodes) + 1), sorter=by_component)
    for c in loopy.tolist():
        places = by_component[first[c] : first[c + 1]].tolist()
        edges = {(int(left[e]), int(right[e])): e for e in places}
        order = elimination_order(edges, n_classes)
        if order is not None:
            kind[c] = SMALL
            orders.append((order, edges))
    report = LinkReport(
        merged=int((n_nodes == 1).sum()),
        forest=int(((kind == FOREST) & (n_nodes > 1)).sum()),
        small=int((kind == SMALL).sum()),
        large=int((kind == LARGE).sum()),
    )
    return kind, orders, report


def _renumbered(orders: Orders, rank: Codes, n_classes: int) -> Cliques:
    cliques = cliques_of(orders, n_classes)
    return cliques._replace(node=rank[cliques.node], rest=rank[cliques.rest])
