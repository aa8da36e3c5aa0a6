"""A DataFrame with text ids to labels, beside crowd-kit; and the memory that takes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from crowdkit.aggregation import DawidSkene as Theirs

from benchmarks.measure import about, interleaved, keep, memory_now, peak_since, seconds, summary
from tiebreak import DawidSkene, simulate

N_RESPONSES, N_WORKERS, N_CLASSES, PER_TASK = 2_000_000, 1_000, 4, 5
LARGE = 10_000_000  # responses where memory is measured
SWEEPS, PAIRS = 30, 2
TEN_MINUTES = 600.0


def made_ids(prefix: str, codes: np.ndarray, n: int) -> pa.Array:
    width = len(str(n - 1))
    made = pa.array([f"{prefix}{i:0{width}d}" for i in range(n)], pa.large_string())
    return made.take(pa.array(codes))


def frame_of(n_responses: int) -> pd.DataFrame:
    """Draw a crowd and name tasks, workers and classes by text, rows in any order."""
    n_tasks = n_responses // PER_TASK
    drawn = simulate.crowd(
        n_tasks, N_WORKERS, N_CLASSES, responses_per_task=PER_TASK, random_state=0
    ).responses
    order = np.random.default_rng(1).permutation(n_responses)
    columns = {
        "task": made_ids("task-", drawn.task_of_each()[order], n_tasks),
        "worker": made_ids("worker-", drawn.worker_of_each()[order], N_WORKERS),
        "label": made_ids("class-", drawn.label_of_each()[order], N_CLASSES),
    }
    return pd.DataFrame({name: column.to_pandas() for name, column in columns.items()})


def ours(frame: pd.DataFrame) -> pd.Series:
    model = DawidSkene(tol=0.0, max_iter=SWEEPS, smoothing=0.0, backend="numba")
    return model.fit(frame).labels_.to_frame().set_index("task")["label"]


def theirs(frame: pd.DataFrame) -> pd.Series:
    return Theirs(n_iter=SWEEPS, tol=-np.inf).fit_predict(frame)


def beside_crowd_kit() -> dict[str, Any]:
    ours(frame_of(300_000))  # compiled code is loaded before anything is timed
    small, frame = frame_of(N_RESPONSES // 4), frame_of(N_RESPONSES)
    quarter = seconds(lambda: theirs(small))
    pairs = interleaved(lambda: ours(frame), lambda: theirs(frame), PAIRS)
    found = summary(pairs)
    exponent = np.log(found["theirs_seconds"] / quarter) / np.log(4)
    in_time = N_RESPONSES * (TEN_MINUTES / found["theirs_seconds"]) ** (1 / exponent)
    same = ours(small).sort_index() == theirs(small).sort_index()
    return {
        "fit": found,
        "same_labels": round(float(same.mean()), 6),
        "crowd_kit_exponent": round(float(exponent), 3),
        "crowd_kit_in_ten_minutes": round(in_time, -5),
    }


def memory() -> dict[str, Any]:
    """Return the memory held above the frame while a large one is fitted."""
    frame = frame_of(LARGE)
    before = memory_now()
    took = seconds(lambda: ours(frame))
    return {"responses": LARGE, "seconds": round(took, 2), "above_frame": peak_since() - before,
            "frame": before}  # fmt: skip


def main() -> None:
    if "memory" in sys.argv:
        print(json.dumps(memory()))
        return
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.rivals.frame", "memory"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    keep(
        "frame",
        {
            "what": "DataFrame with text ids to labels by Dawid-Skene, crowd-kit / tiebreak",
            "responses": N_RESPONSES,
            "workers": N_WORKERS,
            "classes": N_CLASSES,
            "sweeps": SWEEPS,
            **beside_crowd_kit(),
            "memory": json.loads(child.stdout.splitlines()[-1]),
            **about("crowd-kit", "pandas", "pyarrow"),
        },
    )


if __name__ == "__main__":
    main()
