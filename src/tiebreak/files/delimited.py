"""Delimited text: CSV and TSV. Every field is text, and only an empty field is missing."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tiebreak.errors import InputError
from tiebreak.files.content import (
    BYTE_ORDER_MARK,
    Content,
    Format,
    not_text,
    open_text,
    source_of,
)
from tiebreak.files.table import Table
from tiebreak.ids import Column

if TYPE_CHECKING:
    import pyarrow as pa

DELIMITERS = (",", "\t", ";", "|")
BLOCK_SIZE = 1 << 22
LARGE = 1 << 26  # bytes; a smaller file is read at once
HEAD = 1 << 16
STRADDLING = "straddl"  # in what Arrow says of a record longer than a block
TOO_LONG = "field limit"  # in what the csv module says of a field without an end
UNCLOSED = "a quote is opened that is never closed"


class Header(NamedTuple):
    """The first record that is not blank, and the offset at which the rows begin."""

    names: list[str]
    end: int


def delimited_table(content: Content, form: Format) -> Table:
    """Make a table of a CSV or TSV file; columns are parsed when they are asked for."""
    text_start = 3 if content.data[:3] == BYTE_ORDER_MARK else 0
    header, delimiter = _header(content, text_start, ("\t",) if form == "tsv" else DELIMITERS)

    def load(positions: Sequence[int]) -> list[Column]:
        return _load(content, header, delimiter, positions)

    def stream(positions: Sequence[int]) -> Iterator[Sequence[Column]]:
        return _stream(content, header, delimiter, positions)

    return Table(
        names=tuple(header.names),
        load=load,
        source=source_of(content, partial(line_of_record, delimiter), n_header=1),
        has_header=True,
        stream=stream if len(content.data) >= LARGE else None,
    )


def records(
    text: Iterator[str], delimiter: str, *, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    r"""Yield the first line and the fields of each record; blank lines are no records.

    >>> list(records(iter(["a,b\n", "\n", '"x\n', 'y",z\n']), ","))
    [(1, ['a', 'b']), (3, ['x\ny', 'z'])]
    """
    reader = csv.reader(text, delimiter=delimiter, strict=strict)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise BrokenRecord(line, str(error)) from None


class BrokenRecord(InputError):
    """A record whose quotes do not close; it starts on `line`."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def line_of_record(delimiter: str, text: Iterator[str], row: int) -> int:
    """Return the line on which a row starts; the header is no row."""
    for number, (line, _) in enumerate(records(text, delimiter)):
        if number == row + 1:
            return line
    raise InputError("There is no such row.")


def _header(content: Content, start: int, delimiters: Sequence[str]) -> tuple[Header, str]:
    """Read the header with the delimiter that splits it into the most columns."""
    found = {d: header for d in delimiters if (header := _header_by(content, start, d)) is not None}
    if not found:
        if b'"' in bytes(content.data[start : start + csv.field_size_limit()]):
            raise InputError(f"{content.name}, line 1: {UNCLOSED}.")
        raise InputError(
            f"{content.name}, line 1: more than {csv.field_size_limit():,} characters without a "
            "comma, tab, semicolon or '|': this is no table."
        )
    best = max(found, key=lambda d: len(found[d].names))  # the first of equals: a comma
    return found[best], best


def _header_by(content: Content, start: int, delimiter: str) -> Header | None:
    """Read the header as a delimiter splits it; None where one field has no end."""
    size = HEAD
    while True:
        # Latin-1 keeps one character per byte, so that characters consumed are bytes consumed.
        head = bytes(content.data[start : start + size]).decode("latin-1")
        try:
            fields, consumed = _first_record(head, delimiter)
        except BrokenRecord as broken:
            if TOO_LONG in str(broken):
                return None
            raise InputError(f"{content.name}, line {broken.line}: {UNCLOSED}.") from None
        if consumed < len(head) or start + len(head) >= len(content.data):
            break
        size *= 8
    try:
        names = [field.encode("latin-1").decode() for field in fields]
    except UnicodeDecodeError:
        raise not_text(content) from None
    return Header(names, start + consumed)


def _first_record(head: str, delimiter: str) -> tuple[list[str], int]:
    stream = io.StringIO(head, newline="")
    consumed = 0

    def counted() -> Iterator[str]:
        nonlocal consumed
        for line in stream:
            consumed += len(line)
            yield line

    for _, fields in records(counted(), delimiter):
        return fields, consumed
    return [], consumed


