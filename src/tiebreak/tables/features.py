"""Features: what is known of tasks themselves, as numbers or as one text each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiebreak.data.ids import MISSING, Ids, as_numbers, as_text, encode
from tiebreak.errors import InputError, OptionError, note
from tiebreak.tables import columns as schemas
from tiebreak.tables.columns import chosen_column, find_columns, squashed
from tiebreak.tables.plain import open_source
from tiebreak.tables.table import read_stripped, to_arrow
from tiebreak.wording import NOWHERE

SHOWN = 3  # tasks named in a message
LEAST_IDS = 20  # tasks: whole numbers that differ in all of them look like ids


@dataclass(frozen=True, eq=False)
class Features:
    """One row a task: numbers, an array or sparse matrix (n_tasks, n_columns); or a text each."""

    tasks: Ids
    values: Any
    columns: tuple[str, ...] = ()

    @property
    def is_text(self) -> bool:
        return bool(self.values.ndim == 1)

    def on(self, tasks: Ids) -> Any:
        """Return the rows of these tasks; each must have one."""
        at = self.tasks.codes(tasks)
        without = np.flatnonzero(at == MISSING)
        if len(without):
            first = list(tasks.take(without[:SHOWN]))
            raise InputError("tasks-without-features", n=len(without), tasks=first, of=len(tasks))
        return self.values[at]


def read_features(
    source: Any,
    *,
    columns: Mapping[str, object] | None = None,
    chosen: Sequence[str] | None = None,
    tasks: Any = None,
) -> Features:
    """Read features of tasks: numbers, or one text each.

    `source` is a table with the column `task` beside columns of numbers or one of text (a path, a
    frame, a dictionary of columns), a mapping of task to its row or text, or a pair (tasks, array
    or sparse matrix); a file .npy has rows alone, of the `tasks` given. `chosen` columns are used;
    None: all but the task.

    >>> read_features({"task": ["a", "b"], "loud": [0.5, 1.0], "fast": [3, 4]}).values.tolist()
    [[0.5, 3.0], [1.0, 4.0]]
    >>> read_features({"a": "A cat.", "b": "Two dogs."}).is_text
    True
    """
    if isinstance(source, Features):
        return source
    names: tuple[str, ...] = ()
    where = NOWHERE
    if str(source).endswith(".npy"):
        if tasks is None:
            raise OptionError("npy-without-tasks", file=str(source))
        source = (tasks, np.load(source, allow_pickle=False))
    elif isinstance(source, Mapping) and not any(map(_names_tasks, source)):
        source = (list(source), _rows(list(source.values())))
    if isinstance(source, tuple) and len(source) == 2 and hasattr(source[1], "shape"):
        task, values = to_arrow("task", source[0]), source[1]
        values = values.tocsr() if hasattr(values, "tocsr") else np.asarray(values)
        allowed = {1: "OU", 2: "biuf"}.get(values.ndim, "")  # texts, or rows of numbers
        if values.dtype.kind not in allowed or len(task) != values.shape[0]:
            raise InputError("features-no-matrix")
    else:
        table = open_source(source, None, schemas.FEATURES).table
        at = find_columns(table, schemas.FEATURES, columns)["task"]
        places = [i for i in range(len(table.names)) if i != at]
        if chosen is not None:
            found = (chosen_column(table, schemas.FEATURES, "features", each) for each in chosen)
            places = [i for i in found if i != at]
        task, *read = read_stripped(table, [at, *places])
        names, where = tuple(table.names[i] for i in places), table.source
        values = _values_of(dict(zip(names, read, strict=True)), table.title)
    code, ids = encode(task)
    if not len(ids) or (code == MISSING).any():
        first_missing = int((code == MISSING).argmax())
        raise InputError("features-without-task", where=where.where(first_missing))
    _check(task, values, names)
    first = np.unique(code, return_index=True)[1]
    twice = np.unique((values != values[first[code]]).nonzero()[0])
    if len(twice):
        row = int(twice[0])
        both = where.where(int(first[code[row]])), where.where(row)
        raise InputError("features-twice", task=ids[int(code[row])], where=both)
    return Features(ids, values[first], names)


def _names_tasks(key: object) -> bool:
    name = squashed(str(key))
    return name == "task" or name in schemas.TASK.others | schemas.TASK.weak


def _rows(rows: list[Any]) -> Any:
    """Return texts, or rows of numbers, as an array."""
    if rows and all(isinstance(each, str) for each in rows):
        return np.array(rows, dtype=object)
    try:
        return np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("features-no-matrix") from None


def _values_of(read: dict[str, Any], title: str) -> Any:
    """Return columns as numbers, or the one of text; where most is no number, it is text."""
    if not read:
        raise InputError("no-features", table=title)
    plain = [each.cast("int8") if str(each.type) == "bool" else each for each in read.values()]
    numbers = [as_numbers(each) for each in plain]
    texts = [
        name
        for name, (found, is_given) in zip(read, numbers, strict=True)
        if np.isnan(found[is_given]).sum() > 0.5 * is_given.sum()
    ]
    if texts and len(read) > 1:
        raise InputError("text-among-numbers", table=title, texts=texts, n=len(read))
    if texts:
        return np.array([each or "" for each in as_text(plain[0]).to_pylist()], dtype=object)
    return np.column_stack([found for found, _ in numbers])


def _check(task: Any, values: Any, names: tuple[str, ...]) -> None:
    """Refuse numbers that are missing or infinite; say which columns look like ids."""
    if values.ndim == 1:
        like_ids = list(names) if list(values) == task.to_pylist() else []
    elif hasattr(values, "tocoo"):
        entries, like_ids = values.tocoo(), []
        is_bad = ~np.isfinite(entries.data)
        bad = np.column_stack([entries.row[is_bad], entries.col[is_bad]])
    else:
        bad = np.argwhere(~np.isfinite(values))
        whole = [i for i, each in enumerate(values.T) if (each == np.floor(each)).all()]
        alike = [i for i in whole if len(np.unique(values[:, i])) == len(values) >= LEAST_IDS]
        like_ids = [names[i] if names else str(i) for i in alike]
    if values.ndim == 2 and len(bad):
        row, column = bad[0].tolist()
        name = names[column] if names else str(column)
        raise InputError("feature-not-finite", column=name, task=task[row].as_py(), n=len(bad))
    if like_ids:
        note("features-like-ids", columns=like_ids)
