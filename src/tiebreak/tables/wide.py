"""Wide tables: one row per task, one column per worker, nothing where a worker gave no answer.

task  ann  bob                 task  worker  label
t1    cat  dog        →        t1    ann     cat
t2         cat                 t1    bob     dog
                               t2    bob     cat
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tiebreak.data.ids import Column
from tiebreak.errors import InputError, note
from tiebreak.tables.columns import LABEL, TASK, WORKER, positions_for
from tiebreak.tables.table import Table, arrays
from tiebreak.wording import Source

MOST_CLASSES = 50  # of a table that is taken to be wide without being asked
FEW_ROWS = 10  # below, as many classes as rows say nothing


def has_gaps(source: Any) -> bool:
    """Return whether a source is an N × M array with gaps, which can only be wide."""
    is_matrix = isinstance(source, np.ndarray) and source.ndim == 2 and source.dtype.kind == "f"
    return is_matrix and bool(np.isnan(source).any())


def matrix_table(source: np.ndarray[Any, Any]) -> Table:
    """Make a table of an N × M array: workers are numbered from 0, NaN is a gap."""
    if source.ndim != 2 or not source.size:
        raise InputError("wide-shape", shape=source.shape)
    columns = {str(j): source[:, j].tolist() for j in range(source.shape[1])}
    return arrays(columns, Source("The array"))


def to_long(
    table: Table, columns: Mapping[str, object], chosen: Sequence[str] | None = None
) -> Table:
    """Make a long table; the column of tasks is named, known by its name, or the first of a file.

    `chosen` are the columns of workers; None: all others are.
    """
    position, names = _tasks_and_workers(table, columns)
    if not names:
        raise InputError("wide-without-workers", table=table.title)
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        n = names.count(twice[0])
        raise InputError("columns-alike", table=table.title, column=twice[0], n=n)
    for name in chosen or ():
        if name not in names:
            raise _no_column(table, name, "worker")
    workers = _read(table, chosen or names)
    if chosen is None:
        shared = _sharing(workers)
        empty = [name for name in names if workers[name].null_count == len(workers[name])]
        alone = [name for name in names if name not in (*shared, *empty)]
        if alone and len(shared) >= 2:
            note("wide-strangers", table=table.title, alone=alone, others=[*shared, *empty])
    return _melted(table, position, workers)


def found_wide(table: Table, columns: Mapping[str, object]) -> Table | None:
    """Make a long table of one that is wide by all appearances; None of any other.

    Such a table has a column of tasks, none of workers and labels, and two or more columns that
    share their labels. Columns that share none, such as texts and dates, are left out.
    """
    if len(table.names) < 3 or set(columns) - {"task"}:
        return None
    if positions_for(table, WORKER) or positions_for(table, LABEL):
        return None
    if "task" not in columns and len(positions_for(table, TASK)) != 1:
        return None
    position, names = _tasks_and_workers(table, columns)
    if len(set(names)) < len(names):
        return None
    try:
        workers = _read(table, names)
    except InputError:  # lists in a column, and the like
        return None
    shared = _sharing(workers)
    classes = set().union(*shared.values())
    n_rows = len(workers[names[0]])
    if len(shared) < 2 or len(classes) > MOST_CLASSES or len(classes) >= n_rows > FEW_ROWS:
        return None
    alone = [name for name in names if name not in shared]
    note("wide-found", table=table.title, workers=list(shared), alone=alone)
    return _melted(table, position, {name: workers[name] for name in shared})


def _tasks_and_workers(table: Table, columns: Mapping[str, object]) -> tuple[int | None, list[str]]:
    """Return which column holds the task, None where rows are numbered instead, and all others."""
    wanted = columns.get("task")
    if wanted is not None and str(wanted) not in table.names:
        raise _no_column(table, str(wanted), "task")
    position: int | None = 0 if table.has_header else None
    if wanted is not None:
        position = table.names.index(str(wanted))
    elif found := positions_for(table, TASK):
        position = found[0]
    return position, [name for i, name in enumerate(table.names) if i != position]


def _no_column(table: Table, name: str, role: str) -> InputError:
    fields = {"table": table.title, "column": name, "role": role, "columns": table.names}
    return InputError("no-such-column", **fields, meant=None)


def _read(table: Table, names: Sequence[str]) -> dict[str, Column]:
    columns = table.read([table.names.index(name) for name in names])
    return dict(zip(names, columns, strict=True))


def _sharing(workers: Mapping[str, Column]) -> dict[str, set[Any]]:
    """Return the values of columns that share one with another: texts and dates are no workers."""
    values = {name: {*column.unique().to_pylist()} - {None} for name, column in workers.items()}
    n_columns = Counter(value for given in values.values() for value in given)
    return {name: given for name, given in values.items() if any(n_columns[v] > 1 for v in given)}


def _melted(table: Table, position: int | None, workers: Mapping[str, Column]) -> Table:
    name, names = table.title, list(workers)
    row, who = np.nonzero(np.stack([column.is_valid() for column in workers.values()], axis=1))
    n_rows = len(next(iter(workers.values())))
    tasks = range(n_rows) if position is None else table.read([position])[0].to_pylist()
    n_repeated = n_rows - len(set(tasks))
    if n_repeated:
        raise InputError("wide-task-twice", table=name, n=n_repeated)
    counts = {"n_cells": n_rows * len(names), "n_workers": len(names), "n_kept": len(row)}
    note("wide-read", table=name, n_empty=n_rows * len(names) - len(row), **counts)
    n_idle = n_rows - len(np.unique(row))
    if n_idle:
        note("wide-idle-tasks", table=name, n=n_idle)
    answers = [column.to_pylist() for column in workers.values()]
    columns = {
        "task": [tasks[i] for i in row],
        "worker": [names[j] for j in who],
        "label": [answers[j][i] for i, j in zip(row, who, strict=True)],
    }
    return arrays(columns, Source(name, lambda at: table.source.where(int(row[at]))))
