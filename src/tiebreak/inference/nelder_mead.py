"""Nelder and Mead's simplex search, for costs of a few numbers that take microseconds.

It goes the way of `scipy.optimize.minimize(method="Nelder-Mead")`, point by point, in plain floats:
a test compares the two. There every step works on arrays of two numbers, which takes longer than
most costs do, and loading scipy.optimize takes longer than a small fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

FIRST_STEP = 0.05  # of a number, to the next corner of the first simplex
FIRST_STEP_FROM_ZERO = 0.00025
CALLS_A_NUMBER = 200
NEAR = 1e-4  # of the best corner, in each number and in its cost: scipy's tolerances

Point = tuple[float, ...]


class Corner(NamedTuple):
    """A point, and what it costs."""

    cost: float
    x: Point


def minimise(cost: Callable[[Point], float], start: Sequence[float]) -> Point:
    """Return where the cost is least, near the start.

    It ends when all corners of the simplex are `NEAR` the best one, or after `CALLS_A_NUMBER` calls
    for each number.

    >>> [round(x, 3) for x in minimise(lambda x: (x[0] - 3.0) ** 2 + x[1] ** 2, (1.0, 1.0))]
    [3.0, 0.0]
    """
    counted = _Counted(cost, CALLS_A_NUMBER * len(start))
    corners = sorted((Corner(counted(x), x) for x in _first_simplex(start)), key=_cost_of)
    try:
        while not _has_settled(corners):
            _step(counted, corners)
            corners.sort(key=_cost_of)
    except _OutOfCalls:
        corners.sort(key=_cost_of)
    return corners[0].x


class _OutOfCalls(Exception):
    """The cost was asked for as often as it may be."""


class _Counted:
    """A cost that is asked for so often and no more."""

    def __init__(self, cost: Callable[[Point], float], most: int) -> None:
        self._cost = cost
        self._left = most

    def __call__(self, x: Point) -> float:
        if not self._left:
            raise _OutOfCalls
        self._left -= 1
        return self._cost(x)


def _cost_of(corner: Corner) -> float:
    return corner.cost


def _first_simplex(start: Sequence[float]) -> list[Point]:
    points = [tuple(map(float, start))]
    for place, value in enumerate(points[0]):
        moved = (1.0 + FIRST_STEP) * value if value != 0.0 else FIRST_STEP_FROM_ZERO
        points.append((*points[0][:place], moved, *points[0][place + 1 :]))
    return points


def _has_settled(corners: Sequence[Corner]) -> bool:
    cost, x = corners[0]
    for other in corners[1:]:
        if abs(other.cost - cost) > NEAR:
            return False
        for a, b in zip(other.x, x, strict=True):
            if abs(a - b) > NEAR:
                return False
    return True


def _step(cost: Callable[[Point], float], corners: list[Corner]) -> None:
    """Move the worst corner, the last one, or draw all towards the best."""
    last = corners[-1]
    n = len(last.x)
    middle = [_added(each) / n for each in zip(*[corner.x for corner in corners[:-1]], strict=True)]

    def at(of_middle: float, of_last: float) -> Corner:
        x = tuple([of_middle * m + of_last * w for m, w in zip(middle, last.x, strict=True)])
        return Corner(cost(x), x)

    reflected = at(2.0, -1.0)
    if reflected.cost < corners[0].cost:
        expanded = at(3.0, -2.0)
        corners[-1] = expanded if expanded.cost < reflected.cost else reflected
        return
    if reflected.cost < corners[-2].cost:
        corners[-1] = reflected
        return
    if reflected.cost < last.cost:
        contracted = at(1.5, -0.5)
        is_better = contracted.cost <= reflected.cost
    else:
        contracted = at(0.5, 0.5)
        is_better = contracted.cost < last.cost
    if is_better:
        corners[-1] = contracted
        return
    best = corners[0].x
    for j in range(1, len(corners)):
        x = tuple([b + 0.5 * (a - b) for a, b in zip(corners[j].x, best, strict=True)])
        corners[j] = Corner(cost(x), x)


def _added(values: Sequence[float]) -> float:
    # Not `sum`: from Python 3.12 on it adds floats by another rule, with other last digits.
    total = values[0]
    for value in values[1:]:
        total += value
    return total
