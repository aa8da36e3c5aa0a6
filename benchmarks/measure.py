"""Measuring: time, peak memory, and what a result must say about its machine."""

from __future__ import annotations

import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def seconds(work: Callable[[], object]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleaved(
    ours: Callable[[], object], theirs: Callable[[], object], pairs: int
) -> list[tuple[float, float]]:
    """Time two things in turn, so that both meet the same state of the machine."""
    return [(seconds(ours), seconds(theirs)) for _ in range(pairs)]


def summary(pairs: list[tuple[float, float]]) -> dict[str, Any]:
    """Return the median times and the median of the ratios theirs / ours."""
    ratios = sorted(theirs / ours for ours, theirs in pairs)
    return {
        "ours_seconds": round(statistics.median(pair[0] for pair in pairs), 6),
        "theirs_seconds": round(statistics.median(pair[1] for pair in pairs), 6),
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
    }


def peak_bytes() -> int:
    """Return the largest memory this process has held."""
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def memory_now() -> int:
    """Return the memory this process holds, and forget its peak so far (Linux only)."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak_since() -> int:
    """Return the largest memory held since `memory_now` was asked."""
    return _status("VmHWM")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


def about(*packages: str) -> dict[str, Any]:
    """Say where and when: date, machine, commit, versions."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
        "commit": commit,
        "versions": {name: version(name) for name in ("numpy", "numba", *packages)},
    }


def keep(name: str, result: dict[str, Any]) -> None:
    """Write a result beside the others and show it."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"{name}: {json.dumps(result)}", flush=True)
