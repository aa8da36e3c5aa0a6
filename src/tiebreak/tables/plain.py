"""Plain tables: CSV and TSV, JSON and JSON lines, Parquet; several files as one.

In CSV every field is text, and only an empty one is missing. JSON and Parquet are typed.
"""

from __future__ import annotations

import csv
import io
import mmap
import re
import struct
import zipfile
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from tiebreak.data.ids import Column, is_text
from tiebreak.errors import FileError, InputError, note
from tiebreak.tables.columns import EXTRAS, PREFIX, TASK, positions_of, squashed
from tiebreak.tables.json_stream import json_records, line_of_record
from tiebreak.tables.source import (
    BYTE_ORDER_MARK,
    Content,
    RecordFinder,
    RecordPlace,
    TableFiles,
    format_of,
    not_text,
    opened,
    source_of,
    text_of,
)
from tiebreak.tables.table import (
    Table,
    arrays,
    class_names,
    columns_of,
    is_frame,
    table_of,
    to_arrow,
    values_of,
    with_class_names,
)
from tiebreak.wording import Source

DELIMITERS = (",", "\t", ";", "|")
HEADER_START = 1 << 16  # bytes; a longer header is read in a second look
BLOCK_SIZE = 1 << 22  # bytes of CSV in a piece
LARGE_CSV = 1 << 26  # bytes; a smaller file is read at once
LARGE_JSON = 1 << 28
LARGE_PARQUET = 3_000_000  # rows
LARGE_TOGETHER = 1 << 24  # bytes of several files
JSON_PIECE = 1 << 17  # records of a large file that are Python objects at a time
BATCH = 1 << 20  # rows of a piece of Parquet
TIDY = 16  # pieces, after which Arrow gives memory back
SHORT = 4  # bytes per row; with fewer, the file keeps a dictionary of its texts
STRADDLING = "straddl"  # in what Arrow says of a record longer than a block
RECORDS = 4096  # rows of Parquet that are Python objects at a time
MEMBER = "_member"  # under which key a record of an archive knows its file
ZSTANDARD = 93  # the number of the method, in a zip archive
LOCAL_HEADER = 30  # bytes before the name of a file in a zip archive
USER_FILE = re.compile(r"(?:.*/)?(?P<user>[^/]+)\.(?P<kind>jsonl|json|csv)", re.IGNORECASE)
SAMPLE_FILE = re.compile(r"samples/.*\.json")
NO_IDS = frozenset(name for names in EXTRAS.values() for name in names)  # text or numbers alike


Record = Mapping[str, Any]
KeepText = Callable[[Hashable, str], object]  # takes a task, and what to show for it
Records = Callable[[], Iterator[tuple[RecordPlace, Record]]]  # each call reads from the start


class Head(NamedTuple):
    """The beginning of a file: enough to know its format.

    `container` is "json" (a list), "document" (one object after another), "delimited", "zip" or
    "table". `keys` are the columns of a table or the keys of the first record; `record` is the
    first record, empty for delimited text.
    """

    container: str
    keys: tuple[str, ...]
    record: Record

    def has(self, *keys: str) -> bool:
        """Return whether all these keys are there."""
        return set(keys) <= set(self.keys)


class Opened(NamedTuple):
    """A file or table whose beginning was read: its records, and its columns, are read on demand.

    `head` is None where it holds no records that a format of a tool could know. `classes` are those
    that the file itself keeps, by column.
    """

    name: str
    table: Callable[[], Table]
    head: Head | None = None
    records: Records | None = None
    classes: Mapping[str, list[str]] = {}


