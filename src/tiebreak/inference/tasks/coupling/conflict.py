"""Constraints that cannot all hold: whether there are any, and a smallest set of them, in order.

Classes that remain possible are propagated, each removal with the factor that made it, so that a
contradiction is told as the chain back from it. What propagation cannot see, an integer program
decides. A deletion filter then leaves a set of which none can be spared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tiebreak.data.ids import Ids
from tiebreak.errors import ConstraintError
from tiebreak.inference.tasks.coupling.constrain import ConstraintCodes
from tiebreak.inference.tasks.coupling.factors import Count, Pair, by_program
from tiebreak.kernels.layout import Mask
from tiebreak.links.graph import components
from tiebreak.links.table import Links

Factor = Count | Pair
GOLD, LINK, RULE = "gold", "link", "constraint"


class Item(NamedTuple):
    """One thing that must hold."""

    factor: Factor
    kind: str  # gold, link or constraint
    at: int  # its place among those


def check(rules: ConstraintCodes, tasks: Ids, classes: Ids, links: Links | None) -> None:
    """Refuse constraints that cannot all hold, beside known labels and links."""
    tied = rules.network()
    start = tied.network.infeasible()
    if start is None:
        return
    factor, node = start
    task = (
        int(tied.variable[node])
        if factor < 0
        else int(rules.literals.task[rules.table.start[factor]])
    )
    items, n_nodes = _items_around(task, rules)
    chain = smallest_conflict(items, n_nodes, rules.n_classes)
    told = [_tell(items[i], rules, tasks, classes, links) for i in chain]
    raise ConstraintError(
        "constraints-contradict",
        chain=told,
        kinds=[items[i].kind for i in chain],
        places=[items[i].at for i in chain],
    )


def _items_around(task: int, rules: ConstraintCodes) -> tuple[list[Item], int]:
    """Return what must hold for all tasks that constraints and links tie to one."""
    table, literals, n_classes = rules.table, rules.literals, rules.n_classes
    is_hard = np.isnan(table.weights()) & ~table.is_rate()
    size = np.diff(table.start)
    literal = np.repeat(is_hard, size)
    first = np.repeat(literals.task[table.start[:-1][is_hard]], size[is_hard])
    left = right = np.empty(0, np.int32)
    must = np.empty(0, dtype=bool)
    if rules.implied is not None:
        links = rules.implied.links
        left, right = (rules.implied.task[end] for end in (links.left, links.right))
        must = links.must
    ends = np.concatenate([first, left]), np.concatenate([literals.task[literal], right])
    component = components(rules.n_tasks, *(end.astype(np.int32) for end in ends))
    own = component[task]
    place = np.cumsum(component == own) - 1
    items = []
    for f in np.flatnonzero(is_hard).tolist():
        at = np.arange(table.start[f], table.start[f + 1])
        if component[literals.task[at[0]]] != own:
            continue
        nodes = place[literals.task[at]]
        value = rules.value_of(f)
        if value.ndim == 2:
            items.append(Item(Pair(int(nodes[0]), int(nodes[1]), value), RULE, f))
        else:
            items.append(Item(Count(nodes, literals.member[at].astype(int), value), RULE, f))
    eye = np.eye(n_classes, dtype=bool)
    for e in np.flatnonzero(component[left] == own).tolist() if len(left) else ():
        worth = np.where(eye == must[e], 0.0, -np.inf)
        pair = Pair(int(place[left[e]]), int(place[right[e]]), worth)
        items.append(Item(pair, LINK, e))
    if rules.gold is not None:
        for g in np.flatnonzero(component[rules.gold.task] == own).tolist():
            step = (np.arange(n_classes) == rules.gold.label[g]).astype(int)[None]
            node = [int(place[rules.gold.task[g]])]
            items.append(Item(Count(node, step, np.array([-np.inf, 0.0])), GOLD, g))
    return items, int((component == own).sum())


def _tell(
    item: Item, rules: ConstraintCodes, tasks: Ids, classes: Ids, links: Links | None
) -> tuple[str, str]:
    """Return what must hold, and where that was said."""
    if item.kind == RULE:
        return rules.table.say(item.at), rules.table.where(item.at)
    if item.kind == GOLD:
        assert rules.gold is not None
        name = tasks[int(rules.gold.task[item.at])]
        return f"{name!r} is known as {classes[int(rules.gold.label[item.at])]!r}", GOLD
    assert rules.implied is not None
    codes = rules.implied.links
    left, right = (
        tasks[int(rules.implied.task[end[item.at]])] for end in (codes.left, codes.right)
    )
    sign = "=" if codes.must[item.at] else "≠"
    where = LINK if links is None else links.where(int(codes.row[item.at]))
    return f"{left!r} {sign} {right!r}", where


def smallest_conflict(items: Sequence[Item], n_nodes: int, n_classes: int) -> list[int]:
    """Return places of items that cannot hold together, none of which can be spared.

    >>> one = np.array([[0, 1]])
    >>> both = Count([0, 1], np.repeat(one, 2, axis=0), np.array([-np.inf, 0.0, -np.inf]))
    >>> sure = [Count([i], one, np.array([-np.inf, 0.0])) for i in (0, 1)]
    >>> smallest_conflict([Item(each, RULE, 0) for each in (both, *sure)], 2, 2)
    [2, 1, 0]
    """
    factors = [item.factor for item in items]
    chain = propagate(factors, n_nodes, n_classes)
    left = list(range(len(items))) if chain is None else chain
    size = len(left) // 2
    while size:  # whole pieces first, then one by one
        at = 0
        while at < len(left):
            rest = left[:at] + left[at + size :]
            if _can_hold([factors[i] for i in rest], n_nodes, n_classes):
                at += size
            else:
                left = rest
        size //= 2
    again = propagate([factors[i] for i in left], n_nodes, n_classes)
    return left if again is None else [left[i] for i in again]


def _can_hold(factors: Sequence[Factor], n_nodes: int, n_classes: int) -> bool:
    if propagate(factors, n_nodes, n_classes) is not None:
        return False
    return by_program(np.zeros((n_nodes, n_classes)), factors) is not None


def propagate(factors: Sequence[Factor], n_nodes: int, n_classes: int) -> list[int] | None:
    """Take away classes that are impossible; return the chain of factors that leaves none.

    None: propagation finds no contradiction.
    """
    possible = np.ones((n_nodes, n_classes), dtype=bool)
    why = np.full((n_nodes, n_classes), -1)

    def chain(last: int, of: Sequence[int]) -> list[int]:
        found = [last]
        waiting = list(of)
        seen: set[int] = set()
        while waiting:
            node = waiting.pop(0)
            if node in seen:
                continue
            seen.add(node)
            for j in why[node][why[node] >= 0].tolist():
                if j not in found:
                    found.append(j)
                waiting.extend(_nodes(factors[j]))
        return found[::-1]

    moved = True
    while moved:
        moved = False
        for j, factor in enumerate(factors):
            keep = _kept(factor, possible)
            for node, mask in zip(_nodes(factor), keep, strict=True):
                lost = possible[node] & ~mask
                if not lost.any():
                    continue
                why[node, lost] = j
                possible[node] &= mask
                moved = True
                if not possible[node].any():
                    return chain(j, [node, *_nodes(factor)])
    return None


def _nodes(factor: Factor) -> list[int]:
    if isinstance(factor, Pair):
        return [factor.left, factor.right]
    return [int(node) for node in factor.nodes]


def _kept(factor: Factor, possible: Mask) -> list[Mask]:
    """Return for each literal the classes that a factor leaves possible."""
    if isinstance(factor, Pair):
        fine = ~np.isneginf(factor.table)
        left, right = possible[factor.left], possible[factor.right]
        return [(fine & right).any(axis=1), (fine.T & left).any(axis=1)]
    fine = ~np.isneginf(np.asarray(factor.value))
    can = possible[np.asarray(factor.nodes)]
    steps = np.asarray(factor.steps)
    least = np.where(can, steps, 1 << 30).min(axis=1)
    most = np.where(can, steps, -1).max(axis=1)
    low, high = int(least.sum()), int(most.sum())
    return [
        np.array([fine[max(low - a + s, 0) : max(high - b + s, -1) + 1].any() for s in step])
        for a, b, step in zip(least.tolist(), most.tolist(), steps.tolist(), strict=True)
    ]
