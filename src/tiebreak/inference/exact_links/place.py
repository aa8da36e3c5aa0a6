"""Placement: where each link acts on the open nodes.

Between two open nodes a link weighs an edge; between an open and a known node it weighs one class
of the open one; inside a node, or between known ones, it adds a constant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak import link_graph
from tiebreak.inference.exact_links.merge import OPEN, Merged
from tiebreak.inference.exact_links.numbers import NO_VISIT, VisitCodes
from tiebreak.inference.exact_links.plan import Plan
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.link_graph import LinkCodes


class Placement(NamedTuple):
    """Where soft links act (one entry per link), and what hard ones forbid.

    `log_odds` weighs the event that the two tasks of a soft link agree. Seen from the nodes that
    event is "equal" or, where just one of the tasks is flipped, "opposite".
    """

    on_edge: Mask
    on_node: Mask
    edge: Offsets  # where on_edge: the number of the edge
    visit: VisitCodes  # where on_node: the open end
    agreeing_class: Codes  # where on_node: the class of the open end that makes the tasks agree
    opposite: Mask  # where on_edge: the tasks agree when the nodes differ
    agrees: Mask  # elsewhere: whether the tasks agree
    hard_coupling: Floats  # (n_edges,) −∞ where the ends cannot agree, else 0
    forbidden: tuple[VisitCodes, Codes]  # open nodes, and classes that known neighbours forbid

    def coupling(self, log_odds: Floats) -> Floats:
        """Return the log-odds that the ends of each edge are equal."""
        if not len(log_odds):
            return self.hard_coupling
        coupling = self.hard_coupling.copy()
        signed = np.where(self.opposite, -log_odds, log_odds)
        np.add.at(coupling, self.edge[self.on_edge], signed[self.on_edge])
        return coupling

    def constant(self, log_odds: Floats) -> float:
        """Return what soft links add to the log partition whatever the open nodes are."""
        always = ~self.on_edge & ~self.on_node & self.agrees
        opposite = self.on_edge & self.opposite
        return float(log_odds[always].sum() + log_odds[opposite].sum())

    def weigh(self, scores: Floats, log_odds: Floats) -> None:
        """Add to the scores of open nodes what links to known nodes imply."""
        on = self.on_node
        np.add.at(scores, (self.visit[on], self.agreeing_class[on]), log_odds[on])
        scores[self.forbidden] = -np.inf

    def expected(self, belief: Floats, log_odds: Floats) -> float:
        """Return what `weigh` added to the expected scores of open nodes."""
        on = self.on_node
        return float(belief[self.visit[on], self.agreeing_class[on]] @ log_odds[on])

    def agreement(self, equal: Floats, belief: Floats) -> Floats:
        """Return for each soft link the probability that its tasks agree.

        `equal` is the probability that the ends of each edge are equal.
        """
        agree = self.agrees.astype(np.float64)
        on = self.on_edge
        edge_equal = equal[self.edge[on]]
        agree[on] = np.where(self.opposite[on], 1.0 - edge_equal, edge_equal)
        on = self.on_node
        agree[on] = belief[self.visit[on], self.agreeing_class[on]]
        return agree


def place(merged: Merged, soft: LinkCodes, plan: Plan) -> Placement:
    """Find where each link acts."""
    left_node, right_node, opposite = merged.ends(soft)
    left = plan.visits_of(left_node)
    right = plan.visits_of(right_node)
    on_edge = (left != NO_VISIT) & (right != NO_VISIT) & (left != right)
    edge = np.zeros(len(left), dtype=np.int64)
    edge[on_edge] = _edges_between(plan, left, right, on_edge)
    left_class = merged.node_class[left_node]
    right_class = merged.node_class[right_node]
    known_class = np.where(left_class != OPEN, left_class, right_class)
    equal = (left_node == right_node) | (left_class == right_class)
    return Placement(
        on_edge,
        (left != NO_VISIT) ^ (right != NO_VISIT),
        edge,
        VisitCodes(np.where(left != NO_VISIT, left, right)),
        (known_class ^ opposite).astype(np.int32),
        opposite,
        equal != opposite,
        _hard_coupling(merged, plan, all_hard=not on_edge.any()),
        _forbidden(merged, plan),
    )


def _hard_coupling(merged: Merged, plan: Plan, *, all_hard: bool) -> Floats:
    """Return −∞ for each edge that is a hard cannot-link, 0 for the others."""
    if all_hard:
        return np.full(len(plan.left_visit), -np.inf)
    coupling = np.zeros(len(plan.left_visit))
    left = plan.visits_of(merged.left_node)
    right = plan.visits_of(merged.right_node)
    both_open = (left != NO_VISIT) & (right != NO_VISIT)
    coupling[_edges_between(plan, left, right, both_open)] = -np.inf
    return coupling


def _forbidden(merged: Merged, plan: Plan) -> tuple[VisitCodes, Codes]:
    """Return open nodes beside known ones, and the classes that those forbid them."""
    left = plan.visits_of(merged.left_node)
    right = plan.visits_of(merged.right_node)
    one_open = (left != NO_VISIT) ^ (right != NO_VISIT)
    left_class = merged.node_class[merged.left_node]
    right_class = merged.node_class[merged.right_node]
    visit = np.where(left != NO_VISIT, left, right)
    known_class = np.where(left_class != OPEN, left_class, right_class)
    return VisitCodes(visit[one_open]), known_class[one_open]


def _edges_between(plan: Plan, left: VisitCodes, right: VisitCodes, chosen: Mask) -> Offsets:
    """Return the number of the edge between each chosen pair of visits."""
    if not chosen.any():
        return np.empty(0, dtype=np.int64)
    n_nodes = plan.network.n_nodes
    keys = link_graph.pair_keys(plan.left_visit, plan.right_visit, n_nodes)
    by_key = np.argsort(keys)
    wanted = link_graph.pair_keys(left[chosen], right[chosen], n_nodes)
    return np.asarray(by_key[np.searchsorted(keys, wanted, sorter=by_key)])
