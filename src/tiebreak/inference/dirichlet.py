"""The few facts about Dirichlet distributions that inference needs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, psi

from tiebreak.kernels.layout import Floats
from tiebreak.kernels.threads import for_each

PIECE, PIECES = 8_192, 16  # numbers


def expected_log(concentration: Floats, axis: int = -1, n_threads: int = 1) -> Floats:
    """Return E[log x] of x ~ Dirichlet(concentration): ψ(a) − ψ(Σ a), [eq:expected-logs].

    >>> expected_log(np.array([1.0, 1.0])).round(6).tolist()
    [-1.0, -1.0]
    """
    total = concentration.sum(axis=axis, keepdims=True)
    found = _of_each(psi, concentration, n_threads)
    found -= psi(total)
    return found


def log_beta(concentration: Floats, axis: int = -1, n_threads: int = 1) -> Floats:
    """Return log B(a) = Σ log Γ(a) − log Γ(Σ a).

    >>> float(np.exp(log_beta(np.array([2.0, 3.0]))).round(6))
    0.083333
    """
    total = concentration.sum(axis=axis)
    logs = _of_each(gammaln, concentration, n_threads)
    return np.asarray(logs.sum(axis=axis) - gammaln(total))


def _of_each(function: Callable[..., Floats], values: Floats, n_threads: int) -> Floats:
    """Return the function of every value; of many, in pieces that threads share."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    found, flat = np.empty_like(values), values.ravel()
    edges = np.linspace(0, flat.size, max(1, min(PIECES, flat.size // PIECE)) + 1).astype(int)

    def work(p: int) -> None:
        piece = slice(edges[p], edges[p + 1])
        function(flat[piece], out=found.ravel()[piece])

    for_each(work, len(edges) - 1, n_threads)
    return found


def mean(concentration: Floats, axis: int = -1) -> Floats:
    """Return E[x] of x ~ Dirichlet(concentration)."""
    return np.asarray(concentration / concentration.sum(axis=axis, keepdims=True))
