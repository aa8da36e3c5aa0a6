"""How long updates, predictions and streams take: processor times of one thread."""

from __future__ import annotations

import copy
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tiebreak as tb
from tiebreak.data.ids import Ids
from tiebreak.inference.climb import Problem, Sweeps
from tiebreak.inference.door import lay_out
from tiebreak.inference.tasks import Independent
from tiebreak.kernels.contract import choose_backend
from tiebreak.life.online import Stream
from tiebreak.life.update import join_responses

ONE_THREAD: dict[str, Any] = {"backend": "numba", "n_threads": 1}
Columns = tuple[list[str], list[str], list[str]]


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the least processor time of some runs: the one that others disturbed least."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def update(config: dict[str, Any]) -> dict[str, Any]:
    """A thousand new responses into a model of a million: cold, from the model, and updated."""
    part = config["update"]
    found: dict[str, Any] = {}
    for name, accuracy in part["accuracy"].items():
        made = tb.simulate.crowd(
            part["n_tasks"],
            part["n_workers"],
            part["n_classes"],
            responses_per_task=5,
            accuracy=tuple(accuracy),
            random_state=0,
        )
        model = tb.VariationalBayes(**ONE_THREAD).fit(made.responses)
        for what, rows in _news(part, model).items():
            found[f"{name}: {what}"] = _update(part["repeats"], model, rows)
            print(name, what, found[f"{name}: {what}"], flush=True)
    return found


