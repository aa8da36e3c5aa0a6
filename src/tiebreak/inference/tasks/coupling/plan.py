"""Plan: which groups of linked tasks are inferred together, how, and in which order.

`links.graph.imply` has merged the tasks that hard links tie into groups. A group whose class is
known leaves the network; what it implies for its neighbours is added to their scores. The open
groups are the nodes, the links between them the edges. A component of nodes is one of

- forest: it has no loop. Belief propagation, one pass of messages up and one down, is exact. A
  group that no link ties to others is a tree of one node.
- small: it has loops, but few enough to sum out node by node, which is exact too.
- large: damped loopy belief propagation, which is approximate.

Summing out a node makes one table over the node and its remaining neighbours (a clique), and ties
those neighbours to each other. Min-fill takes next the node that adds the fewest such ties. A ring
of 0 – 1 – 2 – 3: node 0 goes first, with the clique {0, 1, 3}, and ties 1 to 3. Then 1 goes with
{1, 2, 3}, 2 with {2, 3}, and 3 alone. Tables have K³, K³, K² and K entries.

A soft link between two nodes weighs their edge, one between a node and a known group weighs one
class of the node, and inside a group or between known ones it adds a constant.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.kernels.network import NO_CLIQUES, Cliques, Network, network
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
LARGEST_CORE = 150  # nodes with three neighbours or more that are worth a search
MOST_LOOPS = 2_000  # independent loops of a component that is worth a look
NO_PARENT = -1  # of a clique whose node is the last of its component

NOWHERE = -1  # of a group that is no node, and of a link that acts on no edge or node

# How a component is inferred; nodes are numbered by it.
Kinds = npt.NDArray[np.int8]
FOREST = 0
SMALL = 1
LARGE = 2

Edges = dict[tuple[int, int], int]  # ends, the smaller first, to the number of the edge
Clique = tuple[int, list[int]]  # a node and the later nodes it is tied to
Orders = list[tuple[list[Clique], Edges]]  # of each component


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
    kind, orders, report = _kinds(component, low, high, n_classes)
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
        _cliques(orders, turn, n_classes),
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
) -> tuple[Kinds, Orders, LinkReport]:
    """Say how each component is inferred, with the elimination order of small loopy ones."""
    n_nodes = np.bincount(component)
    n_edges = np.bincount(component[left], minlength=len(n_nodes))
    kind = np.where(n_edges >= n_nodes, LARGE, FOREST).astype(np.int8)
    orders: Orders = []
    if (kind == LARGE).any():
        maybe_small = np.flatnonzero((kind == LARGE) & worth_a_try(n_nodes, n_edges, n_classes))
        of_edge = component[left]
        by_component = np.argsort(of_edge, kind="stable")
        first = np.searchsorted(of_edge, np.arange(len(n_nodes) + 1), sorter=by_component)
        for c in maybe_small.tolist():
            inside = by_component[first[c] : first[c + 1]].tolist()
            edges = {(int(left[e]), int(right[e])): e for e in inside}
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


def _cliques(orders: Orders, turn: Codes, n_classes: int) -> Cliques:
    """Return the cliques of small components, their nodes numbered by visits."""
    if not orders:
        return NO_CLIQUES
    cliques = cliques_of(orders, n_classes)
    return cliques._replace(node=turn[cliques.node], rest=turn[cliques.rest])


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


# -- elimination -----------------------------------------------------------------------------------


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