class Found(NamedTuple):
    """An opened source, one file or several, and the format of a tool that knows it, if any does.

    `files` opens each file anew.
    """

    name: str
    first: Opened
    format: Any  # of `formats.records`
    files: Callable[[], Iterator[Opened]]

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns, or the keys of the first record, where they are known."""
        return () if self.first.head is None else self.first.head.keys


def as_table(
    source: Any, row_names: Sequence[str], n_needed: int, format: str | None = None
) -> Table:
    """Make a table of files, "-", an open file, a frame, columns by name, or rows.

    `row_names` name the parts of a bare row; the first `n_needed` of them must be there. A
    `Table` stays as it is.
    """
    source = opened(source)
    if isinstance(source, Table):
        return source
    if isinstance(source, Content):
        return open_content(source, format).table()
    if isinstance(source, TableFiles):
        return chained_table(source, lambda content: open_content(content, format).table())
    return table_of(source, row_names, n_needed)


def open_content(content: Content, asked: str | None = None) -> Opened:
    """Open one file, of the plain format that is asked for, or that its content tells."""
    if asked is None and bytes(content.data[:4]) == b"PK\x03\x04":
        archive = _open_zip(content)
        if archive is not None:
            return archive
    form = format_of(content, asked)
    if form == "parquet":
        return _open_parquet(content)
    if form == "jsonl":
        return _open_json(content)
    text = Delimited(content, form)
    return Opened(content.name, text.table, Head("delimited", tuple(text.names), {}), text.records)


def open_frame(source: Any, row_names: Sequence[str], n_needed: int) -> Opened:
    """Open what is no file; records are those of a list of objects, or of a frame with lists."""
    name = "The table"
    if isinstance(source, list) and source and all(isinstance(row, Mapping) for row in source):
        records = partial(_placed, source, name)
        head = Head("json", tuple(source[0]), source[0])
        return Opened(name, lambda: table_of(source, row_names, n_needed), head, records)
    classes = class_names(source)
    table = source if isinstance(source, Table) else None
    if table is None and is_frame(source):
        table = table_of(source, (), 0)  # once: a stream of Arrow cannot be read again
    if table is None:
        return Opened(name, lambda: table_of(source, row_names, n_needed))
    if table.source.name:  # of a file
        return Opened(table.title, lambda: table)
    (columns,) = table.pieces(range(len(table.names)))
    firsts = [values_of(column[:1]) for column in columns]
    if not all(firsts) or not any(isinstance(value, list) for (value,) in firsts):
        return Opened(name, lambda: table)
    head = Head("table", table.names, dict(zip(table.names, (v for (v,) in firsts), strict=True)))

    def rows() -> Iterator[tuple[RecordPlace, Record]]:
        lists = zip(*map(values_of, columns), strict=True)
        return _placed((dict(zip(table.names, row, strict=True)) for row in lists), name)

    return Opened(name, lambda: table, head, rows, classes)


def _placed(
    records: Iterable[Record], name: str, noun: str = "row"
) -> Iterator[tuple[RecordPlace, Record]]:
    return ((RecordPlace(name, noun, i), record) for i, record in enumerate(records, start=1))


# Delimited text


class Delimited:
    """A CSV or TSV file: its header, its delimiter, and its rows."""

    def __init__(self, content: Content, form: str = "csv") -> None:
        self.content = content
        self.start = 3 if bytes(content.data[:3]) == BYTE_ORDER_MARK else 0
        found = {}
        for mark in ("\t",) if form == "tsv" else DELIMITERS:
            header = self._header(mark)
            if header is not None:
                found[mark] = header
        if not found:
            size = csv.field_size_limit()
            is_open = b'"' in bytes(content.data[self.start : self.start + size])
            code = "quote-open" if is_open else "no-delimiter"
            raise InputError(code, file=content.name, line=1, n=size)
        self.delimiter = max(found, key=lambda mark: len(found[mark][0]))  # of equals the first
        self.names, self.end = found[self.delimiter]

    def table(self) -> Table:
        """Return the file as a table; columns are parsed when they are asked for."""
        is_large = len(self.content.data) >= LARGE_CSV
        return Table(
            tuple(self.names),
            partial(self._pieces, is_large=is_large),
            source_of(self.content, partial(_line_of_row, self.delimiter), n_header=1),
            has_header=True,
            is_large=is_large,
        )

    def records(self) -> Iterator[tuple[RecordPlace, dict[str, str]]]:
        """Yield rows by name, as Python objects; blank rows are no records."""
        name = self.content.name
        names = self.names
        before = csv.field_size_limit(1 << 27)
        try:
            rows = _rows(text_of(self.content.data, "strict"), self.delimiter, name, strict=True)
            next(rows, None)
            for line, fields in rows:
                if any(fields):
                    self._require_width(line, fields)
                    yield RecordPlace(name, "line", line), dict(zip(names, fields, strict=True))
        except UnicodeDecodeError:
            raise not_text(name, self.content.data) from None
        finally:
            csv.field_size_limit(before)

    def _header(self, delimiter: str) -> tuple[list[str], int] | None:
        """Return the first record that is not blank, and the offset where rows begin.

        None where one field has no end.
        """
        content = self.content
        size = HEADER_START
        taken: list[int] = []

        def lines(text: str) -> Iterator[str]:
            for line in io.StringIO(text, newline=""):
                taken.append(len(line))
                yield line

        while True:
            # Latin-1 keeps one character per byte, so that characters taken are bytes taken.
            head = bytes(content.data[self.start : self.start + size]).decode("latin-1")
            taken.clear()
            try:
                fields = next((f for f in csv.reader(lines(head), delimiter=delimiter) if f), [])
            except csv.Error as error:
                if "field limit" in str(error):
                    return None
                raise InputError("quote-open", file=content.name, line=1, n=0) from None
            if sum(taken) < len(head) or self.start + len(head) >= len(content.data):
                break
            size *= 8
        try:
            names = [field.encode("latin-1").decode() for field in fields]
        except UnicodeDecodeError:
            raise not_text(content.name, content.data) from None
        return names, self.start + sum(taken)

    def _pieces(self, positions: Sequence[int], *, is_large: bool) -> Iterator[Sequence[Any]]:
        """Yield some columns; where a record is longer than a block, the rest of them at once."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        if self.end == len(self.content.data):
            yield [pa.array([], pa.string()) for _ in positions]
            return
        self._refuse_open_quote()
        n_rows = 0
        try:
            if not is_large:
                yield self._parse(positions, BLOCK_SIZE).columns
                return
            for batch in arrow_csv.open_csv(*self._options(positions, BLOCK_SIZE)):
                n_rows += batch.num_rows
                yield batch.columns
        except pa.ArrowInvalid as error:
            if STRADDLING not in str(error):
                raise self._unreadable(error) from None
            yield self._parse(positions, len(self.content.data)).slice(n_rows).columns

    def _parse(self, positions: Sequence[int], block_size: int) -> Any:
        from pyarrow import csv as arrow_csv

        return arrow_csv.read_csv(*self._options(positions, block_size))

    def _options(self, positions: Sequence[int], block_size: int) -> tuple[Any, ...]:
        """Say how to read fields as text, whatever they look like."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        wanted = [str(i) for i in positions]
        names = [str(i) for i in range(len(self.names))]
        # With the line end before the rows: Arrow skips it, and would drop a U+FEFF.
        body = pa.py_buffer(self.content.data).slice(self.end - 1)
        return (
            pa.BufferReader(body),
            arrow_csv.ReadOptions(column_names=names, block_size=min(block_size, INT32_MAX)),
            arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted
            ),
        )

    def _refuse_open_quote(self) -> None:
        """Refuse a quote that is open at the end, which would swallow rows silently."""
        data = self.content.data
        chunks = (bytes(data[at : at + BLOCK_SIZE]) for at in range(0, len(data), BLOCK_SIZE))
        if sum(chunk.count(b'"') for chunk in chunks) % 2:
            for _ in _rows(text_of(data), self.delimiter, self.content.name, strict=None):
                pass

    def _unreadable(self, error: Exception) -> InputError:
        """Say what Arrow could not read, and on which line."""
        name = self.content.name
        if "UTF8" in str(error):
            return not_text(name, self.content.data)
        try:
            rows = _rows(text_of(self.content.data), self.delimiter, name, strict=True)
            for line, fields in rows:
                self._require_width(line, fields)
        except InputError as broken:
            return broken
        return InputError("csv-unreadable", file=name, reason=error)

    def _require_width(self, line: int, fields: list[str]) -> None:
        n = len(self.names)
        if len(fields) != n:
            name = self.content.name
            raise InputError(
                "ragged-row", file=name, line=line, n=len(fields), expected=n, fields=fields
            )


INT32_MAX = 2**31 - 1


def _rows(
    text: Any, delimiter: str, name: str, *, strict: bool | None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the fields of each record; blank lines are no records.

    `strict`: whether a record with odd quotes is an error; None: only a quote that never closes.
    """
    reader = csv.reader(text, delimiter=delimiter, strict=strict is not False)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        if "unexpected end" in str(error):
            raise InputError("quote-unclosed", file=name, line=line) from None
        if strict:
            raise InputError("csv-row", file=name, line=line, reason=error) from None


