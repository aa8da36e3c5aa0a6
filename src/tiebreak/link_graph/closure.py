"""Closure: must-links join tasks to groups, cannot-links set groups apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Offsets
from tiebreak.link_graph.codes import AnyCodes, LinkCodes, each_once, pair_keys, places_in


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


def components(n_tasks: int, left: AnyCodes, right: AnyCodes) -> Codes:
    """Return the connected component of each task, numbered by smallest member.

    >>> components(5, np.array([3, 1]), np.array([1, 4])).tolist()
    [0, 1, 2, 1, 1]
    """
    from scipy.sparse.csgraph import connected_components

    linked = each_once(np.concatenate([left, right]))  # most have no link: leave them out
    graph = _graph(len(linked), places_in(linked, left), places_in(linked, right))
    n_found, label = connected_components(graph, directed=False)
    every = np.arange(n_tasks)
    smallest = every.copy()
    smallest[linked] = linked[first_members(label, n_found)][label]
    return np.asarray((np.cumsum(smallest == every, dtype=np.int32) - 1)[smallest])


def first_members(label: AnyCodes, n_labels: int) -> Offsets:
    """Return the smallest task under each label; every label must be in use."""
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
    size = np.bincount(group).astype(np.int64)
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
