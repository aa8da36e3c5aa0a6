"""Pooling: the responses on all tasks of a node, so that the node is an ordinary task.

The score of a node is Σ over its tasks of (log prior + Σ log table[code] over responses). A task's
sweep adds log prior once and looks up one row of the table per response. So the prior of every
task but the first is written as one more response, whose row of the table is log prior. Tasks that
are flipped get codes of their own, whose rows are those of the plain codes with the two classes
exchanged.

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

from tiebreak.inference.exact_links.merge import OPEN, Merged
from tiebreak.inference.exact_links.numbers import NO_VISIT, PoolCodes, TaskCodes
from tiebreak.inference.exact_links.plan import Plan
from tiebreak.kernels import layout
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import FREE, LINKED, ByTask, Codes, Floats, Mask, Offsets


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
    place = np.flatnonzero(is_open[merged.node])
    place = place[np.argsort(pool_node[merged.node[place]], kind="stable")]
    return (
        TaskCodes(merged.task[place]),
        PoolCodes(pool_node[merged.node[place]]),
        merged.flip[place],
    )


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
    if weight is None:
        weight = np.ones(len(code))
    return np.insert(weight, start[1:][more != 0.0], of_prior)
