"""Formats: the files in which annotation tools and judges keep labels, recognised by content.

A new format is a line in one of the tables FORMATS (a name, a title, how it is recognised, a
function that reads it), and a file in `tests/tables/formats`.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Container, Hashable, Iterator, Mapping
from io import BytesIO
from typing import Any, NamedTuple

from tiebreak.errors import InputError, OptionError
from tiebreak.tables.formats import annotation, judges, lists
from tiebreak.tables.formats.annotation import MEMBER, StudioTasks
from tiebreak.tables.formats.judges import LABEL_IN_TEXT
from tiebreak.tables.formats.records import Format, Head, Imported, KeepText, Record, Records, Rows
from tiebreak.tables.json_stream import json_records
from tiebreak.tables.options import ReadingOptions
from tiebreak.tables.plain import Delimited, open_parquet, refuse_columnwise
from tiebreak.tables.source import FORMATS as PLAIN
from tiebreak.tables.source import (
    Content,
    RecordPlace,
    TableFiles,
    format_of,
    format_of_name,
    opened,
)
from tiebreak.tables.table import (
    Table,
    class_names,
    is_frame,
    table_of,
    values_of,
    with_class_names,
)

__all__ = ["FORMATS", "Found", "Imported", "find", "read_format", "read_texts", "studio_tasks"]

FORMATS: tuple[Format, ...] = (*annotation.FORMATS, *judges.FORMATS, *lists.FORMATS)
WIDE = "wide"
BATCH = 4096  # rows of an Arrow table that are Python objects at a time
ZSTANDARD = 93  # the number of the method, in a zip archive
LOCAL_HEADER = 30  # bytes before the name of a file in a zip archive
USER_FILE = re.compile(r"(?:.*/)?(?P<user>[^/]+)\.(?P<kind>jsonl|json|csv)", re.IGNORECASE)
SAMPLE_FILE = re.compile(r"samples/.*\.json")


class Found(NamedTuple):
    """An opened source, and the format that knows it, if any does.

    `keys` are its columns or the keys of its first record, where they are known; `class_names` are
    those that the file itself keeps, by column.
    """

    source: Any
    name: str
    format: Format | None = None
    records: Records | None = None
    keys: tuple[str, ...] = ()
    class_names: Mapping[str, list[str]] = {}


class Opened(NamedTuple):
    """A file whose head is known and whose records can be read."""

    head: Head
    records: Records
    class_names: Mapping[str, list[str]] = {}


def find(source: Any, asked: str | None = None) -> Found:
    """Open a source and find its format; a plain table has none."""
    wanted = _named(asked)
    source = opened(source)
    if isinstance(source, TableFiles):
        _, first = next(source.contents())
        return find(first, asked)._replace(source=source, name=source.name)
    name = source.name if isinstance(source, Content) else "The table"
    if wanted is None and asked is not None:
        return Found(source, name)
    if isinstance(source, Content):
        found = _open_content(source)
    else:
        names = class_names(source)
        if not isinstance(source, Table) and is_frame(source):
            source = table_of(source, (), 0)  # once: a stream of Arrow cannot be read again
        found = _open_frame(source, name, names)
    if wanted is not None and found is None:
        raise InputError("no-records-of-format", file=name, format=asked)
    if found is None:
        return Found(source, name)
    form = wanted or next((form for form in FORMATS if form.looks_like(found.head)), None)
    return Found(source, name, form, found.records, found.head.keys, found.class_names)


def read_format(
    found: Found, options: ReadingOptions, keep_text: KeepText | None = None
) -> Imported:
    """Read the answers of a tool's file, or of several as if they were one."""
    rows = Rows(found.name, "", options, keep_text)
    if isinstance(found.source, TableFiles):
        rows.places = []
    titles: dict[str, None] = {}
    names: dict[str, None] = {}  # of classes
    for each, form, records in _each(found, options.format):
        _refuse_idle(each.name, form, options)
        titles[form.title] = None
        rows.title = " and ".join(titles)
        form.read(records, rows)
        names |= dict.fromkeys(each.class_names.get(rows.question or "", ()))
    imported = rows.finish()
    if names and not options.multi_label:
        imported = imported._replace(table=imported.table.with_classes({"label": list(names)}))
    return imported


def read_texts(source: Any, asked: str | None = None) -> dict[Hashable, str] | None:
    """Return what to show for each task of an export; None where the file is a plain table."""
    texts: dict[Hashable, str] = {}
    found = find(source, asked)
    if found.format is None:
        return None
    # Texts do not depend on the answers: no question need be chosen, nor one label an answer.
    options = ReadingOptions(multi_label=True)

    def keep(task: Hashable, text: str) -> None:
        texts.setdefault(task, text)

    rows = Rows(found.name, "", options, keep)
    for _, form, records in _each(found, asked):
        form.read(records, rows)
    return texts


def studio_tasks(source: Any, wanted: Container[str]) -> StudioTasks | None:
    """Return the tasks of an export of Label Studio as they are; None of any other file."""
    found = find(source)
    if found.format is None or found.format.name != "label-studio":
        return None
    tasks = StudioTasks(found.name)
    for _, _, records in _each(found, None):
        tasks.add(records, wanted)
    return tasks


def mixed(tool: str, form: Format, plain: str) -> InputError:
    """Describe a file of a tool beside a plain table."""
    return InputError("tool-and-table", file=tool, format=form.title, plain=plain)


