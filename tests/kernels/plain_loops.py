"""Run compiled kernels without vector instructions, as where numba has moved its inside.

`test_plain_loops.py` starts this in a process of its own: which operations kernels are compiled
with is decided when they are imported.
"""

from __future__ import annotations

import builtins
import sys
import warnings
from typing import Any

import numpy as np


def import_without_private_numba() -> None:
    """Import the kernels while the vector module is refused what is private to numba."""
    real_import = builtins.__import__

    def refuse(name: str, space: Any = None, *rest: Any) -> Any:
        if name.startswith("numba.core") and (space or {}).get("__name__", "").endswith(".llvm"):
            raise ImportError(f"{name} has moved")
        return real_import(name, space, *rest)

    builtins.__import__ = refuse  # type: ignore[assignment]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from tiebreak.kernels.compiled.simd import vector_for
    builtins.__import__ = real_import
    [warning] = caught
    assert "numba.core has moved" in str(warning.message)
    assert vector_for(8) == (0,)
    assert "tiebreak.kernels.compiled.llvm" not in sys.modules


def check_kernels() -> None:
    """Compare a sweep and messages with the reference; the fit makes other kernels run."""
    from kernels.test_messages import hub_and_random, passes
    from kernels.test_tasks import assert_sweeps_agree, some_crowd

    assert_sweeps_agree(some_crowd(2, 300, 20, by_code=True, weights=True))
    rng = np.random.default_rng(0)
    net = hub_and_random(60, 60, rng)
    coupling = rng.choice([-np.inf, 1.5], len(net.other) // 2)
    scores = rng.normal(size=(60, 3))
    for one, two in zip(*passes(net, scores, coupling, True, True), strict=True):
        assert np.abs(np.asarray(one) - np.asarray(two)).max() < 1e-9


def check_a_fit() -> None:
    """Compare the probabilities of a fit with links by both backends."""
    import tiebreak as tb

    crowd = tb.simulate.crowd(60, 6, 3, responses_per_task=4, random_state=0).responses
    tasks = list(crowd.tasks)
    links = {"left": tasks[:5], "right": tasks[5:10], "link": ["cannot"] * 5}
    one, two = (
        tb.VariationalBayes(backend=backend).fit(crowd, links=links).probabilities_
        for backend in ("numpy", "numba")
    )
    assert np.abs(one - two).max() < 1e-9


if __name__ == "__main__":
    import_without_private_numba()
    check_kernels()
    check_a_fit()
