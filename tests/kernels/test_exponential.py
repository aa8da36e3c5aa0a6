"""Probabilities have the digits of the library's exponential over its whole range."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from tiebreak.kernels import compiled, lay_out


@pytest.mark.parametrize("scale", [1e-6, 1.0, 60.0, 300.0, 2_000.0])
@pytest.mark.parametrize("n_classes", [2, 3, 7, 22, 43])
def test_probabilities_are_those_of_the_library(n_classes: int, scale: float) -> None:
    n = 500
    log_table = -np.random.default_rng(n_classes).exponential(scale, (n * n_classes, n_classes))
    code = np.arange(n, dtype=np.int32) * n_classes
    roles = np.zeros(n, dtype=np.int8)
    tasks = lay_out(np.arange(n + 1), code, roles, n * n_classes, n_classes)
    logs = np.zeros(n_classes), log_table
    found = compiled.scaled_probabilities(tasks, *logs, np.ones(n))
    expected = softmax(log_table[code], axis=1)
    is_normal = expected > 1e-300
    assert np.abs(found[is_normal] / expected[is_normal] - 1.0).max() < 1e-13
    assert (found[~is_normal] < 1e-299).all()
