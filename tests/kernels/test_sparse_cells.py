"""Cells that still equal their prior are not computed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tiebreak.inference import dirichlet


@pytest.mark.parametrize("function", [dirichlet.expected_log, dirichlet.log_beta])
def test_cells_that_still_equal_their_prior_give_the_same_bits(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    prior = random.gamma(2.0, size=(1, 50, 50))
    values = prior + np.where(random.random((6, 50, 50)) < 0.1, random.gamma(1.0), 0.0)
    monkeypatch.setattr(dirichlet, "SPARSE", 1)
    called: list[int] = []
    each = dirichlet._of_each

    def spy(of: Any, numbers: Any, n_threads: int) -> Any:
        called.append(numbers.size)
        return each(of, numbers, n_threads)

    monkeypatch.setattr(dirichlet, "_of_each", spy)
    fast = function(values, 1, prior=prior)
    assert sum(called) < values.size / 2  # most cells were not computed
    plain = function(values, 1)
    assert np.asarray(fast).tobytes() == np.asarray(plain).tobytes()
