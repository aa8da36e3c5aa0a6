"""Colouring: can every group have a class, so that groups apart have different ones?"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from tiebreak.kernels.layout import Codes, Mask, Offsets
from tiebreak.links.graph.chains import Chains
from tiebreak.links.graph.closure import (
    AnyCodes,
    Closure,
    Lists,
    between_groups,
    by_owner,
    components,
    each_once,
    neighbours,
    parity,
    places_in,
)

SECONDS = 30.0  # that HiGHS takes at most for one component

Verdict = Literal["feasible", "infeasible", "unknown"]


class Feasibility(NamedTuple):
    """Whether every group can have a class.

    `group_class` is one way to do it where feasible. `blame` are groups that cannot have classes
    together where infeasible: for two classes, an odd cycle in order, or a chain between two
    groups whose class sets do not fit; for more, the core of a component, not always the smallest.
    """

    verdict: Verdict
    group_class: Codes | None = None
    blame: list[int] | None = None


class _Colouring(NamedTuple):
    """Groups to colour: `colour` is -1 where open, `banned` lists what a group may not have."""

    n_classes: int
    colour: Codes
    near: Lists
    banned: Lists


def feasibility(
    closure: Closure,
    n_classes: int,
    *,
    allowed: Mask | None = None,
    known: Codes | None = None,
    budget: int = 10_000,
    witness: bool = True,
) -> Feasibility:
    """Find classes for the groups so that groups apart differ, or prove that there are none.

    Two classes: in one pass. More: groups with fewer neighbours than classes left can wait for
    their neighbours, round by round, until a core is left (usually none); the core is coloured
    greedily, else HiGHS decides within `budget` nodes, else the answer is "unknown".
    Cannot-links inside a group are not looked at here: see `Closure.conflicts`.

    Parameters
    ----------
    allowed
        (n_groups, n_classes): which classes each group may have; all if None.
    known
        (n_groups,): the class of each group, -1 where it is open; none known if None.
    witness
        Whether classes are wanted where there are some, or a verdict will do.

    Examples
    --------
    >>> from tiebreak.links.graph import LinkCodes, close
    >>> triangle = np.array([[0, 1], [0, 2], [1, 2]], np.int32)
    >>> cannot = LinkCodes(*triangle.T, np.zeros(3, bool), None, None, np.arange(3))
    >>> feasibility(close(3, cannot), 3).verdict, feasibility(close(3, cannot), 2).blame
    ('feasible', [0, 1, 2])
    """
    tied = each_once(np.concatenate([closure.left, closure.right]))
    if allowed is None and len(tied) < closure.n_groups:
        return _among(closure, tied, n_classes, known, budget, witness=witness)
    owner, banned = _bans(closure.n_groups, n_classes, allowed, known)
    if n_classes == 2:
        return _two_classes(closure, owner, banned)
    problem = _Colouring(
        n_classes,
        np.full(closure.n_groups, -1, np.int32) if known is None else known.astype(np.int32),
        neighbours(closure.n_groups, closure.left, closure.right),
        by_owner(closure.n_groups, owner, banned),
    )
    clash = _clash(closure, problem)
    if clash:
        return Feasibility("infeasible", blame=clash)
    return _many_classes(problem, budget, witness=witness)


def _among(
    closure: Closure,
    tied: AnyCodes,
    n_classes: int,
    known: Codes | None,
    budget: int,
    *,
    witness: bool,
) -> Feasibility:
    """Look at the groups that are apart from any other; the rest, usually most, may be anything."""
    part = Closure(
        np.arange(len(tied), dtype=np.int32),
        len(tied),
        closure.size[tied],
        places_in(tied, closure.left),
        places_in(tied, closure.right),
        closure.conflicts,
    )
    known_part = None if known is None else known[tied]
    found = feasibility(part, n_classes, known=known_part, budget=budget, witness=witness)
    if found.group_class is None:
        blame = None if found.blame is None else tied[found.blame].tolist()
        return found._replace(blame=blame)
    group_class = np.zeros(closure.n_groups, np.int32) if known is None else np.maximum(known, 0)
    group_class[tied] = found.group_class
    return found._replace(group_class=group_class.astype(np.int32))


def _bans(
    n_groups: int, n_classes: int, allowed: Mask | None, known: Codes | None
) -> tuple[Offsets, Offsets]:
    """Return the pairs of group and class that may not be; with two classes, known ones too."""
    nothing = np.empty(0, np.int64)
    owner, banned = (nothing, nothing) if allowed is None else np.nonzero(~allowed)
    if known is not None and n_classes == 2:
        fixed = np.flatnonzero(known >= 0)
        owner = np.concatenate([owner, fixed])
        banned = np.concatenate([banned, 1 - known[fixed]])
    return owner, banned


def _two_classes(closure: Closure, owner: Offsets, banned: Offsets) -> Feasibility:
    """Give roots class 0 or 1; every other group follows. An odd cycle has no way out."""
    n_groups = closure.n_groups
    apart = between_groups(closure)
    tied = parity(n_groups, apart)
    if len(tied.conflict):
        start = int(closure.left[tied.conflict[0]])
        cycle = Chains.along(apart, two_classes=True).odd_cycle(start)
        return Feasibility("infeasible", blame=[step.start for step in cycle])
    root_class = banned ^ tied.parity[owner]
    who_bans = np.full((2, n_groups), -1, dtype=np.int64)
    who_bans[root_class, tied.root[owner]] = owner
    stuck = np.flatnonzero((who_bans >= 0).all(axis=0))
    if len(stuck):
        first, last = (int(group) for group in who_bans[:, stuck[0]])
        same = bool(tied.parity[first] == tied.parity[last])
        chain = Chains.along(apart, two_classes=True).shortest(first, last, same=same)
        return Feasibility("infeasible", blame=[first, *(step.end for step in chain)])
    of_root = (who_bans[0] >= 0).astype(np.int32)
    return Feasibility("feasible", of_root[tied.root] ^ tied.parity)


def _clash(closure: Closure, problem: _Colouring) -> list[int]:
    """Return groups whose known classes are wrong by themselves: equal though apart, or banned."""
    colour = problem.colour
    left_colour = colour[closure.left]
    equal = np.flatnonzero((left_colour == colour[closure.right]) & (left_colour >= 0))
    if len(equal):
        return [int(closure.left[equal[0]]), int(closure.right[equal[0]])]
    fixed = np.flatnonzero(colour >= 0)
    place, banned = problem.banned.of(fixed)
    wrong = fixed[place[banned == colour[fixed][place]]]
    return [int(group) for group in wrong[:1]]


def _many_classes(problem: _Colouring, budget: int, *, witness: bool) -> Feasibility:
    turn = _peel(problem, budget)
    if not witness and (turn != 0).all():
        return Feasibility("feasible")
    greedy = _colour_in_turn(problem, turn)
    if (greedy < problem.n_classes).all():
        return Feasibility("feasible", greedy)
    core = np.flatnonzero(turn == 0)
    if len(core) > budget:
        return Feasibility("unknown")
    colour = problem.colour.copy()
    is_known = True
    for part in _parts(problem, core):  # what one lacks no other can mend
        found = _solve(problem, part, budget)
        if found.verdict == "infeasible":
            return Feasibility("infeasible", blame=part.tolist())
        is_known &= found.group_class is not None
        colour[part] = -1 if found.group_class is None else found.group_class
    if not is_known:
        return Feasibility("unknown")
    return Feasibility("feasible", _colour_in_turn(problem._replace(colour=colour), turn))


def _parts(problem: _Colouring, core: Offsets) -> list[Offsets]:
    """Split the core into its connected parts."""
    place, near = problem.near.of(core)
    is_core = np.isin(near, core)
    component = components(len(core), place[is_core], np.searchsorted(core, near[is_core]))
    order = np.argsort(component, kind="stable")
    return [core[each] for each in np.split(order, np.flatnonzero(np.diff(component[order])) + 1)]


def _solve(problem: _Colouring, part: Offsets, budget: int) -> Feasibility:
    """Colour one part of the core: whether x[group, class] of 0 and 1 exist.

    Each group has one of the classes left to it. Of groups that are all apart at most one has a
    class: one row for each clique and class says more than one for each pair.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_matrix

    n, n_classes = len(part), problem.n_classes
    place, near = problem.near.of(part)
    allowed = np.ones(n * n_classes)
    allowed[_taken(problem, part, place, problem.colour[near])] = 0.0
    inside = np.isin(near, part)
    apart: list[set[int]] = [set() for _ in range(n)]
    for one, other in zip(place[inside], np.searchsorted(part, near[inside]), strict=True):
        apart[int(one)].add(int(other))
    rows = [[v] for v in range(n)]  # each group, then cliques
    covered: set[tuple[int, int]] = set()
    for v in range(n):
        for u in sorted(apart[v]):
            if u > v and (v, u) not in covered:
                clique = [v, u]
                left = apart[v] & apart[u]
                while left:
                    clique.append(min(left))
                    left = left & apart[clique[-1]]
                rows.append(clique)
                covered.update((min(a, b), max(a, b)) for a in clique for b in clique if a != b)
    classes = np.arange(n_classes)
    cells = [(r, v) for r, row in enumerate(rows[n:]) for v in row]
    row, group = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    at_row = (n + row[:, None] * n_classes + classes).ravel()
    at_cell = (group[:, None] * n_classes + classes).ravel()
    own = np.repeat(np.arange(n), n_classes)
    index = (np.concatenate([own, at_row]), np.concatenate([np.arange(n * n_classes), at_cell]))
    shape = (n + (len(rows) - n) * n_classes, n * n_classes)
    matrix = coo_matrix((np.ones(len(index[0])), index), shape=shape).tocsr()
    least = np.zeros(shape[0])
    least[:n] = 1.0
    found = milp(
        np.zeros(n * n_classes),
        constraints=LinearConstraint(matrix, least, 1.0),
        integrality=np.ones(n * n_classes),
        bounds=Bounds(0.0, allowed),
        options={"node_limit": budget, "time_limit": SECONDS},
    )
    if found.x is not None:
        chosen = found.x.reshape(n, n_classes).argmax(axis=1)
        return Feasibility("feasible", chosen.astype(np.int32))
    return Feasibility("infeasible" if found.status == 2 else "unknown")


