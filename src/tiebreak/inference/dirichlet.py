"""The few facts about Dirichlet distributions that inference needs."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, psi

from tiebreak.kernels.layout import Floats


def expected_log(concentration: Floats, axis: int = -1) -> Floats:
    """Return E[log x] of x ~ Dirichlet(concentration): ψ(a) − ψ(Σ a), [eq:expected-logs].

    >>> expected_log(np.array([1.0, 1.0])).round(6).tolist()
    [-1.0, -1.0]
    """
    total = concentration.sum(axis=axis, keepdims=True)
    return np.asarray(psi(concentration) - psi(total))


def log_beta(concentration: Floats, axis: int = -1) -> Floats:
    """Return log B(a) = Σ log Γ(a) − log Γ(Σ a).

    >>> float(np.exp(log_beta(np.array([2.0, 3.0]))).round(6))
    0.083333
    """
    total = concentration.sum(axis=axis)
    return np.asarray(gammaln(concentration).sum(axis=axis) - gammaln(total))


def mean(concentration: Floats, axis: int = -1) -> Floats:
    """Return E[x] of x ~ Dirichlet(concentration)."""
    return np.asarray(concentration / concentration.sum(axis=axis, keepdims=True))
