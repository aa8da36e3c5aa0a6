"""Small crowds for `compute-sanitizer`: every layout, three sweeps each.

compute-sanitizer --tool memcheck python -m benchmarks.gpu_check
"""

from __future__ import annotations

import numpy as np

import tiebreak as tb
from tiebreak.kernels.cuda.sweeper import CudaSweeper
from tiebreak.kernels.layout import AWAY, FREE, KNOWN, lay_out

CROWDS = [  # tasks, workers, states, whether responses have weights
    (300, 3, 2, False),
    (300, 30, 4, False),
    (300, 30, 8, False),
    (300, 20_000, 4, False),
    (300, 30, 20, False),
    (300, 30, 3, True),
]


def main() -> None:
    rng = np.random.default_rng(0)
    for n_tasks, n_workers, n_states, weighted in CROWDS:
        degree = rng.integers(0, 20, n_tasks)
        degree[0] = 3_000
        start = np.concatenate([[0], np.cumsum(degree)])
        n_codes = n_workers * n_states
        code = rng.integers(0, n_codes, start[-1]).astype(np.int32)
        role = rng.choice([AWAY, FREE, KNOWN], n_tasks, p=[0.8, 0.1, 0.1]).astype(np.int8)
        weight = rng.uniform(0.5, 1.5, start[-1]) if weighted else None
        tasks = lay_out(start, code, role, n_codes, n_states, weight)
        sweeper = CudaSweeper(tasks, rng.dirichlet(np.ones(n_states), n_tasks))
        step = sweeper.dirichlet_step(np.ones(n_states), np.ones((1, n_states, n_states)))
        at = step.begin(np.ones(n_states), rng.uniform(1, 9, (n_workers, n_states, n_states)))
        for _ in range(3):
            at, bound, _ = step(at)
        sweeper.tally(role == AWAY)
        sweeper.q()
        sweeper.close()
        print(n_tasks, n_workers, n_states, weighted, bound)
    crowd = tb.simulate.crowd(300, 12, 4, responses_per_task=4, random_state=0)
    links = tb.simulate.links(crowd.gold, 120, random_state=0)
    model = tb.VariationalBayes(backend="cuda", tol=0.0, max_iter=3)
    print("links", model.fit(crowd.responses, links=links).bounds_[-1])


if __name__ == "__main__":
    main()
