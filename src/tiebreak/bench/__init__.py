"""Compare methods of label aggregation on tasks whose class is known.

Methods of tiebreak, and any others, run on the same responses and are scored on the same known
labels, which they do not see.

>>> import tiebreak as tb
>>> crowd = tb.simulate.crowd(200, 9, 3, random_state=0)
>>> found = tb.bench.run({"mine": (crowd.responses, crowd.gold)}, ["mv", "vb"])
>>> {method: round(row["mine"], 3) for method, row in found.table("accuracy").items()}
{'vb': 0.945, 'mv': 0.917}
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import starmap
from pathlib import Path
from typing import Any

from tiebreak import datasets
from tiebreak.arguments import checks, number, whole
from tiebreak.bench.measure import OVER, Cell, CellOptions, LabelledCrowd, label_crowd, measure
from tiebreak.bench.methods import OWN, find
from tiebreak.bench.results import KEY, BenchResults, Gain, is_record, read_record
from tiebreak.data.ids import Ids
from tiebreak.tables import open_target

__all__ = ["OWN", "BenchResults", "Gain", "is_record", "read_record", "run"]

Key = tuple[Any, ...]
Task = tuple[LabelledCrowd, Any, int, CellOptions, bool]  # the arguments of `measure`


@checks(
    seeds=whole(1),
    gold_share=number("a share below 1", least=0.0, below=1.0),
    limit=number("a number of seconds above 0", above=0.0),
    jobs=whole(1),
)
def run(
    sets: Mapping[str, tuple[Any, Any]] | Iterable[str],
    methods: Iterable[Any] = tuple(OWN),
    *,
    seeds: int = 5,
    gold_share: float = 0.0,
    limit: float = 60.0,
    jobs: int = 1,
    record: str | os.PathLike[str] | None = None,
    resume: bool = False,
    with_labels: bool = False,
    progress: Callable[[str], None] | None = None,
) -> BenchResults:
    """Run methods on labelled crowds and score them.

    Parameters
    ----------
    sets
        Responses and gold by name; or names of `tiebreak.datasets`.
    methods
        Names of `OWN`, estimators, functions of responses that return a row of scores per task, or
        files with such a function `aggregate`. One that takes a second argument, a seed, draws.
        PROBABILITIES = True beside it says what its rows are, CLASSES = 2 that it takes two
        classes only.
    seeds
        How often methods that draw are run.
    gold_share
        This share of the gold, drawn by each seed, is given to estimators; the rest scores all.
    limit
        Seconds of processor time for a cell. One that takes more says so in the place of figures.
    jobs
        Processes that measure cells. With more than one, functions must be importable.
    record, resume
        The file that takes each cell as it ends, as a line of JSON. With `resume`, cells that it
        holds of the same data and method are not measured again.
    with_labels
        Keep the labels of the first seed, by set and method; every cell is measured for them.
    """
    crowds = sorted(_read(sets), key=lambda crowd: crowd.responses.n_responses)
    options = CellOptions(gold_share, limit, with_labels)
    wanted: dict[Key, tuple[Cell, Task]] = {}
    for crowd in crowds:
        for given in methods:
            method = find(given)
            if method.only_classes in (None, crowd.responses.n_classes):
                for seed in range(seeds if method.draws or gold_share else 1):
                    head = options.head(crowd, method, seed)
                    task = crowd, given, seed, options, crowd is crowds[0]
                    wanted[_key(head)] = head, task
    cells: dict[Key, Cell] = {}
    if record is not None and resume and Path(record).exists():
        cells = {_key(cell): cell for cell in read_record(record)}
    missing = []
    for key, (head, _) in wanted.items():
        if with_labels or not _holds(cells.get(key), head, limit):
            missing.append(key)
            cells.pop(key, None)
    if record is not None:
        with open_target(record) as file:
            file.writelines(map(_line, cells.values()))
    labels: dict[tuple[str, str], Ids] = {}
    measured = _measure_all([wanted[key][1] for key in missing], jobs)
    for n, (key, (cell, found)) in enumerate(zip(missing, measured, strict=True), 1):
        cells[key] = cell
        if record is not None:
            with Path(record).open("ab") as file:
                file.write(_line(cell))
                file.flush()
                os.fsync(file.fileno())
        if found is not None and cell["seed"] == 0:
            labels[cell["set"], cell["method"]] = found
        if progress is not None:
            progress(f"{n:,} of {len(missing):,}: {cell['method']} on {cell['set']}")
    return BenchResults(tuple(cells[key] for key in wanted), labels)


def _read(sets: Mapping[str, tuple[Any, Any]] | Iterable[str]) -> list[LabelledCrowd]:
    if not isinstance(sets, Mapping):
        sets = {name: datasets.load(name)[:2] for name in sets}
    return [label_crowd(name, *both) for name, both in sets.items()]


def _key(cell: Cell) -> Key:
    return tuple(cell[name] for name in KEY)


def _holds(cell: Cell | None, head: Cell, limit: float) -> bool:
    """Return whether a cell is what would be measured: of these data, method and options."""
    if cell is None or any(cell[name] != head[name] for name in ("data", "source", "gold_share")):
        return False
    ran_out = cell.get("error", "").startswith(OVER[:5])
    return not ran_out or cell["error"] == OVER.format(limit)


def _measure_all(tasks: list[Task], jobs: int) -> Iterator[tuple[Cell, Ids | None]]:
    """Yield what each task measures, in their order."""
    if jobs == 1 or not tasks:
        yield from starmap(measure, tasks)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(measure, *zip(*tasks, strict=True))


def _line(cell: Cell) -> bytes:
    return json.dumps(cell, ensure_ascii=False).encode() + b"\n"
