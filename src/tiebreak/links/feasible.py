"""Feasible: can every group have a class, so that groups apart have different ones?

A group with fewer neighbours than classes left can wait: whatever the others get, a class is left
for it. Such groups are set aside, round by round, until a core is left (usually none). Each
connected part of the core is coloured greedily or, where that fails, by an integer program.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.kernels.layout import Codes, Mask, Offsets
from tiebreak.links.graph import OPEN, Neighbours, components, neighbours, places_in

SECONDS = 30.0  # that HiGHS takes at most for one part of the core
LARGEST_CORE = 10_000  # groups; beyond, nobody waits for an answer


class Feasibility(NamedTuple):
    """Whether every group can have a class.

    Neither `group_class` nor `blame`: that was too hard to tell.
    """

    group_class: Codes | None = None  # of the core; OPEN for the groups that wait
    waiting: Offsets = np.empty(0, dtype=np.int64)  # in this order each finds a class left
    blame: list[int] | None = None  # groups that cannot have classes together


def find_classes(left: Codes, right: Codes, allowed: Mask) -> Feasibility:
    """Find classes for groups so that groups apart differ, or prove that there are none.

    Parameters
    ----------
    left, right
        Pairs of groups that are apart.
    allowed
        (n_groups, n_classes) which classes each group may have; one where it is known.

    Examples
    --------
    >>> ends = np.array([0, 0, 1]), np.array([1, 2, 2])
    >>> find_classes(*ends, np.ones((3, 3), dtype=bool)).waiting.tolist()  # any order will do
    [0, 1, 2]
    >>> find_classes(*ends, np.ones((3, 2), dtype=bool)).blame
    [0, 1, 2]
    """
    near = neighbours(len(allowed), left, right)
    is_known = allowed.sum(axis=1) == 1
    group_class = np.where(is_known, allowed.argmax(axis=1), OPEN).astype(np.int32)
    known = np.flatnonzero(is_known)
    place, other = near.of(known)
    clash = np.flatnonzero(group_class[other] == group_class[known[place]])
    if len(clash):
        return Feasibility(blame=[int(known[place[clash[0]]]), int(other[clash[0]])])
    allowed = allowed.copy()
    allowed[other, group_class[known[place]]] = False
    allowed[known] = True  # settled: nobody asks any more
    waiting = _set_aside(near, np.where(is_known, -1, allowed.sum(axis=1)), is_known)
    is_core = ~is_known
    is_core[waiting] = False
    core = np.flatnonzero(is_core)
    if not len(core):
        return Feasibility(group_class, waiting)
    if len(core) > LARGEST_CORE:
        return Feasibility()
    inside = is_core[left] & is_core[right]
    ends = [places_in(core, end[inside]) for end in (left, right)]
    apart: list[set[int]] = [set() for _ in core]
    for one, other in zip(*(end.tolist() for end in ends), strict=True):
        apart[one].add(other)
        apart[other].add(one)
    component = components(len(core), *ends)
    order = np.argsort(component, kind="stable")
    is_told = True
    for part in np.split(order, np.flatnonzero(np.diff(component[order])) + 1):
        groups = core[part]
        found, is_proved = _classes_of(part.tolist(), apart, allowed[groups])
        if found is not None:
            group_class[groups] = found
        elif is_proved:
            _, around = near.of(groups)
            beside = np.unique(around[is_known[around]])
            return Feasibility(blame=[*groups.tolist(), *beside.tolist()])
        else:
            is_told = False
    return Feasibility(group_class, waiting) if is_told else Feasibility()


def _set_aside(near: Neighbours, n_left: Offsets, is_known: Mask) -> Offsets:
    """Return the groups that can wait, the last set aside first: so each finds a class left."""
    n_groups = len(n_left)
    owner, other = near.of(np.arange(n_groups))
    n_near = np.bincount(owner[~is_known[other]], minlength=n_groups)
    is_open = ~is_known
    rounds: list[Offsets] = []
    ready = np.flatnonzero(n_near < n_left)
    while len(ready):
        rounds.append(ready)
        is_open[ready] = False
        _, around = near.of(ready)
        touched, times = np.unique(around[is_open[around]], return_counts=True)
        n_near[touched] -= times
        ready = touched[n_near[touched] < n_left[touched]]
    return np.concatenate(rounds[::-1]) if rounds else np.empty(0, dtype=np.int64)


def _classes_of(part: list[int], apart: list[set[int]], allowed: Mask) -> tuple[Codes | None, bool]:
    """Return classes of the groups of one part, or whether it is proved that there are none."""
    label = dict.fromkeys(part, OPEN)
    for row, v in sorted(enumerate(part), key=lambda at: (-len(apart[at[1]]), at[1])):
        taken = {label[u] for u in apart[v]}
        free = [k for k in np.flatnonzero(allowed[row]).tolist() if k not in taken]
        if not free:
            return _by_program(part, apart, allowed) if allowed.any(axis=1).all() else (None, True)
        label[v] = free[0]
    return np.array(list(label.values()), dtype=np.int32), False


def _by_program(part: list[int], apart: list[set[int]], allowed: Mask) -> tuple[Codes | None, bool]:
    """Ask HiGHS whether x[group, class] of 0 and 1 exist, one class per group.

    Of groups that are all apart at most one has a class: one row for each clique and class says
    more than one for each pair.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, kron, vstack

    n, n_classes = allowed.shape
    place = {v: row for row, v in enumerate(part)}
    cliques = _cliques(part, apart)
    member = [(r, place[v]) for r, clique in enumerate(cliques) for v in clique]
    at = np.array(member, dtype=np.int64).reshape(-1, 2).T
    of_clique = csr_array((np.ones(len(member)), tuple(at)), shape=(len(cliques), n))
    one_each = kron(eye_array(n), np.ones((1, n_classes)))
    matrix = vstack([one_each, kron(of_clique, eye_array(n_classes))], format="csr")
    least = np.zeros(matrix.shape[0])
    least[:n] = 1.0
    found = milp(
        np.zeros(n * n_classes),
        constraints=LinearConstraint(matrix, least, 1.0),
        integrality=np.ones(n * n_classes),
        bounds=Bounds(0.0, allowed.ravel().astype(np.float64)),
        options={"time_limit": SECONDS},
    )
    if found.x is None:
        return None, found.status == 2
    return found.x.reshape(n, n_classes).argmax(axis=1).astype(np.int32), False


def _cliques(part: list[int], apart: list[set[int]]) -> list[list[int]]:
    """Return groups that are all apart from each other; each pair is in one list or more."""
    cliques: list[list[int]] = []
    covered: set[tuple[int, int]] = set()
    for v in part:
        for u in sorted(u for u in apart[v] if u > v):
            if (v, u) in covered:
                continue
            clique = [v, u]
            left = apart[v] & apart[u]
            while left:
                clique.append(min(left))
                left = left & apart[clique[-1]]
            cliques.append(clique)
            covered.update((a, b) for a in clique for b in clique if a < b)
    return cliques