def _news(part: dict[str, Any], model: Any) -> dict[str, list[tuple[Any, ...]]]:
    """Responses as they may come: on new tasks, on old ones, by new workers."""
    rng = np.random.default_rng(1)
    n = part["n_new"]
    crowd = model.responses_
    right = np.diagonal(model.confusion_, axis1=1, axis2=2)

    def answer(worker: int, truth: int) -> Any:
        wrong = int(rng.integers(0, crowd.n_classes))
        said = truth if rng.random() < right[worker, truth] else wrong
        return crowd.classes[said]

    def rows(task: Callable[[int], Any], truth: Any, worker: Any) -> list[tuple[Any, ...]]:
        made = {}
        for i in range(n):
            who = int(worker[i])
            made[task(i), who] = (task(i), crowd.workers[who], answer(who, int(truth[i])))
        return list(made.values())

    anybody = rng.integers(0, crowd.n_workers, n)
    old = rng.choice(crowd.n_tasks, n, replace=False)
    truth = np.repeat(rng.integers(0, crowd.n_classes, n // 5), 5)
    by_new = []
    for i in range(n):
        task = int(old[i // 10])
        said = answer(0, int(model.labels_.label[task]))
        by_new.append((crowd.tasks[task], f"new {i % 10}", said))
    return {
        "200 new tasks": rows(lambda i: f"new {i // 5}", truth, anybody),
        "one more on old tasks": rows(
            lambda i: crowd.tasks[int(old[i])], model.labels_.label[old], anybody
        ),
        "10 new workers on old tasks": by_new,
    }


def _update(repeats: int, model: Any, rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    joined = join_responses(model.responses_, tb.Responses.from_rows(rows))
    kept: dict[str, Any] = {}

    def cold() -> None:
        kept["cold"] = tb.VariationalBayes(**ONE_THREAD).fit(joined)

    def start() -> None:
        kept["start"] = tb.VariationalBayes(**ONE_THREAD).fit(joined, start=model)

    def updated() -> None:
        kept["update"] = copy.copy(model).update(rows)

    found: dict[str, Any] = {}
    for name, work in {"cold": cold, "start": start, "update": updated}.items():
        found[name] = [1e3 * seconds(work, repeats), kept[name].n_iter_]
    found["join"] = 1e3 * seconds(
        lambda: join_responses(model.responses_, tb.Responses.from_rows(rows)), repeats
    )
    one = kept["start"]
    other = kept["update"]
    found["apart"] = float(np.abs(one.probabilities_ - other.probabilities_).max())
    return found


def crowd_of(n: int, n_classes: int, seed: int, *, turned: bool = False) -> tb.Responses:
    """Draw a large crowd quickly: 200 workers, 5 responses a task.

    `turned`: workers and classes stand in another order, so that codes are not those of a model.
    """
    rng = np.random.default_rng(seed)
    n_tasks = n // 5
    truth = rng.integers(0, n_classes, n_tasks, dtype=np.int32)
    task = np.repeat(np.arange(n_tasks, dtype=np.int32), 5)
    first = np.repeat(rng.integers(0, 200, n_tasks, dtype=np.int32), 5)
    worker = (first + 40 * np.tile(np.arange(5, dtype=np.int32), n_tasks)) % 200
    anything = rng.integers(0, n_classes, n)
    label = np.where(rng.random(n) < 0.7, truth[task], anything).astype(np.int32)
    workers = [f"w{i}" for i in range(200)]
    classes = [f"c{k}" for k in range(n_classes)]
    order = -1 if turned else 1
    names = (Ids(range(n_tasks)), Ids(workers[::order]), Ids(classes[::order]))
    return tb.Responses.from_codes(task, worker, label, *names)


def predict(config: dict[str, Any]) -> dict[str, Any]:
    """One task, and many responses beside one sweep over as many."""
    part = config["predict"]
    found: dict[str, Any] = {"responses": part["n_responses"]}
    for n_classes in part["classes"]:
        found[f"K = {n_classes}"] = _predict(part["n_responses"], n_classes, part["repeats"])
        print(n_classes, found[f"K = {n_classes}"], flush=True)
    some = {"worker_model": "subtypes", "max_iter": 20, "tol": 0.0}
    key = "K = 4 with five subtypes each"
    found[key] = _predict(part["n_responses"], 4, part["repeats"], **some)
    model = tb.VariationalBayes(**ONE_THREAD).fit(crowd_of(200_000, 4, 0))
    one = [("new", f"w{i}", "c0") for i in range(5)]
    found["one_ms"] = 10.0 * seconds(
        lambda: [model.predict(one) for _ in range(100)], part["repeats"]
    )
    return found


def _predict(n: int, n_classes: int, repeats: int, **options: Any) -> dict[str, float]:
    """Predict and sweep by turns; return medians."""
    model = tb.VariationalBayes(**ONE_THREAD, **options).fit(crowd_of(200_000, n_classes, 0))
    large = crowd_of(n, n_classes, 1)
    turned = crowd_of(n, n_classes, 1, turned=True)
    model.predict(large)
    states, workers = model._crowd_model
    kernels = choose_backend("numba", n)
    problem = Problem(lay_out(large), Independent(states), workers, kernels, 1)
    sweeps = Sweeps(problem, problem.votes())
    parameters = problem.updated(sweeps.tally())
    work: dict[str, Callable[[], Any]] = {
        "sweep": lambda: sweeps.sweep(parameters, problem.logs(parameters), None),
        "predict": lambda: model.predict(large),
        "turned": lambda: model.predict(turned),
    }
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, each in work.items():
            taken[name].append(seconds(each, 1))
    return {name: float(np.median(each)) for name, each in taken.items()}


def stream(config: dict[str, Any]) -> dict[str, Any]:
    """Responses a second through Python; memory of a long stream."""
    part = config["stream"]
    here = Path(__file__)
    long = subprocess.run(
        [sys.executable, str(here), str(part["n_events"]), str(part["n_open"])],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {"python": _speed(part["n_responses"]), "long": json.loads(long.stdout)}


def batches(n: int, seed: int, size: int = 10_000) -> Iterator[Columns]:
    """Draw batches of whole tasks: 200 workers, 4 classes, 5 responses a task."""
    rng = np.random.default_rng(seed)
    n_tasks = size // 5
    for first in range(0, n // 5, n_tasks):
        task = [f"t{first + i // 5}" for i in range(size)]
        truth = np.repeat(rng.integers(0, 4, n_tasks), 5)
        label = np.where(rng.random(size) < 0.8, truth, rng.integers(0, 4, size))
        anybody = np.repeat(rng.integers(0, 200, n_tasks), 5)
        worker = (anybody + 40 * np.tile(np.arange(5), n_tasks)) % 200
        yield task, [f"w{w}" for w in worker.tolist()], [f"c{k}" for k in label.tolist()]


def _begin(parts: Iterator[Columns], n_open: int | None = None) -> Stream:
    first = tb.Responses.from_columns(*next(parts))
    return Stream(tb.VariationalBayes(**ONE_THREAD).fit(first), n_open=n_open)


def _speed(n: int) -> float:
    parts = batches(n, 0)
    running = _begin(parts)
    running.visit(running.add(*next(parts)))
    taken = 0.0
    n_taken = 0
    for columns in parts:
        start = time.process_time()
        running.visit(running.add(*columns))
        taken += time.process_time() - start
        n_taken += len(columns[0])
    return n_taken / taken


def _long(n: int, n_open: int) -> dict[str, float]:
    """Stream with counts; return the peak memory after half and at the end, and the speed."""
    parts = batches(n, 0)
    running = _begin(parts, n_open)
    taken = 0.0
    n_taken = 10_000
    half = 0.0
    for columns in parts:
        start = time.process_time()
        running.visit(running.add(*columns))
        taken += time.process_time() - start
        n_taken += len(columns[0])
        half = half if n_taken > n // 2 else _peak()
    return {
        "events": n_taken,
        "open": n_open,
        "half_mib": half,
        "mib": _peak(),
        "counted": float(running.counts.of_workers.sum()),
        "speed": n_taken / taken,
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def lines(config: dict[str, Any]) -> dict[str, Any]:
    """Pipe JSON lines through `tiebreak stream`; times are of its process, saves among them."""
    n = config["stream"]["n_lines"]
    found: dict[str, Any] = {"events": n}
    for keep in ("responses", "counts"):
        with tempfile.TemporaryDirectory() as folder:
            used = _pipe(n, ["--keep", keep, "--open-tasks", "20000"], folder)
        taken = used.ru_utime + used.ru_stime
        found[keep] = {"speed": n / taken, "mib": used.ru_maxrss / 1024}
        print(keep, found[keep], flush=True)
    return found


def _pipe(n: int, options: list[str], folder: str) -> resource.struct_rusage:
    """Run the command on n events; return what its process used."""
    command = [
        sys.executable,
        "-m",
        "tiebreak",
        "stream",
        "m.tbm",
        "--set",
        "every=10000",
        "--quiet",
    ]
    process = subprocess.Popen(
        [*command, *options], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stdin is not None
    seq = 0
    for columns in batches(n, 0):
        events = []
        for task, worker, label in zip(*columns, strict=True):
            event = {"seq": seq, "task": task, "worker": worker, "label": label}
            events.append(json.dumps(event) + "\n")
            seq += 1
        process.stdin.write("".join(events).encode())
    process.stdin.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used


if __name__ == "__main__":
    print(json.dumps(_long(int(sys.argv[1]), int(sys.argv[2]))))
