"""A jury of few judges on many tasks: equal rows collapsed, beside all tasks swept."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.measure import about, interleaved, keep, peak_bytes, seconds, summary
from tiebreak.inference import response_patterns, vb
from tiebreak.inference.response_patterns import Rows
from tiebreak.kernels import compiled, layout, reference
from tiebreak.kernels.layout import ByTask
from tiebreak.kernels.threads import default_threads

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
    n_codes = N_JUDGES * N_CLASSES
    edges = layout.chunk_edges(start, n_codes * N_CLASSES * 8)
    return ByTask(start, code.ravel(), vb.roles(n_tasks, None, None), edges, n_codes)


def fit(rows: Rows) -> vb.Run:
    """Fit plain VB from votes, as the estimator does: few rows need no compiled code."""
    large = len(rows.tasks.code) >= 200_000
    prior = np.ones((1, N_CLASSES, N_CLASSES)) + (N_CLASSES - 1.0) * np.eye(N_CLASSES)
    problem = vb.Problem(
        rows.tasks,
        np.ones(N_CLASSES),
        prior,
        compiled if large else reference,
        default_threads(),
        copies=rows.copies,
    )
    q = vb.majority(rows.tasks, N_CLASSES)
    return vb.ascend(problem, q, accelerate=True)


def main(n_tasks: int) -> None:
    fit(Rows(jury(100_000)))  # compiles
    whole = Rows(jury(n_tasks))
    alone = np.zeros(n_tasks, dtype=bool)
    rows = response_patterns.rows_of(whole.tasks, N_CLASSES, alone)
    small, large = fit(rows), fit(whole)
    spread = rows.spread(small.q)
    pairs = interleaved(lambda: fit(rows), lambda: fit(whole), PAIRS)
    collapsing = seconds(lambda: response_patterns.rows_of(whole.tasks, N_CLASSES, alone))
    spreading = seconds(lambda: rows.spread(small.q))
    in_all = [(ours + collapsing + spreading, theirs) for ours, theirs in pairs]
    keep(
        "jury",
        {
            "what": "fit of all tasks / fit of equal rows collapsed",
            "tasks": n_tasks,
            "judges": N_JUDGES,
            "classes": N_CLASSES,
            "rows": rows.tasks.n_tasks,
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
        },
    )


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else N_TASKS)
