"""Merge and plan: tasks that hard links tie become nodes; how each component of these is inferred.

Must-links merge tasks. With two classes cannot-links merge them too, one of the two flipped, and
no hard edge is left. Nodes whose class is known leave the network; what they imply for their
neighbours is added to those neighbours' scores. Of the nodes that links still tie to others,

- a component without loops: belief propagation, one pass of messages up and one down; exact;
- a small one with loops: variable elimination, node by node; exact;
- a large one with loops: damped loopy belief propagation; approximate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.data.gold import GoldCodes
from tiebreak.inference.exact_links.numbers import (
    NO_VISIT,
    NodeCodes,
    TaskCodes,
    TiedCodes,
    VisitCodes,
)
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.kernels.network import NO_CLIQUES, Cliques, Network, network
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Implications, LinkCodes

if TYPE_CHECKING:
    from tiebreak.inference.exact_links.elimination_order import Clique, Edges

    Orders = list[tuple[list[Clique], Edges]]

OPEN = link_graph.OPEN  # the class of a node that is not known

SUREST = 1e3  # log-odds: beyond, sums with scores would lose the scores

# How a component is inferred; visits are sorted by it.
Kinds = npt.NDArray[np.int8]
FOREST = 0
SMALL = 1
LARGE = 2


class Merged(NamedTuple):
    """Which node each linked task belongs to, and what is known of nodes."""

    task: TaskCodes  # (n_linked,) the tasks that any link names, sorted
    node: NodeCodes  # (n_linked,) of each of them
    flip: Codes  # (n_linked,) 1: the task has the other one of two classes
    node_class: Codes  # (n_nodes,) the known class of a node, or OPEN
    left_node: NodeCodes  # hard cannot-links that are left between nodes
    right_node: NodeCodes

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.node_class)

    def node_and_flip(self, task: Codes) -> tuple[NodeCodes, Codes]:
        """Return node and flip of linked tasks."""
        place = link_graph.places_in(self.task, task)
        return NodeCodes(self.node[place]), self.flip[place]

    def ends(self, links: LinkCodes) -> tuple[NodeCodes, NodeCodes, Mask]:
        """Return the nodes at both ends of links, and where just one of the two tasks is flipped.

        There the tasks agree when their nodes differ.
        """
        left_node, left_flip = self.node_and_flip(links.left)
        right_node, right_flip = self.node_and_flip(links.right)
        return left_node, right_node, left_flip != right_flip

    def known(self) -> GoldCodes:
        """Return the tasks whose class is known or follows, and their classes."""
        label = self.node_class[self.node]
        place = np.flatnonzero(label != OPEN)
        return GoldCodes(self.task[place], (label ^ self.flip)[place])


def merge(implied: Implications) -> Merged:
    """Merge tasks that hard links tie; what gold implies is known of the nodes."""
    return Merged(
        TaskCodes(implied.task),
        NodeCodes(implied.group),
        implied.flip,
        implied.group_class,
        NodeCodes(implied.left),
        NodeCodes(implied.right),
    )


def log_odds_of(links: LinkCodes, error: float | None, n_classes: int = 2) -> tuple[Floats, Mask]:
    """Return the log-odds that each link's tasks agree, and which links are hard.

    A weight is log-odds that the answer is right. A link without weight is hard, unless an error
    rate is given for all of those: [eq:link-strength]. A copy that is none is any of the other
    classes, all alike: [eq:sampling].
    """
    weight = np.full(links.n_links, np.nan) if links.weight is None else links.weight
    if error is not None:
        weight = np.where(np.isnan(weight), np.log1p(-error) - np.log(error), weight)
    hard = np.isnan(weight)
    if links.duplicate is not None:
        weight = np.where(links.duplicate, weight + np.log(max(n_classes - 1, 1)), weight)
    strength = np.where(hard, np.inf, np.minimum(weight, SUREST))
    return np.where(links.must, strength, -strength), hard


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
    visit_of_tied = _visiting_order(n_tied, left, right, component, kind)
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
    if (kind == LARGE).any():
        orders = _eliminate_small(kind, component, left, right, n_classes)
    report = LinkReport(
        merged=int((n_nodes == 1).sum()),
        forest=int(((kind == FOREST) & (n_nodes > 1)).sum()),
        small=int((kind == SMALL).sum()),
        large=int((kind == LARGE).sum()),
    )
    return kind, orders, report


def _eliminate_small(
    kind: Kinds, component: Codes, left: TiedCodes, right: TiedCodes, n_classes: int
) -> Orders:
    """Set the kind of components with loops that can be summed out; return in which order."""
    from tiebreak.inference.exact_links.elimination_order import elimination_order, worth_a_try

    n_nodes = np.bincount(component)
    n_edges = np.bincount(component[left], minlength=len(n_nodes))
    maybe_small = np.flatnonzero((kind == LARGE) & worth_a_try(n_nodes, n_edges, n_classes))
    by_component = np.argsort(component[left], kind="stable")
    first = np.searchsorted(component[left], np.arange(len(n_nodes) + 1), sorter=by_component)
    orders: Orders = []
    for c in maybe_small.tolist():
        edge_numbers = by_component[first[c] : first[c + 1]].tolist()
        edges = {(int(left[e]), int(right[e])): e for e in edge_numbers}
        order = elimination_order(edges, n_classes)
        if order is not None:
            kind[c] = SMALL
            orders.append((order, edges))
    return orders


def _cliques_by_visit(orders: Orders, visit_of_tied: VisitCodes, n_classes: int) -> Cliques:
    if not orders:
        return NO_CLIQUES
    from tiebreak.inference.exact_links.elimination_order import cliques_of

    cliques = cliques_of(orders, n_classes)
    return cliques._replace(node=visit_of_tied[cliques.node], rest=visit_of_tied[cliques.rest])


def _visiting_order(
    n_tied: int, left: TiedCodes, right: TiedCodes, component: Codes, kind: Kinds
) -> VisitCodes:
    """Return the visit of each tied node; kind[c] says how component c is inferred.

    Nodes are visited by kind of component, then by component, then depth first, so that
    most neighbours lie close to each other in memory.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import depth_first_order

    # One more node, tied to the first node of each component, lets one search reach them all.
    _, first = np.unique(component, return_index=True)
    rows = np.concatenate([left, np.full(len(first), n_tied)])
    columns = np.concatenate([right, first])
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_tied + 1, n_tied + 1))
    found = depth_first_order(graph, n_tied, directed=False, return_predecessors=False)
    turn = np.empty(n_tied + 1, dtype=np.int64)
    turn[found] = np.arange(n_tied + 1)
    by_visit = np.lexsort((turn[:n_tied], component, kind[component]))
    visit = np.empty(n_tied, dtype=np.int32)
    visit[by_visit] = np.arange(n_tied, dtype=np.int32)
    return VisitCodes(visit)
