"""Plain tables in which an answer holds several labels: one yes/no task of each label."""

from __future__ import annotations

import json
from typing import Any

from tiebreak.files.chained import ChainedSource
from tiebreak.files.formats import Imported, ImportOptions
from tiebreak.files.formats.protocol import RecordPlace
from tiebreak.files.formats.rows import Rows
from tiebreak.files.response_table import ResponseColumns, joined
from tiebreak.files.table import Table
from tiebreak.ids import Column, is_arrow


def split_labels(table: Table, found: ResponseColumns, options: ImportOptions) -> Imported:
    """Split the answers of a plain table; a cell of text may hold a JSON list of labels."""
    n_task = len(found.task)
    read = table.read([*found.task, *found.worker, *found.extras.values()])
    task = as_list(joined(read[:n_task]))
    worker = as_list(joined(read[n_task : n_task + len(found.worker)]))
    extras = [as_list(column) for column in read[n_task + len(found.worker) :]]
    label = as_list(table.load([found.label])[0])
    rows = Rows(table.title, "plain table", options)
    if isinstance(table.source, ChainedSource):
        rows.places = []
    for i, marks in enumerate(label):
        more = {role: values[i] for role, values in zip(found.extras, extras, strict=True)}
        name, at = table.source.origin(i)
        place = RecordPlace(name or table.title, "row", at + 1)
        rows.add(place, task[i], worker[i], _marks(marks), **more)
    return rows.finish()


def as_list(column: Column) -> list[Any]:
    """Return the values of a column as Python objects."""
    if is_arrow(column):
        return list(column.to_pylist())
    return list(column.to_list() if hasattr(column, "to_list") else column)


def _marks(cell: Any) -> Any:
    """Read a list of labels; whatever is none stays one label."""
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if not isinstance(cell, str) or not cell.startswith("["):
        return cell
    try:
        return json.loads(cell)
    except ValueError:
        return cell
