"""Opening: any source as a table, and as records; CSV, JSON, Parquet, archives, several as one.

In CSV every field is text, and only an empty one is missing. JSON and Parquet are typed.
"""

from __future__ import annotations

import contextlib
import csv
import io
import mmap
import re
import struct
import zipfile
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import Any

from tiebreak.data.ids import Column, is_text
from tiebreak.errors import FileError, InputError
from tiebreak.tables.columns import EXTRAS, PREFIX, RESPONSES, TASK, Schema, positions_of, squashed
from tiebreak.tables.json_stream import json_records, line_of_record
from tiebreak.tables.source import (
    BYTE_ORDER_MARK,
    CONLL,
    Content,
    NoRowsError,
    Place,
    TableFiles,
    byte_stream,
    format_of,
    is_conll,
    line_finder,
    located,
    not_text,
    numbered,
    text_of,
)
from tiebreak.tables.table import (
    Columns,
    Table,
    arrays,
    class_names,
    columns_of,
    is_frame,
    plain,
    table_of,
    to_arrow,
    with_class_names,
)
from tiebreak.wording import Source

DELIMITERS = (",", "\t", ";", "|")
LONGEST_HEADER = 1 << 26  # bytes of one line
BLOCK_SIZE = 1 << 22  # bytes of CSV in a piece
LARGE_CSV = 1 << 26  # bytes; a smaller file is parsed at once, by all threads
LARGE_JSON = 1 << 28
JSON_PIECE = 1 << 17  # records of a large file that are Python objects at a time
BATCH = 1 << 20  # rows of a piece of Parquet
SAMPLE = 1 << 16  # rows by which it is seen whether texts repeat
TIDY = 16  # pieces, after which Arrow gives memory back
RECORDS = 4096  # rows of Parquet that are Python objects at a time
INT32_MAX = 2**31 - 1
MEMBER = "_member"  # under which key a record of an archive knows its file
ZSTANDARD = 93  # the number of the method, in a zip archive
LOCAL_HEADER = 30  # bytes before the name of a file in a zip archive
USER_FILE = re.compile(r"(?:.*/)?(?P<user>[^/]+)\.(?P<kind>jsonl|json|csv)", re.IGNORECASE)
SAMPLE_FILE = re.compile(r"samples/.*\.json")
NO_IDS = frozenset(name for names in EXTRAS.values() for name in names)  # text or numbers alike

Record = Mapping[str, Any]
KeepText = Callable[[Hashable, str], object]  # takes a task, and what to show for it
Records = Callable[[], Iterator[tuple[Place, Record]]]  # each call reads from the start


@dataclass(eq=False)
class Opened:
    """A source whose beginning was read: its table and its records are read on demand.

    `container` is "json" (a list), "document" (one object after another), "delimited", "zip",
    "conll" or "table"; empty where there are no records that a format of a tool could know. `keys`
    are the columns of a table or the keys of the first record; `first` is that record, empty for
    delimited text. `classes` are those that the file itself keeps, by column. `several` opens each
    of several files anew. `format` and `is_wide` are what `read.open_responses` found out.
    """

    name: str
    make_table: Callable[[], Table]
    container: str = ""
    keys: tuple[str, ...] = ()
    first: Record = field(default_factory=dict)
    records: Records | None = None
    classes: Mapping[str, list[str]] = field(default_factory=dict)
    several: Callable[[], Iterator[Opened]] | None = None
    format: Any = None  # of `formats.records`
    is_wide: bool = False

    @cached_property
    def table(self) -> Table:
        """The source as a table."""
        return self.make_table()

    def has(self, *keys: str) -> bool:
        """Return whether all these keys are there."""
        return set(keys) <= set(self.keys)

    def files(self) -> Iterator[Opened]:
        """Yield each of several files, one of which is open at a time; else this one."""
        return iter([self]) if self.several is None else self.several()


