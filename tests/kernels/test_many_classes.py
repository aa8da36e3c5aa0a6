"""A thousand classes: done where the confusions fit into memory, refused where they do not."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import tiebreak as tb
from tiebreak import simulate


def test_a_thousand_classes_are_fitted_alike_by_both_backends() -> None:
    crowd = simulate.crowd(400, 4, 1_000, responses_per_task=4, accuracy=0.9, random_state=0)
    fits = [
        tb.VariationalBayes(backend=backend, tol=0.0, max_iter=2).fit(crowd.responses)
        for backend in ("numpy", "numba")
    ]
    assert np.abs(fits[0].probabilities_ - fits[1].probabilities_).max() < 1e-8


@pytest.mark.filterwarnings("ignore:There are 1,000 classes:tiebreak.errors.InputNote")
def test_a_thousand_classes_of_many_workers_are_refused_before_anything_is_allocated() -> None:
    n = 100_000
    rows = {"task": np.arange(n), "worker": np.arange(n), "label": np.arange(n) % 1_000}
    responses = tb.read_responses(rows)
    tracemalloc.start()
    with pytest.raises(tb.errors.ResponseError, match=r"1,000 classes .* 100,000 workers .* GiB"):
        tb.VariationalBayes().fit(responses)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20
