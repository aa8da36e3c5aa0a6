"""Feasible: can every group have a class, so that groups apart have different ones?

A group with fewer neighbours than classes can wait: whatever the others get, a class is left for
it. Such groups are set aside, round by round, until a core is left (usually none). It is coloured
greedily or, where that fails, as any other factors are.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.kernels.network import network
from tiebreak.links.factors import CountFactors, canonical, of_links, smallest_conflict
from tiebreak.links.graph import AnyCodes, neighbours, places_in


def find_classes(left: AnyCodes, right: AnyCodes, scores: Floats) -> Codes:
    """Return classes of groups, likely ones, so that groups apart differ, if such are found.

    `scores`, (n_groups, n_classes), are −∞ where a class is impossible.

    >>> ends = np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32)
    >>> find_classes(*ends, np.zeros((3, 3))).tolist()
    [0, 1, 2]
    """
    allowed = scores > -np.inf
    core, waiting = _core(left, right, allowed)
    net, hard = network(len(scores), left, right), np.full(len(left), -np.inf)
    label = np.full(len(scores), -1, dtype=np.int32)
    backend = choose_backend("auto", 0, len(left), may_be_device=False)
    backend.decode_greedily(scores, net, hard, core, label)
    if not keeps_apart(left, right, allowed, label):
        core = np.sort(core)
        counts = _between(left, right, core, scores.shape[1])
        label[core] = canonical(counts, allowed[core]).decode(scores[core], scores[core])
    backend.decode_greedily(scores, net, hard, waiting, label)
    return label


def smallest_blame(left: AnyCodes, right: AnyCodes, allowed: Mask) -> list[int]:
    """Return groups that cannot have classes together: the ends of a smallest set of such pairs.

    Empty where all can have classes, as far as that is decided in time.

    >>> ends = np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32)
    >>> [smallest_blame(*ends, np.ones((3, k), dtype=bool)) for k in (2, 3)]
    [[0, 1, 2], []]
    """
    label = find_classes(left, right, np.where(allowed, 0.0, -np.inf))
    if keeps_apart(left, right, allowed, label):
        return []
    core = np.sort(_core(left, right, allowed)[0])
    counts = _between(left, right, core, allowed.shape[1])
    chosen = counts.select(smallest_conflict(counts, allowed[core]))
    return list(np.unique(core[chosen.node]).tolist())


def keeps_apart(left: AnyCodes, right: AnyCodes, allowed: Mask, label: Codes) -> bool:
    """Say whether the groups that have a class (are not −1) have one that they may have."""
    has = np.flatnonzero(label >= 0)
    is_equal = (label[left] == label[right]) & (label[left] >= 0)
    return bool(allowed[has, label[has]].all() and not is_equal.any())


def _between(left: AnyCodes, right: AnyCodes, core: Codes, n_classes: int) -> CountFactors:
    """Return what keeps the groups of the core apart, by their places in it."""
    inside = np.isin(left, core) & np.isin(right, core)
    left, right = (places_in(core, end[inside]) for end in (left, right))
    return of_links(left, right, np.full(len(left), -np.inf), n_classes)


def _core(left: AnyCodes, right: AnyCodes, allowed: Mask) -> tuple[Codes, Codes]:
    """Return groups that cannot wait, those with least choice first; and those that can.

    Of these the last one set aside comes first: so each finds a class left.
    """
    near = neighbours(len(allowed), left, right)
    n_left = allowed.sum(axis=1)
    n_near = np.diff(near.start)
    core = np.lexsort((-n_near, n_left)).astype(np.int32)
    is_open = np.ones(len(allowed), dtype=bool)
    rounds: list[Offsets] = [np.empty(0, np.int64)]
    ready = np.flatnonzero(n_near < n_left)
    while len(ready):
        rounds.append(ready)
        is_open[ready] = False
        _, around = near.of(ready)
        touched, times = np.unique(around[is_open[around]], return_counts=True)
        n_near[touched] -= times
        ready = touched[n_near[touched] < n_left[touched]]
    return core[is_open[core]], np.concatenate(rounds[::-1]).astype(np.int32)
