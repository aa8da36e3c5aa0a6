"""JSON of any size, one record at a time: a list of objects, or objects one after another.

The text is decoded in chunks; `raw_decode` takes one object off the front of the buffer. Where
the buffer ends inside an object, the next chunk is added, twice as large each time, so that one
large object costs no more than a few attempts:

    buffer    [{"id": 1}, {"id": 2}, {"i        two records, then more text is needed
    buffer    {"id": 3}, {"id": 4}]             what was left, and the next chunk
"""

from __future__ import annotations

import codecs
import json
import mmap
from collections.abc import Iterator
from typing import Any

from tiebreak.errors import InputError
from tiebreak.tables.source import not_text

CHUNK = 1 << 20
NEAR_END = 64  # characters; an error this close to the end of the buffer may be a cut
BLANKS = " \t\r\n"
RELEASED = 1 << 26  # bytes; of a mapped file, pages that were read are given back at this step


def json_values(data: memoryview, name: str, chunk: int = CHUNK) -> Iterator[tuple[int, Any]]:
    r"""Yield the number (from 1) and the value of each record.

    >>> [value for _, value in json_values(memoryview(b'[{"a": 1}, {"a": 2}]'), "x.json")]
    [{'a': 1}, {'a': 2}]
    >>> [value for _, value in json_values(memoryview(b'{"a": 1}\n{"a": 2}'), "x.jsonl")]
    [{'a': 1}, {'a': 2}]
    """
    text = _Buffer(data, name, chunk)
    is_list = text.peek() == "["
    number = 0
    if is_list:
        text.take("[")
        if text.peek() == "]":
            return
        if not text.peek():
            raise text.broken(0, "the list has no ']'; the file may not be complete")
    while text.peek():
        number += 1
        yield number, text.value(number)
        if not is_list:
            continue
        after = text.peek()
        if after == "]":
            text.take("]")
            break
        if after and after != ",":
            raise text.broken(number, "it is not followed by ',' or ']'")
        text.take(",")
        if not after or not text.peek():
            raise text.broken(number, "the list has no ']' after it; the file may not be complete")
    if is_list and text.peek():
        raise text.broken(number, "the list is followed by something else")


def json_records(data: memoryview, name: str) -> Iterator[dict[str, Any]]:
    """Yield records that must be objects."""
    for number, value in json_values(data, name):
        if not isinstance(value, dict):
            is_list = data[:CHUNK].tobytes().lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"["
            line = None if is_list else line_of_record(data, number - 1)
            kind = type(value).__name__
            raise InputError("no-object", file=name, record=number, line=line, type=kind)
        yield value


def line_of_record(data: memoryview, row: int) -> int:
    """Return the line on which a record starts; objects one after another only."""
    text = _Buffer(data, "", CHUNK)
    for number in range(row):
        text.value(number)
    text.peek()
    return text.line_at(0)


class _Buffer:
    """Text that is decoded as far as it is needed."""

    def __init__(self, data: memoryview, name: str, chunk: int) -> None:
        self._data = data
        self._name = name
        self._chunk = chunk
        self._offset = 0  # in bytes, of what is not yet decoded
        self._released = 0  # in bytes, of pages given back
        self._text = ""
        self._at = 0  # in characters, of what is not yet taken
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._raw_decode = json.JSONDecoder().raw_decode

    def peek(self) -> str:
        """Return the next character that is no blank; empty at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in BLANKS:
                    return self._text[self._at]
                self._at += 1
            if not self._more(self._chunk):
                return ""

    def take(self, character: str) -> None:
        """Step over the character that `peek` has shown."""
        self._at += len(character)

    def value(self, number: int) -> Any:
        """Take one value off the front."""
        self.peek()
        size = self._chunk
        while True:
            try:
                value, self._at = self._raw_decode(self._text, self._at)
                return value
            except json.JSONDecodeError as error:
                is_end = error.pos >= len(self._text) or error.msg.startswith("Unterminated")
                if (is_end or error.pos >= len(self._text) - NEAR_END) and self._more(size):
                    size *= 2
                    continue
                reason = "the file ends inside it" if is_end else f"this is not JSON: {error.msg}"
                raise self.broken(number, reason, error.pos) from None
            except (RecursionError, ValueError) as error:  # nested too deeply; endless digits
                raise self.broken(number, str(error)) from None

    def line_at(self, ahead: int) -> int:
        """Return the line so many characters after what is not yet taken."""
        done = self._data[: self._offset]
        pieces = (bytes(done[at : at + CHUNK]) for at in range(0, len(done), CHUNK))
        n_lines = sum(piece.count(b"\n") for piece in pieces)
        return 1 + n_lines - self._text.count("\n", self._at + ahead)

    def _more(self, size: int) -> bool:
        """Decode some more bytes; return whether there were any."""
        if self._offset >= len(self._data):
            return False
        piece = bytes(self._data[self._offset : self._offset + size])
        self._offset += len(piece)
        try:
            fresh = self._decoder.decode(piece, final=self._offset >= len(self._data))
        except UnicodeDecodeError:
            raise not_text(self._name, self._data) from None
        self._release()
        self._text = self._text[self._at :] + fresh
        self._at = 0
        return True

    def _release(self) -> None:
        """Give back the pages of a mapped file: a file of any size then takes little memory."""
        mapped = self._data.obj
        end = self._offset // RELEASED * RELEASED
        if end > self._released and isinstance(mapped, mmap.mmap) and hasattr(mapped, "madvise"):
            mapped.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
            self._released = end

    def broken(self, number: int, reason: str, at: int | None = None) -> InputError:
        """Describe what is wrong with a record, at a place in the text or where it is taken."""
        at = self._at if at is None else at
        near = self._text[max(self._at - 20, at - 20, 0) : at + 20]
        line = self.line_at(at - self._at)
        fields = {"record": number, "line": line, "reason": reason, "near": near}
        return InputError("bad-json", file=self._name, **fields)
