"""Placement: where each link acts on the open nodes.

Between two open nodes a link weighs an edge; between an open and a known node it weighs one class
of the open one; inside a node, or between known ones, it says nothing new.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak import link_graph
from tiebreak.inference.exact_links.merge import OPEN, Merged, SoftLinks
from tiebreak.inference.exact_links.plan import Plan
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.kernels.layout import Offsets as Ints


class Placement(NamedTuple):
    """Where soft links act (one entry a link), and what hard ones forbid."""

    on_edge: Mask
    on_node: Mask
    edge: Ints  # where on_edge
    node: Codes  # where on_node: the open end
    node_class: Codes  # where on_node: the class of the open end that makes the tasks agree
    opposite: Mask  # where on_edge: the tasks agree when the nodes differ
    fixed: Mask  # elsewhere: whether the tasks agree
    hard_coupling: Floats  # (n_edges,) −∞ where the ends cannot agree, else 0
    struck: tuple[Codes, Codes]  # open nodes and the classes that known neighbours forbid them

    def coupling(self, log_odds: Floats) -> Floats:
        """Return the log-odds that the ends of each edge are equal."""
        if not len(log_odds):
            return self.hard_coupling
        coupling = self.hard_coupling.copy()
        signed = np.where(self.opposite, -log_odds, log_odds)
        np.add.at(coupling, self.edge[self.on_edge], signed[self.on_edge])
        return coupling

    def constant(self, log_odds: Floats) -> float:
        """Return what soft links add to the log partition whatever the open nodes do."""
        settled = ~self.on_edge & ~self.on_node & self.fixed
        opposite = self.on_edge & self.opposite
        return float(log_odds[settled].sum() + log_odds[opposite].sum())

    def weigh(self, scores: Floats, log_odds: Floats) -> None:
        """Add to the scores of open nodes what links to known ones say."""
        on = self.on_node
        np.add.at(scores, (self.node[on], self.node_class[on]), log_odds[on])
        scores[self.struck] = -np.inf

    def expected(self, belief: Floats, log_odds: Floats) -> float:
        """Return what `weigh` added to the expected scores of open nodes."""
        on = self.on_node
        return float(belief[self.node[on], self.node_class[on]] @ log_odds[on])

    def agreement(self, equal: Floats, belief: Floats) -> Floats:
        """Return for each soft link the probability that its tasks agree.

        `equal` is the probability that the ends of each edge are equal.
        """
        agree = self.fixed.astype(np.float64)
        on = self.on_edge
        of_edge = equal[self.edge[on]]
        agree[on] = np.where(self.opposite[on], 1.0 - of_edge, of_edge)
        on = self.on_node
        agree[on] = belief[self.node[on], self.node_class[on]]
        return agree


def place(merged: Merged, soft: SoftLinks, plan: Plan) -> Placement:
    """Find where each link acts."""
    a, b = plan.visit[soft.a], plan.visit[soft.b]
    class_a, class_b = merged.node_class[soft.a], merged.node_class[soft.b]
    on_edge = (a != OPEN) & (b != OPEN) & (a != b)
    edge = np.zeros(len(a), dtype=np.int64)
    edge[on_edge] = _edges_between(plan, a[on_edge], b[on_edge])
    known = np.where(class_a != OPEN, class_a, class_b)
    agree_known = (class_a == class_b) != soft.opposite
    hard_coupling, struck = _hard(merged, plan, all_hard=not on_edge.any())
    return Placement(
        on_edge,
        (a != OPEN) ^ (b != OPEN),
        edge,
        np.where(a != OPEN, a, b),
        (known ^ soft.opposite).astype(np.int32),
        soft.opposite,
        np.where(soft.a == soft.b, ~soft.opposite, agree_known),
        hard_coupling,
        struck,
    )


def _hard(merged: Merged, plan: Plan, *, all_hard: bool) -> tuple[Floats, tuple[Codes, Codes]]:
    """Return which edges are hard, and which classes known neighbours strike."""
    a, b = plan.visit[merged.left], plan.visit[merged.right]
    coupling = np.full(len(plan.left), -np.inf)
    if not all_hard:
        both = (a != OPEN) & (b != OPEN)
        coupling[:] = 0.0
        coupling[_edges_between(plan, a[both], b[both])] = -np.inf
    one = (a != OPEN) ^ (b != OPEN)
    class_a, class_b = merged.node_class[merged.left], merged.node_class[merged.right]
    node = np.where(a != OPEN, a, b)[one]
    return coupling, (node, np.where(class_a != OPEN, class_a, class_b)[one])


def _edges_between(plan: Plan, a: Codes, b: Codes) -> Ints:
    """Return the number of the edge between each pair of nodes."""
    if not len(a):
        return np.empty(0, dtype=np.int64)
    n_nodes = plan.network.n_nodes
    keys = link_graph.pair_keys(plan.left, plan.right, n_nodes)
    order = np.argsort(keys)
    found = np.searchsorted(keys, link_graph.pair_keys(a, b, n_nodes), sorter=order)
    return np.asarray(order[found])
