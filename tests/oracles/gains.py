"""What an answer is worth in entropy, to compare with what it is worth in labels."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels import Floats


def entropy_gain(q: Floats, other: Floats, error: float = 0.0) -> Floats:
    """Return how much the entropy of q falls, as expected, by the same question."""
    agrees = error + (1.0 - 2.0 * error) * other
    after = _entropy(q * agrees) + _entropy(q * (1.0 - agrees))
    return np.asarray(_entropy(q) - after)


def _entropy(joint: Floats) -> Floats:
    """Return Σ p · H(row / p): the entropy of a row, weighted by its sum p."""
    total = joint.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(joint > 0.0, joint * np.log(joint), 0.0).sum(axis=-1)
        whole = np.where(total > 0.0, total * np.log(total), 0.0)
    return np.asarray(whole - logs)
