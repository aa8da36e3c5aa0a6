"""One sweep at 1e7 responses beside crowd-kit, sparse matrices, and what memory allows."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene as CrowdKit

from benchmarks.measure import about, keep, seconds
from benchmarks.rivals.sparse_ibcc import SparseIbcc
from tiebreak import DawidSkene, simulate
from tiebreak.inference import dirichlet
from tiebreak.inference.climb import Problem, Sweeps, step
from tiebreak.inference.dirichlet import ClassPrior
from tiebreak.inference.door import lay_out
from tiebreak.inference.tasks import Independent
from tiebreak.inference.workers import ConfusionMatrices
from tiebreak.kernels.arrays import default_threads, for_each
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Floats

N_RESPONSES, N_WORKERS, RESPONSES_PER_TASK = 10_000_000, 1_000, 5
CROWD_KIT_RESPONSES = 1_000_000  # 1e7 finish too, in ten times the time; compared a response
ROUNDS, SWEEPS, FEW, MANY = 5, 5, 1, 4
STREAM_NUMBERS = 40_000_000  # 320 MB: beyond every cache


@numba.njit(nogil=True)
def _sum(numbers: Any) -> int:
    total = 0
    for number in numbers:
        total += number
    return total


def in_threads(numbers: Any) -> Callable[[], None]:
    """Return what sums an array with as many threads as a sweep has."""
    parts = np.array_split(numbers, 16)
    return lambda: for_each(lambda p: _sum(parts[p]), len(parts), default_threads())


def crowd(n_responses: int, n_classes: int) -> simulate.Crowd:
    n_tasks = n_responses // RESPONSES_PER_TASK
    options = {"responses_per_task": RESPONSES_PER_TASK, "random_state": 0}
    return simulate.crowd(n_tasks, N_WORKERS, n_classes, **options)


def crowd_kit_on(n_classes: int) -> tuple[Callable[[], float], float]:
    """Return what times one iteration of crowd-kit, and the share of labels like ours."""
    responses = crowd(CROWD_KIT_RESPONSES, n_classes).responses
    columns = {
        "task": responses.task_of_each(),
        "worker": responses.worker_of_each(),
        "label": responses.label_of_each(),
    }
    frame = pd.DataFrame(columns)

    def run(n_iter: int) -> pd.DataFrame:
        return CrowdKit(n_iter=n_iter, tol=-np.inf).fit_predict_proba(frame)

    theirs = run(MANY).sort_index().sort_index(axis=1).to_numpy()
    model = DawidSkene(tol=0.0, max_iter=MANY, smoothing=0.0).fit(responses)
    same = float((model.probabilities_.argmax(axis=1) == theirs.argmax(axis=1)).mean())
    steps = MANY - FEW
    return lambda: (seconds(lambda: run(MANY)) - seconds(lambda: run(FEW))) / steps, same


def measure(n_classes: int) -> dict[str, Any]:
    responses = crowd(N_RESPONSES, n_classes).responses
    tasks = lay_out(responses)
    classes = ClassPrior(np.ones(n_classes))
    prior = dirichlet.confusion_prior("diagonal", responses.workers, n_classes)
    workers = ConfusionMatrices(prior, responses.n_workers)
    backend = choose_backend("numba", responses.n_responses)
    problem = Problem(tasks, Independent(classes), workers, backend, default_threads())
    sparse = SparseIbcc(tasks, classes.prior, prior)
    q = problem.votes()
    sweeps = Sweeps(problem, q)
    state = [problem.implied(q)]

    def sweep() -> None:
        """Do all that `climb` does in a sweep: tables, tasks, parameters, the bound."""
        state[0] = step(problem, sweeps, state[0], None).parameters

    apart = agreement(sweep, sparse, q)
    iteration, same = crowd_kit_on(n_classes)
    add_codes, stream = in_threads(tasks.code), in_threads(np.ones(STREAM_NUMBERS, np.int64))
    add_codes(), stream()
    rounds = [
        {
            "tiebreak": seconds(lambda: [sweep() for _ in range(SWEEPS)]) / SWEEPS,
            "sparse": seconds(lambda: sparse.sweep(q)),
            "sum": seconds(lambda: [add_codes() for _ in range(SWEEPS)]) / SWEEPS,
            "stream": seconds(stream),
            "crowd_kit": iteration() * N_RESPONSES / CROWD_KIT_RESPONSES,
        }
        for _ in range(ROUNDS)
    ]
    moved = 4 * N_RESPONSES + responses.n_tasks * (9 + 16 * n_classes)
    return {
        "classes": n_classes,
        "tasks": responses.n_tasks,
        "crowd_kit_same_labels": round(same, 6),
        "sparse_largest_difference": apart,
        "seconds": {name: middle(rounds, lambda r, n=name: r[n], 5) for name in rounds[0]},
        "times_crowd_kit": middle(rounds, lambda r: r["crowd_kit"] / r["tiebreak"]),
        "times_sparse": middle(rounds, lambda r: r["sparse"] / r["tiebreak"]),
        "sums_of_codes": middle(rounds, lambda r: r["tiebreak"] / r["sum"]),
        "bytes_moved": moved,
        "bytes_a_second": middle(rounds, lambda r: 8 * STREAM_NUMBERS / r["stream"], 0),
        "times_the_floor": middle(
            rounds, lambda r: r["tiebreak"] * 8 * STREAM_NUMBERS / r["stream"] / moved
        ),
    }


def agreement(sweep: Callable[[], None], sparse: SparseIbcc, q: Floats) -> float:
    """Sweep three times both ways from the same q; return the largest difference."""
    other = q.copy()
    for _ in range(3):
        sweep()
        other = sparse.sweep(other)
    return float(np.abs(q - other).max())


def middle(rounds: list[Any], of: Callable[[Any], float], digits: int = 2) -> float:
    return round(statistics.median(of(each) for each in rounds), digits)


def main(classes: list[int]) -> None:
    rows = [measure(n_classes) for n_classes in classes]
    keep(
        "sweep",
        {
            "what": "one sweep, all that a fit does in it; medians of interleaved rounds",
            "responses": N_RESPONSES,
            "workers": N_WORKERS,
            "crowd_kit_responses": CROWD_KIT_RESPONSES,
            "rounds": ROUNDS,
            "threads": default_threads(),
            "rows": rows,
            **about("crowd-kit", "pandas", "scipy"),
        },
    )


if __name__ == "__main__":
    main([int(name) for name in sys.argv[1:]] or [2, 4])
