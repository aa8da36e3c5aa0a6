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

from tiebreak.errors import InputError, OptionError, note
from tiebreak.files.columns import TASK, squashed
from tiebreak.files.formats.protocol import Imported
from tiebreak.files.formats.rows import RecordFinder, RecordSource, table_of
from tiebreak.files.table import Table
from tiebreak.ids import as_list
from tiebreak.wording import agreeing, counted


def from_array(source: np.ndarray[Any, Any]) -> Imported:
    """Melt an N × M array: tasks and workers are numbered from 0, NaN is no answer."""
    if source.ndim != 2 or not source.size:
        raise InputError(f"A wide array has tasks × workers; got shape {source.shape}.")
    values = {str(j): source[:, j].tolist() for j in range(source.shape[1])}
    return _melted(list(range(len(source))), values, "The array", "row")


def from_table(
    table: Table, columns: Mapping[str, object], chosen: Sequence[str] | None = None
) -> Imported:
    """Melt a table; the column of tasks is named, known by its name, or the first of a file.

    `chosen` are the columns of workers; None: all others are.
    """
    position = _task_position(table, columns)
    loaded = table.read(list(range(len(table.names))))
    lists = [as_list(column) for column in loaded]
    tasks = list(range(len(lists[0]))) if position is None else lists[position]
    workers = {
        name: values
        for i, (name, values) in enumerate(zip(table.names, lists, strict=True))
        if i != position
    }
    if len(workers) != len(table.names) - (position is not None):
        raise InputError(f"{table.title}: two columns have the same name. Rename one of them.")
    if not workers:
        raise InputError(f"{table.title} is not wide: it has no column beside the task.")
    if chosen is not None:
        workers = {name: workers[name] for name in _checked(chosen, workers, table)}
    else:
        _note_strangers(workers, table.title)
    noun = "row" if table.source.line_of is None else "line"
    return _melted(tasks, workers, table.title, noun)


def _checked(chosen: Sequence[str], workers: Mapping[str, Any], table: Table) -> Sequence[str]:
    """Return the columns that were chosen as workers; refuse those that cannot be."""
    if isinstance(chosen, str):
        raise OptionError(f"worker_columns takes a list of names; got {chosen!r}.")
    for name in chosen:
        if name not in workers:
            what = "takes" if name in table.names else "has no"
            whose = " as the task, not as a worker" if name in table.names else ""
            raise InputError(
                f"{table.title} {what} column {name!r}{whose}. Its columns are "
                f"{', '.join(map(repr, table.names))}."
            )
    return chosen


def _note_strangers(workers: Mapping[str, list[Any]], title: str) -> None:
    """Say which columns have no value that another has: texts and dates are no workers."""
    values = {name: {v for v in column if not _is_gap(v)} for name, column in workers.items()}
    n_columns = Counter(value for given in values.values() for value in given)
    alone = [
        name
        for name, given in values.items()
        if given and all(n_columns[value] == 1 for value in given)
    ]
    others = [name for name in workers if name not in alone]
    if not alone or len(others) < 2:
        return  # nobody agrees with anybody: who is to say which column is strange
    noun = "Column" if len(alone) == 1 else "Columns"
    note(
        f"{title}: {noun} {', '.join(map(repr, alone))} {agreeing(len(alone), 'share')} no label "
        f"with the others. If {'it is no worker' if len(alone) == 1 else 'they are no workers'}, "
        f"name those that are: worker_columns={others!r} (--worker-columns {','.join(others)})."
    )


def _task_position(table: Table, columns: Mapping[str, object]) -> int | None:
    """Return which column holds the task; None where rows are numbered instead."""
    wanted = columns.get("task")
    if wanted is not None:
        if str(wanted) not in table.names:
            raise InputError(f"{table.title} has no column {str(wanted)!r} for the task.")
        return table.names.index(str(wanted))
    for words in ({TASK.name}, TASK.others, TASK.weak):
        for i, name in enumerate(table.names):
            if squashed(name) in words:
                return i
    return 0 if table.has_header else None


def _melted(tasks: list[Any], by_worker: Mapping[str, list[Any]], name: str, noun: str) -> Imported:
    repeated = len(tasks) - len(set(tasks))
    if repeated:
        raise InputError(
            f"{name}: {counted(repeated, 'row')} {agreeing(repeated, 'repeat')} a task, but a wide "
            "table has one row per task. Name the column of tasks with columns={'task': …} "
            "(--columns task=…)."
        )
    rows = [
        (i, worker, _whole(values[i]))
        for i in range(len(tasks))
        for worker, values in by_worker.items()
        if not _is_gap(values[i])
    ]
    n_cells = len(tasks) * len(by_worker)
    cells = f"{counted(n_cells, 'cell')} of {counted(len(by_worker), 'worker')}"
    note(f"{name} (wide): read {cells}, kept {len(rows):,}; {n_cells - len(rows):,} empty.")
    n_idle = len(tasks) - len({i for i, _, _ in rows})
    if n_idle:
        note(
            f"{name}: {counted(n_idle, 'task')} {agreeing(n_idle, 'have')} no answer, and "
            f"{agreeing(n_idle, 'are')} left out. The same table as tasks= (--tasks) keeps all."
        )
    columns = {
        "task": [tasks[i] for i, _, _ in rows],
        "worker": [worker for _, worker, _ in rows],
        "label": [label for _, _, label in rows],
    }
    first_line = 2 if noun == "line" else 1
    finder = RecordFinder(noun, np.array([i + first_line for i, _, _ in rows], dtype=np.int64))
    return Imported(table_of(columns, RecordSource(name, finder)), {}, is_wide=True)


def _is_gap(value: Any) -> bool:
    return value is None or value == "" or value != value


def _whole(value: Any) -> Any:
    """Undo what a gap does to a column of whole numbers: 3.0 is 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