def _peel(problem: _Colouring, max_rounds: int) -> Offsets:
    """Return when to colour each open group: 0 for the core, then the last peeled first.

    A group with fewer open neighbours than classes left is peeled: whatever the others get, a
    class is left for it. Known groups get -1. What is left after `max_rounds` counts as core.
    """
    turn = np.where(problem.colour < 0, 0, -1)
    waiting = np.flatnonzero(turn == 0)
    n_near, n_left = _degrees(problem, waiting)
    ready = waiting[n_near[waiting] < n_left[waiting]]
    n_rounds = 0
    while len(ready) and n_rounds < max_rounds:
        n_rounds += 1
        turn[ready] = n_rounds
        _, near = problem.near.of(ready)
        touched, times = np.unique(near[turn[near] == 0], return_counts=True)
        n_near[touched] -= times
        ready = touched[n_near[touched] < n_left[touched]]
    return np.where(turn > 0, n_rounds + 1 - turn, turn)


def _degrees(problem: _Colouring, waiting: Offsets) -> tuple[Offsets, Offsets]:
    """Return for each open group how many open neighbours and how many classes it has left."""
    n_groups = len(problem.colour)
    place, near = problem.near.of(waiting)
    its_class = problem.colour[near]
    n_near = np.bincount(waiting[place[its_class < 0]], minlength=n_groups)
    gone = _taken(problem, waiting, place, its_class)
    n_gone = np.bincount(waiting[gone // problem.n_classes], minlength=n_groups)
    return n_near, problem.n_classes - n_gone


def _taken(problem: _Colouring, groups: Offsets, place: Offsets, its_class: AnyCodes) -> Offsets:
    """Return sorted, distinct place · n_classes + class: what bans and coloured neighbours take."""
    coloured = its_class >= 0
    own_place, banned = problem.banned.of(groups)
    places = np.concatenate([place[coloured], own_place])
    classes = np.concatenate([its_class[coloured], banned])
    return each_once(places * problem.n_classes + classes)


def _colour_in_turn(problem: _Colouring, turn: Offsets) -> Codes:
    """Give each open group its first class left, in turns; stop where a group has none left.

    That group then has colour n_classes. Inside a turn, groups with more neighbours go first and
    lots decide among equals: then even along a chain of a million groups nobody waits for long.
    """
    colour = problem.colour.copy()
    rank = _ranks(problem, turn)
    waiting = np.flatnonzero(colour < 0)
    place, near = problem.near.of(waiting)
    earlier = (colour[near] < 0) & (rank[near] < rank[waiting][place])
    n_before = np.bincount(waiting[place[earlier]], minlength=len(turn))
    ready = waiting[n_before[waiting] == 0]
    while len(ready):
        place, near = problem.near.of(ready)
        taken = _taken(problem, ready, place, colour[near])
        colour[ready] = _first_left(taken, len(ready), problem.n_classes)
        if (colour[ready] == problem.n_classes).any():
            break
        after, times = np.unique(near[colour[near] < 0], return_counts=True)
        n_before[after] -= times
        ready = after[n_before[after] == 0]
    return colour


def _ranks(problem: _Colouring, turn: Offsets) -> Offsets:
    """Return the place of each group in the order of colouring."""
    lot = np.random.default_rng(0).permutation(len(turn))
    n_near = np.diff(problem.near.start)
    rank = np.empty(len(turn), dtype=np.int64)
    rank[np.lexsort((lot, -n_near, turn))] = np.arange(len(turn))
    return rank


def _first_left(taken: Offsets, n: int, n_classes: int) -> Offsets:
    """Return for each of n places the smallest class not taken.

    Of the distinct classes taken at a place, sorted, as many as stand at their own index come
    before the gap.
    """
    place, its_class = np.divmod(taken, n_classes)
    index = np.arange(len(taken)) - np.searchsorted(place, np.arange(n))[place]
    return np.bincount(place[its_class == index], minlength=n)
