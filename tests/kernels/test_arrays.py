"""Plain arrays: the fast way says what the plain one does."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak.kernels import arrays, count_codes, lay_out, majority, softmax


@pytest.mark.parametrize("n_rows", [0, 1, 500])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 5, 6, 7, 8, 9, 20])
def test_softmax_is_that_of_the_definition(n_classes: int, n_rows: int) -> None:
    rng = np.random.default_rng(n_classes)
    score = 10.0 * rng.normal(size=(n_rows, n_classes))
    score[: n_rows // 3, 1:] = -np.inf
    scale = rng.random(n_rows) + 0.1
    given = score.copy()
    for times in (None, scale):
        scaled = score if times is None else times[:, None] * score
        plain = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        plain /= plain.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(softmax(score, times), plain, rtol=1e-13)
    assert np.array_equal(score, given)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_compiled_votes_are_those_that_numpy_counts(
    n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    degree = rng.integers(0, 8, 3_000)
    start = np.concatenate([[0], np.cumsum(degree)])
    n_codes = 7 * n_classes
    code = rng.integers(0, n_codes, start[-1]).astype(np.int32)
    tasks = lay_out(start, code, np.zeros(len(degree), np.int8), n_codes, n_classes)
    expected = majority(tasks, n_classes)
    monkeypatch.setattr(arrays, "LARGE", 1)
    assert np.abs(majority(tasks, n_classes) - expected).max() < 1e-12


def test_codes_are_counted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    code = np.random.default_rng(0).integers(0, 7, 1_000).astype(np.int32)
    monkeypatch.setattr(arrays, "TASKS_AT_ONCE", 90)
    assert count_codes(code, 9).tolist() == np.bincount(code, minlength=9).tolist()


@pytest.mark.parametrize("n", [0, 1, 8_191, 8_192, 30_000])
def test_the_largest_change_is_that_of_whole_arrays(n: int) -> None:
    rng = np.random.default_rng(n)
    new, old = rng.random((2, n, 3))
    assert arrays.largest_change(new, old, 2) == np.abs(new - old).max(initial=0.0)
