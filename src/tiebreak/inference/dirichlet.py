"""The few facts about Dirichlet distributions that inference needs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, psi

from tiebreak.kernels.layout import Floats
from tiebreak.kernels.threads import for_each

PIECE, PIECES = 8_192, 16  # numbers
SPARSE = 1 << 18  # numbers; below, a look at which left the prior is not repaid


def expected_log(
    concentration: Floats, axis: int = -1, n_threads: int = 1, *, prior: Floats | None = None
) -> Floats:
    """Return E[log x] of x ~ Dirichlet(concentration): ψ(a) − ψ(Σ a), [eq:expected-logs].

    `prior`, (1, …), is what most numbers may still equal: ψ is then found once for all of them.

    >>> expected_log(np.array([1.0, 1.0])).round(6).tolist()
    [-1.0, -1.0]
    """
    total = concentration.sum(axis=axis, keepdims=True)
    found = _of_changed(psi, concentration, prior, n_threads)
    found -= psi(total)
    return found


def log_beta(
    concentration: Floats, axis: int = -1, n_threads: int = 1, *, prior: Floats | None = None
) -> Floats:
    """Return log B(a) = Σ log Γ(a) − log Γ(Σ a); `prior` as in `expected_log`.

    >>> float(np.exp(log_beta(np.array([2.0, 3.0]))).round(6))
    0.083333
    """
    total = concentration.sum(axis=axis)
    logs = _of_changed(gammaln, concentration, prior, n_threads)
    return np.asarray(logs.sum(axis=axis) - gammaln(total))


def _of_changed(
    function: Callable[..., Floats], values: Floats, prior: Floats | None, n_threads: int
) -> Floats:
    """Return the function of every value, found anew only where a value left its prior.

    Of 20 confusion matrices over 1,000 classes and 25,000 responses, one cell of a thousand has a
    count: 0.1 s, not 0.9 s. The function is of each number alone, so the bits are the same.
    """
    if prior is None or len(prior) != 1 or values.size < SPARSE:
        return _of_each(function, values, n_threads)
    has_changed = values != prior
    if np.count_nonzero(has_changed) > values.size // 2:
        return _of_each(function, values, n_threads)
    changed = np.flatnonzero(has_changed)
    of_prior = _of_each(function, prior, n_threads)
    found = np.empty(values.shape)
    found[:] = of_prior
    found.ravel()[changed] = _of_each(function, values.ravel()[changed], n_threads)
    return found


def _of_each(function: Callable[..., Floats], values: Floats, n_threads: int) -> Floats:
    """Return the function of every value; of many, in pieces that threads share."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    found = np.empty_like(values)
    n_pieces = min(PIECES, values.size // PIECE)
    if n_pieces < 2:
        return function(values, out=found)
    flat = values.ravel()
    edges = np.linspace(0, flat.size, n_pieces + 1).astype(int)

    def work(p: int) -> None:
        piece = slice(edges[p], edges[p + 1])
        function(flat[piece], out=found.ravel()[piece])

    for_each(work, len(edges) - 1, n_threads)
    return found


def mean(concentration: Floats, axis: int = -1) -> Floats:
    """Return E[x] of x ~ Dirichlet(concentration)."""
    return np.asarray(concentration / concentration.sum(axis=axis, keepdims=True))