def _line_of_row(delimiter: str, data: memoryview, row: int) -> int:
    """Return the line on which a row starts; the header is no row."""
    rows = _rows(text_of(data), delimiter, "", strict=False)
    found = next(islice(rows, row + 1, None), None)
    if found is None:
        raise InputError("no-such-row", row=row)
    return found[0]


# JSON


def _open_json(content: Content) -> Opened:
    name = content.name

    def records() -> Iterator[tuple[RecordPlace, Record]]:
        return _placed(json_records(content.data, name), name, "record")

    begun = json_records(content.data, name)
    first: Record | None = next(begun, None)
    if first is None:
        raise InputError("list-empty", file=name)
    try:
        is_alone = next(begun, None) is None
    except InputError:  # a record that is broken is there, and reported when it is read
        is_alone = False
    if is_alone and not content.is_list:
        refuse_columnwise(first, name)
    head = Head("json" if content.is_list else "document", tuple(first), first)
    return Opened(name, partial(_json_table, content, first, is_alone), head, records)


def _json_table(content: Content, first: Record, is_alone: bool) -> Table:
    """Make a table of JSON objects: fast where all rows are alike, else object by object."""
    name = content.name
    if is_alone:
        refuse_columnwise(first, name)
    if len(content.data) >= LARGE_JSON:
        names = tuple(first)
        return Table(names, partial(_json_pieces, content, first), Source(name), is_large=True)
    source = source_of(content, line_of_record, 0)
    if content.is_list:
        source = Source(name, RecordFinder(name, "record"))
    alike = None if content.is_list else _read_alike(content, first)
    return arrays(alike or columns_of(list(json_records(content.data, name))), source)


