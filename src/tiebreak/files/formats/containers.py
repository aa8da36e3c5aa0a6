"""Containers: the head and the records of a file, whatever they are wrapped in.

JSON lists, JSON lines, JSON documents, delimited text, zip archives and Arrow tables all become
an iterator of (place, record), each record a mapping of names to values.
"""

from __future__ import annotations

import csv
import io
import json
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tiebreak.errors import InputError
from tiebreak.files.content import BYTE_ORDER_MARK, Content, is_json_list
from tiebreak.files.formats.protocol import Container as ContainerName
from tiebreak.files.formats.protocol import Head, Record, RecordPlace, Records
from tiebreak.files.json_lines import refuse_columnwise
from tiebreak.files.json_stream import json_records

if TYPE_CHECKING:
    import pyarrow as pa

DELIMITERS = ",\t;|"
HEAD_SIZE = 1 << 16
BATCH = 4096  # rows of an Arrow table that are Python objects at a time
FIELD_LIMIT = 1 << 27  # characters of one field; the default of `csv` is 131,072
ZIP_MAGIC = b"PK\x03\x04"
ZSTANDARD = 93  # the number of the method, in a zip archive
LOCAL_HEADER = 30  # bytes before the name of a file in a zip archive
MEMBER = "_member"  # under which key a record of an archive knows its file
USER_FILE = re.compile(r"(?:.*/)?(?P<user>[^/]+)\.(?P<kind>jsonl|json|csv)", re.IGNORECASE)
SAMPLE_FILE = re.compile(r"samples/.*\.json")


class Opened(NamedTuple):
    """A file whose head is known and whose records can be read."""

    head: Head
    records: Records
    class_names: Mapping[str, list[str]] = {}


def open_content(content: Content) -> Opened | None:
    """Open a file; None where it holds no records that a format could know."""
    start = bytes(content.data[:HEAD_SIZE])
    if start.startswith(b"PAR1"):
        return _open_parquet(content)
    if start.startswith(ZIP_MAGIC):
        return _open_zip(content)
    text = start.removeprefix(BYTE_ORDER_MARK).lstrip()
    if text.startswith(b"{") or is_json_list(content):
        return _open_json(content)
    return _open_delimited(content, start)


def open_table(table: pa.Table, name: str) -> Opened:
    """Open an Arrow table."""

    def records() -> Iterator[tuple[RecordPlace, Record]]:
        number = 0
        for batch in table.to_batches(max_chunksize=BATCH):
            for row in batch.to_pylist():
                number += 1
                yield RecordPlace(name, "row", number), row

    first = table.slice(0, 1).to_pylist()
    head = Head("table", tuple(table.column_names), first[0] if first else {})
    return Opened(head, records)


def _open_json(content: Content) -> Opened | None:
    def records() -> Iterator[tuple[RecordPlace, Record]]:
        for number, record in enumerate(json_records(content.data, content.name), start=1):
            yield RecordPlace(content.name, "record", number), record

    is_list = is_json_list(content)
    begun = records()
    try:
        first = next(begun, None)
    except InputError:
        if is_list:
            raise
        return None  # the reader of plain JSON lines says what is wrong, and on which line
    if first is None:
        raise InputError(f"{content.name} holds an empty list: no records.")
    if not is_list and _is_at_end(begun):
        refuse_columnwise(first[1], content.name)
    container: ContainerName = "json" if is_list else "document"
    return Opened(Head(container, tuple(first[1]), first[1]), records)


def _is_at_end(records: Iterator[tuple[RecordPlace, Record]]) -> bool:
    """Tell whether no record is left; one that is broken is there, and told when it is read."""
    try:
        return next(records, None) is None
    except InputError:
        return False


def _open_delimited(content: Content, start: bytes) -> Opened | None:
    """Open CSV, TSV and the like; the delimiter is the one that makes most columns."""
    try:
        text = start.decode("utf-8-sig", errors="ignore")
        headers = {
            d: next(row for row in csv.reader(io.StringIO(text, newline=""), delimiter=d) if row)
            for d in DELIMITERS
        }
    except (csv.Error, StopIteration):
        return None
    delimiter = max(DELIMITERS, key=lambda d: len(headers[d]))
    names = [name.strip() for name in headers[delimiter]]

    def records() -> Iterator[tuple[RecordPlace, Record]]:
        return _delimited_records(content, delimiter, names)

    return Opened(Head("delimited", tuple(names), {}), records)