def open_source(source: Any, format: str | None = None, schema: Schema = RESPONSES) -> Opened:
    """Open files by name, "-", an open file, a frame, columns by name, or rows.

    `format` is a plain one, or None: as the content tells. `schema` names the parts of bare rows.
    """
    if isinstance(source, Opened):
        return source
    source = located(source)
    if isinstance(source, Content):
        return open_content(source, format)
    if isinstance(source, TableFiles):
        return _open_files(source, format)
    return _open_object(source, schema)


def open_content(content: Content, asked: str | None = None) -> Opened:
    """Open one file, of the plain format that is asked for, or that its content tells."""
    is_zip = asked is None and bytes(content.data[:4]) == b"PK\x03\x04"
    if is_zip and (archive := _open_zip(content)) is not None:
        return archive
    if asked == CONLL or (asked is None and is_conll(content.name)):
        return _open_conll(content)
    form = format_of(content, asked)
    if form == "parquet":
        return _open_parquet(content)
    if form == "jsonl":
        return _open_json(content)
    table = Delimited(content, form).table()
    records = partial(_table_records, table)
    return Opened(content.name, lambda: table, "delimited", table.names, records=records)


def _open_object(source: Any, schema: Schema) -> Opened:
    """Open what is no file; records are those of a list of objects, or of a frame with lists."""
    if isinstance(source, Table):
        return Opened(source.title, lambda: source)
    name = "The table"
    table = table_of(source, schema.names, len(schema.needed))
    if isinstance(source, list) and source and all(isinstance(row, Mapping) for row in source):
        records = partial(_placed, source, Source(name))
        return Opened(name, lambda: table, "json", tuple(source[0]), source[0], records)
    first: dict[str, Any] = {}
    for i, column in enumerate(table.names if is_frame(source) else ()):
        first.update((column, value) for value in table.values(i, 1))
    if not any(isinstance(value, list) for value in first.values()):
        return Opened(name, lambda: table)

    def rows() -> Iterator[tuple[Place, Record]]:
        values = zip(*map(table.values, range(len(table.names))), strict=True)
        return _placed((dict(zip(table.names, row, strict=True)) for row in values), Source(name))

    classes = class_names(source)
    return Opened(name, lambda: table, "table", table.names, first, rows, classes)


def _placed(records: Iterable[Record], source: Source) -> Iterator[tuple[Place, Record]]:
    return ((Place(source, row), record) for row, record in enumerate(records))


def _table_records(table: Table) -> Iterator[tuple[Place, Record]]:
    """Yield the rows of a table as Python objects; a blank row of a text file is none."""
    n_rows = 0
    for columns in table.load(range(len(table.names))):
        for start in range(0, len(columns[0]), RECORDS):
            values = [column[start : start + RECORDS].to_pylist() for column in columns]
            for row, record in enumerate(zip(*values, strict=True), start=n_rows + start):
                if any(record) or not table.has_header:
                    yield Place(table.source, row), dict(zip(table.names, record, strict=True))
        n_rows += len(columns[0])


# Delimited text


