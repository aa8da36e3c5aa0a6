"""Text files as spreadsheets save them: UTF-16, or with `sep=;` as the first line."""

from __future__ import annotations

import re

from tiebreak.errors import InputError

UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
SEPARATOR_LINE = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=(?P<mark>[^\r\n]*?)"?(?P<end>\r?\n)', re.I)
SEPARATORS = (b",", b";", b"\t", b"|")


def as_plain_utf8(data: memoryview, name: str) -> memoryview | None:
    r"""Return the same table as plain UTF-8 text; None where it is that already.

    The line `sep=;` becomes a blank one, so that lines keep their numbers.

    >>> bytes(as_plain_utf8(memoryview("a;b".encode("utf-16")), "x.csv"))
    b'a;b'
    >>> bytes(as_plain_utf8(memoryview(b"sep=;" + b"\n" + b"a;b"), "x.csv"))
    b'\na;b'
    """
    is_changed = bytes(data[:2]) in UTF_16_MARKS
    if is_changed:
        data = memoryview(_from_utf_16(data, name).encode())
    first_line = SEPARATOR_LINE.match(bytes(data[:64]))
    if first_line is None:
        return data if is_changed else None
    if first_line["mark"] not in SEPARATORS:
        mark = first_line["mark"].decode(errors="replace")
        raise InputError(
            f"{name} says that {mark!r} separates its fields. Save it with a comma, a semicolon, "
            "a tab or '|' instead."
        )
    return memoryview(first_line["end"] + bytes(data[first_line.end() :]))


def _from_utf_16(data: memoryview, name: str) -> str:
    try:
        return str(data, "utf-16")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} begins as UTF-16 text, but is none at offset {error.start:,}. "
            "Save it again as UTF-8."
        ) from None
