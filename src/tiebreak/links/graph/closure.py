"""Closure: links in codes, each pair once, and which tasks they tie.

Must-links join tasks to groups, cannot-links set groups apart. With two classes a link of either
kind ties two tasks, equal or opposite: that is their parity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets

AnyCodes = npt.NDArray[np.signedinteger[Any]]
Parities = npt.NDArray[np.int8]

ROUNDING = 1e-12  # weights that cancel but for rounding leave no link
DENSE = 16  # codes for each value: up to here a table of all codes is made sooner than searches
FEW_LINKS = 2_000  # whose components are found without a graph
FEW_TURNS = 12


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
        weight = None if self.weight is None else self.weight[index]
        who = None if self.who is None else self.who[index]
        duplicate = None if self.duplicate is None else self.duplicate[index]
        ends = (self.left[index], self.right[index])
        return LinkCodes(*ends, self.must[index], weight, who, self.row[index], duplicate)

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
    order = np.lexsort((signed, says, source, high, low))
    start = _starts(order, low, high, source, says)
    total = _added(signed[order], start)
    total[np.abs(total) <= ROUNDING * _added(size[order], start)] = 0.0
    at = order[start]
    return LinkCodes(
        low[at].astype(np.int32),
        high[at].astype(np.int32),
        total > 0.0,
        None if weight is None else np.where(soft[at], np.abs(total), np.nan),
        None if who is None else source[at],
        np.minimum.reduceat(order, start) if len(start) else order,
    )


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
    low = np.minimum(left, right)
    high = np.maximum(left, right)
    return low.astype(np.int64) * n + high


def _starts(order: Offsets, *keys: npt.NDArray[Any]) -> Offsets:
    """Return where in `order` a run of equal keys begins."""
    begins = np.zeros(len(order), dtype=bool)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[order[1:]] != key[order[:-1]]
    return np.flatnonzero(begins)


def _added(values: Floats, start: Offsets) -> Floats:
    return np.add.reduceat(values, start) if len(start) else values


def violated(label: AnyCodes, links: LinkCodes) -> Mask:
    """Say of each given link whether the labels break it.

    >>> links = LinkCodes(
    ...     *np.array([[0, 0], [1, 2]], np.int32), np.array([True, False]), None, None, np.arange(2)
    ... )
    >>> violated(np.array([0, 1, 1]), links).tolist()
    [True, False]
    """
    return np.asarray((label[links.left] == label[links.right]) != links.must)


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

    def most_apart(self) -> int:
        """Return the largest number of groups that one group is apart from."""
        return int(np.bincount(np.concatenate([self.left, self.right])).max(initial=0))


def components(n_tasks: int, left: AnyCodes, right: AnyCodes) -> Codes:
    """Return the connected component of each task, numbered by smallest member.

    >>> components(5, np.array([3, 1]), np.array([1, 4])).tolist()
    [0, 1, 2, 1, 1]
    """
    linked = each_once(np.concatenate([left, right]))  # most have no link: leave them out
    ends = places_in(linked, left), places_in(linked, right)
    smallest = linked[_smallest_joined(len(linked), *ends)]
    is_smallest = np.ones(n_tasks, dtype=bool)
    is_smallest[linked] = linked == smallest
    component = np.cumsum(is_smallest, dtype=np.int32)
    component -= 1
    component[linked] = component[smallest]
    return component


def _smallest_joined(n: int, left: AnyCodes, right: AnyCodes) -> Offsets:
    """Return the smallest member of the component of each of n tasks.

    Few links pass it on to each other until nothing moves, which takes a third of the time that it
    takes to build a graph for SciPy; chains of many would take turns.
    """
    smallest = np.arange(n)
    for _ in range(FEW_TURNS if len(left) <= FEW_LINKS else 0):
        least = np.minimum(smallest[left], smallest[right])
        np.minimum.at(smallest, left, least)
        np.minimum.at(smallest, right, least)
        smallest = smallest[smallest]
        if np.array_equal(smallest[left], smallest[right]):
            return smallest
    from scipy.sparse.csgraph import connected_components

    n_found, label = connected_components(_graph(n, left, right), directed=False)
    return np.asarray(first_members(label, n_found)[label])


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


class Lists(NamedTuple):
    """One list of codes per owner, laid end to end: owner v has value[start[v]:start[v + 1]]."""

    start: Offsets
    value: AnyCodes

    def of(self, owners: npt.NDArray[Any]) -> tuple[Offsets, AnyCodes]:
        """Return, entry by entry, the place of the owner in `owners` and the value."""
        begin = self.start[owners]
        count = self.start[owners + 1] - begin
        place = np.repeat(np.arange(len(owners)), count)
        offset = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
        return place, self.value[begin[place] + offset]


def by_owner(n: int, owner: AnyCodes, value: AnyCodes) -> Lists:
    """Collect values under their owners, 0 to n - 1."""
    start = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=n), out=start[1:])
    return Lists(start, value[np.argsort(owner, kind="stable")])


def neighbours(n: int, left: AnyCodes, right: AnyCodes) -> Lists:
    """Return the neighbours of each vertex."""
    return by_owner(n, np.concatenate([left, right]), np.concatenate([right, left]))


def _graph(n: int, left: AnyCodes, right: AnyCodes) -> Any:
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(left)), (left, right)), shape=(n, n))


def count_violated_closed(label: AnyCodes, closure: Closure, n_classes: int) -> int:
    """Count the closed pairs that the labels break.

    Implements [eq:violations], h_A(k) the tasks of group A with label k:

        N = Σ_A [ C(|A|, 2) − Σ_k C(h_A(k), 2) ] + Σ_(A,B) Σ_k h_A(k) h_B(k)
    """
    from scipy.sparse import csr_array

    cell, count = np.unique(closure.group * np.int64(n_classes) + label, return_counts=True)
    count = count.astype(np.int64)
    inside = closure.n_must - int(_pairs(count).sum())
    cells = np.divmod(cell, n_classes)
    histogram = csr_array((count, cells), shape=(closure.n_groups, n_classes))
    across = histogram[closure.left].multiply(histogram[closure.right])
    return inside + int(across.sum())


def _pairs(n: Offsets) -> Offsets:
    return np.asarray(n * (n - 1) // 2)


class Parity(NamedTuple):
    """With two classes, the class of task i is that of root[i], flipped where parity[i] is 1.

    `root` is the smallest task that links of either kind join to i. `conflict` are the places of
    links that this breaks: always cannot-links, one for each independent odd cycle.
    """

    root: Codes
    parity: Parities
    conflict: Offsets


def parity(n_tasks: int, links: LinkCodes) -> Parity:
    """Tie tasks to roots, equal or opposite, along links without weights.

    Two copies of each task, one per class, are joined straight by must-links and crosswise by
    cannot-links; where no cycle is odd, the copies of a root then split every component in two.
    """
    hard = np.flatnonzero(links.is_hard)
    must = links.must[hard]
    firm = links.keep(hard)
    linked = firm.tasks()  # most tasks have no link: leave them out
    n = len(linked)
    left = places_in(linked, firm.left)
    right = places_in(linked, firm.right)
    copy = components(2 * n, *_two_copies(n, left, right, must))
    component = np.minimum(copy[:n], copy[n:])
    if (copy[:n] == copy[n:]).any():  # an odd cycle joins both copies: leave out its last link
        tree = _forest(n, left, right, must)
        copy = components(2 * n, *_two_copies(n, left[tree], right[tree], must[tree]))
        component = components(n, left, right)
    head = first_members(component, 2 * n)[component]
    flipped = copy[:n] != copy[head]
    root = np.arange(n_tasks, dtype=np.int32)
    root[linked] = linked[head]
    parities = np.zeros(n_tasks, dtype=np.int8)
    parities[linked] = flipped
    broken = (flipped[left] == flipped[right]) != must
    return Parity(root, parities, hard[broken])


def _two_copies(n: int, left: AnyCodes, right: AnyCodes, must: Mask) -> tuple[AnyCodes, AnyCodes]:
    """Join the copies i and n + i of each task straight or crosswise."""
    cross = np.where(must, 0, n).astype(left.dtype)
    return np.concatenate([left, left + n]), np.concatenate([right + cross, right + n - cross])


def _forest(n: int, left: AnyCodes, right: AnyCodes, must: Mask) -> Offsets:
    """Return the places of links that join every component without a cycle.

    Must-links go first, so that no cannot-link of the forest lies inside a group of must-links.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    turn = np.argsort(~must, kind="stable")
    _, first = np.unique(pair_keys(left[turn], right[turn], n), return_index=True)
    kept = turn[np.sort(first)]  # one link per pair, in turn
    cost = np.arange(1.0, len(kept) + 1.0)
    graph = csr_array((cost, (left[kept], right[kept])), shape=(n, n))
    return np.asarray(kept[minimum_spanning_tree(graph).data.astype(np.int64) - 1])
