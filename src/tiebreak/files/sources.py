"""Sources: whatever the caller has (path, frame, columns, rows) becomes a table.

The tables of one job are opened together, so that one list of column names serves them all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tiebreak.errors import InputError, OptionError, note
from tiebreak.files.columns import (
    GOLD,
    LABELS,
    LINKS,
    SELECTION,
    SYSTEMS,
    TASKS,
    TEXTS,
    WITH_EXTRAS,
    Schema,
    find_columns,
    has_column,
)
from tiebreak.files.content import (
    BYTE_ORDER_MARK,
    PATTERN_SIGNS,
    Content,
    TableFiles,
    format_of,
    is_packed,
    read_content,
)
from tiebreak.files.delimited import delimited_table
from tiebreak.files.table import Table, stripped
from tiebreak.ids import Column, is_arrow

ColumnNames = Mapping[str, object]
Read = TypeVar("Read")

SCHEMAS = {
    "responses": WITH_EXTRAS,
    "labels": LABELS,
    "links": LINKS,
    "gold": GOLD,
    "given": GOLD,
    "truth": GOLD,
    "tasks": TASKS,
    "among": TASKS,
    "texts": TEXTS,
    "systems": SYSTEMS,
    "selection": SELECTION,
}
OWN_COLUMNS = frozenset(  # no tool has a file of these columns alone
    ("task", "worker", "label", "weight", "run", "order", "group", "confidence")
)
DELIMITER = re.compile("[,\t;|]")
LONGEST_HEADER = 1 << 10
MATRIX_VALUES = 20  # distinct whole numbers, at most, in each column of a matrix of labels


def as_table(
    source: Any, row_names: Sequence[str], n_needed: int, format: str | None = None
) -> Table:
    """Make a table of files, "-", an open file, a frame, columns by name, or rows.

    `row_names` name the parts of a bare row; the first `n_needed` of them must be there. What is
    a table already stays as it is.
    """
    source = resolved(source)
    if isinstance(source, Table):
        return source
    if isinstance(source, Content):
        return _from_content(source, format)
    if isinstance(source, TableFiles):
        from tiebreak.files.chained import chained_table

        return chained_table(source, lambda content: _from_content(content, format))
    if is_file(source):
        return _from_content(read_content(source), format)
    if isinstance(source, Mapping):
        return columns_table(source)
    frame = _from_frame(source)
    if frame is not None:
        return frame
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        raise InputError(
            f"A {type(source).__name__} cannot be read as a table. Pass a path, a frame (pandas, "
            "polars, pyarrow, DuckDB), a dictionary of columns or a list of rows."
        )
    if isinstance(source, np.ndarray):
        _note_matrix(source)
    rows = source.tolist() if isinstance(source, np.ndarray) else list(source)
    return _from_rows(rows, row_names, n_needed)


def is_file(source: Any) -> bool:
    """Tell a path or an open file; a table can be read too, but by columns."""
    if isinstance(source, Table):
        return False
    return isinstance(source, str | os.PathLike) or hasattr(source, "read")


def names_several(source: Any) -> bool:
    """Tell a list of files, a folder, a pattern or an address: not one file, but perhaps several.

    A file that is called as a pattern may be is that file.
    """
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(each, str | os.PathLike) for each in source)
    if not isinstance(source, str | os.PathLike):
        return False
    name = os.fspath(source)
    if not name:
        raise OptionError("The name of a file is empty. Name one; '.' is this folder.")
    if "://" in name or Path(name).is_dir():
        return not is_packed(name)
    return any(sign in name for sign in PATTERN_SIGNS) and not os.path.lexists(name)


def resolved(source: Any) -> Any:
    """Return what a list, a folder, a pattern or an address names; all else as it is.

    That is a path, the content of a file that lies elsewhere, or several files (`TableFiles`).
    """
    is_iterator = isinstance(source, Iterator) and not hasattr(source, "__arrow_c_stream__")
    if is_iterator and not is_file(source):  # such as folder.glob("*.csv")
        source = list(source)
    if not names_several(source):
        return source
    from tiebreak.files.shards import open_source

    return open_source(source)


def open_own(source: Any) -> Any:
    """Return the table of a delimited file that has columns of our own names only.

    Such a file is no tool's, so that no format need be asked. Any other file is returned open, as
    standard input can be read once only; what is no file stays as it is.
    """
    if is_file(source):
        source = read_content(source)
    if isinstance(source, Content) and own_columns(source):
        return _from_content(source, None)
    return source


def own_columns(content: Content) -> tuple[str, ...]:
    """Return the columns of a delimited file that has our own names only; nothing of all else."""
    line, end, _ = bytes(content.data[:LONGEST_HEADER]).partition(b"\n")
    text = line.removeprefix(BYTE_ORDER_MARK).decode("utf-8", errors="replace")
    names = tuple(name.strip() for name in DELIMITER.split(text))
    return names if end and OWN_COLUMNS.issuperset(names) else ()


def load_table(
    source: Any,
    schema: Schema,
    columns: ColumnNames | None,
    format: str | None,
    *,
    allow_empty: bool = False,
) -> tuple[Table, dict[str, Column]]:
    """Make a table of the source and read the columns of its schema."""
    table = as_table(source, schema.names, len(schema.needed), format)
    positions = find_columns(table, schema, columns)
    read = stripped(table, table.read(list(positions.values()), allow_empty=allow_empty))
    return table, dict(zip(positions, read, strict=True))


class OpenTable(NamedTuple):
    """A table, or packed responses, with the names that the caller gave its columns."""

    source: Any
    columns: dict[str, object]
    options: dict[str, Any] = {}  # noqa: RUF012 - of the reader, such as a format; never changed

    def read(self, reader: Callable[..., Read], **options: Any) -> Read:
        """Read the table with one of the readers of this room."""
        return reader(self.source, columns=self.columns, **self.options, **options)


def open_tables(sources: Mapping[str, Any], columns: Mapping[str, object]) -> dict[str, OpenTable]:
    """Open tables, by what they hold (see SCHEMAS), and share out the names of columns.

    A name goes to each table that has a use for it and a column of that name. One that no table
    has goes to the first that could use it, whose reader then says what is wrong. Sources that
    are None are left out; a key that no table can use is refused.

    Examples
    --------
    >>> responses = {"item": ["a"], "worker": ["ann"], "label": ["cat"]}
    >>> gold = {"task": ["a"], "truth": ["cat"]}
    >>> opened = open_tables({"responses": responses, "gold": gold}, {"task": "item"})
    >>> opened["responses"].columns, opened["gold"].columns
    ({'task': 'item'}, {})
    """
    opened = {
        what: OpenTable(source if is_packed(source) else _open(source, SCHEMAS[what]), {})
        for what, source in sources.items()
        if source is not None
    }
    tables = {what: each for what, each in opened.items() if isinstance(each.source, Table)}
    for role, name in columns.items():
        users = [each for what, each in tables.items() if role in SCHEMAS[what].names]
        if not users:
            raise _without_use(role, tables)
        holders = [each for each in users if has_column(each.source, str(name))]
        for each in holders or users[:1]:
            each.columns[role] = name
    return opened


def _open(source: Any, schema: Schema) -> Table:
    return as_table(source, schema.names, len(schema.needed))


def _without_use(role: str, tables: Mapping[str, OpenTable]) -> OptionError:
    if not tables:
        return OptionError(
            "columns (--columns) names columns of tables; packed responses have none. Leave it out."
        )
    allowed = dict.fromkeys(name for what in tables for name in SCHEMAS[what].names)
    return OptionError.unknown("columns: the key", role, tuple(allowed))


def columns_table(columns: Mapping[Any, Column]) -> Table:
    """Make a table of columns by name."""
    values = list(columns.values())
    return Table(tuple(map(str, columns)), lambda positions: [values[i] for i in positions])


def is_column(value: object) -> bool:
    """Tell whether a value is a whole column rather than one label."""
    if isinstance(value, list | np.ndarray | range) or hasattr(value, "__arrow_c_stream__"):
        return True
    return is_arrow(value) or type(value).__module__.partition(".")[0] == "pandas"


def unfolded(source: Any, schema: Schema) -> Any:
    """Turn a mapping of task to label into columns; a mapping of columns stays as it is."""
    if is_column(source) and hasattr(source, "index") and hasattr(source, "to_frame"):
        return {"task": source.index, "label": source}  # a Series of pandas
    if not isinstance(source, Mapping):
        return source
    values = list(source.values())
    is_named = {str(key).strip().casefold() for key in source} >= set(schema.needed)
    if values and all(is_column(v) or (is_named and isinstance(v, tuple)) for v in values):
        return source
    return {"task": list(source), "label": values}


def is_table(source: Any) -> bool:
    """Tell a path, a frame or a list of objects from a plain column of ids."""
    if isinstance(source, Table | Mapping) or is_file(source):
        return True
    if isinstance(source, list) and source and isinstance(source[0], Mapping):
        return True
    return any(hasattr(source, name) for name in ("columns", "column_names", "schema"))


def _from_content(content: Content, asked: str | None) -> Table:
    form = format_of(content, asked)
    if form == "parquet":
        from tiebreak.files.parquet import parquet_table

        return parquet_table(content)
    if form == "jsonl":
        from tiebreak.files.json_lines import json_table

        return json_table(content)
    return delimited_table(content, form)


def _from_frame(source: Any) -> Table | None:
    """Make a table of a frame of any kind; None where it is not a frame."""
    kind = type(source).__module__.partition(".")[0]
    if kind == "pandas" and hasattr(source, "columns"):
        return _from_pandas(source)
    if kind == "polars" and hasattr(source, "collect_schema"):
        frame = source.collect() if hasattr(source, "collect") else source
        return Table(
            names=tuple(frame.columns),
            load=lambda positions: [frame.to_series(i) for i in positions],
            frame="polars",
        )
    if not hasattr(source, "__arrow_c_stream__"):
        return None
    import pyarrow as pa

    try:
        table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"This {type(source).__name__} is not a table: {error}.") from None
    return Table(tuple(table.column_names), lambda positions: [table.column(i) for i in positions])


def _from_pandas(frame: Any) -> Table:
    """Make a table of the columns and of the named levels of the index."""
    names = [str(name) for name in frame.columns]
    levels = [
        level
        for level, name in enumerate(frame.index.names)
        if name is not None and str(name) not in names
    ]
    level_names = [str(frame.index.names[level]) for level in levels]

    def load(positions: Sequence[int]) -> list[Column]:
        return [
            frame.iloc[:, i]
            if i < len(names)
            else frame.index.get_level_values(levels[i - len(names)])
            for i in positions
        ]

    return Table((*names, *level_names), load, frame="pandas")


def _from_rows(rows: list[Any], row_names: Sequence[str], n_needed: int) -> Table:
    if rows and all(isinstance(row, Mapping) for row in rows):
        from tiebreak.files.json_lines import table_of_records

        return columns_table(table_of_records(rows))
    wanted = ", ".join(row_names[:n_needed])
    for number, row in enumerate(rows, start=1):
        if isinstance(row, str | bytes) or not isinstance(row, Sequence):
            raise InputError(f"Row {number:,} must be a tuple ({wanted}); got {row!r}.")
        if not n_needed <= len(row) <= len(row_names):
            raise InputError(f"Row {number:,} must be ({wanted}); got {len(row)} parts: {row!r}.")
    width = max(map(len, rows), default=n_needed)
    padded = ((*row, *(None,) * (width - len(row))) for row in rows)
    columns = [list(column) for column in zip(*padded, strict=True)] or [[] for _ in range(width)]
    return columns_table(dict(zip(row_names, columns, strict=False)))


def _note_matrix(rows: np.ndarray[Any, Any]) -> None:
    """Say that a matrix of few whole numbers is read as rows of task, worker, label."""
    if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu" or not len(rows):
        return
    if all(len(np.unique(rows[:, i])) <= MATRIX_VALUES for i in range(3)):
        note(
            f"An array of shape {rows.shape} is read as rows of task, worker, label. If its "
            "columns are workers and its values labels, pass one row per answer."
        )
