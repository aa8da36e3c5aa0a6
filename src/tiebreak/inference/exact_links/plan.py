"""Planning: which algorithm infers each component of linked nodes.

- A component without loops: belief propagation, one pass of messages up and one down; exact.
- A small one with loops: variable elimination, node by node; exact.
- A large one with loops: damped loopy belief propagation; approximate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak import link_graph
from tiebreak.inference.exact_links.elimination_order import (
    Clique,
    Edges,
    cliques_of,
    elimination_order,
    worth_a_try,
)
from tiebreak.inference.exact_links.merge import OPEN, Merged
from tiebreak.inference.exact_links.network_layout import (
    FOREST,
    LARGE,
    SMALL,
    Kinds,
    network,
    visiting_order,
)
from tiebreak.inference.exact_links.numbers import NO_VISIT, NodeCodes, TiedCodes, VisitCodes
from tiebreak.kernels.layout import Codes, Mask
from tiebreak.kernels.network import Cliques, Network
from tiebreak.link_graph import LinkCodes

Orders = list[tuple[list[Clique], Edges]]


class LinkReport(NamedTuple):
    """How linked tasks were inferred: the number of components of each kind."""

    merged: int  # one node alone: hard links made its tasks one; exact
    forest: int  # no loop: exact
    small: int  # loops, but few enough to sum out: exact
    large: int  # many loops: approximate, by damped loopy belief propagation
    by_mean_field: bool = False  # messages in large components never converged: mean field instead

    @property
    def exact(self) -> int:
        """How many components were inferred exactly."""
        return self.merged + self.forest + self.small

    @property
    def approximate(self) -> int:
        """How many components were inferred approximately."""
        return self.large


class Plan(NamedTuple):
    """The open nodes that links tie to others, numbered by visits, and how each is inferred.

    Visits 0 … n_forest − 1 are in components without loops, those up to n_exact − 1 in components
    that are inferred exactly, the rest in large ones.
    """

    visit: VisitCodes  # (n_nodes of Merged,) of each node, or NO_VISIT
    n_free: int  # open nodes that no link ties to others: each is inferred alone
    network: Network  # its nodes are visits
    left_visit: VisitCodes  # (n_edges,) ends of each edge
    right_visit: VisitCodes
    cliques: Cliques
    n_forest: int
    n_exact: int
    report: LinkReport

    def visits_of(self, node: NodeCodes) -> VisitCodes:
        """Return the visits of nodes, NO_VISIT where they have none."""
        return VisitCodes(self.visit[node])


def plan(merged: Merged, soft: LinkCodes, n_classes: int) -> Plan:
    """Number the tied open nodes and choose how to infer each component."""
    tied_node, left, right = _tied_nodes(merged, soft)
    n_tied = len(tied_node)
    n_free = int((merged.node_class == OPEN).sum()) - n_tied
    component = link_graph.components(n_tied, left, right)
    kind, orders, report = _kinds(component, left, right, n_classes)
    visit_of_tied = visiting_order(n_tied, left, right, component, kind)
    visit = np.full(merged.n_nodes, NO_VISIT, dtype=np.int32)
    visit[tied_node] = visit_of_tied
    left_visit = VisitCodes(visit_of_tied[left])
    right_visit = VisitCodes(visit_of_tied[right])
    n_nodes_of = np.bincount(kind[component], minlength=3)
    return Plan(
        VisitCodes(visit),
        n_free,
        network(n_tied, left_visit, right_visit),
        left_visit,
        right_visit,
        _cliques_by_visit(orders, visit_of_tied, n_classes),
        int(n_nodes_of[FOREST]),
        int(n_nodes_of[FOREST] + n_nodes_of[SMALL]),
        report._replace(merged=report.merged + n_free),
    )


def in_large(merged: Merged, soft: LinkCodes, n_classes: int) -> Mask:
    """Return which tasks of `merged.task` are in large components with loops."""
    tied_node, left, right = _tied_nodes(merged, soft)
    component = link_graph.components(len(tied_node), left, right)
    kind, _, _ = _kinds(component, left, right, n_classes)
    is_large = np.zeros(merged.n_nodes, dtype=bool)
    is_large[tied_node] = kind[component] == LARGE
    return is_large[merged.node]


def _tied_nodes(merged: Merged, soft: LinkCodes) -> tuple[NodeCodes, TiedCodes, TiedCodes]:
    """Return the open nodes with links to others, and the edges between them, each once."""
    soft_left, soft_right, _ = merged.ends(soft)
    left_node = np.concatenate([merged.left_node, soft_left])
    right_node = np.concatenate([merged.right_node, soft_right])
    is_tied = np.zeros(merged.n_nodes, dtype=bool)
    is_tied[left_node] = True
    is_tied[right_node] = True
    tied_node = np.flatnonzero(is_tied & (merged.node_class == OPEN)).astype(np.int32)
    n_tied = len(tied_node)
    not_tied = -1
    tied_of_node = np.full(merged.n_nodes, not_tied, dtype=np.int32)
    tied_of_node[tied_node] = np.arange(n_tied, dtype=np.int32)
    left = tied_of_node[left_node]
    right = tied_of_node[right_node]
    is_edge = (left != not_tied) & (right != not_tied) & (left != right)
    pairs = link_graph.each_once(link_graph.pair_keys(left[is_edge], right[is_edge], n_tied))
    low, high = np.divmod(pairs, max(n_tied, 1))
    return (
        NodeCodes(tied_node),
        TiedCodes(low.astype(np.int32)),
        TiedCodes(high.astype(np.int32)),
    )


def _kinds(
    component: Codes, left: TiedCodes, right: TiedCodes, n_classes: int
) -> tuple[Kinds, Orders, LinkReport]:
    """Say how each component is inferred, with the elimination order of small loopy ones."""
    n_nodes = np.bincount(component)
    n_edges = np.bincount(component[left], minlength=len(n_nodes))
    kind = np.where(n_edges >= n_nodes, LARGE, FOREST).astype(np.int8)
    orders: Orders = []
    maybe_small = np.flatnonzero((kind == LARGE) & worth_a_try(n_nodes, n_edges, n_classes))
    by_component = np.argsort(component[left], kind="stable")
    first = np.searchsorted(component[left], np.arange(len(n_nodes) + 1), sorter=by_component)
    for c in maybe_small.tolist():
        edge_numbers = by_component[first[c] : first[c + 1]].tolist()
        edges = {(int(left[e]), int(right[e])): e for e in edge_numbers}
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


def _cliques_by_visit(orders: Orders, visit_of_tied: VisitCodes, n_classes: int) -> Cliques:
    cliques = cliques_of(orders, n_classes)
    return cliques._replace(node=visit_of_tied[cliques.node], rest=visit_of_tied[cliques.rest])
