"""Links done exactly: linked tasks are inferred jointly, component by component.

Tasks that hard links tie are one node (`merging.py`). Components of the network of nodes without
loops are settled by one pass of messages up and down; small loopy ones by summing nodes out;
large loopy ones by damped sum-product, approximately.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tiebreak import link_graph
from tiebreak.inference.merging import OPEN, Merged, SoftLinks
from tiebreak.inference.vb import LinkStep
from tiebreak.kernels import network as networks
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.kernels.network import Cliques, Network
from tiebreak.link_graph.elimination import Edges, cliques_of, elimination_order

FOREST, SMALL, LARGE = 0, 1, 2  # how a component is settled
DAMPING = 0.3
ROUNDS = 10  # of sum-product within one sweep, at most
SETTLED = 1e-3  # change of beliefs below which a sweep goes on


class LinkReport(NamedTuple):
    """How linked tasks were settled, in components of each kind."""

    merged: int  # one node alone: hard links made its tasks one; exact
    forest: int  # no loop: exact
    small: int  # loops, but few enough to sum out: exact
    large: int  # many loops: approximate, by sum-product
    unsettled: int = 0  # of the large ones, those whose messages still moved at the end

    @property
    def exact(self) -> int:
        """How many components were settled exactly."""
        return self.merged + self.forest + self.small

    @property
    def approximate(self) -> int:
        """How many components were settled approximately."""
        return self.large


class Plan(NamedTuple):
    """The open nodes, numbered by visits, and how each component is settled."""

    visit: Codes  # (n_nodes of Merged,) number of each open node, or OPEN
    network: Network
    left: Codes  # ends of each edge
    right: Codes
    cliques: Cliques
    n_forest: int  # nodes 0 … n_forest − 1 are in components without loops
    n_exact: int  # nodes up to n_exact − 1 are in components settled exactly
    report: LinkReport


def plan(merged: Merged, soft: SoftLinks, n_classes: int) -> Plan:
    """Number the open nodes and choose how to settle each component."""
    is_open = merged.node_class == OPEN
    nodes = np.flatnonzero(is_open).astype(np.int32)
    number = np.full(merged.n_nodes, OPEN, dtype=np.int32)
    number[nodes] = np.arange(len(nodes), dtype=np.int32)
    a = number[np.concatenate([merged.left, soft.a])]
    b = number[np.concatenate([merged.right, soft.b])]
    between = (a != OPEN) & (b != OPEN) & (a != b)
    pairs = np.unique(link_graph.pair_keys(a[between], b[between], len(nodes)))
    left, right = (end.astype(np.int32) for end in np.divmod(pairs, max(len(nodes), 1)))
    component = link_graph.components(len(nodes), left, right)
    kind, orders, report = _kinds(component, left, right, n_classes)
    order = networks.visiting_order(len(nodes), left, right, component, kind)
    rank = np.empty(len(nodes), dtype=np.int32)
    rank[order] = np.arange(len(nodes), dtype=np.int32)
    visit = np.full(merged.n_nodes, OPEN, dtype=np.int32)
    visit[nodes] = rank
    counts = np.bincount(kind[component], minlength=3)
    return Plan(
        visit,
        networks.network(len(nodes), rank[left], rank[right]),
        rank[left],
        rank[right],
        _renumbered(orders, rank, n_classes),
        int(counts[FOREST]),
        int(counts[FOREST] + counts[SMALL]),
        report,
    )


def _kinds(
    component: Codes, left: Codes, right: Codes, n_classes: int
) -> tuple[np.ndarray, list[tuple[list[tuple[int, list[int]]], Edges]], LinkReport]:
    """Say how each component is settled, with the order of elimination of small loopy ones."""
    n_nodes = np.bincount(component)
    n_edges = np.bincount(component[left], minlength=len(n_nodes))
    kind = np.where(n_edges >= n_nodes, LARGE, FOREST).astype(np.int8)
    orders = []
    loopy = np.flatnonzero(kind == LARGE)
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


def _renumbered(
    orders: list[tuple[list[tuple[int, list[int]]], Edges]], rank: Codes, n_classes: int
) -> Cliques:
    cliques = cliques_of(orders, n_classes)
    return cliques._replace(node=rank[cliques.node], rest=rank[cliques.rest])


@dataclass
class ExactLinks:
    """Joint inference of linked tasks: a `vb.LinkModel`. Messages stay warm between sweeps."""

    merged: Merged
    soft: SoftLinks
    log_odds: Floats  # (n_soft,) that the two tasks agree
    n_classes: int
    backend: Backend
    plan: Plan = field(init=False)

    may_cycle = False

    def __post_init__(self) -> None:
        self.plan = plan(self.merged, self.soft, self.n_classes)
        n_nodes = self.plan.network.n_nodes
        at = self.plan.visit[self.merged.node]
        waits = at != OPEN
        self.task, self.node = self.merged.task[waits], at[waits]
        self.flip = self.merged.flip[waits]
        self.messages = np.zeros((2 * len(self.plan.left), self.n_classes))
        self.belief = np.full((n_nodes, self.n_classes), 1.0 / self.n_classes)
        self.eliminated = np.zeros(len(self.plan.left))
        self.scores = np.zeros((n_nodes, self.n_classes))
        self.last_value: float | None = None
        self.residual = np.inf
        self._place_links()

    def _place_links(self) -> None:
        """Say where each soft link acts, and lay out the hard ones."""
        merged, soft, visit = self.merged, self.soft, self.plan.visit
        a, b = visit[soft.a], visit[soft.b]
        self._on_edge = (a != OPEN) & (b != OPEN) & (a != b)
        self._on_node = (a != OPEN) ^ (b != OPEN)
        edge_key = link_graph.pair_keys(self.plan.left, self.plan.right, len(self.belief) + 1)
        order = np.argsort(edge_key)
        key = link_graph.pair_keys(a, b, len(self.belief) + 1)
        self._edge = np.zeros(len(a), dtype=np.int64)
        at = np.searchsorted(edge_key, key[self._on_edge], sorter=order)
        self._edge[self._on_edge] = order[at]
        open_end = np.where(a != OPEN, a, b)
        class_a, class_b = merged.node_class[soft.a], merged.node_class[soft.b]
        known = np.where(class_a != OPEN, class_a, class_b)
        self._open_end, self._open_class = open_end, known ^ soft.opposite
        same_node = soft.a == soft.b
        self._fixed = np.where(same_node, ~soft.opposite, (class_a == class_b) != soft.opposite)
        self._hard_theta = np.zeros(len(self.plan.left))
        ends = visit[merged.left], visit[merged.right]
        both = (ends[0] != OPEN) & (ends[1] != OPEN)
        key = link_graph.pair_keys(ends[0][both], ends[1][both], len(self.belief) + 1)
        self._hard_theta[order[np.searchsorted(edge_key, key, sorter=order)]] = -np.inf
        one = (ends[0] != OPEN) ^ (ends[1] != OPEN)
        end = np.where(ends[0] != OPEN, ends[0], ends[1])[one]
        classes = merged.node_class[merged.left], merged.node_class[merged.right]
        self._struck = end, np.where(classes[0] != OPEN, classes[0], classes[1])[one]

    def report(self) -> LinkReport:
        """Say how the components were settled."""
        unsettled = self.plan.report.large if self.residual > SETTLED else 0
        return self.plan.report._replace(unsettled=unsettled)

    def theta(self) -> Floats:
        """Return the log-odds that the ends of each edge are equal."""
        theta = self._hard_theta.copy()
        signed = np.where(self.soft.opposite, -self.log_odds, self.log_odds)
        np.add.at(theta, self._edge[self._on_edge], signed[self._on_edge])
        return theta

    def _constant(self) -> float:
        """Return what soft links add to the log partition whatever the open nodes do."""
        settled = ~self._on_edge & ~self._on_node & self._fixed
        opposite = self._on_edge & self.soft.opposite
        return float(self.log_odds[settled].sum() + self.log_odds[opposite].sum())

    def _node_scores(self, u: Floats) -> Floats:
        scores = self.backend.node_scores(u, self.task, self.node, self.flip, len(self.belief))
        on = self._on_node
        np.add.at(scores, (self._open_end[on], self._open_class[on]), self.log_odds[on])
        scores[self._struck] = -np.inf
        return scores

    def value(self, q: Floats) -> float | None:
        """Return the linked tasks' part of the bound at the last update; None before it."""
        return self.last_value

    def update(self, q: Floats, u: Floats) -> LinkStep:
        """Infer the linked tasks jointly from their scores, and set their rows of q."""
        self.scores = self._node_scores(u)
        log_partition = self._settle(self.theta())
        new = self._spread()
        change = float(np.abs(new - q[self.task]).max(initial=0.0))
        q[self.task] = new
        self.last_value = log_partition + self._constant() - float((new * u[self.task]).sum())
        return LinkStep(max(change, self.residual), self.last_value)

    def _settle(self, theta: Floats) -> float:
        """Set the beliefs of all nodes; return the log partition."""
        plan, backend = self.plan, self.backend
        fixed = self.scores, plan.network, theta, self.messages, self.belief
        _, total = backend.pass_messages(*fixed, (0, plan.n_forest), 0.0)
        _, small = backend.eliminate(self.scores, plan.cliques, theta, self.belief, self.eliminated)
        large, self.residual = 0.0, 0.0
        span = plan.n_exact, len(self.belief)
        if span[0] < span[1]:
            for _ in range(ROUNDS):
                self.residual, large = backend.pass_messages(*fixed, span, DAMPING)
                if self.residual < SETTLED:
                    break
        return total + small + large

    def _spread(self) -> Floats:
        """Return the class probabilities of the linked tasks from those of their nodes."""
        rows = self.belief[self.node]
        return np.asarray(np.where(self.flip[:, None] == 1, rows[:, ::-1], rows))

    def set_log_odds(self, log_odds: Floats) -> None:
        """Change the log-odds that the two tasks of each soft link agree."""
        self.log_odds = log_odds

    def entropy(self, q: Floats) -> float:
        """Return the joint entropy of the linked tasks at the last update."""
        assert self.last_value is not None  # asked for after an update
        return self.last_value - float(self.log_odds @ self.agreement(q))

    def agreement(self, q: Floats | None = None) -> Floats:
        """Return for each soft link the probability that its two tasks agree."""
        theta = self.theta()
        equal = self.backend.agreement(self.scores, self.plan.network, theta, self.messages)
        if len(self.plan.cliques.edge):
            equal[self.plan.cliques.edge] = self.eliminated[self.plan.cliques.edge]
        agree = self._fixed.astype(np.float64)
        on = self._on_edge
        of_edge = equal[self._edge[on]]
        agree[on] = np.where(self.soft.opposite[on], 1.0 - of_edge, of_edge)
        on = self._on_node
        agree[on] = self.belief[self._open_end[on], self._open_class[on]]
        return agree
