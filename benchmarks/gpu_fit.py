"""A whole fit on a CUDA device, from a packed folder to labels; and what links cost a sweep there.

python -m benchmarks.gpu_fit [small]
"""

from __future__ import annotations

import cProfile
import json
import pstats
import subprocess
import sys
import tempfile
import time
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tiebreak as tb
from benchmarks.gpu import Shape, crowd
from tiebreak.data import Responses
from tiebreak.data.ids import Ids
from tiebreak.inference import dirichlet
from tiebreak.inference.climb import Problem, Sweeps, step
from tiebreak.inference.dirichlet import ClassPrior
from tiebreak.inference.door import lay_out
from tiebreak.inference.tasks import Independent
from tiebreak.inference.tasks.coupling.linked import with_links
from tiebreak.inference.workers import ConfusionMatrices
from tiebreak.kernels.arrays import default_threads, majority
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.cuda import device
from tiebreak.kernels.layout import ByTask
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import LinkCodes
from tiebreak.options import ExactLinkOptions
from tiebreak.tables.array_folder import write_packed

OUT = Path(__file__).parent / "results" / "gpu_fit.json"
SWEEPS = 30
N_WORKERS = 1_000
ROUNDS = 7


def responses_of(n_responses: int, n_classes: int) -> Responses:
    tasks = crowd(Shape("even", n_responses, N_WORKERS, n_classes, 0.0), n_responses)
    code = np.sort(tasks.code.reshape(-1, 10), axis=1).ravel()
    numbers = (tasks.n_tasks, N_WORKERS, n_classes)
    return Responses(tasks.start, code, *(Ids(pa.array(np.arange(n))) for n in numbers))


def whole_fit(n_responses: int) -> dict[str, Any]:
    """Fit a packed folder with 30 sweeps; say where the time goes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "crowd.tb"
        write_packed(folder, responses_of(n_responses, 2))
        profile = cProfile.Profile()
        begin = time.perf_counter()
        profile.enable()
        responses = tb.read_responses(folder)
        read = time.perf_counter()
        model = tb.VariationalBayes(backend="cuda", tol=0.0, max_iter=SWEEPS)
        with warnings.catch_warnings(action="ignore"):
            model.fit(responses)
        fitted = time.perf_counter()
        model.labels_.write(Path(name) / "labels.parquet")
        done = time.perf_counter()
        profile.disable()
    pstats.Stats(profile).sort_stats("cumulative").print_stats(30)
    return {
        "responses": n_responses,
        "read_s": round(read - begin, 2),
        "fit_s": round(fitted - read, 2),
        "write_s": round(done - fitted, 2),
        "all_s": round(done - begin, 2),
    }


def _laid_out(responses: Responses) -> ByTask:
    return lay_out(responses)


def linked_sweep(n_responses: int, n_links: int) -> dict[str, Any]:
    """Time sweeps with and without links: free tasks on the device, nodes on the processor."""
    n_classes = 4
    responses = responses_of(n_responses, n_classes)
    n_tasks = responses.n_tasks
    votes = majority(_laid_out(responses), n_classes)
    truth = votes.argmax(axis=1)
    rng = np.random.default_rng(1)
    pairs = np.sort(rng.integers(0, n_tasks, (n_links, 2)), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0).astype(np.int32)
    left, right = pairs.T.copy()
    must = truth[left] == truth[right]
    links = LinkCodes(left, right, must, None, None, np.arange(len(left)))
    prior = dirichlet.confusion_prior("diagonal", responses.workers, n_classes)
    plain = Problem(
        _laid_out(responses),
        Independent(ClassPrior(np.ones(n_classes))),
        ConfusionMatrices(prior, responses.n_workers),
        choose_backend("cuda", responses.n_responses),
        default_threads(),
    )
    linked = with_links(plain, link_graph.imply(links, n_classes), ExactLinkOptions())
    parameters = plain.implied(votes)
    times: dict[str, list[float]] = {"without": [], "with": []}
    for name, problem in (("without", plain), ("with", linked)):
        sweeps = Sweeps(problem, votes)
        memory = None
        for turn in range(ROUNDS + 2):
            begin = time.perf_counter()
            memory = step(problem, sweeps, parameters, memory).memory
            if turn >= 2:
                times[name].append(1e3 * (time.perf_counter() - begin))
        sweeps.close()
    return {
        "responses": n_responses,
        "links": n_links,
        **{name: round(float(np.median(each)), 2) for name, each in times.items()},
    }


FIRST_FIT = """
import sys, time, warnings
warnings.simplefilter("ignore")
begin = time.perf_counter()
import tiebreak as tb
model = tb.VariationalBayes(backend=sys.argv[2]).fit(tb.read_responses(sys.argv[1]))
first = time.perf_counter()
model = tb.VariationalBayes(backend=sys.argv[2]).fit(model.responses_)
print(first - begin, time.perf_counter() - first)
"""


def crossover() -> list[dict[str, Any]]:
    """Time whole fits here and on the device, by size: a process's first, and a later one.

    Each twice, so that what compilers keep on disk is there, as it is after the first day.
    """
    rows = []
    for n_responses in (3_000_000, 10_000_000, 30_000_000, 100_000_000):
        row: dict[str, Any] = {"responses": n_responses}
        with tempfile.TemporaryDirectory() as name:
            write_packed(Path(name) / "crowd.tb", responses_of(n_responses, 4))
            for backend in ("numba", "cuda"):
                command = [sys.executable, "-c", FIRST_FIT, f"{name}/crowd.tb", backend]
                said = [subprocess.check_output(command, text=True).split() for _ in range(2)]
                row[backend] = [round(min(map(float, each)), 3) for each in zip(*said, strict=True)]
        print(row, flush=True)
        rows.append(row)
    return rows


def main(scale: float) -> None:
    whole_fit(10**6)  # compiles what it needs
    found = {
        "device": device.name(),
        "date": date.today().isoformat(),
        "threads": default_threads(),
        "linked": linked_sweep(int(10**8 * scale), int(10**6 * scale)),
        "crossover": crossover(),
        "whole": whole_fit(int(10**9 * scale)),
    }
    print(json.dumps(found), flush=True)
    OUT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(0.1 if "small" in sys.argv[1:] else 1.0)
