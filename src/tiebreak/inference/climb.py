"""The one loop of every fit: sweep until nothing moves, with leaps between sweeps (SQUAREM).

A sweep takes parameters, updates all tasks, and returns the parameters that these imply. Near an
optimum each sweep goes a little less far than the one before, in nearly the same direction. Two
sweeps in a row say how much less, and so where many more would lead (Varadhan and Roland 2008).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tiebreak.kernels.layout import Floats

NEAR = 0.1  # extrapolate when no q moves by more: until then sweeps still choose the optimum
FARTHEST = 3.0  # that one extrapolation may change the log of a parameter
ROUNDING = 1e-14  # relative: a bound lower by less than this is not lower

Parameters = tuple[Floats, ...]  # positive


class Sweep(NamedTuple):
    """What one sweep over the tasks, from given parameters, leads to."""

    implied: Parameters
    bound: float
    change: float  # largest change of any q


class Climb(NamedTuple):
    """Where sweeps ended, and the bound that stood after each of them."""

    implied: Parameters
    bounds: list[float]
    converged: bool


def climb(
    sweep: Callable[[Parameters], Sweep],
    start: Parameters,
    *,
    tol: float,
    max_iter: int,
    extrapolate: bool = True,
    has_cycled: Callable[[], bool] | None = None,
) -> Climb:
    """Sweep until no q moves by `tol` in a plain sweep; extrapolate after every two of them.

    A sweep from an extrapolation that lowers the bound is wasted: it counts, and sweeps go on where
    they stood. So the last of `max_iter` sweeps never starts from an extrapolation. The change that
    ends the climb is that of a sweep which went on from where the one before ended. So does one
    after which `has_cycled` says that sweeps go to and fro between two states.
    """
    at = start
    implied = start
    bounds: list[float] = []
    path: list[Parameters] = []  # where the last plain sweeps in a row started
    fallback: Parameters | None = None  # where to go on if the extrapolation is taken back
    goes_on = True  # whether this sweep starts from what the q before it implies
    for n_sweeps in range(1, max_iter + 1):
        path = path[-1:]  # parameters may be large: none is held that no step needs
        made = sweep(at)
        if fallback is not None and not made.bound >= bounds[-1] - ROUNDING * abs(bounds[-1]):
            bounds.append(bounds[-1])
            at = fallback
            fallback = None
            path = []
            goes_on = False
            continue
        bounds.append(made.bound)
        implied = made.implied
        if fallback is None and goes_on and made.change < tol:
            return Climb(implied, bounds, converged=True)
        if has_cycled is not None and has_cycled():
            break
        path = [*path, at] if extrapolate and fallback is None else []
        at = implied
        fallback = None
        goes_on = True
        if extrapolate and len(path) == 2 and made.change < NEAR and n_sweeps + 1 < max_iter:
            at = extrapolated(path[0], path[1], implied)
            fallback = implied
    return Climb(implied, bounds, converged=False)


def extrapolated(first: Parameters, second: Parameters, third: Parameters) -> Parameters:
    """Return where three parameters in a row lead, [eq:squarem].

    >>> sweeps = ([np.exp(2.0 - 2.0 * 0.5**n)] for n in range(3))
    >>> float(np.log(extrapolated(*sweeps)[0]).round(6))  # the limit of 0, 1, 1.5, …
    2.0
    """
    steps = [_steps(*parts) for parts in zip(first, second, third, strict=True)]
    length = np.sqrt(sum(float((one**2).sum()) for one, _ in steps))
    bend = np.sqrt(sum(float(((two - one) ** 2).sum()) for one, two in steps))
    far = max(1.0, length / bend) if bend > 0.0 else 1.0
    return tuple(_ahead(part, *step, float(far)) for part, step in zip(third, steps, strict=True))


def _steps(first: Floats, second: Floats, third: Floats) -> tuple[Floats, Floats]:
    """Return the two steps between logs; in place, as parameters may be large."""
    middle = np.log(second)
    one = np.log(first, out=np.empty_like(first))  # `out`: what comes back can be written to
    np.subtract(middle, one, out=one)
    two = np.log(third, out=np.empty_like(third))
    two -= middle
    return one, two


def _ahead(third: Floats, one: Floats, two: Floats, far: float) -> Floats:
    """Return where steps lead, counted from the third; overwrites the steps."""
    two -= one
    two *= far**2 - 1.0
    one *= 2.0 * (far - 1.0)
    one += two
    np.clip(one, -FARTHEST, FARTHEST, out=one)
    np.exp(one, out=one)
    one *= third
    return one