class Delimited:
    """A CSV or TSV file: its header, its delimiter, and its rows."""

    def __init__(self, content: Content, form: str = "csv") -> None:
        self.content = content
        found = {mark: self._header(mark) for mark in ("\t" if form == "tsv" else DELIMITERS)}
        # The one with most fields; of equals the first.
        self.delimiter = max(found, key=lambda mark: len(found[mark][0]))
        self.names, self.end = found[self.delimiter]
        if not self.names:
            size = csv.field_size_limit()
            if b'"' in bytes(content.data[:size]):
                raise InputError("quote-unclosed", file=content.name, line=1, reason=None)
            raise InputError("no-delimiter", file=content.name, line=1, n=size)

    def _header(self, delimiter: str) -> tuple[list[str], int]:
        """Return the first record that is not blank, and the offset where rows begin.

        No names where one field has no end.
        """
        data = self.content.data
        start = 3 if bytes(data[:3]) == BYTE_ORDER_MARK else 0
        end = start

        def lines() -> Iterator[str]:
            nonlocal end
            # Latin-1 keeps one character per byte, so that characters taken are bytes taken.
            text = text_of(data[start:], encoding="latin-1")
            while line := text.readline(LONGEST_HEADER):
                end += len(line)
                yield line

        try:
            fields = next(filter(None, csv.reader(lines(), delimiter=delimiter)), [])
            return [field.encode("latin-1").decode() for field in fields], end
        except csv.Error:
            return [], 0
        except UnicodeDecodeError:
            raise not_text(self.content.name, data) from None

    def table(self) -> Table:
        """Return the file as a table; columns are parsed when they are asked for."""
        finder = line_finder(self.content, partial(_line_of_row, self.delimiter), n_header=1)
        source = Source(self.content.name, finder)
        return Table(tuple(self.names), self._load, source, has_header=True)

    def _load(self, positions: Sequence[int]) -> Iterator[Columns]:
        """Yield some columns; where a record is longer than a block, the rest of them at once."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        size = len(self.content.data)
        if self.end == size:
            return
        self._refuse_open_quote()
        n_rows = 0
        try:
            if size >= LARGE_CSV:
                for batch in arrow_csv.open_csv(*self._options(positions, BLOCK_SIZE)):
                    n_rows += batch.num_rows
                    yield batch.columns
            else:
                table = arrow_csv.read_csv(*self._options(positions, BLOCK_SIZE))
                yield [column.combine_chunks() for column in table.columns]
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error):  # of a record longer than a block
                raise self._unreadable(error) from None
            table = arrow_csv.read_csv(*self._options(positions, size)).slice(n_rows)
            yield [column.combine_chunks() for column in table.columns]

    def _options(self, positions: Sequence[int], block_size: int) -> tuple[Any, ...]:
        """Say how to read fields: as text, whatever they look like; much of it in codes."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        is_large = len(self.content.data) >= LARGE_CSV
        text = pa.dictionary(pa.int32(), pa.string()) if is_large else pa.string()
        wanted = [str(i) for i in positions]
        names = [str(i) for i in range(len(self.names))]
        # With the line end before the rows: Arrow skips it, and would drop a U+FEFF.
        body = pa.py_buffer(self.content.data).slice(self.end - 1)
        return (
            pa.BufferReader(body),
            arrow_csv.ReadOptions(column_names=names, block_size=min(block_size, INT32_MAX)),
            arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, text), include_columns=wanted
            ),
        )

    def _refuse_open_quote(self) -> None:
        """Refuse a quote that is open at the end, which would swallow rows silently."""
        chunks = iter(partial(byte_stream(self.content.data).read, BLOCK_SIZE), b"")
        if sum(chunk.count(b'"') for chunk in chunks) % 2:
            try:
                deque(self._rows(), maxlen=0)
            except InputError as error:
                if error.code == "quote-unclosed":
                    raise

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        return _csv_rows(text_of(self.content.data), self.delimiter, self.content.name)

    def _unreadable(self, error: Exception) -> InputError:
        """Say what Arrow could not read, and on which line."""
        name = self.content.name
        if "UTF8" in str(error):
            return not_text(name, self.content.data)
        n = len(self.names)
        try:
            for line, fields in self._rows():
                if len(fields) != n:
                    found = {"n": len(fields), "expected": n, "fields": fields}
                    return InputError("ragged-row", file=name, line=line, **found)
        except InputError as broken:
            return broken
        return InputError("csv-broken", file=name, line=None, reason=error)


