"""A jury of few judges on many tasks: equal response patterns made one, beside all tasks swept."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from benchmarks.measure import about, interleaved, keep, peak_bytes, seconds, summary
from tiebreak.data.ids import Ids
from tiebreak.inference import dirichlet
from tiebreak.inference.climb import FitState, Problem, climb
from tiebreak.inference.dirichlet import ClassPrior
from tiebreak.inference.door import Rows, find_patterns
from tiebreak.inference.tasks import Independent
from tiebreak.inference.workers import ConfusionMatrices
from tiebreak.kernels.arrays import default_threads
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import ByTask, lay_out

N_TASKS, N_JUDGES, N_CLASSES = 10_000_000, 5, 3
ACCURACIES = (0.9, 0.8, 0.75, 0.7, 0.6)
PAIRS = 3


def jury(n_tasks: int) -> ByTask:
    """Draw a jury that answers every task, laid out for the kernels."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, N_CLASSES, n_tasks, dtype=np.int32)
    code = np.empty((n_tasks, N_JUDGES), dtype=np.int32)
    for judge, accuracy in enumerate(ACCURACIES):
        off = rng.integers(1, N_CLASSES, n_tasks, dtype=np.int32)
        label = np.where(rng.random(n_tasks) < accuracy, truth, (truth + off) % N_CLASSES)
        code[:, judge] = judge * N_CLASSES + label
    start = np.arange(n_tasks + 1, dtype=np.int64) * N_JUDGES
    role = np.zeros(n_tasks, dtype=np.int8)
    return lay_out(start, code.ravel(), role, N_JUDGES * N_CLASSES, N_CLASSES)


def fit(patterns: Rows) -> FitState:
    """Fit plain VB from votes, as the estimator does: few patterns need no compiled code."""
    prior = dirichlet.confusion_prior("diagonal", Ids(range(N_JUDGES)), N_CLASSES)
    problem = Problem(
        patterns.laid,
        Independent(ClassPrior(np.ones(N_CLASSES))),
        ConfusionMatrices(prior, N_JUDGES),
        choose_backend("auto", len(patterns.laid.code)),
        default_threads(),
        copies=patterns.copies,
    )
    return climb(problem, FitState(problem.votes()))


def measure(n_tasks: int) -> dict[str, Any]:
    fit(Rows(jury(100_000)))  # compiles
    whole = Rows(jury(n_tasks))
    single = np.zeros(n_tasks, dtype=bool)
    patterns = find_patterns(whole.laid, N_CLASSES, single)
    small = fit(patterns)
    large = fit(whole)
    spread = patterns.to_tasks(small.q)
    pairs = interleaved(lambda: fit(patterns), lambda: fit(whole), PAIRS)
    collapsing = seconds(lambda: find_patterns(whole.laid, N_CLASSES, single))
    spreading = seconds(lambda: patterns.to_tasks(small.q))
    in_all = [(ours + collapsing + spreading, theirs) for ours, theirs in pairs]
    return {
        "what": "fit of all tasks / fit of response patterns",
        "tasks": n_tasks,
        "judges": N_JUDGES,
        "classes": N_CLASSES,
        "rows": patterns.laid.n_tasks,
        "sweeps": [small.n_sweeps, large.n_sweeps],
        "same_labels": float((spread.argmax(axis=1) == large.q.argmax(axis=1)).mean()),
        "largest_difference": float(np.abs(spread - large.q).max()),
        "bound_difference": small.bounds[-1] - large.bounds[-1],
        "fit": summary(pairs),
        "collapsing_seconds": round(collapsing, 3),
        "spreading_seconds": round(spreading, 3),
        "in_all": summary(in_all),
        "peak_bytes_a_response": round(peak_bytes() / (n_tasks * N_JUDGES), 1),
        **about(),
    }


def main(n_tasks: int) -> None:
    keep("jury", measure(n_tasks))


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else N_TASKS)
