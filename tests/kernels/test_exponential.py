"""The exponential and the logarithm of the kernels against the library's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.kernels.compile import kernel
from tiebreak.kernels.compiled.exponential import exp, exp_normal, exp_simd, log, log_simd
from tiebreak.kernels.compiled.simd import Like, load, store
from tiebreak.kernels.layout import Floats

SMALLEST = float(np.nextafter(0.0, 1.0))


@given(st.floats(min_value=-1e4, max_value=0.0))
def test_exp_is_the_library_s_to_a_bit(x: float) -> None:
    expected = float(np.exp(x))
    assert abs(exp(x) - expected) <= max(3e-16 * expected, SMALLEST)


def test_exp_over_the_whole_range() -> None:
    x = -np.concatenate([np.linspace(0.0, 750.0, 200_001), np.geomspace(1e-300, 1.0, 20_001)])
    found, expected = np.array([exp(each) for each in x.tolist()]), np.exp(x)
    assert (np.abs(found - expected) <= np.maximum(3e-16 * expected, SMALLEST)).all()


def test_exp_of_its_ends() -> None:
    assert exp(0.0) == 1.0
    assert exp(-0.0) == 1.0
    assert [exp(x) for x in (-np.inf, -1e300, -746.0)] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("low", "high"), [(-600.0, 600.0), (-1.0, 1.0), (-1e-3, 1e-3)])
def test_log_is_the_library_s_to_a_few_bits(low: float, high: float) -> None:
    x = np.exp(np.linspace(low, high, 20_001))
    found, expected = np.array([log(each) for each in x.tolist()]), np.log(x)
    assert (np.abs(found - expected) <= 5e-16 * np.abs(expected)).all()


def test_vectors_do_what_numbers_do() -> None:
    x = np.random.default_rng(0).normal(0.0, 200.0, (500, 3))
    x[0] = [-np.inf, -745.0, 0.0]
    for on_vectors, on_numbers in ((_exp_of_rows, exp), (_log_of_rows, log)):
        given = np.minimum(x, 0.0) if on_numbers is exp else np.exp(np.clip(x, -600, 600))
        found = on_vectors(given, (0, 0, 0))
        expected = [[on_numbers(each) for each in row] for row in given.tolist()]
        assert np.allclose(found, expected, rtol=5e-16, atol=5e-324)


@pytest.mark.parametrize("n", [1, 3, 8, 10, 15, 20, 30])
def test_rows_that_are_held_whole_have_the_library_s_exponentials(n: int) -> None:
    x = -np.random.default_rng(n).exponential(60.0, (2_000, n))
    x[0] = 0.0
    x[1] = -708.5
    found = _normal_exp_of_rows(x, (0,) * n)
    expected = np.where(x > -708.0, np.exp(x), 0.0)
    assert (np.abs(found - expected) <= 5e-16 * expected).all()


@kernel
def _normal_exp_of_rows(x: Floats, like: Like) -> Floats:
    out = np.empty_like(x)
    for i in range(len(x)):
        store(out, i, 0, exp_normal(load(x, i, 0, like)))
    return out


@kernel
def _exp_of_rows(x: Floats, like: Like) -> Floats:
    out = np.empty_like(x)
    for i in range(len(x)):
        store(out, i, 0, exp_simd(load(x, i, 0, like)))
    return out


@kernel
def _log_of_rows(x: Floats, like: Like) -> Floats:
    out = np.empty_like(x)
    for i in range(len(x)):
        store(out, i, 0, log_simd(load(x, i, 0, like)))
    return out
