"""Runner: works off cases in several processes and can stop and go on at any time.

A case is a named tuple that says all that its result depends on. Every finished case is one line
of a JSON Lines file: the fields of the case, then what was measured. Whatever was finished before
a stop is read from there and not repeated.
"""

from __future__ import annotations

import datetime
import functools
import json
import multiprocessing
import os
import platform
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

from tiebreak.errors import FileError, OptionError
from tiebreak.research import messages  # noqa: F401
from tiebreak.tables.write import open_target

RUNS = "runs.jsonl"

Row = dict[str, Any]
Progress = Callable[[int, int], None]  # how many cases are finished, of how many
AnyCase = TypeVar("AnyCase", bound=tuple[Any, ...])  # a named tuple


def run_cases(
    cases: Sequence[AnyCase],
    work: Callable[[AnyCase], Row],
    path: Path,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[Row]:
    """Run the cases that are not finished yet, and return the rows of all in their order.

    Parameters
    ----------
    work
        Runs one case and returns its row; a function of a module, so that other processes find it.
    path
        The file of finished cases; it need not exist yet.
    jobs
        How many processes work.
    """
    if jobs < 1:
        raise OptionError("too-few-runs", option="jobs", least=1, given=jobs)
    if not cases:
        return []
    case_type = type(cases[0])
    before = finished(path, case_type)
    rows = {case: before[case] for case in cases if case in before}
    todo = [case for case in cases if case not in rows]
    report = progress or (lambda n_done, n_all: None)
    report(len(rows), len(cases))
    with path.open("a", encoding="utf-8") as out:
        for row in _rows_of(todo, work, jobs):
            out.write(json.dumps(row) + "\n")
            out.flush()
            rows[_case_of(row, case_type)] = row
            report(len(rows), len(cases))
    return [rows[case] for case in cases]


def finished(path: Path, case_type: type[AnyCase]) -> dict[AnyCase, Row]:
    """Read the finished cases; half a line that a kill left at the end is taken away."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        with open_target(path) as out:
            out.write("".join(lines).encode())
    rows: dict[AnyCase, Row] = {}
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            rows[_case_of(row, case_type)] = row
        except (ValueError, KeyError, TypeError):
            raise FileError("no-finished-run", path=path, line=number) from None
    return rows


def made_on() -> dict[str, str]:
    """Say when and on what machine results were made, to be kept with them."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
    }


def _case_of(row: Row, case_type: Any) -> Any:
    return case_type(*(row[name] for name in case_type._fields))


def _rows_of(todo: Sequence[AnyCase], work: Callable[[AnyCase], Row], jobs: int) -> Iterator[Row]:
    if jobs == 1 or len(todo) < 2:
        yield from map(work, todo)
        return
    context = multiprocessing.get_context("spawn")  # numba's threads do not survive a fork
    pool = ProcessPoolExecutor(min(jobs, len(todo)), context, initializer=_begin_worker)
    try:
        for future in as_completed([pool.submit(work, case) for case in todo]):
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
