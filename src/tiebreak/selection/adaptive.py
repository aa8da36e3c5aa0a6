"""Adaptive: the next pairs by what their answers are worth.

Every class has a core, the group that represents it best: a few sure tasks, and those found to be
the same. A doubtful task is asked against the core of its likeliest class; after "different", the
next. With two classes one core serves both, since "different" is as good as "same".

A core that is wrong would mislead all that is asked against it. So cores are checked first, while
little depends on them: those of two classes that the crowd may have confused against each other
and, with two classes, the core against another sure task until it leads by two. A core that turns
out to be another class joins that class, and its class gets a new one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.kernels.layout import Floats, Offsets
from tiebreak.links.graph import pair_keys
from tiebreak.selection import value
from tiebreak.selection.state import TaskState

MOST_CHECKS = 0.15  # of all questions, or
FIRST_CHECKS = 0.035  # of the tasks, whichever is more: checks come first
CONFUSED = 0.06  # share of a class that may be another one, above which their cores are checked
MOST_PARTNERS = 64  # members of a core that questions of one batch are asked against
LEAD = 2  # of sure tasks for a core over those against it, with two classes


class PairGain(NamedTuple):
    """A pair of tasks, by id or by code, and how many labels an answer is expected to correct."""

    left: Any
    right: Any
    gain: float


def choose(
    state: TaskState, n: int, rng: np.random.Generator, *, check: bool = True
) -> list[PairGain]:
    """Choose n pairs, or all where fewer are open; no two about one doubtful super-task.

    A check of a core puts hardly a label right itself. It counts for as much as the best question
    that it makes safe, or a reader of gains would think that nothing is left to ask.
    """
    batch = _Batch(state, rng)
    if check:
        batch.check_cores(n)
    n_checks = len(batch.questions)
    batch.settle_doubtful(n)
    checks = batch.questions[:n_checks]
    doubtful = batch.questions[n_checks:]
    if not checks:
        return doubtful
    next_ones = doubtful or choose(state, 1, np.random.default_rng(0), check=False)
    best = max((pair.gain for pair in next_ones), default=0.0)
    return [pair._replace(gain=max(pair.gain, best)) for pair in checks] + doubtful


class _Batch:
    """One batch of questions in the making."""

    def __init__(self, state: TaskState, rng: np.random.Generator) -> None:
        self.state = state
        self.rng = rng
        self.n_tasks, self.n_classes = state.q.shape
        self.unit = state.unit()
        self.stake = state.at_stake()
        self.task = np.flatnonzero(state.among)
        self.likeliest = state.own.argmax(axis=1)
        self.sureness = state.own.max(axis=1)
        self.is_sure = np.zeros(self.n_tasks, dtype=bool)  # the surer half of each class
        for k in range(self.n_classes):
            of_class = self.task[self.likeliest[self.task] == k]
            if len(of_class):
                median = np.median(self.sureness[of_class])
                self.is_sure[of_class] = self.sureness[of_class] >= median
        self.cores, self.lead = self._find_cores()
        self.questions: list[PairGain] = []
        self.asked: set[int] = set()  # keys of pairs of units in this batch
        self.touched: set[int] = set()  # units that a question of this batch settles
        self._drawn: dict[int, Offsets] = {}

    def _find_cores(self) -> tuple[dict[int, int], Floats]:
        """Return the group that represents each class, one for both of two classes, under 0.

        With two classes also by how many sure tasks each group is rather one than the other.
        """
        implied, size = self.state.implied, self.state.size
        # Sure tasks of each group by their likeliest class, (n_groups, n_classes).
        sure = self.task[self.is_sure[self.task]]
        of_group = self.likeliest[sure] ^ implied.flip[sure]
        cells = implied.group[sure].astype(np.int64) * self.n_classes + of_group
        counted = np.bincount(cells, minlength=len(size) * self.n_classes)
        support = counted.reshape(-1, self.n_classes).astype(np.float64)
        surest = np.zeros(len(size))
        np.maximum.at(surest, implied.group[self.task], self.sureness[self.task])
        if self.n_classes == 2:
            lead = np.abs(support[:, 0] - support[:, 1])
            there = np.unique(implied.group[self.task]).astype(np.int64)
            return ({0: _last(there, lead, size, surest)} if len(there) else {}), lead
        share = support / np.maximum(support.sum(axis=0), 1.0)
        represents = share.argmax(axis=1)
        cores = {}
        for k in range(self.n_classes):
            candidates = np.flatnonzero((represents == k) & (support[:, k] > 0.0))
            if len(candidates):
                cores[k] = _last(candidates, support[:, k], size, surest)
        return cores, np.empty(0)

    def check_cores(self, n: int) -> None:
        """Ask whether cores are what they seem, as far as checks may go."""
        linked, n_asked = self.state.linked, self.state.n_links + n
        n_checked = 0
        if linked is not None:
            n_checked = int((self.is_sure[linked.left] & self.is_sure[linked.right]).sum())
        most = max(MOST_CHECKS * n_asked, min(FIRST_CHECKS * len(self.task), n_asked), 1.0)
        most = min(most - n_checked, n)
        if self.n_classes > 2:  # cores of classes that the crowd may have confused
            for j, k in _confused(self.state.own[self.task], self.likeliest[self.task]):
                if len(self.questions) + 1 > most:
                    break
                if j in self.cores and k in self.cores:
                    self._ask(int(self._members(self.cores[j])[0]), self.cores[k])
        elif self.cores:  # the core against other sure tasks until it leads
            core, group = self.cores[0], self.state.group
            alone = self.is_sure[self.task] & (self.state.size[group[self.task]] == 1)
            others = self.task[alone & (group[self.task] != core)]
            n_checks = max(int(min(LEAD - self.lead[core], most)), 0)
            for other in self.rng.permutation(others)[:n_checks].tolist():
                self._ask(other, core)

    def settle_doubtful(self, n: int) -> None:
        """Ask the tasks with most to gain against the core of their likeliest open class."""
        _, first = np.unique(self.unit[self.task], return_index=True)
        task = self.task[first]  # one of each unit
        gain = value.settling_gain(self.state.q[task]) * self.stake[task]
        order = task[np.argsort(-gain, kind="stable")].tolist()
        for _ in range(self.n_classes - 1):  # one question a unit, then, where n is large, a second
            for i in order:
                if len(self.questions) >= n:
                    return
                if int(self.unit[i]) in self.touched:
                    continue
                likeliest = [0]  # the core of both of two classes
                if self.n_classes > 2:
                    likeliest = np.argsort(-self.state.q[i], kind="stable").tolist()
                for k in likeliest:
                    if k in self.cores and self._ask(i, self.cores[k]):
                        break
            self.touched.clear()

    def _ask(self, task: int, core: int) -> bool:
        """Add the question whether a task is the same as a member of a core, if it is open."""
        partners = self._members(core)
        units = self.unit[partners].astype(np.int64)
        own = np.full(len(partners), self.unit[task], dtype=np.int64)
        keys = pair_keys(own, units, self.n_tasks)
        is_known = self.state.is_known(np.full(len(partners), task, dtype=np.int64), partners)
        is_open = ~is_known & ~np.isin(keys, list(self.asked))
        if not is_open.any():
            return False
        at = int(self.rng.choice(np.flatnonzero(is_open)))
        partner = int(partners[at])
        q = self.state.q[[task, partner]]
        gain = self.stake[[task, partner]] @ value.link_gain(q, q[::-1])
        self.questions.append(PairGain(task, partner, float(gain)))
        self.asked.add(int(keys[at]))
        self.touched.add(int(self.unit[task]))
        return True

    def _members(self, group: int) -> Offsets:
        if group not in self._drawn:
            found = self.task[self.state.group[self.task] == group]
            size = min(len(found), MOST_PARTNERS)
            self._drawn[group] = self.rng.choice(found, size=size, replace=False)
        return self._drawn[group]


def _confused(own: Floats, likeliest: Offsets) -> list[tuple[int, int]]:
    """Return pairs of classes that may be confused, by the share of one that may be the other."""
    n_classes = own.shape[1]
    share = np.zeros((n_classes, n_classes))
    for k in range(n_classes):
        if (likeliest == k).any():
            share[k] = own[likeliest == k].mean(axis=0)
    share = np.triu(np.maximum(share, share.T), 1)
    pairs = np.argwhere(share >= CONFUSED)
    order = np.argsort(-share[tuple(pairs.T)], kind="stable")
    return [(int(j), int(k)) for j, k in pairs[order]]


def _last(candidates: Offsets, *keys: Floats | Offsets) -> int:
    """Return the candidate with the largest first key; ties by the second, and so on."""
    return int(candidates[np.lexsort([key[candidates] for key in reversed(keys)])[-1]])
