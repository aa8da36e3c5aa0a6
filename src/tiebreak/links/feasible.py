"""Feasible: can every group have a class, so that groups apart have different ones?

A group with fewer neighbours than classes left can wait: whatever the others get, a class is left
for it. Such groups are set aside, round by round, until a core is left (usually none). Each
connected part of the core is coloured greedily or, where that fails, by an integer program.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.kernels.layout import Codes, Mask, Offsets
from tiebreak.links.graph import OPEN, Neighbours, components, neighbours

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
    if len(core) > LARGEST_CORE:
        return Feasibility()
    is_told = True
    for part, inside in _parts(near, core):
        found, is_proved = _classes_of(inside, allowed[part])
        if found is not None:
            group_class[part] = found
        elif is_proved:
            _, around = near.of(part)
            return Feasibility(
                blame=[*part.tolist(), *np.unique(around[is_known[around]]).tolist()]
            )
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


def _parts(near: Neighbours, core: Offsets) -> list[tuple[Offsets, list[set[int]]]]:
    """Return the connected parts of the core, and who is apart from whom in each, by place."""
    owner, other = near.of(core)
    inside = np.isin(other, core)
    owner = owner[inside]
    other = np.searchsorted(core, other[inside])
    component = components(len(core), owner, other)
    order = np.argsort(component, kind="stable")
    place = np.empty(len(core), dtype=np.int64)
    parts = np.split(order, np.flatnonzero(np.diff(component[order])) + 1) if len(core) else []
    apart: list[list[set[int]]] = []
    for part in parts:
        place[part] = np.arange(len(part))
        apart.append([set() for _ in part])
    for one, another in zip(owner.tolist(), other.tolist(), strict=True):
        apart[component[one]][place[one]].add(int(place[another]))
    return [(core[part], sets) for part, sets in zip(parts, apart, strict=True)]


def _classes_of(apart: list[set[int]], allowed: Mask) -> tuple[Codes | None, bool]:
    """Return classes of the groups of one part, or whether it is proved that there are none."""
    label = np.full(len(apart), OPEN, dtype=np.int32)
    for v in sorted(range(len(apart)), key=lambda v: (-len(apart[v]), v)):
        taken = {int(label[u]) for u in apart[v]}
        free = [k for k in np.flatnonzero(allowed[v]).tolist() if k not in taken]
        if not free:
            return _by_program(apart, allowed) if allowed.any(axis=1).all() else (None, True)
        label[v] = free[0]
    return label, False


def _by_program(apart: list[set[int]], allowed: Mask) -> tuple[Codes | None, bool]:
    """Ask HiGHS whether x[group, class] of 0 and 1 exist, one class per group.

    Of groups that are all apart at most one has a class: one row for each clique and class says
    more than one for each pair.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, kron, vstack

    n, n_classes = allowed.shape
    cliques = _cliques(apart)
    member = [(r, v) for r, clique in enumerate(cliques) for v in clique]
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


def _cliques(apart: list[set[int]]) -> list[list[int]]:
    """Return groups that are all apart from each other; each pair is in one list or more."""
    cliques: list[list[int]] = []
    covered: set[tuple[int, int]] = set()
    for v, around in enumerate(apart):
        for u in sorted(u for u in around if u > v):
            if (v, u) in covered:
                continue
            clique = [v, u]
            left = around & apart[u]
            while left:
                clique.append(min(left))
                left = left & apart[clique[-1]]
            cliques.append(clique)
            covered.update((a, b) for a in clique for b in clique if a < b)
    return cliques
