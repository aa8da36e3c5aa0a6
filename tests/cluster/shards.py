"""Crowds cut into shards, what a fit gave, and clusters that die on purpose."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tiebreak as tb
from tiebreak.shards import DistributedFit

DRIVER = Path(__file__).parent / "driver.py"


def cut(responses: tb.Responses, edges: list[int], folder: Path, suffix: str = ".tb") -> Path:
    """Write tasks between each two edges as one shard; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, (low, high) in enumerate(pairwise(edges)):
        part = responses.on_tasks(np.arange(low, high))
        part.write(folder / f"shard-{i:02d}{suffix}")
    return folder


def even(n_tasks: int, n_shards: int) -> list[int]:
    return [round(edge) for edge in np.linspace(0, n_tasks, n_shards + 1)]


class Outcome(NamedTuple):
    """What a fit gave."""

    tasks: list[Any]
    labels: list[Any]
    probability: Any
    confusion: Any
    bounds: Any


def outcome(made: DistributedFit) -> Outcome:
    table = made.labels_.to_table()
    tasks, labels = (table[name].to_pylist() for name in ("task", "label"))
    bounds = np.array(made.bounds_)
    return Outcome(tasks, labels, table["probability"].to_numpy(), made.confusion_, bounds)


def assert_alike(made: DistributedFit, expected: Outcome) -> None:
    """Compare with another fit of the same shards: they differ by rounding alone."""
    found = outcome(made)
    assert found[:2] == expected[:2]
    for one, other in zip(found[2:], expected[2:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def probabilities_of(made: DistributedFit) -> Any:
    table = made.labels_.to_table()
    columns = [table[f"probability_{name}"].to_numpy() for name in made.classes_]
    return table["task"].to_pylist(), table["label"].to_pylist(), np.stack(columns, axis=1)


def assert_same_fit(one: Any, made: DistributedFit) -> None:
    """Compare with a fit on one machine: same sweeps, bounds, probabilities, labels but ties."""
    tasks, labels, q = probabilities_of(made)
    assert tasks == list(one.tasks_)
    assert made.workers_ == one.workers_
    assert made.n_iter_ == one.n_iter_
    assert made.converged_ == one.converged_
    np.testing.assert_allclose(made.bounds_, one.bounds_, rtol=1e-12)
    np.testing.assert_allclose(q, one.probabilities_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(made.confusion_, one.confusion_, rtol=0, atol=1e-9)
    top = np.sort(one.probabilities_, axis=1)[:, ::-1]
    is_tie = top[:, 0] - top[:, 1] < 1e-9 if q.shape[1] > 1 else np.zeros(len(q), bool)
    expected = list(one.labels_.best().values())
    differ = [i for i in range(len(tasks)) if labels[i] != expected[i] and not is_tie[i]]
    assert differ == []


class Killer:
    """An executor of a cluster that kills a worker before a sweep, or while it is made."""

    def __init__(self, client: Any, sweep: int, when: str) -> None:
        self.inner = tb.shards.executor_of(client)
        self.client = client
        self.left = sweep + 2  # shards are first asked to count, and what votes imply
        self.when = when
        self.has_killed = False

    @property
    def n_lost(self) -> int:
        return self.inner.n_lost

    def everywhere(self, task: Any, *arguments: Any) -> None:
        self.inner.everywhere(task, *arguments)

    def share(self, task: Any, items: Any) -> Any:
        self.left -= getattr(task, "func", task).__name__ == "add_up"
        if self.left == 0 and not self.has_killed:
            self.has_killed = True
            pid = min(self.client.run(os.getpid).values())
            after = 0.0 if self.when == "between" else 0.02
            threading.Timer(after, os.kill, (pid, signal.SIGKILL)).start()
            if self.when == "between":
                time.sleep(0.1)
        return self.inner.share(task, items)


def die_at(sweep: int, shards: Path, out: Path, tmp_path: Path, **given: Any) -> None:
    """Run a fit in another process that is killed with signal 9 after a sweep."""
    links = None
    if given.get("links") is not None:
        links = str(tmp_path / "links.csv")
        given["links"].write(links)
    wish = {
        "shards": str(shards),
        "out": str(out),
        "links": links,
        "gold": given.get("gold"),
        "address": given.get("address"),
        "dies_at": sweep,
    }
    done = subprocess.run([sys.executable, DRIVER, json.dumps(wish)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (out / "_SUCCESS").exists()
