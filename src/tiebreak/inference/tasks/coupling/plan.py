"""Plan: which groups of linked tasks are inferred together, how, and in which order.

`links.graph.imply` has merged the tasks that hard links tie into groups. A group whose class is
known leaves the network; what it implies for its neighbours is added to their scores. The open
groups are the nodes, the links between them the edges. A component of nodes is one of

- forest: it has no loop. Belief propagation, one pass of messages up and one down, is exact. A
  group that no link ties to others is a tree of one node.
- small: it has loops, but few enough to sum out node by node, which is exact too.
- large: damped loopy belief propagation, which is approximate.

A soft link between two nodes weighs their edge, one between a node and a known group weighs one
class of the node, and inside a group or between known ones it adds a constant.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.kernels.network import Cliques, Network, network
from tiebreak.links.elimination import NO_CLIQUES, Factor, Shape, lay_cliques, shape_of
from tiebreak.links.graph import (
    OPEN,
    Implications,
    LinkCodes,
    components,
    each_once,
    pair_keys,
    places_in,
)

SUREST = 1e3  # log-odds: beyond, sums with scores would lose the scores
LARGEST_TABLE = 10_000  # entries of one clique, K^(width + 1)
LARGEST_COMPONENT = 20_000  # entries of all cliques of a component: some milliseconds per sweep
MOST_LOOPS = 2_000  # independent loops of a component that is worth a look

NOWHERE = -1  # of a group that is no node, and of a link that acts on no edge or node

# How a component is inferred; nodes are numbered by it.
Kinds = npt.NDArray[np.int8]
FOREST = 0
SMALL = 1
LARGE = 2

Planned = tuple[Shape, Any, Any]  # nodes and edges of components of one shape


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
    """The nodes, how each is inferred, and where each soft link acts.

    Nodes 0 … n_forest − 1 are in components without loops, those up to n_exact − 1 in components
    that are inferred exactly, the rest in large ones. `log_odds` below weigh the event that the
    two tasks of a soft link agree. Seen from the nodes that is "equal" or, where just one of the
    two tasks is flipped, "opposite".
    """

    node: Codes  # (n_groups,) of each group, or NOWHERE
    network: Network
    left: Codes  # (n_edges,) the nodes at both ends of each edge
    right: Codes
    cliques: Cliques
    n_forest: int
    n_exact: int
    report: LinkReport
    hard_coupling: Floats  # (n_edges,) −∞ where the ends cannot agree, else 0
    forbidden: tuple[Codes, Codes]  # nodes, and classes that known neighbours forbid them
    edge: Offsets  # (n_soft,) the edge that the link weighs, or NOWHERE
    open_end: Codes  # (n_soft,) the node whose neighbour is known, or NOWHERE
    agreeing_class: Codes  # (n_soft,) the class of the open end that makes the tasks agree
    opposite: Mask  # (n_soft,) just one of the two tasks is flipped
    agrees: Mask  # (n_soft,) whether the tasks agree, where neither edge nor node is weighed

    def coupling(self, log_odds: Floats) -> Floats:
        """Return the log-odds that the ends of each edge are equal."""
        if not len(log_odds):
            return self.hard_coupling
        coupling = self.hard_coupling.copy()
        on = self.edge != NOWHERE
        signed = np.where(self.opposite, -log_odds, log_odds)
        np.add.at(coupling, self.edge[on], signed[on])
        return coupling

    def weigh(self, scores: Floats, log_odds: Floats) -> None:
        """Add to the scores of nodes what links to known groups imply."""
        on = self.open_end != NOWHERE
        np.add.at(scores, (self.open_end[on], self.agreeing_class[on]), log_odds[on])
        scores[self.forbidden] = -np.inf

    def expected(self, belief: Floats, log_odds: Floats) -> float:
        """Return what soft links add to the value besides couplings: what `weigh` added, expected.

        Constants are among it: what is added whatever the nodes are.
        """
        on_edge = self.edge != NOWHERE
        on = self.open_end != NOWHERE
        constant = np.where(on_edge, self.opposite, self.agrees & ~on)
        weighed = belief[self.open_end[on], self.agreeing_class[on]] * log_odds[on]
        return float(log_odds[constant].sum() + weighed.sum())

    def agreement(self, equal: Floats, belief: Floats) -> Floats:
        """Return for each soft link the probability that its tasks agree.

        `equal` is the probability that the ends of each edge are equal.
        """
        agree = self.agrees.astype(np.float64)
        on = self.edge != NOWHERE
        edge_equal = equal[self.edge[on]]
        agree[on] = np.where(self.opposite[on], 1.0 - edge_equal, edge_equal)
        on = self.open_end != NOWHERE
        agree[on] = belief[self.open_end[on], self.agreeing_class[on]]
        return agree


def log_odds_of(links: LinkCodes, error: float | None, n_classes: int = 2) -> tuple[Floats, Mask]:
    """Return the log-odds that each link's tasks agree, and which links are hard.

    A weight is log-odds that the answer is right. A link without weight is hard, unless an error
    rate is given for all of those: [eq:link-strength].
    """
    weight = np.full(links.n_links, np.nan) if links.weight is None else links.weight
    if error is not None:
        weight = np.where(np.isnan(weight), np.log1p(-error) - np.log(error), weight)
    hard = np.isnan(weight)
    strength = np.where(hard, np.inf, np.minimum(weight + odds_of_copies(links, n_classes), SUREST))
    return np.where(links.must, strength, -strength), hard


def odds_of_copies(links: LinkCodes, n_classes: int) -> Floats:
    """Return log (K − 1) for links that join copies, 0 for others.

    A copy that is none is any of the other classes, all alike.
    """
    if links.duplicate is None:
        return np.zeros(links.n_links)
    return np.where(links.duplicate, np.log(max(n_classes - 1, 1)), 0.0)


def plan(implied: Implications, soft: LinkCodes, n_classes: int) -> Plan:
    """Number the nodes, choose how to infer each component, and place the soft links."""
    known = implied.group_class
    place = places_in(implied.task, np.concatenate([soft.left, soft.right]))
    group, flip = implied.group[place], implied.flip[place]
    soft_left, soft_right = np.split(group, 2)
    opposite = flip[: soft.n_links] != flip[soft.n_links :]
    left = np.concatenate([implied.left, soft_left])
    right = np.concatenate([implied.right, soft_right])

    open_group = np.flatnonzero(known == OPEN).astype(np.int32)
    number = np.full(len(known), NOWHERE, dtype=np.int32)
    number[open_group] = np.arange(len(open_group), dtype=np.int32)
    joins = (known[left] == OPEN) & (known[right] == OPEN) & (left != right)
    keys = pair_keys(number[left[joins]], number[right[joins]], len(open_group))
    pairs = each_once(keys)
    low, high = (end.astype(np.int32) for end in np.divmod(pairs, max(len(open_group), 1)))

    component = components(len(open_group), low, high)
    kind, planned, report = _kinds(component, low, high, n_classes)
    turn = _visiting_order(len(open_group), low, high, component, kind)
    node = np.full(len(known), NOWHERE, dtype=np.int32)
    node[open_group] = turn
    n_of_kind = np.bincount(kind[component], minlength=3)

    n_hard = len(implied.left)
    is_soft = np.arange(len(left)) >= n_hard
    edge = np.full(len(left), NOWHERE, dtype=np.int64)
    hard_coupling = np.full(len(pairs), -np.inf)
    if (joins & is_soft).any():
        edge[joins] = np.searchsorted(pairs, keys)
        hard_coupling[:] = 0.0
        hard_coupling[edge[joins & ~is_soft]] = -np.inf
    one_open = (node[left] == NOWHERE) ^ (node[right] == NOWHERE)
    open_end = np.where(one_open, np.maximum(node[left], node[right]), NOWHERE)
    known_class = np.maximum(known[left], known[right])  # of the other end: OPEN is -1
    beside = np.flatnonzero(one_open & ~is_soft)
    equal = (soft_left == soft_right) | (known[soft_left] == known[soft_right])
    return Plan(
        node,
        network(len(open_group), turn[low], turn[high]),
        turn[low],
        turn[high],
        lay_cliques([(shape, turn[nodes], edges) for shape, nodes, edges in planned])
        if planned
        else NO_CLIQUES,
        int(n_of_kind[FOREST]),
        int(n_of_kind[FOREST] + n_of_kind[SMALL]),
        report,
        hard_coupling,
        (open_end[beside], known_class[beside]),
        edge[n_hard:],
        open_end[n_hard:],
        (known_class[n_hard:] ^ opposite).astype(np.int32),
        opposite,
        equal != opposite,
    )


def _kinds(
    component: Codes, left: Codes, right: Codes, n_classes: int
) -> tuple[Kinds, list[Planned], LinkReport]:
    """Say how each component is inferred, with the elimination order of small loopy ones."""
    n_nodes = np.bincount(component)
    n_edges = np.bincount(component[left], minlength=len(n_nodes))
    kind = np.where(n_edges >= n_nodes, LARGE, FOREST).astype(np.int8)
    # by sizes alone: which might be summed out cheaply
    is_hopeless = (n_nodes * n_classes**2 > LARGEST_COMPONENT) | (n_edges - n_nodes >= MOST_LOOPS)
    alike: dict[Any, list[tuple[int, list[int], Any]]] = {}
    if (maybe_small := np.flatnonzero((kind == LARGE) & ~is_hopeless)).size:
        of_edge = component[left]
        by_component = np.argsort(of_edge, kind="stable")
        first = np.searchsorted(of_edge, np.arange(len(n_nodes) + 1), sorter=by_component)
        for c in maybe_small.tolist():
            inside = by_component[first[c] : first[c + 1]]
            number: dict[int, int] = {}
            ends = zip(left[inside].tolist(), right[inside].tolist(), strict=True)
            key = tuple(tuple(number.setdefault(v, len(number)) for v in pair) for pair in ends)
            alike.setdefault(key, []).append((c, list(number), inside))
    planned: list[Planned] = []
    equal = np.eye(n_classes, dtype=bool)
    for key, found in alike.items():
        cards = [n_classes] * len(found[0][1])
        edges: list[Factor] = [(pair, None, equal) for pair in key]
        shape = shape_of(cards, edges, LARGEST_TABLE, LARGEST_COMPONENT)
        if shape is not None:
            own, nodes, numbers = zip(*found, strict=True)
            kind[list(own)] = SMALL
            planned.append((shape, np.array(nodes), np.array(numbers)))
    report = LinkReport(
        merged=int((n_nodes == 1).sum()),
        forest=int(((kind == FOREST) & (n_nodes > 1)).sum()),
        small=int((kind == SMALL).sum()),
        large=int((kind == LARGE).sum()),
    )
    return kind, planned, report


def _visiting_order(n: int, left: Codes, right: Codes, component: Codes, kind: Kinds) -> Codes:
    """Return when each node is visited; kind[c] says how component c is inferred.

    Nodes are visited by kind of component, then by component, then depth first, so that
    most neighbours lie close to each other in memory.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import depth_first_order

    # A chain of more nodes, each but the first tied to the first node of a component, lets one
    # search reach them all. One node tied to all would be looked through again for each of them.
    _, first = np.unique(component, return_index=True)
    links = n + np.arange(len(first) + 1)
    rows = np.concatenate([left, links[1:], links[1:]])
    columns = np.concatenate([right, first, links[:-1]])
    n_all = n + len(links)
    graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_all, n_all))
    found = depth_first_order(graph, n, directed=False, return_predecessors=False)
    turn = np.empty(n_all, dtype=np.int64)
    turn[found] = np.arange(n_all)
    by_visit = np.lexsort((turn[:n], component, kind[component]))
    visit = np.empty(n, dtype=np.int32)
    visit[by_visit] = np.arange(n, dtype=np.int32)
    return visit
