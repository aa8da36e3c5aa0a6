"""Fits over partitions: `python -m benchmarks.cluster FOLDER efficiency 2e7`, and so on.

    efficiency N     two processes against two threads, sweeps by turns; overhead, bytes, loading
    memory N         of the driver of two processes, and of a fit out of core; time beside in memory
    wide             1e5 workers, 10 classes: bytes and the driver's memory

FOLDER takes the shards (8 bytes a response). Results go to benchmarks/results/cluster.json. Wall
times depend on what else the machine does, so that the load is kept with each.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tiebreak as tb
from tiebreak.cli.cluster import connected
from tiebreak.data import Responses
from tiebreak.data.ids import Ids
from tiebreak.inference.door import lay_out
from tiebreak.kernels import compiled
from tiebreak.kernels.arrays import majority
from tiebreak.shards.dask import DaskExecutor
from tiebreak.shards.fitting import write_plan
from tiebreak.shards.join import join
from tiebreak.shards.sources import read_shards
from tiebreak.shards.sweeper import Shards

RESULTS = Path(__file__).parent / "results" / "cluster.json"
N_SHARDS = 8
LARGEST_SHARD = 125_000_000  # responses
IN_MEMORY = 1_000_000_000  # responses, on a machine of 24 GB
A_TASK = 5
N_PAIRS = 25


def shards(folder: Path, n: int, n_workers: int = 1000, n_classes: int = 2) -> Path:
    """Write packed shards of a drawn crowd, once."""
    name = f"{n:.0e}-{n_workers}-{n_classes}".replace("+", "")
    target = folder / name
    if (target / "done").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    n_shards = max(N_SHARDS, n // LARGEST_SHARD)
    n_tasks = n // A_TASK // n_shards
    classes = Ids(pa.array([f"c{k}" for k in range(n_classes)]))
    workers = Ids(pa.array([f"w{w}" for w in range(n_workers)]))
    for i in range(n_shards):
        rng = np.random.default_rng(i)
        truth = rng.integers(0, n_classes, n_tasks, dtype=np.int32)
        worker = rng.integers(0, n_workers, (n_tasks, A_TASK), dtype=np.int32)
        right = rng.random((n_tasks, A_TASK), dtype=np.float32) < 0.55 + 0.4 * worker / n_workers
        other = rng.integers(1, max(n_classes, 2), (n_tasks, A_TASK), dtype=np.int32)
        label = np.where(right, truth[:, None], (truth[:, None] + other) % n_classes)
        code = np.sort(worker * n_classes + label.astype(np.int32), axis=1).ravel()
        start = np.arange(0, n_tasks * A_TASK + 1, A_TASK, dtype=np.int64)
        tasks = Ids(pa.array(np.arange(i * n_tasks, (i + 1) * n_tasks)))
        part = Responses(start, code.astype(np.int32), tasks, workers, classes)
        part.write(target / f"part-{i:02d}.tb")
    (target / "done").write_text("")
    return target


def open_shards(executor: Any, source: Path, work: Path) -> Shards:
    """Open the shards of a fit, as a fit does."""
    work.mkdir(parents=True, exist_ok=True)
    files = sorted(str(each) for each in source.glob("*.tb"))
    crowd = join(read_shards(executor, files, {}, work / "parts"), None, None)
    plan = write_plan(crowd, tb.VariationalBayes(), work, is_on_disk=False)
    return Shards(executor, crowd, plan, None, None)


def whole(source: Path) -> Responses:
    """Return all shards as one table in memory."""
    parts = [tb.read_responses(each) for each in sorted(source.glob("*.tb"))]
    n_tasks = sum(part.n_tasks for part in parts)
    start = np.zeros(n_tasks + 1, dtype=np.int64)
    code = np.empty(sum(part.n_responses for part in parts), dtype=np.int32)
    at = 0
    for part in parts:  # in place: at 1e9 responses a copy more is one too many
        low = int(start[at])
        code[low : low + part.n_responses] = part.code
        np.add(part.start[1:], low, out=start[at + 1 : at + 1 + part.n_tasks])
        at += part.n_tasks
    tasks = Ids(pa.array(np.arange(n_tasks)))
    return Responses(start, code, tasks, parts[0].workers, parts[0].classes)


def some_tables(crowd: Any, n_classes: int) -> Callable[[int], Any]:
    """Return tables that differ from sweep to sweep."""

    def tables(i: int) -> Any:
        rng = np.random.default_rng(i)
        n = len(crowd.workers) * n_classes
        table = np.log(rng.dirichlet(np.ones(n_classes), n) + 0.1)
        return np.log(np.full(n_classes, 1 / n_classes)), table

    return tables


def wire() -> int:
    """Return bytes sent over the loopback so far, by everyone on this machine."""
    line = next(x for x in Path("/proc/net/dev").read_text().splitlines() if "lo:" in x)
    return int(line.split()[9])


def efficiency(folder: Path, n: int) -> dict[str, Any]:
    source = shards(folder, n)
    found: dict[str, Any] = {"responses": n}
    with connected("local:2") as client, tempfile.TemporaryDirectory(dir=folder) as work:
        opened = open_shards(DaskExecutor(client), source, Path(work))
        began = time.perf_counter()
        opened.load()
        found["load_s"] = time.perf_counter() - began
        crowd = whole(source)
        tasks = lay_out(crowd)
        sweeper = compiled.open(tasks, majority(tasks, 2), 2)
        tables = some_tables(crowd, 2)
        pairs = []
        sent = []
        for i in range(N_PAIRS + 3):
            given = tables(i)
            began = time.perf_counter()
            sweeper.sweep(given)
            middle = time.perf_counter()
            before = wire()
            opened.sweep(given)
            sent.append(wire() - before)
            pairs.append((middle - began, time.perf_counter() - middle))
        one, two = np.array(pairs[3:]).T
        small = shards(folder, 40_000)
        idle = open_shards(DaskExecutor(client), small, Path(work) / "small")
        idle.load()
        rounds = []
        for i in range(N_PAIRS):
            began = time.perf_counter()
            idle.sweep(tables(i))
            rounds.append(time.perf_counter() - began)
    table = 8 * len(crowd.workers) * 4
    ratio = np.quantile(one / two, [0.25, 0.5, 0.75])
    return found | {
        "efficiency_quartiles": ratio.tolist(),
        "efficiency_of_minima": float(one.min() / two.min()),
        "one_process_s": float(np.median(one)),
        "two_processes_s": float(np.median(two)),
        "loads_in_sweeps": found["load_s"] / float(np.median(two)),
        "overhead_median_s": float(np.median(rounds)),
        "overhead_least_s": float(min(rounds)),
        "wire_median_bytes": float(np.median(sent)),
        "wire_over_processes_and_table": float(np.median(sent)) / (2 * table),
    }


class Watch(threading.Thread):
    """Samples the anonymous memory of this process, or the whole."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = {"RssAnon": 0, "VmRSS": 0}
        self.go = True

    def run(self) -> None:
        while self.go:
            for line in Path("/proc/self/status").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in self.most:
                    self.most[name] = max(self.most[name], int(value.split()[0]) * 1024)
            time.sleep(0.02)


