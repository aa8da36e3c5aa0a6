"""Plain tables: CSV and TSV, JSON and JSON lines, Parquet; several files as one.

In CSV every field is text, and only an empty one is missing. JSON and Parquet are typed.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import mmap
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from tiebreak.data.ids import Column, is_text
from tiebreak.errors import FileError, InputError, note
from tiebreak.tables.columns import EXTRAS, PREFIX, TASK, positions_of, squashed
from tiebreak.tables.json_stream import json_records, line_of_record
from tiebreak.tables.source import (
    BYTE_ORDER_MARK,
    CHUNK,
    Content,
    PlacedSource,
    RecordFinder,
    RecordPlace,
    TableFiles,
    format_of,
    opened,
    source_of,
    text_of,
)
from tiebreak.tables.table import Table, class_names, columns_of, table_of, with_class_names
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
MOST_OPEN = 100  # files held open; a process may have 256 on some systems
STRADDLING = "straddl"  # in what Arrow says of a record longer than a block
NO_IDS = frozenset(name for names in EXTRAS.values() for name in names)  # text or numbers alike


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
        return plain_table(source, format)
    if isinstance(source, TableFiles):
        return chained_table(source, lambda content: plain_table(content, format))
    return table_of(source, row_names, n_needed)


def plain_table(content: Content, asked: str | None = None) -> Table:
    """Make a table of one file."""
    form = format_of(content, asked)
    if form == "parquet":
        return _parquet_table(content)
    return _json_table(content) if form == "jsonl" else delimited_table(content, form)


# Delimited text


def delimited_table(content: Content, form: str) -> Table:
    """Make a table of a CSV or TSV file; columns are parsed when they are asked for."""
    return Delimited(content, form).table()


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
        """Return the file as a table."""
        is_large = len(self.content.data) >= LARGE_CSV
        return Table(
            tuple(self.names),
            self._load,
            source_of(self.content, partial(_line_of_row, self.delimiter), n_header=1),
            has_header=True,
            stream=self._stream if is_large else None,
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
        while True:
            # Latin-1 keeps one character per byte, so that characters consumed are bytes consumed.
            head = bytes(content.data[self.start : self.start + size]).decode("latin-1")
            lines = _TakenLines(io.StringIO(head, newline=""))
            try:
                fields = next((f for f in csv.reader(lines, delimiter=delimiter) if f), [])
            except csv.Error as error:
                if "field limit" in str(error):
                    return None
                raise InputError("quote-open", file=content.name, line=1, n=0) from None
            if lines.consumed < len(head) or self.start + len(head) >= len(content.data):
                break
            size *= 8
        try:
            names = [field.encode("latin-1").decode() for field in fields]
        except UnicodeDecodeError:
            raise not_text(content.name, content.data) from None
        return names, self.start + lines.consumed

    def _load(self, positions: Sequence[int]) -> list[Any]:
        import pyarrow as pa

        if self.end == len(self.content.data):
            return [pa.array([], pa.string()) for _ in positions]
        self._refuse_open_quote()
        try:
            table = self._parse(positions, BLOCK_SIZE)
        except pa.ArrowInvalid as error:
            if STRADDLING not in str(error):
                raise self._unreadable(error) from None
            table = self._parse(positions, len(self.content.data))  # a record longer than a block
        return list(table.columns)

    def _stream(self, positions: Sequence[int]) -> Iterator[Sequence[Any]]:
        """Yield pieces of some columns; where a record is longer than a block, the rest at once."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        self._refuse_open_quote()
        n_rows = 0
        try:
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


class _TakenLines:
    """Lines of a text, and how many characters of it were taken."""

    def __init__(self, lines: io.StringIO) -> None:
        self._lines = lines
        self.consumed = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.consumed += len(line)
            yield line


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


