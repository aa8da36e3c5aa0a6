"""Folds of known tasks for cross-validation: each class is dealt out evenly."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.layout import Codes


def deal(label: Codes, n_folds: int, random_state: int | None = None) -> Codes:
    """Return the fold of each known task.

    >>> deal(np.array([0, 0, 1, 1, 0, 1]), 3, 0).tolist()
    [1, 2, 1, 0, 0, 2]
    """
    order = np.random.default_rng(random_state or 0).permutation(len(label))
    order = order[np.argsort(label[order], kind="stable")]
    fold = np.empty(len(label), dtype=np.int32)
    fold[order] = np.arange(len(label)) % n_folds
    return fold
