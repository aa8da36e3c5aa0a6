"""Crowds cut into shards, what a fit gave as bits, and clusters that die on purpose."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import tiebreak as tb
from tiebreak.shards import DistributedFit
from tiebreak.shards.dask import DaskExecutor
from tiebreak.shards.units import Ask

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


def bits(made: DistributedFit) -> str:
    """Return a checksum of parameters, bounds and label files."""
    found = hashlib.sha256()
    for each in (made.confusion_, made.class_prior_, np.array(made.bounds_)):
        found.update(np.ascontiguousarray(each).tobytes())
    for file in made.labels_.files():
        found.update(Path(file).read_bytes())
    return found.hexdigest()


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


class Killer(DaskExecutor):
    """An executor that kills a worker between two sweeps, or while one is made."""

    def __init__(self, client: Any, number: int, when: str) -> None:
        super().__init__(client)
        self.number = number
        self.when = when
        self.loads: Counter[str] = Counter()  # times that each unit was sent with its recipe
        self.killed: list[str] = []  # the units that lay on the killed worker
        self.n_moved = 0  # units, away from a worker that lives

    def _ask(
        self, task: Callable[..., Any], arguments: Mapping[int, tuple[Any, ...]]
    ) -> dict[int, Any]:
        asks = [each[0] for each in arguments.values() if isinstance(each[0], Ask)]
        self.loads.update(ask.key for ask in asks if ask.recipe is not None)
        at = {ask.arguments[0] for ask in asks if ask.what == "sweep"}
        if self.number in at and not self.killed:
            pids = self.client.run(os.getpid)
            victim = min(self._home.values())
            self.killed = [str(place) for place, home in self._home.items() if home == victim]
            after = 0.0 if self.when == "between" else 0.02
            threading.Timer(after, os.kill, (pids[victim], signal.SIGKILL)).start()
            if self.when == "between":
                time.sleep(0.1)
        return super()._ask(task, arguments)

    def _settle(self, places: Iterable[int]) -> None:
        before = dict(self._home)
        super()._settle(places)
        moved = (home != self._home[place] for place, home in before.items() if home in self._seen)
        self.n_moved += sum(moved)


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
