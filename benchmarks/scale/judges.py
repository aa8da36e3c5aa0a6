"""A jury with runs: what keeping all runs, and the panel's report, cost beside a plain VB fit.

python -m benchmarks.scale.judges [tasks …]

Every judge sees every task eight times. *Plain* is VB on the same rows, each counted once
(`repeats="count"`). *Runs* learns how much the runs of each judge err together, weighs them and
fits; the report is that of `tiebreak judges panel` with 200 known labels. Reading rows into codes
is the same work for both and is told apart.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import tiebreak as tb
from benchmarks.measure import about, keep, memory_now, peak_since, seconds

SIZES = (100_000, 1_000_000)
N_JUDGES = 9
N_RUNS = 8
N_CLASSES = 2
N_GOLD = 200
WARM = 20_000  # tasks, enough for compiled kernels
SAME = 0.7  # a run repeats the judge's first word with this chance
SHARED = 0.3  # tasks on which all who err say the same are as rare as errors alike
ACCURACIES = np.linspace(0.7, 0.9, N_JUDGES)


class Jury(NamedTuple):
    """Rows of a jury, and the class of each task."""

    table: pa.Table
    truth: Any


def draw(n_tasks: int) -> Jury:
    """Draw judges that answer every task in every run; errors are shared in part."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, N_CLASSES, n_tasks, dtype=np.int8)
    hard = rng.random(n_tasks) < SHARED
    label = np.empty((n_tasks, N_JUDGES, N_RUNS), dtype=np.int8)
    for judge, accuracy in enumerate(ACCURACIES):
        chance = np.where(hard, accuracy - 0.25, accuracy)
        first = np.where(rng.random(n_tasks) < chance, truth, 1 - truth)
        for run in range(N_RUNS):
            again = np.where(rng.random(n_tasks) < chance, truth, 1 - truth)
            label[:, judge, run] = np.where(rng.random(n_tasks) < SAME, first, again)
    n_each = N_JUDGES * N_RUNS
    columns = {
        "task": np.repeat(np.arange(n_tasks, dtype=np.int32), n_each),
        "worker": np.tile(np.repeat(np.arange(N_JUDGES, dtype=np.int32), N_RUNS), n_tasks),
        "label": label.ravel(),
        "run": np.tile(np.arange(N_RUNS, dtype=np.int32), n_tasks * N_JUDGES),
    }
    return Jury(pa.table({name: pa.array(values) for name, values in columns.items()}), truth)


class Timed(NamedTuple):
    """What some work gave, how long it took, and the largest memory held meanwhile."""

    value: Any
    seconds: float
    peak_bytes: int


def timed(work: Callable[[], Any]) -> Timed:
    gc.collect()
    before = memory_now()
    found: list[Any] = []
    took = seconds(lambda: found.append(work()))
    return Timed(found[0], took, peak_since() - before)


def fit(responses: Any) -> Any:
    return tb.VariationalBayes(dependence=0.5).fit(responses)


def measure(n_tasks: int) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    small = draw(WARM)
    for repeats in ("count", "runs"):  # compiles
        model = fit(tb.read_responses(small.table, repeats=repeats))
        tb.judges.panel_report(model, dict(enumerate(small.truth[:N_GOLD].tolist())))
    jury = draw(n_tasks)
    known = np.random.default_rng(1).choice(n_tasks, N_GOLD, replace=False)
    gold = {int(task): int(jury.truth[task]) for task in known.tolist()}
    counted = timed(lambda: tb.read_responses(jury.table, repeats="count"))
    plain = timed(lambda: fit(counted.value))
    agreed = timed(lambda: tb.judges.agreement_report(counted.value))
    n_sweeps = plain.value.n_iter_
    counted = counted._replace(value=None)
    plain = plain._replace(value=None)
    kept = timed(lambda: tb.read_responses(jury.table, repeats="runs"))
    responses = kept.value
    with_runs = timed(lambda: fit(responses))
    model = with_runs.value
    reported = timed(lambda: tb.judges.panel_report(model, gold))
    learning = max(kept.seconds - counted.seconds, 0.0)
    in_all = learning + with_runs.seconds + reported.seconds
    n_responses = n_tasks * N_JUDGES * N_RUNS
    return {
        "tasks": n_tasks,
        "judges": N_JUDGES,
        "runs": N_RUNS,
        "responses": n_responses,
        "plain_fit_seconds": round(plain.seconds, 3),
        "plain_sweeps": n_sweeps,
        "reading_seconds": round(counted.seconds, 3),
        "learning_runs_seconds": round(learning, 3),
        "fit_seconds": round(with_runs.seconds, 3),
        "sweeps": model.n_iter_,
        "report_seconds": round(reported.seconds, 3),
        "agreement_seconds": round(agreed.seconds, 3),
        "times_a_plain_fit": round(in_all / plain.seconds, 2),
        "peak_bytes_a_response": {
            "reading": round(counted.peak_bytes / n_responses, 1),
            "reading and learning runs": round(kept.peak_bytes / n_responses, 1),
            "plain fit": round(plain.peak_bytes / n_responses, 1),
            "fit": round(with_runs.peak_bytes / n_responses, 1),
            "report": round(reported.peak_bytes / n_responses, 1),
        },
        "effective_judges": round(reported.value.shared.effective, 2),
    }


def main(sizes: list[int]) -> None:
    keep("judges", {"rows": [measure(n_tasks) for n_tasks in sizes], **about()})


if __name__ == "__main__":
    main([int(float(size)) for size in sys.argv[1:]] or list(SIZES))
