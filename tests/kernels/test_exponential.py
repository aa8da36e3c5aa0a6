"""The exponential of the kernels against the library's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.kernels.compiled.exponential import exp

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