def _csv_rows(
    text: Any, delimiter: str, name: str, *, strict: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the fields of each record; blank lines are no records.

    `strict`: odd quotes are an error.
    """
    reader = csv.reader(text, delimiter=delimiter, strict=strict)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        code = "quote-unclosed" if "unexpected end" in str(error) else "csv-broken"
        raise InputError(code, file=name, line=line, reason=error) from None


def _line_of_row(delimiter: str, data: memoryview, row: int) -> int | None:
    """Return the line on which a row starts; the header is no row."""
    rows = _csv_rows(text_of(data), delimiter, "", strict=False)
    return next(islice(rows, row + 1, None), (None,))[0]


# JSON


def _open_json(content: Content) -> Opened:
    def records() -> Iterator[tuple[Place, Record]]:
        return _placed(json_records(content.data, name), numbered(name, "record"))

    name = content.name
    begun = json_records(content.data, name)
    first: Record | None = next(begun, None)
    if first is None:
        raise NoRowsError("no-rows", table=name)
    try:
        is_alone = next(begun, None) is None
    except InputError:  # a record that is broken is there, and reported when it is read
        is_alone = False
    if is_alone and not content.is_list:
        _refuse_columnwise(first, name)
    container = "json" if content.is_list else "document"
    make_table = partial(_json_table, content, first)
    return Opened(name, make_table, container, tuple(first), first, records)


def _json_table(content: Content, first: Record) -> Table:
    """Make a table of JSON objects: fast where all rows are alike, else object by object."""
    name = content.name
    if len(content.data) >= LARGE_JSON:
        keys = tuple(first)
        return Table(keys, partial(_json_pieces, content, keys), Source(name))
    columns = None if content.is_list else _read_alike(content, first)
    columns = columns or columns_of(list(json_records(content.data, name)))
    if content.is_list:
        return arrays(columns, numbered(name, "record"))
    return arrays(columns, Source(name, line_finder(content, line_of_record, n_header=0)))


def _read_alike(content: Content, first: Record) -> dict[str, Any] | None:
    """Read objects that all have the keys and types of the first; None where they do not.

    The types are given, not guessed: Arrow would take text that looks like a date for one.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    if not all(isinstance(value, str | int | float) for value in first.values()):
        return None
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    schema = pa.schema({key: kinds[type(value)] for key, value in first.items()})
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
    content: Content, keys: Sequence[str], positions: Sequence[int]
) -> Iterator[Columns]:
    """Yield columns of a large file, whose keys are those of its first record."""
    records = json_records(content.data, content.name)
    seen: dict[str, tuple[str, str]] = {}
    whole = numbered(content.name, "record")
    n_rows = 0
    while piece := list(islice(records, JSON_PIECE)):
        source = Source(content.name, lambda row: whole.where(n_rows + row))  # noqa: B023
        columns = []
        for key in (keys[i] for i in positions):
            column = to_arrow(key, [record.get(key) for record in piece], source)
            columns.append(_of_one_kind(key, column, whole.where(n_rows), seen))
        yield columns
        n_rows += len(piece)


