"""Labels of one-coin Dawid-Skene beside crowd-kit's, on simulated crowds of many kinds.

Both maximise the same likelihood by the same steps from votes, so the labels should be equal. They
are compared after as many steps, and where each stops by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from crowdkit.aggregation import OneCoinDawidSkene

from benchmarks.measure import about, keep
from tiebreak import DawidSkene, Responses, simulate

N_TASKS, STEPS = 300, 50
CLASSES = (2, 3, 5, 10)
WORKERS = (5, 15, 60)
RESPONSES_PER_TASK = (3, 5)
ACCURACIES = ((0.4, 0.8), (0.6, 0.95))


def frame_of(responses: Responses) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "task": responses.task_of_each(),
            "worker": responses.worker_of_each(),
            "label": responses.label_of_each(),
        }
    )


def theirs(frame: pd.DataFrame, **options: float) -> np.ndarray:
    """Return crowd-kit's probabilities, in our order."""
    found = OneCoinDawidSkene(**options).fit_predict_proba(frame)
    return found.sort_index().sort_index(axis=1).to_numpy()


def compare(
    n_classes: int, n_workers: int, per_task: int, accuracy: tuple[float, float]
) -> dict[str, Any]:
    responses = simulate.crowd(
        N_TASKS,
        n_workers,
        n_classes,
        responses_per_task=per_task,
        accuracy=accuracy,
        random_state=0,
    ).responses
    frame = frame_of(responses)
    one_coin = {"worker_model": "coin", "smoothing": 0.0}
    same_steps = DawidSkene(tol=0.0, max_iter=STEPS, **one_coin).fit(responses)
    settled = DawidSkene(max_iter=20_000, **one_coin).fit(responses)
    q = theirs(frame, n_iter=STEPS, tol=-np.inf)
    own_stop = theirs(frame)
    same = same_steps.probabilities_.argmax(axis=1) == q.argmax(axis=1)
    return {
        "classes": n_classes,
        "same_labels": float(same.mean()),
        "largest_difference": float(np.abs(same_steps.probabilities_ - q).max()),
        "same_labels_where_each_stops": float(
            (settled.probabilities_.argmax(axis=1) == own_stop.argmax(axis=1)).mean()
        ),
    }


def by_classes(n_classes: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum up the crowds with so many classes."""
    own = [row for row in rows if row["classes"] == n_classes]
    return {
        "classes": n_classes,
        "crowds": len(own),
        "same_labels": float(np.mean([row["same_labels"] for row in own])),
        "largest_difference": max(row["largest_difference"] for row in own),
        "same_labels_where_each_stops": float(
            np.mean([row["same_labels_where_each_stops"] for row in own])
        ),
    }


def main() -> None:
    rows = [
        compare(n_classes, n_workers, per_task, accuracy)
        for n_classes in CLASSES
        for n_workers in WORKERS
        for per_task in RESPONSES_PER_TASK
        for accuracy in ACCURACIES
    ]
    keep(
        "one_coin",
        {
            "what": "labels of one-coin Dawid-Skene, beside crowd-kit's after as many steps",
            "tasks": N_TASKS,
            "steps": STEPS,
            "crowds": len(rows),
            "crowds_with_equal_labels": sum(row["same_labels"] == 1.0 for row in rows),
            "same_labels": float(np.mean([row["same_labels"] for row in rows])),
            "largest_difference": max(row["largest_difference"] for row in rows),
            "same_labels_where_each_stops": float(
                np.mean([row["same_labels_where_each_stops"] for row in rows])
            ),
            "rows": [by_classes(n_classes, rows) for n_classes in CLASSES],
            **about("crowd-kit", "pandas"),
        },
    )


if __name__ == "__main__":
    main()
