"""Plain arrays: the fast way has the bits of the plain one."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak.kernels.arrays import softmax


@pytest.mark.parametrize("n_rows", [0, 1, 500])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 5, 6, 7, 8, 9, 20])
def test_softmax_has_the_bits_of_the_plain_one(n_classes: int, n_rows: int) -> None:
    rng = np.random.default_rng(n_classes)
    score = 10.0 * rng.normal(size=(n_rows, n_classes))
    score[: n_rows // 3, 1:] = -np.inf
    scale = rng.random(n_rows) + 0.1
    given = score.copy()
    for times in (None, scale):
        scaled = score if times is None else times[:, None] * score
        plain = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        plain /= plain.sum(axis=1, keepdims=True)
        assert np.array_equal(softmax(score, times), plain)
    assert np.array_equal(score, given)
