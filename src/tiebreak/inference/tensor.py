"""The parts of a mixture from its second and third moments: whitening and the power method.

A mixture of K columns μ_h with weights p_h has second moment Σ p_h μ_h μ_hᵀ and third moment
Σ p_h μ_h ⊗ μ_h ⊗ μ_h. Whitened by the second, the third has orthogonal parts, which the power
method finds one after the other; Anandkumar, Ge, Hsu, Kakade and Telgarsky 2014.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np

from tiebreak.kernels.layout import Floats, Offsets

FLOOR = 1e-6  # no probability is estimated below
MIN_EIGENVALUE = 1e-10  # of the largest
MIN_STRENGTH = 1e-6  # of the largest so far; the root of how rare a class may be
N_STARTS = 10
MAX_STEPS = 100
CONVERGED = 1e-12  # largest change of a unit vector


class Unsuited(Exception):
    """The moments do not determine a mixture; the message says why.

    Caught where the start is chosen: it never reaches a user.
    """


class Components(NamedTuple):
    """The parts of a mixture: weights (h,), sum 1, and columns (answer, h), up to one factor."""

    weights: Floats
    columns: Floats


def components(second: Floats, third: Floats, rng: np.random.Generator) -> Components:
    """Take a mixture of as many parts as there are answers to pieces: [eq:spectral-components].

    The moments may be known up to a factor each: only the columns' common factor then is lost.

    >>> columns = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> weights = np.array([0.6, 0.4])
    >>> second = np.einsum("h,ih,jh->ij", weights, columns, columns)
    >>> third = np.einsum("h,ih,jh,kh->ijk", weights, columns, columns, columns)
    >>> found = components(second, third, np.random.default_rng(0))
    >>> found = match(found, shares(found.columns))
    >>> found.weights.round(6).tolist(), found.columns.round(6).tolist()
    ([0.6, 0.4], [[0.9, 0.2], [0.1, 0.8]])
    """
    whitener, back = whiten((second + second.T) / 2.0)
    symmetric = sum(third.transpose(order) for order in permutations(range(3))) / 6.0
    white = np.einsum("abc,ai,bj,ck->ijk", symmetric, *[whitener] * 3, optimize=True)
    strength, direction = power_method(white, rng)
    weights = strength**-2.0
    return Components(weights / weights.sum(), back @ (direction * strength))


def whiten(second: Floats) -> tuple[Floats, Floats]:
    """Return Q with Qᵀ M Q = I, and the inverse of Qᵀ, of a symmetric M: [eq:spectral-white].

    >>> whitener, back = whiten(np.diag([4.0, 9.0]))
    >>> (whitener.T @ np.diag([4.0, 9.0]) @ whitener).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    value, vector = np.linalg.eigh(second)
    if not value[0] > MIN_EIGENVALUE * value[-1]:
        raise Unsuited(
            "the votes of the three groups of workers contradict each other: their second moments "
            f"have the eigenvalue {value[0]:.1e}, and all must be positive"
        )
    return vector / np.sqrt(value), vector * np.sqrt(value)


def power_method(cube: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return strengths (h,) and directions (axis, h) of the orthogonal parts of a symmetric cube.

    The strongest part of several random starts is taken out, then the strongest of what is left,
    and so on: [eq:spectral-power].
    """
    left = cube.copy()
    strengths = np.empty(len(cube))
    directions = np.empty(cube.shape[:2])
    for h in range(len(cube)):
        strengths[h], directions[:, h] = _strongest(left, rng)
        if not strengths[h] > MIN_STRENGTH * strengths[: h + 1].max():
            raise Unsuited(f"the third moments of the votes show only {h} of {len(cube)} classes")
        v = directions[:, h]
        left -= strengths[h] * v[:, None, None] * v[:, None] * v
    return strengths, directions


def _strongest(cube: Floats, rng: np.random.Generator) -> tuple[float, Floats]:
    """Climb from random unit vectors by v ← T(I, v, v) / ‖·‖; return the largest T(v, v, v)."""
    v = rng.standard_normal((len(cube), N_STARTS))
    v /= np.linalg.norm(v, axis=0)
    for _ in range(MAX_STEPS):
        image = _image(cube, v)
        new = image / np.maximum(np.linalg.norm(image, axis=0), np.finfo(np.float64).tiny)
        change = np.abs(new - v).max()
        v = new
        if change < CONVERGED:
            break
    strength = (v * _image(cube, v)).sum(axis=0)
    best = int(strength.argmax())
    return float(strength[best]), v[:, best]


def _image(cube: Floats, v: Floats) -> Floats:
    """Return T(I, v, v) for each column of v."""
    return np.asarray(((cube @ v) * v).sum(axis=1))


def match(found: Components, claims: Floats) -> Components:
    """Order components by the classes that they claim, (answer, h): see `assign`.

    >>> found = Components(np.array([0.7, 0.3]), np.array([[4.0, 16.0], [6.0, 4.0]]))
    >>> match(found, shares(found.columns)).columns.tolist()
    [[16.0, 4.0], [4.0, 6.0]]
    """
    part = assign(claims)
    chosen = claims[np.arange(len(part)), part]
    if not (found.columns.sum(axis=0) > 0.0).all() or not (chosen > FLOOR).all():
        raise Unsuited(
            "what the votes show cannot be matched to the classes: some confusions come out "
            "negative, as from too few or too noisy responses"
        )
    return Components(found.weights[part], found.columns[:, part])


def assign(claims: Floats) -> Offsets:
    """Return for each class the component that stands for it: [eq:spectral-match].

    Departs from Zhang et al., who give each component the class of its largest claim, so that
    two can get the same: here the product of all claims is the largest.

    Parameters
    ----------
    claims
        (answer, h), positive, columns sum to 1: what is answered where component h is the truth.

    >>> assign(np.array([[0.4, 0.8], [0.6, 0.2]])).tolist()
    [1, 0]
    """
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(-np.log(claims))[1], dtype=np.int64)


def shares(columns: Floats) -> Floats:
    """Return columns (…, answer, truth) made positive, each with sum 1 (even, if nothing is).

    >>> shares(np.array([[3.0, -1.0], [1.0, 2.0]])).round(3).tolist()
    [[0.75, 0.0], [0.25, 1.0]]
    """
    positive = np.maximum(columns, 0.0)
    total = positive.sum(axis=-2, keepdims=True)
    floored = np.maximum(positive / np.where(total > 0.0, total, 1.0), FLOOR)
    return np.asarray(floored / floored.sum(axis=-2, keepdims=True))