def _read_alike(content: Content, first: Record) -> dict[str, Any] | None:
    """Read objects that all have the keys and types of the first; None where they do not.

    The types are given, not guessed: Arrow would take text that looks like a date for one.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    if not all(isinstance(value, str | int | float) for value in first.values()):
        return None
    schema = pa.schema({key: _type_of(value) for key, value in first.items()})
    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    start = 3 if bytes(content.data[:3]) == BYTE_ORDER_MARK else 0
    body = pa.BufferReader(pa.py_buffer(content.data).slice(start))
    try:
        table = arrow_json.read_json(body, parse_options=options)
        table.validate(full=True)  # text is not checked to be UTF-8 otherwise
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    return dict(zip(table.column_names, table.columns, strict=True))


def _json_pieces(
    content: Content, first: Record, positions: Sequence[int]
) -> Iterator[Sequence[Any]]:
    """Yield columns of a large file; keys and types are those of its first record."""
    keys = [list(first)[i] for i in positions]
    records = json_records(content.data, content.name)
    n_rows = 0
    while piece := list(islice(records, JSON_PIECE)):
        at = RecordPlace(content.name, "record", n_rows + 1)
        yield [_typed([r.get(key) for r in piece], _type_of(first[key]), key, at) for key in keys]
        n_rows += len(piece)


def _typed(values: list[Any], kind: Any, key: str, first: RecordPlace) -> Any:
    """Make an Arrow array of one type; name the first value that is of another."""
    import pyarrow as pa

    wrong = (pa.ArrowException, TypeError, ValueError, OverflowError)
    try:
        return pa.array(values, kind)
    except wrong:
        for i, value in enumerate(values):
            try:
                pa.array([value], kind)
            except wrong:
                at = first._replace(number=first.number + i)
                raise InputError("other-type", at=at, key=key, value=value, type=kind) from None
        raise


def _type_of(value: Any) -> Any:
    import pyarrow as pa

    known = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    return known.get(type(value), pa.string())


def refuse_columnwise(record: Mapping[str, Any], name: str) -> None:
    """Refuse the only object of a file where it holds a whole table, as pandas writes it.

    df.to_json(path)        {"task": {"0": "a", "1": "b"}, "label": {"0": "x", "1": "y"}}
    by columns              {"task": ["a", "b"], "label": ["x", "y"]}
    orient="split"          {"columns": ["task", "label"], "index": [0, 1], "data": […]}

    Lists of workers and labels, and none of tasks, are the answers to one task.
    """

    def are_alike(kind: type) -> bool:
        values = list(record.values())
        if not all(isinstance(value, kind) for value in values):
            return False
        shapes = [len(value) if kind is list else value.keys() for value in values]
        return bool(values[0]) and all(shape == shapes[0] for shape in shapes)

    keys = set(record)
    has_tasks = any(squashed(str(key)) in {TASK.name, *TASK.others} for key in keys)
    is_split = keys in ({"columns", "index", "data"}, {"schema", "data"})
    if is_split or (len(keys) > 1 and (are_alike(dict) or (has_tasks and are_alike(list)))):
        raise InputError("table-in-one-object", file=name)


# Parquet


def open_parquet(content: Content, **options: Any) -> Any:
    """Open by path where the file lies there as it is, so that only what is read is in memory."""
    import pyarrow as pa
    from pyarrow import parquet

    if content.path is not None and isinstance(content.data.obj, mmap.mmap):
        return parquet.ParquetFile(content.path, **options)
    return parquet.ParquetFile(pa.BufferReader(pa.py_buffer(content.data)), **options)


def _open_parquet(content: Content) -> Opened:
    """Open a Parquet file; only where it has columns of lists may it be a tool's."""
    import pyarrow as pa

    def broken(error: Exception) -> FileError:
        return FileError("parquet-broken", file=content.name, reason=error)

    def pieces(positions: Sequence[int]) -> Iterator[Sequence[Any]]:
        wanted = [names[i] for i in positions]
        kinds = (schema.field(i).type for i in positions)
        try:
            if is_large and all(map(_is_plain, kinds)) and not set(wanted) & set(classes):
                yield from _parquet_pieces(content, wanted)
                return
            table = with_class_names(open_parquet(content).read(columns=wanted), classes)
        except (pa.ArrowException, OSError) as error:
            raise broken(error) from None
        columns = [_text_if_possible(table.column(name)) for name in wanted]
        yield [*map(to_arrow, wanted, columns)] if is_large else columns

    def order_of(position: int) -> list[Any] | None:
        if names[position] in classes:
            return classes[names[position]]
        kind = schema.field(position).type
        if not pa.types.is_dictionary(kind) or not kind.ordered or not n_rows:
            return None
        column = open_parquet(content).read_row_group(0, columns=[names[position]]).column(0)
        return list(column.chunk(0).dictionary.to_pylist())

    def records() -> Iterator[tuple[RecordPlace, Record]]:
        batches = (
            with_class_names(pa.Table.from_batches([batch]), classes).to_pylist()
            for batch in open_parquet(content).iter_batches(batch_size=RECORDS)
        )
        return _placed((row for rows in batches for row in rows), content.name)

    try:
        file = open_parquet(content)
        schema = file.schema_arrow
        n_rows = file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise broken(error) from None
    names = tuple(schema.names)
    classes = class_names(schema)
    is_large = n_rows >= LARGE_PARQUET
    source = Source(content.name)
    table = Table(names, pieces, source, is_large=is_large, order_of=order_of)
    if not any(pa.types.is_nested(field.type) for field in schema):
        return Opened(content.name, lambda: table)
    first = next(records(), (None, {}))[1]
    return Opened(content.name, lambda: table, Head("table", names, first), records, classes)


