"""Many classes: the fast ways give the same bits as the plain ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tiebreak.inference import dirichlet, vb
from tiebreak.kernels.reference import tasks as reference
from tiebreak.simulate import crowd


def test_a_product_of_matrices_gives_the_bits_of_sums_by_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = crowd(200, 7, 40, random_state=1).responses
    laid_out = vb.lay_out(drawn, vb.roles(drawn.n_tasks, None, None))
    random = np.random.default_rng(0)
    table = random.normal(size=(laid_out.n_codes, 40))
    q = random.dirichlet(np.ones(40), 200)
    chosen = random.random(200) < 0.8
    fast = reference.score_tasks(laid_out, table[0], table), *reference.tally(q, laid_out, chosen)
    monkeypatch.setattr(reference, "MANY_CLASSES", 1000)
    plain = reference.score_tasks(laid_out, table[0], table), *reference.tally(q, laid_out, chosen)
    for one, other in zip(fast, plain, strict=True):
        assert one.tobytes() == other.tobytes()


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
