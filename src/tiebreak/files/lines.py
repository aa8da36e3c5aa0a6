"""Lines: where in a text file a row stands. Found only when an error needs to say so."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiebreak.errors import InputError
from tiebreak.files.content import GZIP_MAGIC, Content
from tiebreak.wording import Source

SMALL = 16 << 20  # bytes kept for messages when a file cannot be read a second time
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class LineFinder:
    """Callable: row (from 0) to line (from 1) of a text file; it pickles, as sources must.

    `delimiter` is None for JSON.
    """

    delimiter: str | None
    path: Path | None = None
    data: bytes = b""

    def __call__(self, row: int) -> int:
        """Return the line on which a row starts."""
        try:
            with _open(self.path, self.data) as text:
                if self.delimiter is None:
                    return _json_line(text.read(), row)
                for number, (line, _) in enumerate(records(text, self.delimiter)):
                    if number == row + 1:  # record 0 is the header
                        return line
        except (OSError, EOFError, InputError):
            pass  # the file has changed since: what follows is the best guess
        return row + (1 if self.delimiter is None else 2)


def source_of(content: Content, delimiter: str | None) -> Source:
    """Name the source of rows; lines where they can still be found, else rows."""
    if content.path is not None:
        return Source(content.name, LineFinder(delimiter, path=content.path))
    if len(content.data) <= SMALL:
        return Source(content.name, LineFinder(delimiter, data=bytes(content.data)))
    return Source(content.name)


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


def not_text(content: Content) -> InputError:
    """Describe the first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    for start in range(0, len(content.data), CHUNK):
        chunk = bytes(content.data[start : start + CHUNK])
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(chunk, final=start + CHUNK >= len(content.data))
        except UnicodeDecodeError as error:
            at = start - pending + error.start
            line += chunk[: max(0, error.start - pending)].count(b"\n")
            return InputError(
                f"{content.name}, line {line}: byte 0x{content.data[at]:02x} at offset {at:,} is "
                "not UTF-8.\nSave the file again as UTF-8, for instance: "
                f"iconv -f WINDOWS-1252 -t UTF-8 {content.name}"
            )
        line += chunk.count(b"\n")
    return InputError(f"{content.name} is not UTF-8 text. Save it again as UTF-8.")


def open_text(content: Content) -> io.TextIOWrapper:
    """Read content as text, one line at a time, line ends kept."""
    return _open(content.path, b"" if content.path else bytes(content.data))


def _open(path: Path | None, data: bytes) -> io.TextIOWrapper:
    raw: Any = io.BytesIO(data) if path is None else path.open("rb")
    packed = raw.read(2) == GZIP_MAGIC
    raw.seek(0)
    if packed and path is not None:
        raw.close()
        raw = gzip.open(path)  # noqa: SIM115 - the text wrapper closes it
    return io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="")


def _json_line(text: str, row: int) -> int:
    for number, (at, _) in enumerate(json_objects(text, "")):
        if number == row:
            return line_at(text, at)
    raise InputError("There is no such row.")


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
