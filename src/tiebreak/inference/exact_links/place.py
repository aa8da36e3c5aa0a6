"""Place and pool: where each link acts on the open nodes, and where the responses on them lie.

Between two open nodes a link weighs an edge; between an open and a known node it weighs one class
of the open one; inside a node, or between known ones, it adds a constant.

Pooled, the responses on all tasks of a node are those of one ordinary task. The score of a node is
Σ over its tasks of (log prior + Σ log table[code] over responses). A task's sweep adds log prior
once and looks up one row of the table per response. So the prior of every task but the first is
written as one more response, whose row of the table is log prior. Tasks that are flipped get codes
of their own, whose rows are those of the plain codes with the two classes exchanged.

Two classes, one worker: codes 0 and 1, 2 for the prior and 3 for minus the prior; flipped, they are
4 to 7. A node of tasks a (response 1), b (flipped, response 0) and c (response 1) is one task with
codes

    1 | 4 6 | 1 2        a | b, its prior | c, its prior        (the first prior is the node's own)

and `Pool.logs` gives the table of eight rows: table[0], table[1], log prior, minus log prior, and
these flipped. Minus the prior takes it off a node whose tasks do not pay it in full: duplicates are
one draw of the class, whose prior they share evenly ([eq:sampling]). Of three copies, two of them
in one node, that node pays 2/3 of it and the other node 1/3: minus the prior, with weight 1/3 and
2/3. So it does not matter which copy comes first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.inference.exact_links.numbers import NO_VISIT, PoolCodes, TaskCodes, VisitCodes
from tiebreak.inference.exact_links.plan import OPEN, Merged, Plan
from tiebreak.kernels import layout
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import FREE, LINKED, ByTask, Codes, Floats, Mask, Offsets
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import LinkCodes


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


class Pool(NamedTuple):
    """The open nodes as tasks, and the tasks (members) that each stands for.

    Nodes that no link ties to others come first, then the others in the order of visits.
    """

    nodes: ByTask  # LINKED from n_alone on
    n_alone: int  # pool node = visit + n_alone
    task: TaskCodes  # (n_members,) sorted by node
    node: PoolCodes  # (n_members,)
    flip: Codes  # (n_members,) 1: the task has the other one of two classes
    pays: Floats  # (n_members,) how much of the prior of the class is paid for each
    begin: Offsets  # (n_members + 1,) where the responses of each begin in `nodes.code`
    has_flips: bool

    def logs(self, log_prior: Floats, log_table: Floats) -> tuple[Floats, Floats]:
        """Return expected logs with rows for the prior and for the codes of flipped tasks."""
        table = np.concatenate([log_table, log_prior[None], -log_prior[None]])
        return log_prior, np.concatenate([table, table[:, ::-1]]) if self.has_flips else table

    def by_plain_code(self, counts: Floats, totals: Floats) -> tuple[Floats, Floats]:
        """Return counts by the codes of responses, and totals over tasks instead of nodes."""
        counts = self._add_flipped(counts)
        plus, minus = counts[-2:]
        return counts[:-2], totals + plus - minus

    def _add_flipped(self, counts: Floats) -> Floats:
        if not self.has_flips:
            return counts
        plain, flipped = np.split(counts, 2)
        return np.asarray(plain + flipped[:, ::-1])

    def count_members(self, q: Floats, backend: Backend, n_threads: int) -> tuple[Floats, Floats]:
        """Return what members add to counts and totals at q, where those of a node may differ."""
        rows = q[self.task]
        role = np.full(len(rows), LINKED, dtype=np.int8)
        members = layout.lay_out(
            self.begin, self.nodes.code, role, self.nodes.n_codes, q.shape[1], self.nodes.weight
        )
        counts, _ = backend.tally(self._exchange_flipped(rows), members, role == LINKED, n_threads)
        return self._add_flipped(counts)[:-2], self.pays @ rows

    def gather(self, q: Floats) -> Floats:
        """Return the mean of the rows of q of the members of each node."""
        rows = self._exchange_flipped(q[self.task])
        if not len(rows):
            return rows
        first = np.flatnonzero(_is_first(self.node))
        n_members = np.diff(first, append=len(rows))
        sums = np.asarray(np.add.reduceat(rows, first))
        sums /= n_members[:, None]
        return sums

    def add_up(self, member_scores: Floats) -> Floats:
        """Return the score of each node: the sum over its members."""
        rows = self._exchange_flipped(member_scores)
        if not len(rows):
            return rows
        return np.asarray(np.add.reduceat(rows, np.flatnonzero(_is_first(self.node))))

    def members_of(self, node_q: Floats) -> Floats:
        """Return for each member the row of its node."""
        return self._exchange_flipped(node_q[self.node])

    def spread(self, q: Floats, node_q: Floats) -> None:
        """Set the rows of q of the members to those of their nodes."""
        q[self.task] = self.members_of(node_q)

    def _exchange_flipped(self, rows: Floats) -> Floats:
        """Return rows of the members with the two classes of flipped ones exchanged."""
        if not self.has_flips:
            return rows
        return np.where(self.flip[:, None] == 1, rows[:, ::-1], rows)


def pool(
    tasks: ByTask,
    merged: Merged,
    plan: Plan,
    n_classes: int,
    unit: Codes | None = None,
    *,
    everyone: bool,
) -> Pool:
    """Gather the responses on the members of each open node: [eq:super-task].

    `unit`, (n_tasks,), numbers tasks that are copies of one alike; None: no two are.

    With `everyone`, each other task is a node too, in its role and before the rest, so that all
    responses lie side by side.
    """
    task, node, flip = _members(merged, plan)
    role = np.repeat(np.array([FREE, LINKED], dtype=np.int8), [plan.n_free, plan.network.n_nodes])
    if everyone:
        is_other = np.ones(tasks.n_tasks, dtype=bool)
        is_other[task] = False
        others = np.flatnonzero(is_other).astype(np.int32)
        n_others = len(others)
        task = TaskCodes(np.concatenate([others, task]))
        node = PoolCodes(np.concatenate([np.arange(n_others, dtype=np.int32), node + n_others]))
        flip = np.concatenate([np.zeros_like(others), flip])
        role = np.concatenate([tasks.role[others], role])
    is_first = _is_first(node)
    pays = share_of_prior(task, node, flip, unit)
    more = pays - is_first  # above 0: one more prior with this weight, below 0: one less
    begin, code = _codes(tasks, task, flip, more)
    weight = _weights(tasks, task, more)
    start = np.append(begin[:-1][is_first], begin[-1])
    has_flips = bool(flip.any())
    n_codes = (tasks.n_codes + 2) * (2 if has_flips else 1)
    nodes = layout.lay_out(start, code, role, n_codes, n_classes, weight)
    n_alone = len(role) - plan.network.n_nodes
    return Pool(nodes, n_alone, task, node, flip, pays, begin, has_flips)


def _members(merged: Merged, plan: Plan) -> tuple[TaskCodes, PoolCodes, Codes]:
    """Return task, node and flip of the members of open nodes, sorted by node."""
    is_open = merged.node_class == OPEN
    pool_node = plan.visit + plan.n_free
    pool_node[is_open & (plan.visit == NO_VISIT)] = np.arange(plan.n_free)
    return open_members(merged, pool_node)


def open_members(merged: Merged, number: Codes) -> tuple[TaskCodes, PoolCodes, Codes]:
    """Return task, node and flip of the members of open nodes; node n is number[n], sorted so."""
    place = np.flatnonzero(merged.node_class[merged.node] == OPEN)
    node = number[merged.node[place]]
    order = np.argsort(node, kind="stable")
    place = place[order]
    return TaskCodes(merged.task[place]), PoolCodes(node[order]), merged.flip[place]


def _is_first(node: PoolCodes) -> Mask:
    """Return which members are the first of their nodes; those are never flipped."""
    return np.asarray(np.diff(node, prepend=-1) > 0)


def share_of_prior(task: TaskCodes, node: PoolCodes, flip: Codes, unit: Codes | None) -> Floats:
    """Return how much of the prior of its class each member pays.

    Copies share it evenly. Those that are one node pay together, at the first of them: where all
    are, that is one whole prior, which needs no weight.
    """
    if unit is None:
        return np.ones(len(task))
    n_nodes = int(node.max(initial=0)) + 1
    together = (unit[task].astype(np.int64) * n_nodes + node) * 2 + flip
    _, first, n_copies = np.unique(together, return_index=True, return_counts=True)
    pays = np.zeros(len(task))
    pays[first] = n_copies / np.bincount(unit)[unit[task[first]]]
    return pays


def _codes(tasks: ByTask, task: TaskCodes, flip: Codes, more: Floats) -> tuple[Offsets, Codes]:
    """Return the codes of members one after the other, with their priors, and where each begins."""
    start, code = layout.responses_on(tasks, task)
    has_prior = more != 0.0
    begin = start + np.concatenate([[0], np.cumsum(has_prior)])
    prior_code = np.where(more > 0.0, tasks.n_codes, tasks.n_codes + 1)
    code = np.insert(code, start[1:][has_prior], prior_code[has_prior])
    if flip.any():
        code += np.repeat(flip * np.int32(tasks.n_codes + 2), np.diff(begin))
    return begin, code


def _weights(tasks: ByTask, task: TaskCodes, more: Floats) -> Floats | None:
    """Return the weights of the responses in `_codes`; None: all count once."""
    weight = layout.weights_on(tasks, task)
    of_prior = np.abs(more[more != 0.0])
    if weight is None and (of_prior == 1.0).all():
        return None
    start, code = layout.responses_on(tasks, task)
    weight = layout.weights_or_ones(weight, len(code))
    return np.insert(weight, start[1:][more != 0.0], of_prior)
