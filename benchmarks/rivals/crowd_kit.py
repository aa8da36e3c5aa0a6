"""One iteration of Dawid-Skene beside crowd-kit's: same responses, same iterations, same run."""

from __future__ import annotations

import statistics

import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene as Theirs

from benchmarks.measure import about, interleaved, keep, summary
from tiebreak import DawidSkene, Responses, simulate

N_RESPONSES, N_WORKERS, N_CLASSES = 1_000_000, 1_000, 4
FEW, MANY = 1, 11  # iterations; the difference leaves out what is done once
PAIRS = 5


def ours(responses: Responses, n_iter: int) -> np.ndarray:
    model = DawidSkene(tol=0.0, max_iter=n_iter, backend="numba", smoothing=0.0)
    return model.fit(responses).probabilities_


def theirs(frame: pd.DataFrame, n_iter: int) -> pd.DataFrame:
    return Theirs(n_iter=n_iter, tol=-np.inf).fit_predict_proba(frame)


def main() -> None:
    crowd = simulate.crowd(
        N_RESPONSES // 5, N_WORKERS, N_CLASSES, responses_per_task=5, random_state=0
    )
    responses = crowd.responses
    frame = pd.DataFrame(
        {
            "task": responses.task_of_each(),
            "worker": responses.worker_of_each(),
            "label": responses.label_of_each(),
        }
    )
    same = theirs(frame, MANY).sort_index().sort_index(axis=1).to_numpy()
    agree = float((ours(responses, MANY).argmax(axis=1) == same.argmax(axis=1)).mean())
    few = interleaved(lambda: ours(responses, FEW), lambda: theirs(frame, FEW), PAIRS)
    whole = interleaved(lambda: ours(responses, MANY), lambda: theirs(frame, MANY), PAIRS)
    steps = MANY - FEW
    once = [statistics.median(side) for side in zip(*few, strict=True)]
    per_iteration = [((a - once[0]) / steps, (b - once[1]) / steps) for a, b in whole]
    keep(
        "crowd_kit",
        {
            "what": "one iteration of Dawid-Skene, crowd-kit / tiebreak",
            "responses": N_RESPONSES,
            "workers": N_WORKERS,
            "classes": N_CLASSES,
            "iterations": MANY,
            "same_labels": round(agree, 6),
            "iteration": summary(per_iteration),
            "whole_fit": summary(whole),
            **about("crowd-kit", "pandas"),
        },
    )


if __name__ == "__main__":
    main()
