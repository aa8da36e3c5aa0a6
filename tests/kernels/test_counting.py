"""Votes counted by compiled code are those that NumPy counts."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak.kernels import counting
from tiebreak.kernels.layout import lay_out


@pytest.mark.parametrize("n_classes", [2, 5])
def test_compiled_counts_equal_numpy(n_classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    degree = rng.integers(0, 8, 3_000)
    start = np.concatenate([[0], np.cumsum(degree)])
    code = rng.integers(0, 7 * n_classes, start[-1]).astype(np.int32)
    role = np.zeros(len(degree), np.int8)
    tasks = lay_out(start, code, role, 7 * n_classes, n_classes)
    expected = counting.majority(tasks, n_classes)
    by_code = counting.count_codes(code, 7 * n_classes)
    monkeypatch.setattr(counting, "LARGE", 1)
    assert (counting.majority(tasks, n_classes) == expected).all()
    assert (counting.count_codes(code, 7 * n_classes) == by_code).all()