def _refuse_columnwise(record: Mapping[str, Any], name: str) -> None:
    """Refuse the only object of a file where it holds a whole table, as pandas writes it.

    df.to_json(path)        {"task": {"0": "a", "1": "b"}, "label": {"0": "x", "1": "y"}}
    by columns              {"task": ["a", "b"], "label": ["x", "y"]}
    orient="split"          {"columns": ["task", "label"], "index": [0, 1], "data": […]}

    Lists of workers and labels, and none of tasks, are the answers to one task.
    """
    values = list(record.values())
    has_tasks = any(squashed(str(key)) in {TASK.name, *TASK.others} for key in record)
    is_split = set(record) in ({"columns", "index", "data"}, {"schema", "data"})
    shapes: list[Any] = [None]
    if all(isinstance(value, dict) for value in values):
        shapes = [value.keys() for value in values]
    elif has_tasks and all(isinstance(value, list) for value in values):
        shapes = [range(len(value)) for value in values]
    is_table = len(values) > 1 and shapes[0] and all(shape == shapes[0] for shape in shapes)
    if is_split or is_table:
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

    @contextlib.contextmanager
    def naming_what_is_broken() -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise FileError("parquet-broken", file=content.name, reason=error) from None

    def load(positions: Sequence[int]) -> Iterator[Columns]:
        wanted = [names[i] for i in positions]
        is_coded = not set(wanted) & set(classes) and all(
            _is_plain(schema.field(i)) for i in positions
        )
        with naming_what_is_broken():
            for batch in _parquet_batches(content, wanted, is_coded=is_coded):
                table = pa.Table.from_batches([batch])
                named = batch if is_coded else with_class_names(table, classes)
                pieces = [named.column(name) for name in wanted]
                yield pieces if is_coded else [plain(_text_if_possible(each)) for each in pieces]

    with naming_what_is_broken():
        schema = open_parquet(content).schema_arrow
    names = tuple(schema.names)
    classes = class_names(schema)
    table = Table(names, load, Source(content.name))
    if not any(pa.types.is_nested(field.type) for field in schema):
        return Opened(content.name, lambda: table)
    records = partial(_table_records, table)
    first = next(records(), (None, {}))[1]
    return Opened(content.name, lambda: table, "table", names, first, records, classes)


def _parquet_batches(content: Content, wanted: list[str], *, is_coded: bool) -> Iterator[Any]:
    """Yield pieces of some columns; coded: texts as dictionaries, where these hold texts twice."""
    import pyarrow as pa

    file = open_parquet(content, read_dictionary=wanted if is_coded else None)
    if is_coded and file.metadata.num_rows > BATCH:
        some = next(file.iter_batches(batch_size=SAMPLE, columns=wanted))
        coded = [n for n in wanted if pa.types.is_dictionary(some.column(n).type)]
        kept = [n for n in coded if 2 * len(some.column(n).dictionary) <= len(some)]
        file = open_parquet(content, read_dictionary=kept)
    batches = file.iter_batches(batch_size=BATCH, columns=wanted)
    with ThreadPoolExecutor(1) as reader:  # the next piece is read while the caller works
        coming = reader.submit(next, batches, None)
        number = 0
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch
            number += 1
            if number % TIDY == 0:
                pa.default_memory_pool().release_unused()


def _is_plain(field: Any) -> bool:
    """Return whether a column can be coded piece by piece, without more cleaning."""
    import pyarrow as pa

    kind = field.type
    return is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)


def _text_if_possible(column: Any) -> Any:
    """Read bytes as text: some writers of Parquet do not mark text as such."""
    import pyarrow as pa

    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        with contextlib.suppress(pa.ArrowInvalid):
            return column.cast(pa.large_string())
    return column


# CoNLL: a token and its tags a line, blank lines between sentences


def _open_conll(content: Content) -> Opened:
    """Open a file of sentences; a record has its words and the columns beside them."""
    source = numbered(content.name, "line")

    def records() -> Iterator[tuple[Place, Record]]:
        lines: list[list[str]] = []
        first = 0
        try:
            for number, line in enumerate([*text_of(content.data, "strict"), ""]):
                fields = line.split("\t") if "\t" in line.strip() else line.split()
                fields = [field.strip() for field in fields]
                if any(fields) and not fields[0].startswith("-DOCSTART-"):
                    first = first if lines else number
                    lines.append(fields)
                elif lines:
                    yield Place(source, first), {"lines": lines}
                    lines = []
        except UnicodeDecodeError:
            raise not_text(content.name, content.data) from None

    make_table = Delimited(content).table
    return Opened(content.name, make_table, CONLL, ("lines",), records=records)


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

    def records() -> Iterator[tuple[Place, Record]]:
        for member in samples or people:
            yield from _member_records(content, archive, member)

    _, first = next(records(), (None, None))
    if first is None:
        raise NoRowsError("no-rows", table=content.name)
    refuse: Any = partial(format_of, content, None)  # an archive is no table
    return Opened(content.name, refuse, "zip", tuple(first), first, records)