def memory(folder: Path, n: int) -> dict[str, Any]:
    """Measure fits in processes of their own."""
    source = shards(folder, n)
    found: dict[str, Any] = {"responses": n}
    n_ways = 1 if n > IN_MEMORY else 3 if n <= 200_000_000 else 2
    ways = ("out_of_core", "in_memory", "driver")[:n_ways]
    for way in ways:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.cluster", str(folder), way, str(source)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        found[way] = json.loads(done.stdout.splitlines()[-1])
    return found


def one_fit(way: str, source: Path, folder: Path) -> dict[str, Any]:
    watch = Watch()
    model = tb.VariationalBayes(tol=0.0, max_iter=15)
    with tempfile.TemporaryDirectory(dir=folder) as out:
        files = sorted(source.glob("*.tb"))
        sweeps: list[float] = []
        began = time.perf_counter()
        if way == "in_memory":
            crowd = whole(source)
            watch.start()
            began = time.perf_counter()
            made = model.fit(crowd)
            made.labels_.write(f"{out}/labels.parquet")
        elif way == "out_of_core":
            watch.start()
            made = tb.shards.fit(
                files, f"{out}/l", estimator=model, progress=lambda p: sweeps.append(p.seconds)
            )
        else:
            with connected("local:2") as client:
                watch.start()
                made = tb.shards.fit(
                    files, f"{out}/l", estimator=model, client=client,
                    progress=lambda p: sweeps.append(p.seconds),
                )  # fmt: skip
        took = time.perf_counter() - began
    watch.go = False
    return {
        "seconds": took,
        "sweeps": made.n_iter_,
        "sweep_median_s": float(np.median(sweeps)) if sweeps else None,
        "anonymous_bytes": watch.most["RssAnon"],
        "resident_bytes": watch.most["VmRSS"],
    }


def wide(folder: Path, n: int) -> dict[str, Any]:
    """Take 1e5 workers and 10 classes: a table of 80 MB."""
    source = shards(folder, n, 100_000, 10)
    found: dict[str, Any] = {"responses": n, "table_bytes": 8 * 100_000 * 100}
    from distributed import Client
    from distributed.deploy.subprocess import SubprocessCluster

    watch = Watch()
    with (
        SubprocessCluster(
            host="127.0.0.1", n_workers=2, threads_per_worker=1, worker_kwargs={"memory_limit": 0}
        ) as cluster,
        Client(cluster) as client,
        tempfile.TemporaryDirectory(dir=folder) as out,
    ):
        sent: list[int] = [wire()]
        sweeps: list[float] = []

        def tell(progress: Any) -> None:
            sent.append(wire())
            sweeps.append(progress.seconds)

        watch.start()
        tb.shards.fit(
            sorted(source.glob("*.tb")), f"{out}/l", client=client, progress=tell,
            estimator=tb.VariationalBayes(tol=0.0, max_iter=6),
        )  # fmt: skip
    watch.go = False
    return found | {
        "sweep_median_s": float(np.median(sweeps)),
        "wire_median_bytes": float(np.median(np.diff(sent)[1:])),
        "driver_anonymous_bytes": watch.most["RssAnon"],
        "driver_resident_bytes": watch.most["VmRSS"],
    }


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0])
    what = arguments[1]
    if what in ("out_of_core", "in_memory", "driver"):
        print(json.dumps(one_fit(what, Path(arguments[2]), folder)))
        return
    n = int(float(arguments[2])) if len(arguments) > 2 else 16_000_000
    before = os.getloadavg()[0]
    more = map(int, arguments[3:])
    found = {"efficiency": efficiency, "memory": memory, "wide": wide}[what](folder, n, *more)
    found["load"] = [round(before, 1), round(os.getloadavg()[0], 1)]
    found["cores"] = os.cpu_count()
    found["date"] = datetime.date.today().isoformat()
    found["python"] = platform.python_version()
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    kept[" ".join([what, f"{n:.0e}".replace("+", ""), *arguments[3:]])] = found
    RESULTS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
