"""The graph of links, in codes: each pair once, and what follows from them and from known labels.

Must-links join tasks to groups, cannot-links set groups apart: that is the closure. With two
classes a link of either kind ties two tasks, equal or opposite: that is their parity. Nothing is
written out pair by pair, so that nothing grows faster than tasks and links.

`imply` finds all of it, once per fit; checking, merging, mean field, selection and asking read it.
An example with four linked tasks, 3, 5, 8 and 9, and the links 3 = 8, 8 ≠ 9, 5 ≠ 9:

    place                  0  1  2  3
    task                   3  5  8  9
    group, three classes   0  1  0  2     groups apart: (0, 2), (1, 2)
    group, two classes     0  0  0  0     none apart: all are tied
    flip,  two classes     0  0  0  1     9 is the opposite of the others

Where task 3 is known to have class 1 of two, the class of group 0 is 1, and 9 has class 1 ^ 1 = 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.data.gold import GoldCodes
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets

if TYPE_CHECKING:
    from tiebreak.links.chains import Chains, ChainStep

AnyCodes = npt.NDArray[np.signedinteger[Any]]
Conflict = tuple[str, *tuple[int, ...]]

ROUNDING = 1e-12  # weights that cancel but for rounding leave no link
DENSE = 16  # codes for each value: up to here a table of all codes is made sooner than searches

OPEN = -1  # the class of a group that is not known, and what is implied where nothing is
SAME = 1
DIFFERENT = 0

# -- links, each pair once -------------------------------------------------------------------------


class LinkCodes(NamedTuple):
    """Links in the codes of a crowd, each unordered pair once: left[e] < right[e].

    `weight` is positive, nan where none was given; None where no link has one. `who` says where
    a link comes from, -1 where that is not known. `row` is the place in the links given.
    """

    left: Codes
    right: Codes
    must: Mask
    weight: Floats | None
    who: Codes | None
    row: Offsets
    duplicate: Mask | None = None  # which must-links join copies of one task; None: none does

    @property
    def n_links(self) -> int:
        """How many links there are (`len` counts the fields)."""
        return len(self.left)

    @property
    def is_hard(self) -> Mask:
        """Which links carry no weight, so that they must hold."""
        if self.weight is None:
            return np.ones(self.n_links, dtype=bool)
        return np.isnan(self.weight)

    def keep(self, index: npt.NDArray[Any]) -> LinkCodes:
        """Return the links at these places, or under this mask."""
        return LinkCodes._make(None if column is None else column[index] for column in self)

    def tasks(self) -> Codes:
        """Return the tasks that links name, sorted, each once."""
        return each_once(np.concatenate([self.left, self.right])).astype(np.int32)

    def among(self, tasks: AnyCodes) -> LinkCodes:
        """Return the links with each task numbered by its place in `tasks`: all of them, sorted."""
        return self._replace(left=places_in(tasks, self.left), right=places_in(tasks, self.right))


def distinct(
    left: AnyCodes, right: AnyCodes, must: Mask, weight: Floats | None, who: Codes | None
) -> LinkCodes:
    """Bring links into one order and one direction, equal ones together.

    Links without weight that say the same collapse to the first. Weights of one pair are added,
    must-links counting positive and cannot-links negative; where they cancel the weight is 0.
    Links from different sources, and links with and without weight, stay apart; so do a must- and
    a cannot-link without weight, which contradict each other.

    >>> pairs = np.array([[4, 1], [1, 4], [0, 4]])
    >>> links = distinct(*pairs.T, np.array([True, False, True]), np.array([2, 3, np.nan]), None)
    >>> links.left.tolist(), links.right.tolist(), links.must.tolist(), links.weight.tolist()
    ([0, 1], [4, 4], [True, False], [nan, 1.0])
    """
    low = np.minimum(left, right)
    high = np.maximum(left, right)
    source = np.full(len(low), -1, np.int32) if who is None else who
    soft = np.zeros(len(low), dtype=bool) if weight is None else ~np.isnan(weight)
    size = np.where(soft, 0.0 if weight is None else weight, 1.0)
    signed = np.where(must, size, -size)
    says = np.where(soft, 2, must)
    order, start = runs_of_equal((low, high, source, says), signed)
    total = np.add.reduceat(signed[order], start)
    total[np.abs(total) <= ROUNDING * np.add.reduceat(size[order], start)] = 0.0
    at = order[start]
    return LinkCodes(
        low[at].astype(np.int32),
        high[at].astype(np.int32),
        total > 0.0,
        None if weight is None else np.where(soft[at], np.abs(total), np.nan),
        None if who is None else source[at],
        np.minimum.reduceat(order, start),
    )


def runs_of_equal(
    keys: tuple[npt.NDArray[Any], ...], within: npt.NDArray[Any] | None = None
) -> tuple[Offsets, Offsets]:
    """Return rows in the order of these keys, and where each run of equal rows begins.

    Equal rows stay in their order, or stand in that of `within`.
    """
    order = np.lexsort((*(() if within is None else (within,)), *keys[::-1]))
    differs = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
    return order, np.flatnonzero(np.append(True, differs)[: len(order)])


def each_once(values: AnyCodes) -> AnyCodes:
    """Return the values sorted, each once: `np.unique`, which is far slower where they are many.

    >>> each_once(np.array([4, 1, 4])).tolist()
    [1, 4]
    """
    ordered = np.sort(values)
    return ordered[np.diff(ordered, prepend=ordered[:1] - 1) > 0]


def places_in(found: AnyCodes, values: AnyCodes) -> Codes:
    """Return where each value stands among codes that are sorted and hold every value once.

    >>> places_in(np.array([1, 4]), np.array([4, 4, 1])).tolist()
    [1, 1, 0]
    """
    n_codes = int(found[-1]) + 1 if len(found) else 0
    if n_codes > DENSE * len(values):
        return np.searchsorted(found, values).astype(np.int32)
    place = np.empty(n_codes, dtype=np.int32)
    place[found] = np.arange(len(found), dtype=np.int32)
    return place[values]


def pair_keys(left: AnyCodes, right: AnyCodes, n: int) -> Offsets:
    """Return one number per unordered pair of codes below n."""
    return np.minimum(left, right).astype(np.int64) * n + np.maximum(left, right)


def violated(label: AnyCodes, links: LinkCodes) -> Mask:
    """Say of each given link whether the labels break it.

    >>> links = LinkCodes(
    ...     *np.array([[0, 0], [1, 2]], np.int32), np.array([True, False]), None, None, np.arange(2)
    ... )
    >>> violated(np.array([0, 1, 1]), links).tolist()
    [True, False]
    """
    return np.asarray((label[links.left] == label[links.right]) != links.must)


# -- closure ---------------------------------------------------------------------------------------


class Closure(NamedTuple):
    """What follows from must- and cannot-links without weights, never written out.

    Task i belongs to group[i]; groups are numbered by their smallest task. left[h] < right[h] are
    the pairs of groups that cannot be the same class, sorted. `conflicts` are the places of
    cannot-links with both ends in one group; they are in no pair of groups.
    """

    group: Codes
    n_groups: int
    size: Offsets
    left: Codes
    right: Codes
    conflicts: Offsets

    @property
    def n_must(self) -> int:
        """How many pairs of tasks must be the same class."""
        return int((self.size * (self.size - 1) // 2).sum())

    @property
    def n_cannot(self) -> int:
        """How many pairs of tasks cannot be the same class, contradictions aside."""
        return int((self.size[self.left] * self.size[self.right]).sum())

    def count_violated(self, label: AnyCodes, n_classes: int) -> int:
        """Count the closed pairs that the labels break.

        Implements [eq:violations], h_A(k) the tasks of group A with label k:

            N = Σ_A [ C(|A|, 2) − Σ_k C(h_A(k), 2) ] + Σ_(A,B) Σ_k h_A(k) h_B(k)
        """
        from scipy.sparse import csr_array

        cell, count = np.unique(self.group * np.int64(n_classes) + label, return_counts=True)
        kept = int((count * (count - 1) // 2).sum())
        cells = np.divmod(cell, n_classes)
        histogram = csr_array((count.astype(np.int64), cells), shape=(self.n_groups, n_classes))
        across = histogram[self.left].multiply(histogram[self.right])
        return self.n_must - kept + int(across.sum())


def components(n_tasks: int, left: AnyCodes, right: AnyCodes) -> Codes:
    """Return the connected component of each task, numbered by smallest member.

    >>> components(5, np.array([3, 1]), np.array([1, 4])).tolist()
    [0, 1, 2, 1, 1]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    linked = each_once(np.concatenate([left, right]))  # most have no link: leave them out
    ends = (places_in(linked, left), places_in(linked, right))
    graph = csr_array((np.ones(len(left), np.int8), ends), shape=(len(linked), len(linked)))
    n_found, label = connected_components(graph, directed=False)
    smallest = linked[first_members(label, n_found)[label]]
    is_smallest = np.ones(n_tasks, dtype=bool)
    is_smallest[linked] = linked == smallest
    component = np.cumsum(is_smallest, dtype=np.int32)
    component -= 1
    component[linked] = component[smallest]
    return component