def _parquet_pieces(content: Content, wanted: list[str]) -> Iterator[Sequence[Any]]:
    """Yield pieces of some columns; texts of which the file keeps a dictionary come with it."""
    import pyarrow as pa

    first = open_parquet(content)
    short = [name for name in wanted if _is_short(first, name)]
    batches = open_parquet(content, read_dictionary=short).iter_batches(
        batch_size=BATCH, columns=wanted
    )
    with ThreadPoolExecutor(1) as reader:  # the next piece is read while the caller works
        coming = reader.submit(next, batches, None)
        number = 0
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield [batch.column(name) for name in wanted]
            number += 1
            if number % TIDY == 0:
                pa.default_memory_pool().release_unused()


def _is_short(file: Any, name: str) -> bool:
    """Return whether a column of text is kept by a dictionary in all of the first group of rows."""
    if not is_text(file.schema_arrow.field(name).type):
        return False
    group = file.metadata.row_group(0)
    columns = (group.column(i) for i in range(group.num_columns))
    column = next(c for c in columns if c.path_in_schema == name)
    return bool(column.total_uncompressed_size < SHORT * group.num_rows)


def _is_plain(kind: Any) -> bool:
    """Return whether columns of this type can be coded piece by piece, without more cleaning."""
    import pyarrow as pa

    return is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)


