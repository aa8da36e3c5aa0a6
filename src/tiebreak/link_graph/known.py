"""Known: which classes follow for groups from the known labels of some tasks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.kernels.layout import Codes, Offsets
from tiebreak.link_graph.closure import Closure, between_groups, neighbours
from tiebreak.link_graph.codes import each_once, pair_keys
from tiebreak.link_graph.parity import Parity, parity

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

    >>> from tiebreak.link_graph import LinkCodes, close
    >>> left, right = np.array([0, 1, 2], np.int32), np.array([1, 2, 3], np.int32)
    >>> links = LinkCodes(left, right, np.array([True, False, False]), None, None, np.arange(3))
    >>> propagate(close(4, links), np.array([0]), np.array([1]), 2).group_class.tolist()
    [1, 0, 1]
    """
    group_class, conflicts = _of_groups(closure, gold_task, gold_label)
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


def _of_groups(
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
