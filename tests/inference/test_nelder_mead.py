"""Our simplex search goes the way of scipy's, point by point."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from tiebreak.inference.nelder_mead import Point, minimise

Cost = Callable[[Point], float]


def rosenbrock(x: Point) -> float:
    return sum(100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2 for a, b in pairwise(x))


def valley(x: Point) -> float:
    return abs(x[0]) + 1e-3 * sum(part * part for part in x)


def steps(x: Point) -> float:
    """Be flat here and there, so that corners have equal costs."""
    return float(sum(np.floor(4.0 * part) ** 2 for part in x))


def points_of(search: Callable[[Cost], object], cost: Cost) -> list[Point]:
    """Return the points that a search asks for, in their order."""
    asked: list[Point] = []

    def asks(x: Point) -> float:
        asked.append(tuple(map(float, x)))
        return float(cost(x))

    search(asks)
    return asked


@pytest.mark.parametrize("cost", [rosenbrock, valley, steps])
@pytest.mark.parametrize("start", [(-1.2, 1.0), (0.0, 0.0), (3.0, -2.0, 0.5), (-0.6, 0.0)])
def test_the_same_points_are_asked_for_as_by_scipy(cost: Cost, start: Point) -> None:
    ours = points_of(lambda asks: minimise(asks, start), cost)
    theirs = points_of(lambda asks: minimize(asks, start, method="Nelder-Mead"), cost)
    assert ours == theirs
    found = minimize(lambda x: cost(tuple(x)), start, method="Nelder-Mead")
    assert minimise(cost, start) == tuple(found.x)


@given(st.tuples(*[st.floats(-5.0, 5.0)] * 2), st.tuples(*[st.floats(-3.0, 3.0)] * 2))
def test_a_bowl_has_its_minimum_found_as_by_scipy(centre: Point, start: Point) -> None:
    def bowl(x: Point) -> float:
        return float((x[0] - centre[0]) ** 2 + 3.0 * (x[1] - centre[1]) ** 2 + x[0] * x[1])

    found = minimize(bowl, start, method="Nelder-Mead")
    assert minimise(bowl, start) == tuple(found.x)


def test_a_search_that_does_not_end_is_ended_where_scipy_ends_it() -> None:
    def falls(x: Point) -> float:
        return float(x[0] + x[1])

    ours = points_of(lambda asks: minimise(asks, (1.0, 1.0)), falls)
    theirs = points_of(lambda asks: minimize(asks, (1.0, 1.0), method="Nelder-Mead"), falls)
    assert len(ours) == 400
    assert ours == theirs