def _delimited_records(
    content: Content, delimiter: str, names: list[str]
) -> Iterator[tuple[RecordPlace, Record]]:
    """Yield rows by name; blank rows are no records, a row of another width is an error."""
    text = io.TextIOWrapper(
        io.BufferedReader(_Bytes(content.data)), encoding="utf-8-sig", newline=""
    )
    before = csv.field_size_limit(FIELD_LIMIT)
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    line = 1
    is_header = True
    try:
        for fields in reader:
            place = RecordPlace(content.name, "line", line)
            line = reader.line_num + 1
            if not any(fields):
                continue
            if is_header:
                is_header = False
            elif len(fields) != len(names):
                raise place.error(
                    f"expected {len(names)} columns, got {len(fields)}. Complete the row; a field "
                    "that holds the delimiter must stand in double quotes."
                )
            else:
                yield place, dict(zip(names, fields, strict=True))
    except csv.Error as error:
        raise RecordPlace(content.name, "line", line).error(f"{error}. Repair the row.") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{content.name}, after line {line}: byte 0x{error.object[error.start]:02x} is not "
            "UTF-8. Save the file again as UTF-8."
        ) from None
    finally:
        csv.field_size_limit(before)


class _Bytes(io.RawIOBase):
    """Reads a view of bytes without copying all of it."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        piece = self._data[self._at : self._at + len(target)]
        target[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def _open_zip(content: Content) -> Opened | None:
    """Open an archive with one file per person, or with one file per sample; None otherwise."""
    try:
        archive = zipfile.ZipFile(_Seekable(content.data))
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, OSError):
        return None  # the reader of plain tables says what such a file may be
    samples = [name for name in names if SAMPLE_FILE.fullmatch(name)]
    people = [name for name in names if USER_FILE.fullmatch(name)]
    if not samples and len(people) != len(names):
        return None
    members = samples or people

    def records() -> Iterator[tuple[RecordPlace, Record]]:
        for member in members:
            yield from _member_records(content, archive, member)

    first = next(records(), None)
    if first is None:
        raise InputError(f"{content.name} is a zip archive of empty files.")
    return Opened(Head("zip", tuple(first[1]), first[1]), records)


def _member_records(
    content: Content, archive: zipfile.ZipFile, member: str
) -> Iterator[tuple[RecordPlace, Record]]:
    """Yield the records of one file in an archive, each with the name of the file."""
    try:
        data = _unpacked(content.data, archive, member)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
        raise InputError(
            f"{content.name}: its file {member} cannot be read ({error}). Unpack the archive."
        ) from None
    if not data.strip():
        return
    inside = Content(f"{content.name} ({member})", memoryview(data))
    opened = open_content(inside)
    if opened is None:
        raise InputError(f"{inside.name} holds no records. Remove it from the archive.")
    stem = member.rpartition("/")[2].rpartition(".")[0]
    for place, record in opened.records():
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


class _Seekable(io.BytesIO):
    """What `zipfile` can read; an archive is small beside what is in it."""

    def __init__(self, data: memoryview) -> None:
        super().__init__(bytes(data))


def _open_parquet(content: Content) -> Opened | None:
    """Open a Parquet file where it has columns that only a format can know."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.BufferReader(pa.py_buffer(content.data)))
    except (pa.ArrowException, OSError):
        return None  # the reader of plain tables says what is wrong with it
    schema = file.schema_arrow
    names = class_names(schema)
    if not names and not any(pa.types.is_nested(field.type) for field in schema):
        return None  # a plain table

    def records() -> Iterator[tuple[RecordPlace, Record]]:
        number = 0
        for batch in file.iter_batches(batch_size=BATCH):
            for row in batch.to_pylist():
                number += 1
                yield RecordPlace(content.name, "row", number), decoded(row, names)

    first = next(records(), None)
    record = first[1] if first else {}
    return Opened(Head("table", tuple(schema.names), record), records, names)


def class_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the names of classes by column, which Hugging Face keeps beside the numbers."""
    metadata = (schema.metadata or {}).get(b"huggingface")
    if not metadata:
        return {}
    try:
        features = json.loads(metadata)["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    found = {}
    for column, feature in features.items():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else {}
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel" and inner.get("names"):
            found[column] = list(inner["names"])
    return found


def decoded(row: dict[str, Any], names: dict[str, list[str]]) -> dict[str, Any]:
    """Replace the numbers of classes by their names, column by column.

    >>> decoded({"id": 1, "label": [0, 1, -1]}, {"label": ["neg", "pos"]})
    {'id': 1, 'label': ['neg', 'pos', None]}
    """
    return row | {key: class_name(row[key], of) for key, of in names.items() if key in row}


def class_name(value: Any, names: Sequence[str]) -> Any:
    """Return the name of a class, also inside lists; -1 is no label."""
    if isinstance(value, list):
        return [class_name(one, names) for one in value]
    if not isinstance(value, int) or value >= len(names):
        return value
    return names[value] if value >= 0 else None