def _load(
    content: Content, header: Header, delimiter: str, positions: Sequence[int]
) -> list[Column]:
    import pyarrow as pa

    if header.end == len(content.data):
        return [pa.array([], pa.string()) for _ in positions]
    if _has_odd_quotes(content.data):
        _refuse_broken_records(content, delimiter, None)
    form = Form(_body(content, header), len(header.names), delimiter, positions)
    try:
        table = form.parse(BLOCK_SIZE)
    except pa.ArrowInvalid as error:
        if STRADDLING not in str(error):
            raise _unreadable(content, header, delimiter, error) from None
        table = form.parse(form.body.size + 1)  # one record is longer than a block
    return [table.column(str(i)) for i in positions]


def _stream(
    content: Content, header: Header, delimiter: str, positions: Sequence[int]
) -> Iterator[Sequence[Column]]:
    """Yield pieces of some columns; a record longer than a block makes one piece of the rest."""
    import pyarrow as pa

    if _has_odd_quotes(content.data):
        _refuse_broken_records(content, delimiter, None)
    form = Form(_body(content, header), len(header.names), delimiter, positions)
    n_rows = 0
    try:
        for batch in form.open(BLOCK_SIZE):
            n_rows += batch.num_rows
            yield [batch.column(str(i)) for i in positions]
    except pa.ArrowInvalid as error:
        if STRADDLING not in str(error):
            raise _unreadable(content, header, delimiter, error) from None
        rest = form.parse(form.body.size + 1).slice(n_rows)
        yield [rest.column(str(i)) for i in positions]


def _body(content: Content, header: Header) -> pa.Buffer:
    """Return the rows, with the line end before them: Arrow skips it, and would drop a U+FEFF."""
    import pyarrow as pa

    return pa.py_buffer(content.data).slice(header.end - 1)


class Form(NamedTuple):
    """How to read fields as text, whatever they look like; empty ones are marked later."""

    body: pa.Buffer
    width: int
    delimiter: str
    positions: Sequence[int]

    def parse(self, block_size: int) -> pa.Table:
        """Read all rows."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        return arrow_csv.read_csv(pa.BufferReader(self.body), *self._options(block_size))

    def open(self, block_size: int) -> pa.RecordBatchReader:
        """Read rows block by block."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        return arrow_csv.open_csv(pa.BufferReader(self.body), *self._options(block_size))

    def _options(self, block_size: int) -> tuple[Any, Any, Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        wanted = [str(i) for i in self.positions]
        names = [str(i) for i in range(self.width)]
        return (
            arrow_csv.ReadOptions(column_names=names, block_size=block_size),
            arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted
            ),
        )


def _unreadable(content: Content, header: Header, delimiter: str, error: Exception) -> InputError:
    """Say what Arrow could not read, and on which line."""
    if "UTF8" in str(error):
        return not_text(content)
    _refuse_broken_records(content, delimiter, len(header.names))
    return InputError(f"{content.name} cannot be read as CSV: {error}.")


def _has_odd_quotes(data: memoryview) -> bool:
    """Tell whether a quote may be open at the end, which would swallow rows in silence."""
    chunks = range(0, len(data), BLOCK_SIZE)
    return sum(bytes(data[at : at + BLOCK_SIZE]).count(b'"') for at in chunks) % 2 == 1


def _refuse_broken_records(content: Content, delimiter: str, width: int | None) -> None:
    """Raise InputError for the first row of another width, or for a quote never closed."""
    try:
        with open_text(content) as text:
            for line, fields in records(text, delimiter, strict=True):
                if width is not None and len(fields) != width:
                    raise InputError(_ragged(content.name, line, fields, width))
    except BrokenRecord as broken:
        if "unexpected end" in str(broken):
            raise InputError(
                f"{content.name}, line {broken.line}: {UNCLOSED}, so the rows after it would be "
                'lost.\nClose the quote; a quote inside a quoted field is written twice: "".'
            ) from None
        if width is not None:
            raise InputError(f"{content.name}, line {broken.line}: {broken}.") from None


def _ragged(name: str, line: int, fields: list[str], width: int) -> str:
    shown = ", ".join(map(repr, fields))
    return (
        f"{name}, line {line}: expected {width} columns, got {len(fields)}: "
        f"{shown if len(shown) <= 80 else shown[:79] + '…'}\n"
        "Complete the row; a field that holds the delimiter must stand in double quotes."
    )