def not_text(name: str, data: memoryview) -> InputError:
    """Describe the first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    for start in range(0, len(data), CHUNK):
        chunk = bytes(data[start : start + CHUNK])
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(chunk, final=start + CHUNK >= len(data))
        except UnicodeDecodeError as error:
            at = start - pending + error.start
            line += chunk[: max(0, error.start - pending)].count(b"\n")
            return InputError("not-utf-8", file=name, line=line, offset=at, byte=data[at])
        line += chunk.count(b"\n")
    return InputError("not-utf-8", file=name, line=1, offset=0, byte=data[0])


# JSON


def _json_table(content: Content) -> Table:
    """Make a table of JSON objects: fast where all rows are alike, else object by object."""
    if len(content.data) >= LARGE_JSON:
        return _large_json_table(content)
    name = content.name
    if content.is_list:
        finder: Any = RecordFinder(name, "record")
        source: Source = PlacedSource(name, finder)
    else:
        source = source_of(content, line_of_record, 0)
        alike = _read_alike(content)
        if alike is not None:
            columns = alike.columns
            return Table(tuple(alike.column_names), lambda at: [columns[i] for i in at], source)
    records = list(json_records(content.data, name))
    if len(records) == 1:
        refuse_columnwise(records[0], name)
    lists = columns_of(records)
    values = list(lists.values())
    return Table(tuple(lists), lambda positions: [values[i] for i in positions], source)


def _read_alike(content: Content) -> Any:
    """Read objects that all have the keys and types of the first; None where they do not.

    The types are given, not guessed: Arrow would take text that looks like a date for one.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    head = bytes(content.data[:CHUNK]).removeprefix(BYTE_ORDER_MARK).lstrip()
    try:
        first = json.loads(head.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return None
    types = {key: _type_of(value) for key, value in first.items()}
    if not all(isinstance(value, str | int | float) for value in first.values()):
        return None
    schema = pa.schema(types)
    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    start = 3 if bytes(content.data[:3]) == BYTE_ORDER_MARK else 0
    body = pa.BufferReader(pa.py_buffer(content.data).slice(start))
    try:
        table = arrow_json.read_json(body, parse_options=options)
        table.validate(full=True)  # text is not checked to be UTF-8 otherwise
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    return table


def _large_json_table(content: Content) -> Table:
    """Make a table that reads records when they are asked for, and keeps the wanted keys only.

    The keys and types are those of the first record, as pieces must be alike.
    """
    import pyarrow as pa

    name = content.name
    first = next(json_records(content.data, name))

    def stream(positions: Sequence[int]) -> Iterator[Sequence[Any]]:
        keys = [names[i] for i in positions]
        types = [_type_of(first[key]) for key in keys]
        records = json_records(content.data, name)
        n_rows = 0
        while piece := list(islice(records, JSON_PIECE)):
            columns = []
            for key, kind in zip(keys, types, strict=True):
                values = [record.get(key) for record in piece]
                columns.append(_typed(values, kind, key, RecordPlace(name, "record", n_rows + 1)))
            yield columns
            n_rows += len(piece)

    def load(positions: Sequence[int]) -> list[Any]:
        return [pa.chunked_array(column) for column in zip(*stream(positions), strict=True)]

    names = tuple(first)
    return Table(names, load, Source(name), stream=stream)


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


def _parquet_table(content: Content) -> Table:
    """Make a table of a Parquet file; columns are read when they are asked for."""
    import pyarrow as pa

    def broken(error: Exception) -> FileError:
        return FileError("parquet-broken", file=content.name, reason=error)

    def load(positions: Sequence[int]) -> list[Any]:
        try:
            wanted = [names[i] for i in positions]
            table = with_class_names(open_parquet(content).read(columns=wanted), classes)
        except (pa.ArrowException, OSError) as error:
            raise broken(error) from None
        return [_text_if_possible(table.column(names[i])) for i in positions]

    def stream(positions: Sequence[int]) -> Iterator[Sequence[Any]]:
        if not all(_is_plain(schema.field(i).type) and names[i] not in classes for i in positions):
            yield table.read(positions)
            return
        try:
            yield from _parquet_pieces(content, [names[i] for i in positions])
        except (pa.ArrowException, OSError) as error:
            raise broken(error) from None

    def order_of(position: int) -> list[Any] | None:
        if names[position] in classes:
            return classes[names[position]]
        kind = schema.field(position).type
        if not pa.types.is_dictionary(kind) or not kind.ordered or not n_rows:
            return None
        column = open_parquet(content).read_row_group(0, columns=[names[position]]).column(0)
        return list(column.chunk(0).dictionary.to_pylist())

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
    table = Table(names, load, source, stream=stream if is_large else None, order_of=order_of)
    return table


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
    return _Chain(files, open_table).table()


class _Chain:
    """The tables of several files; of large ones one is open at a time."""

    def __init__(self, files: TableFiles, open_table: Callable[[Content], Table]) -> None:
        self.owners: dict[str, str] = {}  # of each column: the first file that has it
        self.finder = FileFinder()
        self.has_header = False
        self.is_large = files.size >= LARGE_TOGETHER
        self._files = files
        self._open_table = open_table
        self._most_open = 1 if self.is_large else MOST_OPEN
        self._paths: list[str] = []
        self._opened: dict[str, Table] = {}
        for path, content in files.contents():
            table = self._open(path, content)
            self._paths.append(path)
            self.finder.sources.append(table.source)
            self.has_header |= table.has_header
            self.is_large |= table.stream is not None
            known = Table(tuple(self.owners), table.load)
            new = (name for name in table.names if not positions_of(known, name))
            self.owners |= dict.fromkeys(new, path)

    def table(self) -> Table:
        """Return all files as one table."""
        finder: Any = self.finder
        return Table(
            tuple(self.owners),
            self._load,
            PlacedSource(self._files.name, finder),
            has_header=self.has_header,
            stream=self._stream if self.is_large else None,
            order_of=self._order_of,
        )

    def _open(self, path: str, content: Content | None) -> Table:
        """Open a table; those open before are closed where there are too many."""
        if content is None:
            raise InputError("file-emptied", file=path)
        if len(self._opened) >= self._most_open:
            self._opened.clear()
        self._opened[path] = self._open_table(content)
        return self._opened[path]

    def _table_of(self, path: str) -> Table:
        found = self._opened.get(path)
        return found or self._open(path, self._files.open(path))

    def _order_of(self, position: int) -> list[Any] | None:
        """Return the ordered categories of a column, where all files have the same."""
        name = list(self.owners)[position]
        orders = (
            t.category_order(self._position(t, name)) for t in map(self._table_of, self._paths)
        )
        first = next(orders)
        if first is None or all(order == first for order in orders):
            return first
        note("other-category-order", column=name)
        return None

    def _load(self, positions: Sequence[int]) -> list[Any]:
        """Read columns of all files at once; whole numbers beside fractions become fractions."""
        import pyarrow as pa

        joined = []
        for pieces in zip(*self._pieces(positions), strict=True):
            given = [piece for piece in pieces if kind_of(piece) is not None]
            kind = given[0].type if given else pa.string()
            if len(set(map(kind_of, given))) > 1:  # of no ids: text in one file, numbers in another
                kind = pa.string()
                given = [_decoded(piece).cast(kind) for piece in given]
            rest = iter(given)
            filled = (
                pa.nulls(len(piece), kind) if kind_of(piece) is None else next(rest)
                for piece in pieces
            )
            tables = [pa.table([piece], ["column"]) for piece in filled]
            joined.append(pa.concat_tables(tables, promote_options="permissive").column(0))
        return joined

    def _stream(self, positions: Sequence[int]) -> Iterator[Sequence[Any]]:
        """Read columns piece by piece, each piece as the first one that has a value.

        Pieces wait until every column has one, which gives its type.
        """
        first: list[Column | None] = [None] * len(positions)
        waiting: list[Sequence[Any]] = []
        for columns in self._pieces(positions):
            waiting.append(columns)
            for i, column in enumerate(columns):
                if first[i] is None and kind_of(column) is not None:
                    first[i] = column
            if not any(column is None for column in first):
                yield from ([*map(_typed_like, piece, first)] for piece in waiting)
                waiting = []
        yield from waiting  # a column without any value

    def _pieces(self, positions: Sequence[int]) -> Iterator[Sequence[Any]]:
        names = [list(self.owners)[i] for i in positions]
        seen: dict[str, tuple[str, str]] = {}  # by column: what it holds, and where
        n_rows = 0
        self.finder.starts.clear()
        for path in self._paths:
            table = self._table_of(path)
            self.finder.starts.append(n_rows)
            for columns in table.batches([self._position(table, name) for name in names]):
                for name, column in zip(names, columns, strict=True):
                    _refuse_other_kind(name, column, path, seen)
                n_rows += len(columns[0])
                yield columns

    def _position(self, table: Table, name: str) -> int:
        found = positions_of(table, name)
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


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


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