def spanning_forest(n: int, left: AnyCodes, right: AnyCodes, turn: Offsets) -> Offsets:
    """Return the places of links that join every component without a cycle; earlier turns first."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    _, first = np.unique(pair_keys(left[turn], right[turn], n), return_index=True)
    kept = turn[np.sort(first)]  # one link per pair, in turn
    cost = np.arange(1.0, len(kept) + 1.0)
    graph = csr_array((cost, (left[kept], right[kept])), shape=(n, n))
    return np.sort(kept[minimum_spanning_tree(graph).data.astype(np.int64) - 1])


def first_members(label: AnyCodes, n_labels: int) -> Offsets:
    """Return the smallest task under each label; anything under a label that none has."""
    first = np.empty(n_labels, dtype=np.int64)
    first[label[::-1]] = np.arange(len(label) - 1, -1, -1)  # of equal places the last is kept
    return first


def close(n_tasks: int, links: LinkCodes) -> Closure:
    """Find what follows from links: groups of tasks, and which groups are apart.

    Implements [eq:closure]. Links with a weight are left out: what follows from two doubtful
    answers is more doubtful than either.

    >>> must = np.array([True, True, False])
    >>> left, right = np.array([0, 1, 2], np.int32), np.array([1, 4, 4], np.int32)
    >>> closed = close(5, LinkCodes(left, right, must, None, None, np.arange(3)))
    >>> closed.group.tolist(), closed.left.tolist(), closed.right.tolist()
    ([0, 0, 1, 2, 0], [0], [1])
    """
    hard = links.is_hard
    must = hard & links.must
    cannot = np.flatnonzero(hard & ~links.must)
    group = components(n_tasks, links.left[must], links.right[must])
    size = np.bincount(group).astype(np.int64, copy=False)
    left_group = group[links.left[cannot]]
    right_group = group[links.right[cannot]]
    apart = left_group != right_group
    pair = pair_keys(left_group[apart], right_group[apart], len(size))
    left, right = np.divmod(each_once(pair), max(len(size), 1))
    return Closure(
        group,
        len(size),
        size,
        left.astype(np.int32),
        right.astype(np.int32),
        cannot[~apart],
    )


def between_groups(closure: Closure) -> LinkCodes:
    """Return the pairs of groups that are apart as cannot-links between groups."""
    n_pairs = len(closure.left)
    must = np.zeros(n_pairs, dtype=bool)
    return LinkCodes(closure.left, closure.right, must, None, None, np.arange(n_pairs))


class Neighbours(NamedTuple):
    """The neighbours of each vertex, laid end to end: v has value[start[v]:start[v + 1]]."""

    start: Offsets
    value: AnyCodes

    def of(self, owners: npt.NDArray[Any]) -> tuple[Offsets, AnyCodes]:
        """Return, entry by entry, the place of the owner in `owners` and the neighbour."""
        begin = self.start[owners]
        count = self.start[owners + 1] - begin
        place = np.repeat(np.arange(len(owners)), count)
        offset = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
        return place, self.value[begin[place] + offset]


def neighbours(n: int, left: AnyCodes, right: AnyCodes) -> Neighbours:
    """Return the neighbours of each of n vertices."""
    owner = np.concatenate([left, right])
    start = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=n), out=start[1:])
    return Neighbours(start, np.concatenate([right, left])[np.argsort(owner, kind="stable")])


# -- two classes -----------------------------------------------------------------------------------


class Parity(NamedTuple):
    """With two classes, the class of task i is that of root[i], flipped where parity[i] is 1.

    `root` is the smallest task that links of either kind join to i. Of the links of an odd cycle
    one is broken by this, always a cannot-link.
    """

    root: Codes
    parity: Codes


def parity(n_tasks: int, links: LinkCodes) -> Parity:
    """Tie tasks to roots, equal or opposite, along links without weights.

    Two copies of each task, one per class, are joined straight by must-links and crosswise by
    cannot-links; where no cycle is odd, the copies of a root then split every component in two.
    """
    firm = links.keep(links.is_hard)
    linked = firm.tasks()  # most tasks have no link: leave them out
    n = len(linked)
    left, right, must, *_ = firm.among(linked)
    copy = _components_of_copies(n, left, right, must)
    component = np.minimum(copy[:n], copy[n:])
    if (copy[:n] == copy[n:]).any():  # an odd cycle joins both copies: leave out its last link
        # Must-links go first, so that no cannot-link left out lies inside a group of must-links.
        tree = spanning_forest(n, left, right, np.argsort(~must, kind="stable"))
        copy = _components_of_copies(n, left[tree], right[tree], must[tree])
        component = components(n, left, right)
    head = first_members(component, 2 * n)[component]
    tied = Parity(np.arange(n_tasks, dtype=np.int32), np.zeros(n_tasks, dtype=np.int32))
    tied.root[linked] = linked[head]
    tied.parity[linked] = copy[:n] != copy[head]
    return tied


def _components_of_copies(n: int, left: AnyCodes, right: AnyCodes, must: Mask) -> Codes:
    """Join the copies i and n + i of each task straight or crosswise; return their components."""
    cross = np.where(must, 0, n).astype(left.dtype)
    ends = (np.concatenate([left, left + n]), np.concatenate([right + cross, right + n - cross]))
    return components(2 * n, *ends)


# -- what follows ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Implications:
    """What follows from links that hold for sure and from known labels.

    Tied tasks share a group. With two classes links of either kind tie, and a task may be the
    opposite of its group; with more, must-links tie and cannot-links set groups apart. `closure` is
    what follows for any number of classes: its groups are tied by must-links alone.
    """

    task: Codes  # (n_linked,) the tasks that links name, sorted; what follows goes by place in it
    given: LinkCodes  # all links
    gold: GoldCodes | None  # all known labels, of tasks without links too
    links: LinkCodes  # those that hold for sure, ends by place
    n_classes: int
    closure: Closure
    known: KnownGroups | None  # what known labels imply for the groups of the closure
    group: Codes  # (n_linked,)
    flip: Codes  # (n_linked,) 1: the opposite of its group, with two classes
    left: Codes  # groups apart, sorted pairs; none with two classes
    right: Codes
    group_class: Codes  # (n_groups,) the known class of each group, or OPEN
    odd: Offsets  # two classes: places of links that close odd cycles, contradictions aside

    @property
    def label(self) -> Codes:
        """The class of each linked task, (n_linked,); OPEN where it is not known."""
        of_group = self.group_class[self.group]
        return np.where(of_group == OPEN, OPEN, of_group ^ self.flip)

    def known_labels(self) -> tuple[Codes, Codes]:
        """Return the linked tasks whose class is known or follows, and their classes."""
        label = self.label
        place = np.flatnonzero(label != OPEN)
        return self.task[place], label[place]

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
        n_groups = len(self.group_class)
        keys = pair_keys(self.group[i], self.group[j], n_groups)
        apart = np.isin(keys, pair_keys(self.left, self.right, n_groups))
        tied = self.group[i] == self.group[j]
        label = self.label
        is_known = (label[i] != OPEN) & (label[j] != OPEN)
        agree = np.where(tied, self.flip[i] == self.flip[j], label[i] == label[j])
        settled = tied | is_known | apart
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
        ends = np.concatenate([self.left, self.right])  # with two classes none is left
        return int(np.bincount(ends).max(initial=0)) < self.n_classes

    def without_contradictions(self) -> Implications:
        """Return the same without the cannot-links that must-links contradict."""
        conflicts = self.closure.conflicts
        kept = np.delete(np.arange(self.links.n_links), conflicts)
        return replace(
            self,
            given=self.given.keep(~np.isin(self.given.row, self.links.row[conflicts])),
            links=self.links.keep(kept),
            closure=self.closure._replace(conflicts=kept[:0]),
            odd=np.searchsorted(kept, self.odd),
        )

    def renumbered(self, code: Codes) -> Implications:
        """Return the same for tasks that have other codes now: code[task], in the same order."""
        given = self.given._replace(left=code[self.given.left], right=code[self.given.right])
        gold = None if self.gold is None else self.gold._replace(task=code[self.gold.task])
        return replace(self, task=code[self.task], given=given, gold=gold)

    def _chains(self, places: Offsets, *, two_classes: bool) -> Chains:
        from tiebreak.links.chains import Chains

        links = self.links.keep(places)
        by_task = links._replace(left=self.task[links.left], right=self.task[links.right])
        return Chains.along(by_task, two_classes=two_classes)


def imply(
    links: LinkCodes,
    n_classes: int,
    *,
    tasks: Codes | None = None,
    firm: Mask | None = None,
    gold: GoldCodes | None = None,
) -> Implications:
    """Find what follows from links and known labels.

    Parameters
    ----------
    tasks
        The tasks to speak of, sorted, those of all links among them; None: those that links name.
    firm
        (n_links,) which links hold for sure; None: those without weight.
    gold
        Known labels.
    """
    task = links.tasks() if tasks is None else tasks
    sure = links.keep(links.is_hard if firm is None else firm)._replace(weight=None).among(task)
    closure = close(len(task), sure)
    tied = parity(closure.n_groups, between_groups(closure)) if n_classes == 2 else None
    known = None
    group_class = np.full(closure.n_groups, OPEN, np.int32)
    if gold is not None:
        known = propagate(closure, *gold.among(task), n_classes, tied)
        group_class = known.group_class
    group, left, right = closure.group, closure.left, closure.right
    flip = np.zeros(len(task), dtype=np.int32)
    odd = np.empty(0, dtype=np.int64)
    if tied is not None:  # a group is all that links of either kind join to one root
        root, number = np.unique(tied.root, return_inverse=True)
        group_class = group_class[root]
        flip = tied.parity[group]
        group = number[group].astype(np.int32)
        left = right = np.empty(0, dtype=np.int32)
        odd = np.flatnonzero(~sure.must & (flip[sure.left] == flip[sure.right]))
        odd = np.setdiff1d(odd, closure.conflicts)
    found = closure, known, group, flip, left, right, group_class, odd
    return Implications(task, links, gold, sure, n_classes, *found)


# -- known labels ----------------------------------------------------------------------------------


class KnownGroups(NamedTuple):
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
) -> KnownGroups:
    """Find what known labels imply: a group has its known class, groups apart lose it.

    A group with one class left has it, and so on until nothing changes. With two classes the
    parity of chains does this in one pass; the cannot-links must then have no odd cycle. `tied` is
    that parity of the groups, where it is known already.

    >>> left, right = np.array([0, 1, 2], np.int32), np.array([1, 2, 3], np.int32)
    >>> links = LinkCodes(left, right, np.array([True, False, False]), None, None, np.arange(3))
    >>> propagate(close(4, links), np.array([0]), np.array([1]), 2).group_class.tolist()
    [1, 0, 1]
    """
    order = np.argsort(gold_task, kind="stable")
    task = gold_task[order]
    label = gold_label[order]
    found, first, inverse = np.unique(closure.group[task], return_index=True, return_inverse=True)
    group_class = np.full(closure.n_groups, OPEN, dtype=np.int32)
    group_class[found] = label[first]  # of its first known task
    differs = np.flatnonzero(label != label[first][inverse])
    conflicts: list[Conflict] = [
        ("must", int(task[first[inverse[g]]]), int(task[g])) for g in differs
    ]
    left_class = group_class[closure.left]
    equal = np.flatnonzero((left_class == group_class[closure.right]) & (left_class != OPEN))
    conflicts += [("cannot", int(closure.left[h]), int(closure.right[h])) for h in equal]
    if n_classes == 2:
        if tied is None:
            tied = parity(closure.n_groups, between_groups(closure))
        conflicts += _imply_two(closure, group_class, tied)
    else:
        conflicts += _imply_many(closure, group_class, n_classes)
    return KnownGroups(gold_task, gold_label, group_class, conflicts)


def _imply_two(closure: Closure, group_class: Codes, tied: Parity) -> list[Conflict]:
    """Fill in what the parity of chains implies; return the known groups that do not fit."""
    known = np.flatnonzero(group_class != OPEN)
    first_known = np.full(closure.n_groups, -1, dtype=np.int64)  # the first known group of a root
    first_known[tied.root[known[::-1]]] = known[::-1]
    settled = np.flatnonzero(first_known[tied.root] >= 0)
    source = first_known[tied.root[settled]]
    implied = group_class[source] ^ tied.parity[source] ^ tied.parity[settled]
    is_open = group_class[settled] == OPEN
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
    waiting = np.flatnonzero((np.diff(near.start) >= n_classes - 1) & (group_class == OPEN))
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
    strike(np.flatnonzero(group_class != OPEN))
    changed = np.arange(len(waiting))
    while len(changed):
        n_left = is_left[changed].sum(axis=1)
        stuck.update(waiting[changed[n_left == 0]].tolist())
        single = changed[(n_left == 1) & (group_class[waiting[changed]] == OPEN)]
        group_class[waiting[single]] = is_left[single].argmax(axis=1)
        changed = strike(waiting[single])
    return [("none", group) for group in sorted(stuck)]
