"""JSON records without a format of their own: a table, whose columns are found by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from tiebreak.errors import InputError
from tiebreak.files.formats.protocol import Head, Records
from tiebreak.files.formats.rows import RecordFinder, RecordSource, table_of
from tiebreak.files.table import Table
from tiebreak.ids import Column
from tiebreak.wording import Source

LARGE = 1 << 28  # bytes; a smaller file is read at once
PIECE = 1 << 17  # records of a large file that are Python objects at a time


def table_of_json(records: Records, name: str) -> Table:
    """Make a table of objects, None where an object lacks a key."""
    columns: dict[str, list[Any]] = {}
    n_rows = 0
    for _, record in records():
        for key in [key for key in record if key not in columns]:
            columns[key] = [None] * n_rows
        for key, values in columns.items():
            values.append(record.get(key))
        n_rows += 1
    finder = RecordFinder("record", np.arange(1, n_rows + 1, dtype=np.int64))
    return table_of(columns, RecordSource(name, finder))


def large_table_of_json(records: Records, head: Head, name: str) -> Table:
    """Make a table that reads records when they are asked for, and keeps the wanted keys only.

    The keys and types are those of the first record, as pieces must be alike.
    """

    def stream(positions: Sequence[int]) -> Iterator[Sequence[Column]]:
        return _pieces(records, [head.keys[i] for i in positions], head)

    def load(positions: Sequence[int]) -> list[Column]:
        import pyarrow as pa

        pieces = zip(*stream(positions), strict=True)
        return [pa.chunked_array(column) for column in pieces]

    return Table(head.keys, load, Source(name), stream=stream)


def _pieces(records: Records, keys: list[str], head: Head) -> Iterator[list[Column]]:
    import pyarrow as pa

    types = [_type_of(head.record[key]) for key in keys]
    source = records()
    while piece := list(islice(source, PIECE)):
        columns = []
        for key, kind in zip(keys, types, strict=True):
            values = [record.get(key) for _, record in piece]
            try:
                columns.append(pa.array(values, kind))
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                place, record = next(
                    (at, one) for at, one in piece if not _fits(one.get(key), kind)
                )
                raise InputError(
                    f"{place}: {key!r} is {record.get(key)!r}, not {kind} as in the first record. "
                    "Give all of them one type."
                ) from None
        yield columns


def _type_of(value: Any) -> Any:
    import pyarrow as pa

    known = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    return known.get(type(value), pa.string())


def _fits(value: Any, kind: Any) -> bool:
    import pyarrow as pa

    try:
        pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True
