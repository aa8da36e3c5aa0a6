"""Experiments: the paper's three, in one series of cases that can stop and go on at any time.

All three share their draws. At each number N_C of labels or links,

(a) VB-LC has N_C random labels, VB-ILC N_C random links; MV, DS and VB have nothing;
(b) VB-ILC has N_C links chosen by BVSB, beside those at random;
(c) VB-ILC has the links that follow from the labels that VB-LC has.

Every finished case is one line of `runs.jsonl`. A case depends on its dataset, run and number
alone, so whatever was finished before a stop is used, and the rest gives the same numbers.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from tiebreak import datasets
from tiebreak._version import __version__
from tiebreak.errors import FileError, OptionError
from tiebreak.files.atomic_write import open_target
from tiebreak.reproduce import draws, methods

RUNS = "runs.jsonl"
BACKEND = "numba"  # compiled, also where one small fit would not repay it: there are many

Row = dict[str, Any]
Progress = Callable[[int, int], None]  # how many cases are finished, of how many


class About(NamedTuple):
    """What a dataset is here; runs of another copy or version are not taken over."""

    title: str
    n_classes: int
    n_gold: int
    fingerprint: str


class Case(NamedTuple):
    """One draw of one dataset, up to one number of labels or links."""

    dataset: str
    run: int
    n_given: int
    crowd: str  # the fingerprint of the dataset
    version: str


class Plan(NamedTuple):
    """What is to be run: datasets by name, Monte Carlo runs, steps of N_C after 0."""

    about: dict[str, About]
    n_runs: int = 20
    n_steps: int = 8
    backend: str = BACKEND

    @classmethod
    def of(cls, names: Sequence[str], n_runs: int = 20, n_steps: int = 8) -> Plan:
        """Look at the datasets; one that is not here is an error that says how to get it."""
        if n_runs < 1:
            raise OptionError(f"runs must be 1 or more; got {n_runs}.")
        if n_steps < 2:
            raise OptionError(
                f"steps must be 2 or more, to compare few with many links; got {n_steps}."
            )
        for name in names:
            datasets.path(name)  # tell of all before any is read
        return cls({name: _look_at(name) for name in names}, n_runs, n_steps, BACKEND)

    def cases(self) -> list[Case]:
        """Return all cases, dataset by dataset and run by run, the largest numbers first."""
        return [
            Case(name, run, n_given, about.fingerprint, __version__)
            for name, about in self.about.items()
            for run in range(self.n_runs)
            for n_given in reversed(self.numbers(name))
        ]

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return the numbers of labels and links that a dataset is given."""
        return draws.numbers_given(self.about[name].n_gold, self.n_steps)


def _look_at(name: str) -> About:
    found = datasets.load(name)
    classes = found.responses.with_classes(found.gold.classes).n_classes
    return About(found.info.title, classes, len(found.gold), draws.fingerprint(found))


def run(plan: Plan, folder: Path, *, jobs: int = 1, progress: Progress | None = None) -> list[Row]:
    """Run what is not finished yet, and return the rows of all cases in their order.

    Parameters
    ----------
    folder
        Where `runs.jsonl` lies, or will.
    jobs
        How many processes work, each on one thread.
    """
    if jobs < 1:
        raise OptionError(f"jobs must be 1 or more; got {jobs}.")
    wanted = plan.cases()
    before = finished(folder / RUNS)
    rows = {case: before[case] for case in wanted if case in before}
    todo = [case for case in wanted if case not in rows]
    _tell(progress, len(rows), len(wanted))
    with (folder / RUNS).open("a", encoding="utf-8") as out:
        for row in _work_off(todo, plan.backend, jobs):
            out.write(json.dumps(row) + "\n")
            out.flush()
            rows[_case_of(row)] = row
            _tell(progress, len(rows), len(wanted))
    return [rows[case] for case in wanted]


def finished(path: Path) -> dict[Case, Row]:
    """Read the finished cases; half a line that a kill left at the end is taken away."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        with open_target(path) as out:
            out.write("".join(lines).encode())
    rows: dict[Case, Row] = {}
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            rows[_case_of(row)] = row
        except (ValueError, KeyError, TypeError):
            raise FileError(
                f"{path}, line {number} is no finished run. Remove that line, or the file to "
                "start afresh."
            ) from None
    return rows


def work(case: Case, backend: str) -> Row:
    """Run one case: fit and score every method."""
    start = time.perf_counter()
    source = case.dataset, case.crowd, backend
    scores = methods.score_all(draws.crowd(*source), draws.draw(*source, case.run), case.n_given)
    seconds = round(time.perf_counter() - start, 3)
    return {**case._asdict(), "seconds": seconds, "scores": scores}


def _case_of(row: Row) -> Case:
    return Case(*(row[name] for name in Case._fields))


def _tell(progress: Progress | None, n_done: int, n_all: int) -> None:
    if progress is not None:
        progress(n_done, n_all)


def _work_off(todo: Sequence[Case], backend: str, jobs: int) -> Iterator[Row]:
    if jobs == 1 or len(todo) < 2:
        yield from (work(case, backend) for case in todo)
        return
    context = multiprocessing.get_context("spawn")  # numba's threads do not survive a fork
    pool = ProcessPoolExecutor(min(jobs, len(todo)), context, initializer=_begin_worker)
    try:
        waiting: Iterable[Any] = [pool.submit(work, case, backend) for case in todo]
        for future in as_completed(waiting):
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        watch = functools.partial(_end_with, parent)
        threading.Thread(target=watch, daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
