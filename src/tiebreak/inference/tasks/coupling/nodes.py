"""Nodes: the responses on the tasks of a group, laid out as those of one task.

The score of a node is Σ over its tasks of (log prior + Σ log table[code] over responses). A sweep
adds the prior once; `draws` says how often it counts in all. Duplicates are one draw of the class,
whose prior they share evenly ([eq:sampling]): of three copies, two of them in one node, that node
has 2/3 of a draw and the other one 1/3, so that it does not matter which copy comes first.

With two classes a task may be flipped: it has the other class than its node. Its responses get
codes of their own, whose rows of the table are those of the plain codes with the classes exchanged,
and its share of the prior is exchanged too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiebreak.kernels import layout
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import LINKED, ByTask, Codes, Floats, Offsets
from tiebreak.links.graph import Implications, LinkCodes, components


@dataclass
class Nodes:
    """The nodes as tasks, and the tasks (members) that each stands for, sorted by node."""

    tasks: ByTask  # one per node
    task: Codes  # (n_members,)
    node: Codes  # (n_members,)
    flip: Codes  # (n_members,) 1: the task has the other one of two classes
    pays: Floats  # (n_members,) how much of the prior of its class each has
    unit: Codes | None  # (n_members,) equal for copies of one task; None: no two are copies

    def __post_init__(self) -> None:
        n_nodes = self.tasks.n_tasks
        self.has_flips = bool(self.flip.any())
        self.draws = np.bincount(self.node, self.pays * (self.flip == 0), n_nodes)
        self.flipped_draws = np.bincount(self.node, self.pays * self.flip, n_nodes)
        self._first: Offsets = np.flatnonzero(np.diff(self.node, prepend=-1))
        self._several: Offsets = np.flatnonzero((self.draws != 1.0) | (self.flipped_draws != 0.0))

    def score(
        self, backend: Backend, log_prior: Floats, log_table: Floats, n_threads: int
    ) -> Floats:
        """Return the scores of the nodes, (n_nodes, n_classes)."""
        table = np.concatenate([log_table, log_table[:, ::-1]]) if self.has_flips else log_table
        scores: Floats = backend.score_tasks(self.tasks, log_prior, table, n_threads)
        at = self._several
        scores[at] += (self.draws[at] - 1.0)[:, None] * log_prior
        scores[at] += self.flipped_draws[at, None] * log_prior[::-1]
        return scores

    def tally(self, q: Floats, backend: Backend, n_threads: int) -> tuple[Floats, Floats]:
        """Return what the members add to counts by code, and to totals by class."""
        everyone = np.ones(len(q), dtype=bool)
        counts, totals = backend.tally(q, self.tasks, everyone, n_threads)
        if self.has_flips:
            plain, flipped = np.split(counts, 2)
            counts = plain + flipped[:, ::-1]
        at = self._several
        totals = totals + (self.draws[at] - 1.0) @ q[at] + self.flipped_draws[at] @ q[at, ::-1]
        return counts, totals

    def add_up(self, of_members: Floats) -> Floats:
        """Return for each node the sum over its members, (n_nodes, n_classes)."""
        if not len(of_members):
            return of_members
        return np.asarray(np.add.reduceat(self._exchanged(of_members), self._first))

    def members_of(self, q: Floats) -> Floats:
        """Return for each member the row of its node, (n_members, n_classes)."""
        return self._exchanged(q[self.node])

    def _exchanged(self, rows: Floats) -> Floats:
        """Return rows of the members with the two classes of flipped ones exchanged."""
        if not self.has_flips:
            return rows
        return np.where(self.flip[:, None] == 1, rows[:, ::-1], rows)


def nodes_of(
    tasks: ByTask, implied: Implications, node: Codes, n_classes: int, unit: Codes | None = None
) -> Nodes:
    """Lay out the responses on the members of each node: [eq:super-task].

    Parameters
    ----------
    node
        (n_groups,) of each group of `implied`, -1 where its class is known.
    unit
        (n_tasks,) equal for copies of one task; None: there are none.
    """
    place = np.flatnonzero(node[implied.group] >= 0)
    place = place[np.argsort(node[implied.group[place]], kind="stable")]
    task, flip, of_member = implied.task[place], implied.flip[place], node[implied.group[place]]
    start, code = layout.responses_on(tasks, task)
    n_codes = tasks.n_codes
    if flip.any():
        code += np.repeat(flip * np.int32(n_codes), np.diff(start))
        n_codes *= 2
    is_last = np.diff(of_member, append=-1) != 0
    start = np.append(0, start[1:][is_last])
    role = np.full(len(start) - 1, LINKED, dtype=np.int8)
    weight = layout.weights_on(tasks, task)
    laid_out = layout.lay_out(start, code, role, n_codes, n_classes, weight)
    pays = np.ones(len(task)) if unit is None else _shares(unit, task, of_member, flip)
    return Nodes(laid_out, task, of_member, flip, pays, None if unit is None else unit[task])


def _shares(unit: Codes, task: Codes, node: Codes, flip: Codes) -> Floats:
    """Return how much of the prior of its class each member has.

    Copies share it evenly. Those that are one node have it together, at the first of them: where
    all are, that is one whole prior.
    """
    n_nodes = int(node.max(initial=0)) + 1
    together = (unit[task].astype(np.int64) * n_nodes + node) * 2 + flip
    _, first, n_copies = np.unique(together, return_index=True, return_counts=True)
    pays = np.zeros(len(task))
    pays[first] = n_copies / np.bincount(unit)[unit[task[first]]]
    return pays


def units_of_copies(links: LinkCodes, n_tasks: int) -> Codes | None:
    """Number copies of one task alike: components of duplicates; None where there are none."""
    if links.duplicate is None or not links.duplicate.any():
        return None
    return components(n_tasks, links.left[links.duplicate], links.right[links.duplicate])
