"""One sweep of kinds and of subtypes beside a plain one, at 1e7 responses and four classes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from benchmarks.measure import about, keep
from tiebreak import simulate
from tiebreak.data import Responses
from tiebreak.inference.climb import Problem, Sweeps, step
from tiebreak.inference.door import lay_out
from tiebreak.inference.tasks import Independent
from tiebreak.inference.workers import CrowdFacts, crowd_model
from tiebreak.kernels.contract import choose_backend

N_RESPONSES = 10_000_000
N_WORKERS = 1_000
N_CLASSES = 4
RESPONSES_PER_TASK = 5
MODELS = ("confusion", "kinds", "subtypes")
ROUNDS = 9


def sweep_of(name: str, responses: Responses) -> Callable[[], None]:
    """Return all that a fit does in one sweep, on one thread: tables, tasks, counts, the bound."""
    states, workers = crowd_model(name, CrowdFacts.of_responses(responses))
    backend = choose_backend("numba", responses.n_responses)
    problem = Problem(lay_out(responses), Independent(states), workers, backend, 1)
    q = problem.votes()
    sweeps = Sweeps(problem, q)
    state = [problem.implied(q)]

    def sweep() -> None:
        state[0] = step(problem, sweeps, state[0], None).parameters

    return sweep


def cpu_seconds(work: Callable[[], None]) -> float:
    """Return the processor time of one call: others may share the machine."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Time sweeps in turn, and keep the median of the ratios to the plain one beside them."""
    n_tasks = N_RESPONSES // RESPONSES_PER_TASK
    options = {"responses_per_task": RESPONSES_PER_TASK, "random_state": 0}
    responses = simulate.crowd(n_tasks, N_WORKERS, N_CLASSES, **options).responses
    sweeps = {name: sweep_of(name, responses) for name in MODELS}
    for sweep in sweeps.values():
        sweep()
    rounds = [{name: cpu_seconds(sweep) for name, sweep in sweeps.items()} for _ in range(ROUNDS)]
    keep(
        "worker_model_sweeps",
        {
            **about(),
            "responses": N_RESPONSES,
            "workers": N_WORKERS,
            "classes": N_CLASSES,
            "cpu_seconds": {
                name: round(statistics.median(each[name] for each in rounds), 4) for name in MODELS
            },
            "times_plain": {
                name: round(statistics.median(r[name] / r["confusion"] for r in rounds), 2)
                for name in MODELS
            },
        },
    )


if __name__ == "__main__":
    main()
