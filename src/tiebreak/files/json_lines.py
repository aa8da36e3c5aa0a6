"""JSON lines: one object per row. Numbers stay numbers, text stays text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tiebreak.errors import InputError
from tiebreak.files.columns import TASK, squashed
from tiebreak.files.content import (
    BYTE_ORDER_MARK,
    CHUNK,
    Content,
    is_json_list,
    not_text,
    source_of,
)
from tiebreak.files.json_stream import json_records
from tiebreak.files.table import Table
from tiebreak.ids import Column
from tiebreak.wording import Source

if TYPE_CHECKING:
    import pyarrow as pa


def json_table(content: Content) -> Table:
    """Make a table of JSON objects: fast where all rows are alike, else object by object."""
    columns = _read_alike(content) or _read_each(content)
    names = tuple(columns)
    return Table(
        names=names,
        load=lambda positions: [columns[names[i]] for i in positions],
        source=Source(content.name)
        if is_json_list(content)
        else source_of(content, line_of_object, 0),
    )


def table_of_records(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Turn objects into columns, None where an object lacks a key.

    >>> table_of_records([{"task": "a"}, {"task": "b", "label": 1}])
    {'task': ['a', 'b'], 'label': [None, 1]}
    """
    keys = dict.fromkeys(key for record in records for key in record)
    return {key: [record.get(key) for record in records] for key in keys}


def refuse_columnwise(record: Mapping[str, Any], name: str) -> None:
    """Refuse the only object of a file where it holds a whole table, as pandas writes it.

    df.to_json(path)        {"task": {"0": "a", "1": "b"}, "label": {"0": "x", "1": "y"}}
    by columns              {"task": ["a", "b"], "label": ["x", "y"]}
    orient="split"          {"columns": ["task", "label"], "index": [0, 1], "data": […]}

    Lists of workers and labels, and none of tasks, are the answers to one task.
    """
    if len(record) < 2:
        return
    keys = set(record)
    values = list(record.values())
    is_split = keys == {"columns", "index", "data"} or keys == {"schema", "data"}
    has_tasks = any(squashed(str(key)) in {TASK.name, *TASK.others} for key in keys)
    is_lists = has_tasks and _are_alike(values, list)
    if not is_split and not is_lists and not _are_alike(values, dict):
        return
    raise InputError(
        f"{name} holds a whole table in one object. Write one object per row; with pandas: "
        "df.to_json(path, orient='records', lines=True)"
    )


def _are_alike(values: list[Any], kind: type) -> bool:
    """Tell whether all values are lists of one length, or dictionaries with the same keys."""
    if not all(isinstance(value, kind) for value in values):
        return False
    shapes = [len(value) if kind is list else value.keys() for value in values]
    return bool(values[0]) and all(shape == shapes[0] for shape in shapes)


def json_objects(text: str, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the offset and the value of each JSON object; anything else is an error."""
    decode = json.JSONDecoder().raw_decode
    at = _skip_blanks(text, 0)
    while at < len(text):
        try:
            value, end = decode(text, at)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{name}, line {error.lineno}: this is not JSON: {error.msg} "
                f"(column {error.colno}). Write one object per line: "
                '{"task": …, "worker": …, "label": …}'
            ) from None
        except (RecursionError, ValueError) as error:  # nested too deeply; endless digits
            raise InputError(f"{name}, line {line_at(text, at)}: {error}.") from None
        if not isinstance(value, dict):
            raise InputError(
                f"{name}, line {line_at(text, at)}: expected a JSON object, "
                f"got {type(value).__name__}. Write one object per line, not one list of them."
            )
        yield at, value
        at = _skip_blanks(text, end)


def line_at(text: str, offset: int) -> int:
    """Return the line (from 1) of an offset."""
    return text.count("\n", 0, offset) + 1


def line_of_object(text: io.TextIOWrapper, row: int) -> int:
    """Return the line on which an object starts."""
    whole = text.read()
    for number, (at, _) in enumerate(json_objects(whole, "")):
        if number == row:
            return line_at(whole, at)
    raise InputError("There is no such row.")


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _read_alike(content: Content) -> dict[str, Column] | None:
    """Read objects that all have the keys and types of the first one; None where they do not.

    The types are given, not guessed: Arrow would take text that looks like a date for one.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    schema = _schema_of_first(content)
    if schema is None:
        return None
    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    start = 3 if content.data[:3] == BYTE_ORDER_MARK else 0
    body = pa.BufferReader(pa.py_buffer(content.data).slice(start))
    try:
        table = arrow_json.read_json(body, parse_options=options)
        table.validate(full=True)  # text is not checked to be UTF-8 otherwise
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    return dict(zip(table.column_names, table.columns, strict=True))


def _schema_of_first(content: Content) -> pa.Schema | None:
    import pyarrow as pa

    known = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    head = bytes(content.data[:CHUNK]).removeprefix(BYTE_ORDER_MARK).lstrip()
    try:
        first = json.loads(head.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return None
    if not isinstance(first, dict) or not {type(value) for value in first.values()} <= set(known):
        return None
    return pa.schema({key: known[type(value)] for key, value in first.items()})


def _read_each(content: Content) -> dict[str, Column]:
    try:
        text = str(content.data, "utf-8-sig")
    except UnicodeDecodeError:
        raise not_text(content) from None
    if text.lstrip().startswith("["):
        records = list(json_records(content.data, content.name))
    else:
        records = [record for _, record in json_objects(text, content.name)]
    if len(records) == 1:
        refuse_columnwise(records[0], content.name)
    columns = table_of_records(records)
    return {key: _one_type(values) for key, values in columns.items()}


def _one_type(values: list[Any]) -> Column:
    """Make an Arrow array of values of one type; others stay Python objects."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if kinds and not any(kinds <= alike for alike in ({str}, {bool}, {int, float})):
        return values
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return values  # whole numbers beyond 64 bits, or halves of characters