def _member_records(
    content: Content, archive: zipfile.ZipFile, member: str
) -> Iterator[tuple[Place, Record]]:
    """Yield the records of one file in an archive, each with the name of the file."""
    try:
        data = _unpacked(content.data, archive, member)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
        raise InputError("archive-broken", file=content.name, member=member, reason=error) from None
    if not data.strip():
        return
    inside = open_content(Content(f"{content.name} ({member})", memoryview(data)))
    if inside.records is None:
        reason = "it holds no records"
        raise InputError("archive-broken", file=content.name, member=member, reason=reason)
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


def _open_files(files: TableFiles, asked: str | None) -> Opened:
    """Open several files as one, of which the first tells the format."""

    def open_one(path: str) -> Opened:
        return open_content(files.content(path), asked)

    def table() -> Table:
        return chained_table(files.name, files.paths, lambda path: open_one(path).table)

    opened = open_one(files.paths[0])
    opened.name, opened.make_table = files.name, table
    opened.several = partial(map, open_one, files.paths)
    return opened


def chained_table(name: str, parts: Sequence[str], open_part: Callable[[str], Table]) -> Table:
    """Make one table of several, each opened anew by `open_part` when it is read.

    Columns are matched by their names, wherever they are in each part.
    """
    owners: dict[str, str] = {}  # of each column: the first part that has it
    sources: list[Source] = []
    starts: list[int] = []  # rows before each part that was reached
    has_header = False
    for part in parts:
        table = open_part(part)
        sources.append(table.source)
        has_header |= table.has_header
        new = (each for each in table.names if not positions_of(tuple(owners), each))
        owners |= dict.fromkeys(new, part)
    names = tuple(owners)

    def load(positions: Sequence[int]) -> Iterator[Columns]:
        wanted = [names[i] for i in positions]
        seen: dict[str, tuple[str, str]] = {}
        n_rows = 0
        starts.clear()
        for part in parts:
            table = open_part(part)
            starts.append(n_rows)
            for columns in table.batches([_position(table, each, owners) for each in wanted]):
                n_rows += len(columns[0])
                pairs = zip(wanted, columns, strict=True)
                yield [_of_one_kind(each, column, part, seen) for each, column in pairs]

    place_of = partial(_place_among, sources, starts)
    return Table(names, load, Source(name, place_of), has_header=has_header)


def _place_among(sources: Sequence[Source], starts: Sequence[int], row: int) -> str:
    """Return the place of a row of several tables, each with the rows before it."""
    part = bisect_right(starts, row) - 1
    return sources[part].where(row - starts[part])


def _position(table: Table, name: str, owners: Mapping[str, str]) -> int:
    """Return where a column is in one of several tables."""
    found = positions_of(table.names, name)
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError("columns-alike", table=table.title, column=name, n=len(found))
    raise InputError(
        "column-in-one-file",
        table=table.title,
        column=name,
        owner=owners[name],
        columns=table.names,
    )


def _of_one_kind(name: str, column: Column, part: str, seen: dict[str, tuple[str, str]]) -> Column:
    """Refuse a column of ids that holds text in one part, and numbers in another.

    A part without any value has no type, so that it takes that of the others.
    """
    import pyarrow as pa

    if column.null_count == len(column):
        return pa.nulls(len(column))
    kind = getattr(column.type, "value_type", column.type)  # of a dictionary: its values
    word = str(kind)
    if is_text(kind):
        word = "text"
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        word = "numbers"
    elif pa.types.is_boolean(kind):
        word = "true or false"
    before, where = seen.setdefault(name, (word, part))
    is_id = squashed(name) not in NO_IDS and not name.casefold().startswith(PREFIX)
    if word != before and is_id:
        raise InputError(
            "other-kind", column=name, kind=before, file=where, other=word, other_file=part
        )
    return column
