"""Bits do not depend on what a process has compiled, or loaded, before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SWEEPS = """
import sys
import numpy as np
from tiebreak import simulate
from tiebreak.kernels.compiled.tasks import sweep_tasks
from tiebreak.kernels.layout import lay_out

for name in sys.argv[1:]:
    rng = np.random.default_rng(1)
    n_classes = int(name[0])
    crowd = simulate.crowd(60, 8, n_classes, responses_per_task=4, random_state=3).responses
    weight = rng.uniform(0.5, 2.0, crowd.n_responses) if name.endswith("weighted") else None
    role = np.zeros(60, dtype=np.int8)
    n_codes = crowd.n_workers * n_classes
    tasks = lay_out(crowd.start, crowd.code, role, n_codes, n_classes, weight)
    q = np.full((60, n_classes), 1.0 / n_classes)
    for turn in range(20):
        logs = np.log(rng.dirichlet(np.ones(n_classes), n_codes))
        swept = sweep_tasks(q, q.copy(), tasks, np.zeros(n_classes), logs)
        print(name, turn, swept.entropy.hex(), swept.log_norm.hex(), q.tobytes().hex())
"""
ORDER = [f"{n}-{kind}" for n in (2, 3, 5) for kind in ("plain", "weighted")]


def run(order: list[str], cache: Path) -> set[str]:
    """Sweep in a process of its own; return a line for each sweep."""
    made = subprocess.run(
        [sys.executable, "-c", SWEEPS, *order],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(made.stdout.splitlines())


def test_bits_are_those_of_a_process_that_compiled_and_of_one_that_loaded(tmp_path: Path) -> None:
    """Copies of a function in several kernels may add up in other orders; only one may ever run."""
    compiled = run(ORDER, tmp_path)
    assert len(compiled) == 20 * len(ORDER)
    assert run(ORDER, tmp_path) == compiled
    assert run(ORDER[::-1], tmp_path) == compiled