def _each(found: Found, asked: str | None) -> Iterator[tuple[Found, Format, Records]]:
    """Yield the file, or each of several, with its format, which all must have."""
    each_file: Iterator[Found] = iter([found])
    if isinstance(found.source, TableFiles):
        each_file = (find(content, asked) for _, content in found.source.contents())
    for each in each_file:
        if found.format is not None and each.format is None:
            raise mixed(found.name, found.format, each.name)
        if each.format is None or each.records is None:
            raise InputError("no-records-of-format", file=each.name, format=asked)
        yield each, each.format, each.records


def _refuse_idle(name: str, form: Format, options: ReadingOptions) -> None:
    """Refuse names of columns, and places of labels, that a format has no use for."""
    title = form.title
    options.refuse(["order_column", "turned"], name, f"{title} says in which order")
    idle = [role for role in options.named if role not in form.can_choose]
    if idle:
        raise OptionError("column-known", file=name, format=title, role=idle[0])
    if LABEL_IN_TEXT not in form.can_choose:
        options.refuse(["task_pattern"], name, f"{title} has ids that are not split")
        why = f"labels of {title} are not inside a text"
        options.refuse(["label_pattern", "label_pointer"], name, why)


def _named(asked: str | None) -> Format | None:
    """Return the format of a name, None for a plain table; refuse what is neither."""
    if asked is None or asked.lower() in (*PLAIN, WIDE):
        return None
    for known in FORMATS:
        if asked.lower() == known.name:
            return known
    raise OptionError.unknown("format", asked, (*PLAIN, WIDE, *(form.name for form in FORMATS)))


def _open_content(content: Content) -> Opened | None:
    """Open a file; None where it holds no records that a format could know."""
    if bytes(content.data[:4]) == b"PK\x03\x04":
        return _open_zip(content)
    form = format_of(content, None)
    if form == "parquet":
        return _open_parquet(content)
    if content.is_json:
        return _open_json(content)
    text = Delimited(content, format_of_name(content.name)[0])
    return Opened(Head("delimited", tuple(text.names), {}), text.records)


def _open_json(content: Content) -> Opened:
    def records() -> Iterator[tuple[RecordPlace, Record]]:
        for number, record in enumerate(json_records(content.data, content.name), start=1):
            yield RecordPlace(content.name, "record", number), record

    begun = records()
    first = next(begun, None)
    if first is None:
        raise InputError("list-empty", file=content.name)
    if not content.is_list and _is_at_end(begun):
        refuse_columnwise(first[1], content.name)
    container = "json" if content.is_list else "document"
    return Opened(Head(container, tuple(first[1]), first[1]), records)


def _is_at_end(records: Iterator[Any]) -> bool:
    """Return whether no record is left; one that is broken is there, and reported when read."""
    try:
        return next(records, None) is None
    except InputError:
        return False


def _open_zip(content: Content) -> Opened | None:
    """Open an archive with one file per person, or with one file per sample; None otherwise."""
    try:
        archive = zipfile.ZipFile(BytesIO(content.data))
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, OSError):
        return None  # the reader of plain tables says what such a file may be
    samples = [name for name in names if SAMPLE_FILE.fullmatch(name)]
    people = [name for name in names if USER_FILE.fullmatch(name)]
    if not samples and len(people) != len(names):
        return None

    def records() -> Iterator[tuple[RecordPlace, Record]]:
        for member in samples or people:
            yield from _member_records(content, archive, member)

    first = next(records(), None)
    if first is None:
        raise InputError("archive-empty", file=content.name)
    return Opened(Head("zip", tuple(first[1]), first[1]), records)


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
    inside = Content(f"{content.name} ({member})", memoryview(data))
    found = _open_content(inside)
    if found is None:
        raise InputError("archive-member", file=inside.name)
    stem = member.rpartition("/")[2].rpartition(".")[0]
    for place, record in found.records():
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


def _open_parquet(content: Content) -> Opened | None:
    """Open a Parquet file where it has columns of lists, which only a format can know."""
    import pyarrow as pa

    try:
        file = open_parquet(content)
    except (pa.ArrowException, OSError):
        return None  # the reader of plain tables says what is wrong with it
    schema = file.schema_arrow
    names = class_names(schema)
    if not any(pa.types.is_nested(field.type) for field in schema):
        return None

    def records() -> Iterator[tuple[RecordPlace, Record]]:
        number = 0
        for batch in file.iter_batches(batch_size=BATCH):
            for row in with_class_names(pa.Table.from_batches([batch]), names).to_pylist():
                number += 1
                yield RecordPlace(content.name, "row", number), row

    first = next(records(), None)
    return Opened(Head("table", tuple(schema.names), first[1] if first else {}), records, names)


def _open_frame(source: Any, name: str, names: Mapping[str, list[str]]) -> Opened | None:
    """Open a list of dictionaries, or a frame that has lists in it; None for all else."""
    is_objects = isinstance(source, list) and source
    if is_objects and all(isinstance(row, Mapping) for row in source):

        def objects() -> Iterator[tuple[RecordPlace, Record]]:
            for number, row in enumerate(source, start=1):
                yield RecordPlace(name, "row", number), row

        return Opened(Head("json", tuple(source[0]), source[0]), objects)
    if not isinstance(source, Table) or source.source.name:
        return None  # a table of a file was looked at
    table = source
    columns = table.load(range(len(table.names)))
    firsts = [values_of(column[:1]) for column in columns]
    if not all(firsts) or not any(isinstance(value, list) for (value,) in firsts):
        return None
    record = {key: value for key, (value,) in zip(table.names, firsts, strict=True)}

    def records() -> Iterator[tuple[RecordPlace, Record]]:
        lists = map(values_of, columns)
        for number, row in enumerate(zip(*lists, strict=True), start=1):
            yield RecordPlace(name, "row", number), dict(zip(table.names, row, strict=True))

    return Opened(Head("table", table.names, record), records, names)
