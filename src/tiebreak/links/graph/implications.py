"""Implications: what follows from links that hold for sure and from known labels.

Made once per fit; checking, merging, mean field, selection and asking read it. An example with
four linked tasks, 3, 5, 8 and 9, and the links 3 = 8, 8 ≠ 9, 5 ≠ 9:

    place                  0  1  2  3
    task                   3  5  8  9
    group, three classes   0  1  0  2     groups apart: (0, 2), (1, 2)
    group, two classes     0  0  0  0     none apart: all are tied
    flip,  two classes     0  0  0  1     9 is the opposite of the others

Where task 3 is known to have class 1 of two, the class of group 0 is 1, and 9 has class 1 ^ 1 = 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tiebreak.kernels.layout import Codes, Mask, Offsets
from tiebreak.links.graph.closure import (
    AnyCodes,
    Closure,
    LinkCodes,
    Parity,
    between_groups,
    close,
    each_once,
    first_members,
    neighbours,
    pair_keys,
    parity,
)

if TYPE_CHECKING:
    from tiebreak.links.graph.chains import Chains, ChainStep

OPEN = -1  # the class of a group that is not known, and what is implied where nothing is
SAME = 1
DIFFERENT = 0


@dataclass(frozen=True, slots=True, eq=False)
class Implications:
    """What follows from links that hold for sure and from known labels.

    Tied tasks share a group. With two classes links of either kind tie, and a task may be the
    opposite of its group; with more, must-links tie and cannot-links set groups apart. `closure` is
    what follows for any number of classes: its groups are tied by must-links alone.
    """

    task: Codes  # (n_linked,) the tasks that links name, sorted; what follows goes by place in it
    links: LinkCodes  # those that hold for sure, ends by place
    n_classes: int
    closure: Closure
    known: Known | None  # what known labels imply for the groups of the closure
    group: Codes  # (n_linked,)
    flip: Codes  # (n_linked,) 1: the opposite of its group, with two classes
    left: Codes  # groups apart, sorted pairs; none with two classes
    right: Codes
    group_class: Codes  # (n_groups,) the known class of each group, or OPEN
    odd: Offsets  # two classes: places of links that close odd cycles, contradictions aside

    def implied(self, a: AnyCodes, b: AnyCodes) -> Codes:
        """Return SAME, DIFFERENT or OPEN for each pair of tasks a[p], b[p].

        >>> left, right = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
        >>> links = LinkCodes(left, right, np.array([True, False]), None, None, np.arange(2))
        >>> imply(links, 3).implied(np.array([0, 0, 4, 0]), np.array([1, 2, 4, 4])).tolist()
        [1, 0, 1, -1]
        """
        found = np.where(a == b, SAME, OPEN).astype(np.int32)
        linked = np.flatnonzero(np.isin(a, self.task) & np.isin(b, self.task))
        i = np.searchsorted(self.task, a[linked])
        j = np.searchsorted(self.task, b[linked])
        tied = self.group[i] == self.group[j]
        label_i = self._label(i)
        label_j = self._label(j)
        is_known = (label_i != OPEN) & (label_j != OPEN)
        agree = np.where(tied, self.flip[i] == self.flip[j], label_i == label_j)
        settled = tied | is_known | self._are_apart(self.group[i], self.group[j])
        found[linked[settled]] = np.where((tied | is_known) & agree, SAME, DIFFERENT)[settled]
        return found

    def why(self, a: int, b: int, *, same: bool) -> list[ChainStep]:
        """Return a shortest chain of links that makes two tasks the same class, or different.

        The origin of a step is the place of its link among `links`; empty where no chain does.
        A chain that holds for any number of classes comes before one that needs two classes.
        """
        ends = self.group[np.searchsorted(self.task, [a, b])]
        left = self.group[self.links.left]
        right = self.group[self.links.right]
        near = np.flatnonzero(np.isin(left, ends) & np.isin(right, ends))
        steps = self._chains(near, two_classes=False).shortest(a, b, same=same)
        if not steps and self.n_classes == 2:
            steps = self._chains(near, two_classes=True).shortest(a, b, same=same)
        return [step._replace(origin=int(near[step.origin])) for step in steps]

    def why_odd(self) -> list[ChainStep]:
        """Return a cycle that two classes cannot satisfy: an odd number of cannot-links."""
        group = self.group[self.links.left]
        near = np.flatnonzero(group == group[self.odd[0]])
        near = np.setdiff1d(near, self.closure.conflicts)
        start = int(self.task[self.links.left[self.odd[0]]])
        cycle = self._chains(near, two_classes=True).odd_cycle(start)
        return [step._replace(origin=int(near[step.origin])) for step in cycle]

    def surely_hold(self) -> bool:
        """Say whether one look shows that all links can hold, and known labels with them.

        A group finds a class left, whatever others get, where it is apart from fewer groups than
        there are classes. Where this says no, `links.check` looks closer.
        """
        if len(self.closure.conflicts) or len(self.odd):
            return False
        if self.known is not None and self.known.conflicts:
            return False
        return self.n_classes == 2 or self.closure.most_apart() < self.n_classes

    def known_labels(self) -> tuple[Codes, Codes]:
        """Return the linked tasks whose class is known or follows, and their classes."""
        if self.known is None:
            return self.task[:0], self.task[:0]
        label = self.known.group_class[self.closure.group]
        place = np.flatnonzero(label != OPEN)
        return self.task[place], label[place]

    def without_contradictions(self) -> Implications:
        """Return the same without the cannot-links that must-links contradict."""
        kept = np.delete(np.arange(self.links.n_links), self.closure.conflicts)
        return replace(
            self,
            links=self.links.keep(kept),
            closure=self.closure._replace(conflicts=kept[:0]),
            odd=np.searchsorted(kept, self.odd),
        )

    def renumbered(self, code: Codes) -> Implications:
        """Return the same for tasks that have other codes now: code[task], in the same order."""
        return replace(self, task=code[self.task])

    def _label(self, place: Offsets) -> Codes:
        label = self.group_class[self.group[place]]
        return np.where(label == OPEN, OPEN, label ^ self.flip[place])

    def _are_apart(self, one: Codes, other: Codes) -> Mask:
        keys = pair_keys(self.left, self.right, len(self.group_class))
        return np.isin(pair_keys(one, other, len(self.group_class)), keys)

    def _chains(self, places: Offsets, *, two_classes: bool) -> Chains:
        from tiebreak.links.graph.chains import Chains

        links = self.links.keep(places)
        by_task = links._replace(left=self.task[links.left], right=self.task[links.right])
        return Chains.along(by_task, two_classes=two_classes)


def imply(
    links: LinkCodes,
    n_classes: int,
    *,
    tasks: Codes | None = None,
    firm: Mask | None = None,
    gold: tuple[Codes, Codes] | None = None,
) -> Implications:
    """Find what follows from links and known labels.

    Parameters
    ----------
    tasks
        The tasks to speak of, sorted, those of all links among them; None: those that links name.
    firm
        (n_links,) which links hold for sure; None: those without weight.
    gold
        Known tasks and their classes.
    """
    task = links.tasks() if tasks is None else tasks
    holds = links.is_hard if firm is None else firm
    sure = links.keep(holds)._replace(weight=None).among(task)
    closure = close(len(task), sure)
    tied = parity(len(task), sure) if n_classes == 2 else None
    known = None
    if gold is not None:
        gold_task, gold_label = gold
        is_linked = np.isin(gold_task, task)
        place = np.searchsorted(task, gold_task[is_linked]).astype(np.int32)
        of_groups = None if tied is None else _parity_of_groups(tied, closure)
        known = propagate(closure, place, gold_label[is_linked], n_classes, of_groups)
    if tied is None:
        return _tied_by_must(task, sure, n_classes, closure, known)
    return _tied_by_both(task, sure, closure, known, tied)


def _tied_by_must(
    task: Codes, links: LinkCodes, n_classes: int, closure: Closure, known: Known | None
) -> Implications:
    n_groups = closure.n_groups
    return Implications(
        task,
        links,
        n_classes,
        closure,
        known,
        group=closure.group,
        flip=np.zeros(len(task), dtype=np.int32),
        left=closure.left,
        right=closure.right,
        group_class=np.full(n_groups, OPEN, np.int32) if known is None else known.group_class,
        odd=np.empty(0, dtype=np.int64),
    )


def _tied_by_both(
    task: Codes, links: LinkCodes, closure: Closure, known: Known | None, tied: Parity
) -> Implications:
    """With two classes a group is all that links of either kind join to one root."""
    root, group = np.unique(tied.root, return_inverse=True)
    group_class = np.full(len(root), OPEN, dtype=np.int32)
    if known is not None:
        group_class = known.group_class[closure.group[root]]
    none = np.empty(0, dtype=np.int32)
    return Implications(
        task,
        links,
        2,
        closure,
        known,
        group=group.astype(np.int32),
        flip=tied.parity.astype(np.int32),
        left=none,
        right=none,
        group_class=group_class,
        odd=np.setdiff1d(tied.conflict, closure.conflicts),
    )


def _parity_of_groups(tied: Parity, closure: Closure) -> Parity:
    """Return the parity of the groups of a closure from that of their tasks."""
    first = first_members(closure.group, closure.n_groups)
    return Parity(closure.group[tied.root[first]], tied.parity[first], tied.conflict)


Conflict = tuple[str, *tuple[int, ...]]


class Known(NamedTuple):
    """What known labels imply: the class of each group, -1 where it stays open, and conflicts.

    task[g] was given as label[g]. `conflicts` holds one tuple each:

        ("must", task, task)      one group, two known classes
        ("cannot", group, group)  two groups apart, one known class
        ("chain", group, group)   two classes only: a chain of cannot-links between two groups
                                  does not fit their known classes
        ("none", group)           no class is left for this group
    """

    task: Codes
    label: Codes
    group_class: Codes
    conflicts: list[Conflict]


def propagate(
    closure: Closure,
    gold_task: Codes,
    gold_label: Codes,
    n_classes: int,
    tied: Parity | None = None,
) -> Known:
    """Find what known labels imply: a group has its known class, groups apart lose it.

    A group with one class left has it, and so on until nothing changes. With two classes the
    parity of chains does this in one pass; the cannot-links must then have no odd cycle. `tied` is
    that parity of the groups, where it is known already.

    >>> from tiebreak.links.graph import LinkCodes, close
    >>> left, right = np.array([0, 1, 2], np.int32), np.array([1, 2, 3], np.int32)
    >>> links = LinkCodes(left, right, np.array([True, False, False]), None, None, np.arange(3))
    >>> propagate(close(4, links), np.array([0]), np.array([1]), 2).group_class.tolist()
    [1, 0, 1]
    """
    group_class, conflicts = _known_groups(closure, gold_task, gold_label)
    left_class = group_class[closure.left]
    equal = np.flatnonzero((left_class == group_class[closure.right]) & (left_class >= 0))
    conflicts += [("cannot", int(closure.left[h]), int(closure.right[h])) for h in equal]
    if n_classes == 2:
        if tied is None:
            tied = parity(closure.n_groups, between_groups(closure))
        conflicts += _imply_two(closure, group_class, tied)
    else:
        conflicts += _imply_many(closure, group_class, n_classes)
    return Known(gold_task, gold_label, group_class, conflicts)


def _known_groups(
    closure: Closure, gold_task: Codes, gold_label: Codes
) -> tuple[Codes, list[Conflict]]:
    """Return the known class of each group, that of its first known task, and who disagrees."""
    order = np.argsort(gold_task, kind="stable")
    task = gold_task[order]
    label = gold_label[order]
    found, first, inverse = np.unique(closure.group[task], return_index=True, return_inverse=True)
    group_class = np.full(closure.n_groups, -1, dtype=np.int32)
    group_class[found] = label[first]
    differs = np.flatnonzero(label != label[first][inverse])
    return group_class, [("must", int(task[first[inverse[g]]]), int(task[g])) for g in differs]


def _imply_two(closure: Closure, group_class: Codes, tied: Parity) -> list[Conflict]:
    """Fill in what the parity of chains implies; return the known groups that do not fit."""
    known = np.flatnonzero(group_class >= 0)
    first_known = np.full(closure.n_groups, -1, dtype=np.int64)  # the first known group of a root
    first_known[tied.root[known[::-1]]] = known[::-1]
    settled = np.flatnonzero(first_known[tied.root] >= 0)
    source = first_known[tied.root[settled]]
    implied = group_class[source] ^ tied.parity[source] ^ tied.parity[settled]
    is_open = group_class[settled] < 0
    wrong = np.flatnonzero(~is_open & (group_class[settled] != implied))
    group_class[settled[is_open]] = implied[is_open]
    is_apart = np.isin(
        pair_keys(source[wrong], settled[wrong], closure.n_groups),
        pair_keys(closure.left, closure.right, closure.n_groups),
    )
    chained = wrong[~is_apart]  # groups apart are reported as such
    ends = zip(source[chained].tolist(), settled[chained].tolist(), strict=True)
    return [("chain", a, b) for a, b in ends]


def _imply_many(closure: Closure, group_class: Codes, n_classes: int) -> list[Conflict]:
    """Fill in classes until nothing changes; return the groups that no class is left for.

    Only a group with n_classes - 1 neighbours or more can get its class from them. There are so few
    of those that one flag per class for each takes no more memory than the links.
    """
    near = neighbours(closure.n_groups, closure.left, closure.right)
    waiting = np.flatnonzero((np.diff(near.start) >= n_classes - 1) & (group_class < 0))
    row = np.full(closure.n_groups, -1, dtype=np.int64)
    row[waiting] = np.arange(len(waiting))
    is_left = np.ones((len(waiting), n_classes), dtype=bool)

    def strike(groups: Offsets) -> Offsets:
        """Take the classes of these groups from their neighbours; return the rows that changed."""
        place, other = near.of(groups)
        is_waiting = row[other] >= 0
        struck = row[other[is_waiting]]
        is_left[struck, group_class[groups[place[is_waiting]]]] = False
        return each_once(struck)

    stuck: set[int] = set()
    strike(np.flatnonzero(group_class >= 0))
    changed = np.arange(len(waiting))
    while len(changed):
        n_left = is_left[changed].sum(axis=1)
        stuck.update(waiting[changed[n_left == 0]].tolist())
        single = changed[(n_left == 1) & (group_class[waiting[changed]] < 0)]
        group_class[waiting[single]] = is_left[single].argmax(axis=1)
        changed = strike(waiting[single])
    return [("none", group) for group in sorted(stuck)]