def _text_if_possible(column: Any) -> Any:
    """Read bytes as text: some writers of Parquet do not mark text as such."""
    import pyarrow as pa

    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        try:
            return column.cast(pa.large_string())
        except pa.ArrowInvalid:
            return column
    return column


# Archives: one file per person, or one per sample


def _open_zip(content: Content) -> Opened | None:
    """Open an archive with one file per person, or with one file per sample; None otherwise."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content.data))
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, OSError):
        return None  # `format_of` says what such a file may be
    samples = [name for name in names if SAMPLE_FILE.fullmatch(name)]
    people = [name for name in names if USER_FILE.fullmatch(name)]
    if not samples and len(people) != len(names):
        return None

    def records() -> Iterator[tuple[RecordPlace, Record]]:
        for member in samples or people:
            yield from _member_records(content, archive, member)

    def table() -> Table:
        raise AssertionError(format_of(content, None))  # which refuses an archive

    first = next(records(), None)
    if first is None:
        raise InputError("archive-empty", file=content.name)
    return Opened(content.name, table, Head("zip", tuple(first[1]), first[1]), records)


def _member_records(
    content: Content, archive: zipfile.ZipFile, member: str
) -> Iterator[tuple[RecordPlace, Record]]:
    """Yield the records of one file in an archive, each with the name of the file."""
    try:
        data = _unpacked(content.data, archive, member)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
        raise InputError("archive-broken", file=content.name, member=member, reason=error) from None
    if not data.strip():
        return
    inside = open_content(Content(f"{content.name} ({member})", memoryview(data)))
    if inside.records is None:
        raise InputError("archive-member", file=inside.name)
    stem = member.rpartition("/")[2].rpartition(".")[0]
    for place, record in inside.records():
        yield place, {**record, MEMBER: stem}


def _unpacked(data: memoryview, archive: zipfile.ZipFile, member: str) -> bytes:
    """Return a file of an archive; Zstandard, which `zipfile` does not know, is left to Arrow."""
    info = archive.getinfo(member)
    if info.compress_type != ZSTANDARD:
        return archive.read(member)
    import pyarrow as pa

    at = info.header_offset
    n_name, n_extra = struct.unpack("<HH", data[at + 26 : at + LOCAL_HEADER])
    start = at + LOCAL_HEADER + n_name + n_extra
    packed = bytes(data[start : start + info.compress_size])
    return bytes(pa.Codec("zstd").decompress(packed, info.file_size))


# Several files


@dataclass(frozen=True, slots=True)
class FileFinder:
    """Finds the file of a row of several files, and its row there, by the rows before each."""

    sources: list[Source] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # rows before each file that was reached

    def __call__(self, row: int) -> Any:
        """Return the place of a row."""
        source, at = self._source(row)
        return source.where(at)

    def split(self, row: int) -> tuple[str, int]:
        """Return the file of a row, and its row there."""
        source, at = self._source(row)
        return source.name, at

    def _source(self, row: int) -> tuple[Source, int]:
        number = bisect_right(self.starts, row) - 1
        return self.sources[number], row - self.starts[number]


def chained_table(files: TableFiles, open_table: Callable[[Content], Table]) -> Table:
    """Make one table of several files, each opened by `open_table`; empty ones are left out.

    Columns are matched by their names, wherever they are in each file.
    """
    return _Chain(files, open_table).table


class _Chain:
    """The tables of several files, one of which is open at a time."""

    def __init__(self, files: TableFiles, open_table: Callable[[Content], Table]) -> None:
        self.owners: dict[str, str] = {}  # of each column: the first file that has it
        self.finder = FileFinder()
        self._files = files
        self._open_table = open_table
        self._paths: list[str] = []
        has_header = False
        is_large = files.size >= LARGE_TOGETHER
        for path, content in files.contents():
            table = open_table(content)
            self._paths.append(path)
            self.finder.sources.append(table.source)
            has_header |= table.has_header
            is_large |= table.is_large
            new = (name for name in table.names if not positions_of(tuple(self.owners), name))
            self.owners |= dict.fromkeys(new, path)
        self.table = Table(
            tuple(self.owners),
            self._pieces,
            Source(files.name, self.finder),
            has_header=has_header,
            is_large=is_large,
            order_of=self._order_of,
        )

    def _tables(self) -> Iterator[tuple[str, Table]]:
        for path in self._paths:
            content = self._files.open(path)
            if content is None:
                raise InputError("file-emptied", file=path)
            yield path, self._open_table(content)

    def _order_of(self, position: int) -> list[Any] | None:
        """Return the ordered categories of a column, where all files have the same."""
        name = self.table.names[position]
        orders = (t.category_order(self._position(t, name)) for _, t in self._tables())
        first = next(orders)
        if first is None or all(order == first for order in orders):
            return first
        note("other-category-order", column=name)
        return None

    def _pieces(self, positions: Sequence[int]) -> Iterator[Sequence[Any]]:
        """Yield columns piece by piece, each piece as the first one that has a value.

        Pieces wait until every column has one, which gives its type.
        """
        names = [self.table.names[i] for i in positions]
        first: list[Column | None] = [None] * len(positions)
        waiting: list[Sequence[Any]] = []
        seen: dict[str, tuple[str, str]] = {}  # by column: what it holds, and where
        n_rows = 0
        self.finder.starts.clear()
        for path, table in self._tables():
            self.finder.starts.append(n_rows)
            for columns in table.batches([self._position(table, name) for name in names]):
                n_rows += len(columns[0])
                waiting.append(columns)
                for i, (name, column) in enumerate(zip(names, columns, strict=True)):
                    _refuse_other_kind(name, column, path, seen)
                    if first[i] is None and kind_of(column) is not None:
                        first[i] = column
                if not any(column is None for column in first):
                    yield from ([*map(_typed_like, piece, first)] for piece in waiting)
                    waiting = []
        yield from waiting  # a column without any value

    def _position(self, table: Table, name: str) -> int:
        found = positions_of(table.names, name)
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError("columns-alike", table=table.title, column=name, n=len(found))
        raise InputError(
            "column-in-one-file",
            table=table.title,
            column=name,
            owner=self.owners[name],
            columns=table.names,
        )


def kind_of(column: Any) -> str | None:
    """Return what a column holds, in words; None where every value is missing."""
    import pyarrow as pa

    if column.null_count == len(column):
        return None
    kind = getattr(column.type, "value_type", column.type)  # of a dictionary: its values
    if is_text(kind):
        return "text"
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if any(test(kind) for test in numbers):
        return "numbers"
    return "true or false" if pa.types.is_boolean(kind) else str(kind)


def _typed_like(column: Any, first: Any) -> Any:
    """Give a piece of a column the type of another; it stays where its values do not allow that."""
    import pyarrow as pa

    if kind_of(column) == kind_of(first) == "text":
        return column  # whose coder takes any type of text
    kind = getattr(first.type, "value_type", first.type)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        kind = pa.int64()  # which holds what the next file may have
    try:
        return column.cast(kind)
    except pa.ArrowException:
        return column


def _refuse_other_kind(name: str, column: Any, path: str, seen: dict[str, tuple[str, str]]) -> None:
    """Refuse a column of ids that holds text in one file, and numbers in another."""
    kind = kind_of(column)
    if kind is None or squashed(name) in NO_IDS or name.casefold().startswith(PREFIX):
        return
    before, where = seen.setdefault(name, (kind, path))
    if kind != before:
        raise InputError(
            "other-kind", column=name, kind=before, file=where, other=kind, other_file=path
        )
