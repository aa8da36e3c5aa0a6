"""Time and memory against size: responses, classes, workers, links.

Every point is a process of its own and is kept as soon as it is measured, so that a run that was
stopped goes on where it was: `python -m benchmarks.scale.growth` measures what is missing, up to
10⁸ responses, `--huge` up to 10⁹ (20 GB of memory, 15 GB of disk), `--to 1e7` less, `--again` all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import RESULTS, about, keep, memory_now, peak_since, seconds
from tiebreak import VariationalBayes, read_responses, simulate

MADE = "TIEBREAK_BENCH_MADE"  # names a folder that keeps what was made, to be used again
SWEEPS = 30
FEW_SWEEPS = 10
WHOLE_NUMBERS = 10**9  # responses; from here ids are whole numbers, as text would not fit
AXES: dict[str, tuple[int, ...]] = {
    "responses": (10**4, 10**5, 10**6, 10**7, 10**8, 10**9),
    "classes": (2, 4, 8, 16, 32, 64),
    "workers": (10, 100, 1_000, 10_000, 100_000),
    "links": (1_000, 10_000, 100_000, 1_000_000),
}
LARGEST = {"responses": 10**8}  # larger ones are measured only if asked for
FITTED_FROM = {"responses": 10**6, "classes": 8, "workers": 1_000, "links": 10_000}


def from_file(n: int) -> dict[str, Any]:
    """Fit responses of a Parquet file, and write the labels into another."""
    text = n < WHOLE_NUMBERS
    with tempfile.TemporaryDirectory() as folder:
        given = Path(os.environ.get(MADE, folder)) / f"{n}.parquet"
        out = Path(folder) / "labels.parquet"
        if not given.exists():
            options = [str(given), str(n), "text" if text else "numbers"]
            subprocess.run([sys.executable, "-m", "benchmarks.scale.on_disk", *options], check=True)
        before = memory_now()
        times: dict[str, float] = {}
        found: dict[str, Any] = {}
        model = VariationalBayes(tol=0.0, max_iter=SWEEPS, backend="numba")
        times["read"] = seconds(lambda: found.update(crowd=read_responses(given)))
        times["fit"] = seconds(lambda: model.fit(found["crowd"]))
        times["write"] = seconds(lambda: model.labels_.write(out))
        return {
            "seconds": sum(times.values()),
            "parts": {name: round(took, 3) for name, took in times.items()},
            "peak_bytes": peak_since(),
            "bytes_before": before,
            "file_bytes": given.stat().st_size,
            "tasks": len(model.tasks_),
            "ids": "text" if text else "whole numbers",
        }


def fitted(crowd: simulate.Crowd, links: Any = None) -> dict[str, Any]:
    """Fit codes that are ready: a sweep, and the memory of a fit."""
    few = VariationalBayes(tol=0.0, max_iter=1, backend="numba", calibrate="none")
    many = VariationalBayes(tol=0.0, max_iter=1 + FEW_SWEEPS, backend="numba", calibrate="none")
    few.fit(crowd.responses, links=links)  # compiled for this number of classes
    memory_now()
    once = seconds(lambda: few.fit(crowd.responses, links=links))
    all_of_them = seconds(lambda: many.fit(crowd.responses, links=links))
    return {"seconds": (all_of_them - once) / FEW_SWEEPS, "peak_bytes": peak_since()}


def by_classes(n: int) -> dict[str, Any]:
    return fitted(simulate.crowd(200_000, 300, n, random_state=0))


def by_workers(n: int) -> dict[str, Any]:
    return fitted(simulate.crowd(200_000, n, 4, random_state=0))


def by_links(n: int) -> dict[str, Any]:
    crowd = simulate.crowd(1_000_000, 1_000, 4, responses_per_task=3, random_state=0)
    return fitted(crowd, simulate.links(crowd.gold, n, random_state=1))


STEPS: dict[str, Callable[[int], dict[str, Any]]] = {
    "responses": from_file,
    "classes": by_classes,
    "workers": by_workers,
    "links": by_links,
}


def step(axis: str, n: int) -> None:
    """Measure one point after a small fit, which loads compiled code, and print it."""
    warm = simulate.crowd(60_000, 50, 2, random_state=0).responses
    rows = {name: _column(warm, name) for name in ("task", "worker", "label")}
    VariationalBayes(tol=0.0, max_iter=2, backend="numba").fit(rows)
    measured = STEPS[axis](n)
    print(json.dumps(measured | {"n": n, "seconds": round(measured["seconds"], 5)}))


def _column(responses: Any, name: str) -> Any:
    names = {"task": responses.tasks, "worker": responses.workers, "label": responses.classes}
    return np.array(names[name].take(getattr(responses, name)))


def exponent(rows: list[dict[str, Any]], first: int, key: str = "seconds") -> float | None:
    """Fit log time against log size, of the points from `first` on with ids of one kind."""
    alike = [row for row in rows if row.get("ids", "text") == "text" and row["n"] >= first]
    points = [(row["n"], row[key]) for row in alike if row[key] > 0]
    if len(points) < 2:
        return None
    n, took = np.log(np.array(points, dtype=float)).T
    return round(float(np.polyfit(n, took, 1)[0]), 3)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--step", nargs=2, metavar=("AXIS", "N"), help="measure one point")
    options.add_argument("--axis", choices=AXES, help="only this one")
    options.add_argument("--to", type=float, help="the most responses")
    options.add_argument("--huge", action="store_true", help="up to 10⁹ responses")
    options.add_argument("--again", action="store_true", help="also what was measured before")
    chosen = options.parse_args()
    if chosen.step:
        step(chosen.step[0], int(chosen.step[1]))
        return
    most = chosen.to or (10**9 if chosen.huge else LARGEST["responses"])
    path = RESULTS / "growth.json"
    kept = json.loads(path.read_text()) if path.exists() and not chosen.again else {"axes": {}}
    for axis in [chosen.axis] if chosen.axis else AXES:
        for n in AXES[axis]:
            rows = kept["axes"].setdefault(axis, {"rows": []})["rows"]
            if any(row["n"] == n for row in rows) or (axis == "responses" and n > most):
                continue
            command = [sys.executable, "-m", "benchmarks.scale.growth", "--step", axis, str(n)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]) | {"commit": about()["commit"]})
            rows.sort(key=lambda row: row["n"])
            kept["axes"][axis] |= {
                "fitted_from": FITTED_FROM[axis],
                "exponent": exponent(rows, FITTED_FROM[axis]),
                "memory_exponent": exponent(rows, FITTED_FROM[axis], "peak_bytes"),
            }
            keep("growth", {"what": "time and memory against size", **kept, **about("pyarrow")})


if __name__ == "__main__":
    main()
