"""A scheduler and workers as processes of their own, on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

START_S = 60.0
STARTER = "from distributed.cli.dask_{0} import main; main()"


@contextlib.contextmanager
def local(n_workers: int) -> Iterator[Any]:
    """Give a client of a cluster of processes, which are started again when they die."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", memory_limit=0, silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


class Processes(NamedTuple):
    """A cluster that runs."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


@contextlib.contextmanager
def running(
    folder: Path, n_workers: int = 2, first_on_path: Path | None = None
) -> Iterator[Processes]:
    """Start a scheduler and workers; workers may find other modules first."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scheduler.json"
    scheduler = _start(
        "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        "--scheduler-file", str(file), cwd=folder,
    )  # fmt: skip
    workers: list[subprocess.Popen[bytes]] = []
    try:
        until = time.monotonic() + START_S
        while not file.exists():
            assert time.monotonic() < until, "the scheduler did not start"
            time.sleep(0.1)
        time.sleep(0.2)
        address = json.loads(file.read_text())["address"]
        workers += [
            _start(
                "worker", address, "--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard",
                "--memory-limit", "0", "--local-directory", str(folder / f"worker-{i}"),
                cwd=folder, first_on_path=first_on_path,
            )
            for i in range(n_workers)
        ]  # fmt: skip
        yield Processes(address, scheduler, workers)
    finally:
        for process in (*workers, scheduler):
            process.terminate()
        for process in (*workers, scheduler):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            if process.poll() is None:
                process.kill()
                process.wait()


def _start(
    what: str, *arguments: str, cwd: Path, first_on_path: Path | None = None
) -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    if first_on_path is not None:
        environment["PYTHONPATH"] = f"{first_on_path}:{environment.get('PYTHONPATH', '')}"
    return subprocess.Popen(
        [sys.executable, "-c", STARTER.format(what), *arguments],
        cwd=cwd,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
