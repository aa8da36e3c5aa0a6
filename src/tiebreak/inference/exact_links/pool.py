"""Pooling: tasks that hard links made one are one task, with the responses on all of them.

The prior of a task is written as one more response, so that a node of m tasks is an ordinary task
with its own prior and m − 1 such responses. Flipped tasks answer with codes of their own, whose
rows of a table are those of the plain codes with the two classes exchanged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.inference.exact_links.merge import OPEN, Merged
from tiebreak.inference.exact_links.plan import Plan
from tiebreak.kernels import layout
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import FREE, LINKED, ByTask, Codes, Floats, Mask, Offsets


class Members(NamedTuple):
    """Which tasks a node stands for, sorted by node."""

    task: Codes  # (n_members,)
    node: Codes  # (n_members,)
    flip: Codes  # (n_members,) 1: the task has the other one of two classes

    @property
    def is_first(self) -> Mask:
        """Which members are the first of their nodes; those are never flipped."""
        return np.asarray(np.diff(self.node, prepend=OPEN) > 0)


class Pool(NamedTuple):
    """The open nodes as tasks: those that no link ties to others, then those that are planned."""

    nodes: ByTask  # LINKED from n_alone on
    n_alone: int
    members: Members
    begin: Offsets  # (n_members + 1,) where the responses of each member begin among those of nodes
    has_flips: bool

    def logs(self, log_prior: Floats, log_table: Floats) -> tuple[Floats, Floats]:
        """Return expected logs with rows for the prior and for what flipped tasks answer."""
        table = np.concatenate([log_table, log_prior[None]])
        return log_prior, np.concatenate([table, table[:, ::-1]]) if self.has_flips else table

    def folded(self, counts: Floats, totals: Floats) -> tuple[Floats, Floats]:
        """Return counts by plain code, and totals over tasks instead of nodes."""
        counts = self._unflipped(counts)
        return counts[:-1], totals + counts[-1]

    def _unflipped(self, counts: Floats) -> Floats:
        if not self.has_flips:
            return counts
        plain, flipped = np.split(counts, 2)
        return np.asarray(plain + flipped[:, ::-1])

    def count_members(self, q: Floats, backend: Backend, n_threads: int) -> tuple[Floats, Floats]:
        """Return what the members add to counts and totals at q, which need not be one a node."""
        nodes, rows = self.nodes, q[self.members.task]
        role = np.full(len(rows), LINKED, dtype=np.int8)
        alone = layout.lay_out(self.begin, nodes.code, role, nodes.n_codes, q.shape[1])
        counts, _ = backend.tally(self._turned(rows), alone, role == LINKED, n_threads)
        return self._unflipped(counts)[:-1], rows.sum(axis=0)

    def gather(self, q: Floats) -> Floats:
        """Return the mean of the rows of q of the members of each node."""
        first = np.flatnonzero(self.members.is_first)
        n_members = np.diff(first, append=len(self.members.task))
        rows = self._turned(q[self.members.task])
        return np.asarray(np.add.reduceat(rows, first) / n_members[:, None]) if len(rows) else rows

    def spread(self, q: Floats, beliefs: Floats) -> None:
        """Set the rows of q of the members to the beliefs of their nodes."""
        q[self.members.task] = self._turned(beliefs[self.members.node])

    def _turned(self, rows: Floats) -> Floats:
        """Return rows of the members with the two classes of flipped ones exchanged."""
        if not self.has_flips:
            return rows
        return np.where(self.members.flip[:, None] == 1, rows[:, ::-1], rows)


def pool(tasks: ByTask, merged: Merged, plan: Plan, n_classes: int, *, everyone: bool) -> Pool:
    """Gather the responses on the members of each open node: [eq:super-task].

    With `everyone`, each other task is a node too, in its role, so that all lie side by side.
    """
    members = _members(merged, plan)
    role = np.repeat(np.array([FREE, LINKED], dtype=np.int8), [plan.n_free, plan.network.n_nodes])
    if everyone:
        members, others = _with_others(members, tasks.n_tasks)
        role = np.concatenate([tasks.role[others], role])
    begin, code = _codes(tasks, members)
    start = np.append(begin[:-1][members.is_first], begin[-1])
    has_flips = bool(members.flip.any())
    n_codes = (tasks.n_codes + 1) * (2 if has_flips else 1)
    nodes = layout.lay_out(start, code, role, n_codes, n_classes)
    return Pool(nodes, len(role) - plan.network.n_nodes, members, begin, has_flips)


def _members(merged: Merged, plan: Plan) -> Members:
    """Return the members of open nodes: those that nothing ties, then in the order of visits."""
    is_open = merged.node_class == OPEN
    number = plan.visit + plan.n_free
    is_free = is_open & (plan.visit == OPEN)
    number[is_free] = np.arange(plan.n_free)
    waits = is_open[merged.node]
    node = number[merged.node[waits]]
    order = np.argsort(node, kind="stable")
    return Members(merged.task[waits][order], node[order], merged.flip[waits][order])


def _with_others(members: Members, n_tasks: int) -> tuple[Members, Codes]:
    """Put a node for each other task before the rest; return also these tasks."""
    is_other = np.ones(n_tasks, dtype=bool)
    is_other[members.task] = False
    others = np.flatnonzero(is_other).astype(np.int32)
    alone = Members(others, np.arange(len(others), dtype=np.int32), np.zeros_like(others))
    moved = members._replace(node=members.node + np.int32(len(others)))
    both = (np.concatenate(pair) for pair in zip(alone, moved, strict=True))
    return Members(*both), others


def _codes(tasks: ByTask, members: Members) -> tuple[Offsets, Codes]:
    """Return the responses on the members, one after the other; all but the first add their prior.

    The prior of the first member of a node is the node's own.
    """
    follows = ~members.is_first
    start, code = layout.responses_on(tasks, members.task)
    begin = start + np.concatenate([[0], np.cumsum(follows)])
    code = np.insert(code, start[1:][follows], tasks.n_codes)
    if members.flip.any():
        code += np.repeat(members.flip * np.int32(tasks.n_codes + 1), np.diff(begin))
    return begin, code
