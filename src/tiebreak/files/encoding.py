"""Encoding: columns as the bytes of CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from tiebreak.errors import InputError
from tiebreak.files.content import Format
from tiebreak.ids import Column, Ids, as_list, is_arrow, is_missing, is_text
from tiebreak.kernels.layout import Codes

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1 << 16  # rows turned into bytes at a time
GROUP = 1 << 20  # rows of a group in Parquet
FORMULA = r"^[=+\-@\t\r]"  # what spreadsheets take for the start of a formula
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_SAFE_CELLS: ContextVar[bool] = ContextVar("safe cells", default=False)


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """A column given by names and codes; its values are made some at a time."""

    names: Ids
    codes: Codes

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice) -> Column:
        return self.names.take(self.codes[rows])


@contextmanager
def safe_cells() -> Iterator[None]:
    """Defuse, in CSV and TSV written meanwhile, texts that a spreadsheet would run."""
    token = _SAFE_CELLS.set(True)
    try:
        yield
    finally:
        _SAFE_CELLS.reset(token)


def encoded(columns: Mapping[str, Column], form: Format) -> Iterator[bytes]:
    """Yield the bytes of a text format, piece by piece."""
    try:
        if form == "jsonl":
            yield from _json_lines(columns)
        else:
            yield from _delimited(columns, "\t" if form == "tsv" else ",")
    except UnicodeEncodeError as error:
        raise InputError(_half_character(error)) from None


def write_parquet(sink: BinaryIO, columns: Mapping[str, Column]) -> None:
    """Write typed columns; values that no column can hold together are written as text."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        typed = {name: _typed(column) for name, column in columns.items()}
    except UnicodeEncodeError as error:
        raise InputError(_half_character(error)) from None
    tables = (pa.table(dict(zip(typed, group, strict=True))) for group in _pieces(typed, GROUP))
    first = next(tables, None)
    if first is None:  # no rows: a file that says the names and types
        first = pa.table({name: column[:0] for name, column in typed.items()})
    with parquet.ParquetWriter(sink, first.schema, **_encodings(first.schema)) as writer:
        for table in itertools.chain([first], tables):
            writer.write_table(table)


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Say how columns of Parquet are encoded.

    Ids that are numbers, and probabilities, hardly ever repeat: to look for a dictionary costs
    labels a third of their time. Numbers in order are small differences, and take half the bytes.
    """
    import pyarrow as pa

    whole = [field.name for field in schema if pa.types.is_integer(field.type)]
    real = [field.name for field in schema if pa.types.is_floating(field.type)]
    return {
        "use_dictionary": [name for name in schema.names if name not in {*whole, *real}],
        "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
    }


def _pieces(columns: Mapping[str, Column], size: int) -> Iterator[list[Column]]:
    """Yield all columns, some rows at a time."""
    n_rows = max(map(len, columns.values()))
    for start in range(0, n_rows, size):
        yield [column[start : start + size] for column in columns.values()]


def _delimited(columns: Mapping[str, Column], delimiter: str) -> Iterator[bytes]:
    import pyarrow as pa

    is_safe = _SAFE_CELLS.get()
    names = pa.array(list(columns), pa.large_string())
    header = _quoted(_defused(names) if is_safe else names, delimiter)
    yield (delimiter.join(header.to_pylist()) + "\n").encode()
    # A row of one empty field would be a blank line, which readers skip.
    nothing = '""' if len(columns) == 1 else ""
    for piece in _pieces(columns, BATCH):
        texts = [_defused(_as_text(c)) if is_safe else _as_text(c) for c in piece]
        yield _lines([_quoted(text, delimiter) for text in texts], delimiter, nothing)


def _json_lines(columns: Mapping[str, Column]) -> Iterator[bytes]:
    encode = json.JSONEncoder(ensure_ascii=False).encode
    for piece in _pieces(columns, BATCH):
        rows = zip(*(map(_json_value, _values(column)) for column in piece), strict=True)
        objects = (encode(dict(zip(columns, row, strict=True))) for row in rows)
        yield "".join(f"{line}\n" for line in objects).encode()


def _lines(fields: list[pa.Array], delimiter: str, nothing: str) -> bytes:
    """Join fields into lines; no Python object is made of them.

    The csv module takes twice the time for labels (1.05 s against 0.52 s for a million).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    lines = pc.binary_join_element_wise(
        *fields,
        pa.scalar(delimiter, pa.large_string()),
        null_handling="replace",
        null_replacement=nothing,
    )
    end = pa.scalar("\n", pa.large_string())
    empty = pa.scalar("", pa.large_string())
    ended = pc.binary_join_element_wise(lines, empty, end)  # a line, the end, nothing
    _, offsets, data = ended.buffers()
    n_bytes = int(np.frombuffer(offsets, dtype=np.int64)[len(ended)])
    return bytes(memoryview(data)[:n_bytes])


def _defused(texts: pa.Array) -> pa.Array:
    """Put an apostrophe before texts that a spreadsheet would run; a number is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    runs = pc.and_not(
        pc.match_substring_regex(texts, FORMULA), pc.match_substring_regex(texts, NUMBER)
    )
    mark, nothing = (pa.scalar(text, pa.large_string()) for text in ("'", ""))
    return pc.if_else(runs, pc.binary_join_element_wise(mark, texts, nothing), texts)


def _quoted(texts: pa.Array, delimiter: str) -> pa.Array:
    """Put quotes around the fields that need them, and only those."""
    import pyarrow as pa
    import pyarrow.compute as pc

    needs_quotes = pc.match_substring_regex(texts, f'["\r\n{delimiter}]')
    if not pc.any(needs_quotes).as_py():
        return texts
    quote, nothing = (pa.scalar(text, pa.large_string()) for text in ('"', ""))
    doubled = pc.replace_substring(texts, '"', '""')
    in_quotes = pc.binary_join_element_wise(quote, doubled, quote, nothing)
    return pc.if_else(needs_quotes, in_quotes, texts)


def _as_text(column: Column) -> pa.Array:
    """Write values as Python would; computed numbers (NumPy) in the shortest exact form."""
    import pyarrow as pa

    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        return pa.array(column, from_pandas=True).cast(pa.large_string())
    if is_arrow(column) and (pa.types.is_integer(column.type) or is_text(column.type)):
        joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return joined.cast(pa.large_string())
    return pa.array([_text(value) for value in _values(column)], pa.large_string())


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return None if is_missing(value) else str(value)


def _json_value(value: Any) -> Any:
    """Keep numbers that JSON has; write anything else as text, and what is missing as null."""
    is_number = isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_number else _text(value)


def _typed(column: Column) -> pa.Array | CodedColumn:
    import pyarrow as pa

    if isinstance(column, CodedColumn):
        return CodedColumn(Ids(_typed(column.names.values)), column.codes)
    if is_arrow(column):
        return column
    if isinstance(column, np.ndarray) and column.dtype.kind in "iufbU":
        return pa.array(column, from_pandas=True)
    values = [None if is_missing(value) else value for value in _values(column)]
    try:
        made = pa.array(values)
    except (pa.ArrowException, OverflowError):
        made = None
    if made is None or pa.types.is_nested(made.type):
        return pa.array([_text(value) for value in values], pa.string())
    return made


def _values(column: Column) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else as_list(column)


def _half_character(error: UnicodeEncodeError) -> str:
    around = error.object[max(0, error.start - 30) : error.start + 30]
    return (
        f"The text {around!r} holds half a character (a lone surrogate), which UTF-8 "
        "cannot hold. Correct this id or label."
    )
