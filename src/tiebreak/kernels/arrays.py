"""What both backends and the layers above need of plain arrays."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.layout import Floats


def entropy(q: Floats) -> float:
    """Return Σ H(q) over rows, with 0 log 0 = 0."""
    return float(-(q * np.log(np.where(q > 0.0, q, 1.0))).sum())


def softmax(score: Floats) -> Floats:
    """Return exp(score) with rows that sum to 1."""
    new = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(new / new.sum(axis=1, keepdims=True))
