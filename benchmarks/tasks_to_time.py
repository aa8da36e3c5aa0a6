"""Pieces of work that `benchmarks.against` times, by names that every version of tiebreak has.

    python benchmarks/tasks_to_time.py sweep FOLDER THREADS

It runs as a script, with the package of some commit on the path, and imports nothing else of ours.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

N_SWEEPS = 30
FEW = 200_000  # tasks of a sweep, ten responses each


def seconds(work: Callable[[], Any]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def prepare(folder: Path, names: Sequence[str]) -> None:
    """Write the files that the work reads, once, by today's code."""
    import pandas as pd

    rng = np.random.default_rng(0)
    sizes = {"frame": 10**6, "process": 10**6, "intake": 2 * 10**7}
    for name in set(names) & set(sizes):
        n = sizes[name]
        frame = pd.DataFrame(
            {
                "task": np.char.add("task-", (np.arange(n) // 10).astype(str)),
                "worker": np.char.add("worker-", rng.integers(0, 500, n).astype(str)),
                "label": np.array(["yes", "no", "maybe", "never"])[rng.integers(0, 4, n)],
            }
        )
        frame.to_parquet(folder / f"{name}.parquet")
        if name == "intake":
            frame.to_csv(folder / f"{name}.csv", index=False)


def _fit(tb: Any, crowd: Any, n_iter: int, threads: int, **more: Any) -> Any:
    links = more.pop("links", None)
    model = tb.VariationalBayes(tol=0.0, max_iter=n_iter, n_threads=threads, **more)
    return model.fit(crowd, links=links)


def _per_sweep(tb: Any, crowd: Any, threads: int, **more: Any) -> float:
    """Return the time of one sweep: of many sweeps, less that of few."""
    few = min(seconds(lambda: _fit(tb, crowd, 2, threads, **more)) for _ in range(3))
    many = min(seconds(lambda: _fit(tb, crowd, 2 + N_SWEEPS, threads, **more)) for _ in range(3))
    return (many - few) / N_SWEEPS


def sweep(tb: Any, data: Path, threads: int) -> dict[str, float]:
    """Time one sweep of 2,000,000 responses, by classes."""
    found = {}
    for k in (2, 4, 8, 20):
        crowd = tb.simulate.crowd(FEW, 500, k, responses_per_task=10, random_state=0)
        found[f"sweep, {k} classes"] = _per_sweep(tb, crowd.responses, threads)
    return found


def linked(tb: Any, data: Path, threads: int) -> dict[str, float]:
    """Time one sweep with links that may err."""
    crowd = tb.simulate.crowd(FEW, 500, 4, responses_per_task=10, random_state=0)
    links = tb.simulate.links(crowd.gold, FEW // 4, random_state=0)
    return {"linked sweep": _per_sweep(tb, crowd.responses, threads, links=links)}


def linked_fit(tb: Any, data: Path, threads: int) -> dict[str, float]:
    """Time a whole fit of 1,000,000 tasks with as many links: most of them in one component."""
    crowd = tb.simulate.crowd(10**6, 1_000, 4, responses_per_task=5, random_state=0)
    links = tb.simulate.links(crowd.gold, 10**6, random_state=0)
    model = tb.VariationalBayes(n_threads=threads)
    return {"fit, 1e6 links": seconds(lambda: model.fit(crowd.responses, links=links))}


def refit(tb: Any, data: Path, threads: int) -> dict[str, float]:
    """Time a first fit, and one that goes on from it."""
    found = {}
    for k in (2, 4, 10):
        crowd = tb.simulate.crowd(5_000, 50, k, responses_per_task=8, random_state=0)
        model = tb.VariationalBayes(n_threads=threads).fit(crowd.responses)
        again = tb.VariationalBayes(n_threads=threads)
        times = [seconds(lambda: again.fit(crowd.responses, start=model)) for _ in range(15)]  # noqa: B023
        found[f"refit, {k} classes"] = sorted(times)[7]
        times = [seconds(lambda: again.fit(crowd.responses)) for _ in range(9)]  # noqa: B023
        found[f"first fit, {k} classes"] = sorted(times)[4]
    return found


def frame(tb: Any, data: Path, threads: int) -> dict[str, float]:
    """Time a frame of 1,000,000 rows to labels, in a warm process."""
    import pandas as pd

    rows = pd.read_parquet(data / "frame.parquet")
    times = [
        seconds(lambda: tb.VariationalBayes(n_threads=threads).fit(rows).labels_) for _ in range(4)
    ]
    return {"frame to labels": min(times[1:])}


def process(tb: Any, data: Path, threads: int) -> dict[str, float]:
    """Time the same in a fresh process, from a Parquet file."""
    code = (
        "import pandas as pd, tiebreak as tb;"
        f"rows = pd.read_parquet({str(data / 'process.parquet')!r});"
        f"tb.VariationalBayes(n_threads={threads}).fit(rows).labels_"
    )
    run = [sys.executable, "-W", "ignore", "-c", code]
    few = [sys.executable, "-W", "ignore", "-m", "tiebreak", "--help"]
    return {
        "fresh process, frame to labels": min(
            seconds(lambda: subprocess.run(run, check=True)) for _ in range(3)
        ),
        "tiebreak --help": min(
            seconds(lambda: subprocess.run(few, check=True, stdout=subprocess.DEVNULL))
            for _ in range(5)
        ),
    }


def intake(tb: Any, data: Path, threads: int) -> dict[str, float]:
    """Time reading 20,000,000 rows of text, and the memory that it takes."""
    read = getattr(tb, "read_responses", None) or tb.Responses.read
    parquet = seconds(lambda: read(data / "intake.parquet"))
    csv = seconds(lambda: read(data / "intake.csv"))
    # Not ru_maxrss, which a process takes over from the one that started it.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    return {"Parquet, 2e7 rows": parquet, "CSV, 2e7 rows": csv, "peak memory of both, bytes": peak}


EVERY = {each.__name__: each for each in (sweep, linked, linked_fit, refit, frame, process, intake)}


if __name__ == "__main__":
    import tiebreak

    print(json.dumps(EVERY[sys.argv[1]](tiebreak, Path(sys.argv[2]), int(sys.argv[3]))))
