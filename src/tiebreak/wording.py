"""Wording: numbers with their nouns, the first few of many, columns, places."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def counted(n: int, noun: str) -> str:
    """Put a number before a noun.

    >>> counted(1, "task"), counted(2000, "class")
    ('1 task', '2,000 classes')
    """
    ending = "" if n == 1 else "es" if noun.endswith("s") else "s"
    return f"{n:,} {noun}{ending}"


def byte_size(n_bytes: float) -> str:
    """Say how many bytes something takes.

    >>> byte_size(300 << 20), byte_size(3 << 29)
    ('300 MiB', '1.5 GiB')
    """
    return f"{n_bytes / 2**30:,.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:,.0f} MiB"


def agreeing(n: int, verb: str) -> str:
    """Return a verb as it stands after so many things.

    >>> agreeing(1, "are"), agreeing(1, "repeat"), agreeing(2, "have")
    ('is', 'repeats', 'have')
    """
    return {"are": "is", "have": "has"}.get(verb, f"{verb}s") if n == 1 else verb


def first_few(words: Sequence[str], most: int) -> str:
    """Join the first few words, with an ellipsis where there are more.

    >>> first_few(["a", "b", "c"], 2), first_few(["a", "b"], 2)
    ('a, b, …', 'a, b')
    """
    return ", ".join([*words[:most], "…"] if len(words) > most else words)


def cut(text: str, most: int = 60) -> str:
    """Cut a text that is long.

    >>> cut("a long text", 7)
    'a long…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


class Wording(string.Formatter):
    """Formats fields of messages, beside what Python knows, as

        {names:list}   the first few, each as Python shows it      {n:count row}    1 row, 2 rows
        {value:short}  as Python shows it, cut where it is long    {n:verb have}    has, have
        {meant:meant}  "Did you mean 'it'?", or nothing        {n:size}         of bytes

    >>> Wording().format("{n:count row} {n:verb have} no {names:list 1}", n=2, names=["a", "b"])
    "2 rows have no 'a', …"
    """

    def format_field(self, value: Any, format_spec: str) -> Any:
        kind, _, word = format_spec.partition(" ")
        if kind == "list":
            return first_few([repr(each) for each in value], int(word or 20)) or "nothing"
        if kind == "short":
            return cut(repr(value), int(word or 60))
        if kind == "count":
            return counted(value, word)
        if kind == "verb":
            return agreeing(value, word)
        if kind == "size":
            return byte_size(value)
        if kind == "meant":
            return f" Did you mean {value!r}?" if value else ""
        return super().format_field(value, format_spec)


say = Wording().format


def worded(messages: Mapping[str, Any]) -> dict[str, Callable[..., str]]:
    """Make a function of each sentence whose fields are formatted as `Wording` does."""
    return {
        code: partial(say, message) if isinstance(message, str) else message
        for code, message in messages.items()
    }


class Number(str):
    """A number as it is written: in a table it stands to the right, which ids do not."""

    __slots__ = ()


def number(value: float | None, digits: int = 3) -> Number:
    """Write a number for a cell; what is not known is a dash.

    >>> number(0.12345), number(1234), number(None), number(-0.5)
    ('0.123', '1,234', '–', '−0.500')
    """
    if value is None or value != value:
        return Number("–")
    text = f"{value:,d}" if isinstance(value, int) else f"{value:,.{digits}f}"
    return Number(text.replace("-", "−"))


def percent(share: float | None, digits: int = 1) -> Number:
    """Write a share; the space before the sign does not break.

    >>> percent(0.123).split(), percent(None)
    (['12.3', '%'], '–')
    """
    if share is None or share != share:
        return Number("–")
    return Number(f"{100.0 * share:.{digits}f}\N{NO-BREAK SPACE}%")


def clip(value: object, most: int) -> str:
    """Return a value as text on one line, of at most so many characters.

    >>> clip("a long name", 7)
    'a long…'
    """
    text = " ".join(printable(str(value)[: 4 * most + 4]).split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def aligned(rows: Sequence[Sequence[str]], *, to_right: bool = False) -> list[str]:
    """Lay cells out in columns; `to_right`: those after the first end at the same place.

    >>> aligned([["pet", "n"], ["a cat", "10"]], to_right=True)
    ['pet     n', 'a cat  10']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    put = str.rjust if to_right else str.ljust
    lines = (
        "  ".join([first.ljust(widths[0]), *map(put, others, widths[1:])])
        for first, *others in rows
    )
    return [line.rstrip() for line in lines]


class Source(NamedTuple):
    """Where rows came from: the file or table, and the place of each row where one is known.

    >>> Source("links.csv", lambda row: f"links.csv, line {row + 2}").where(0)
    'links.csv, line 2'
    """

    name: str = ""
    place_of: Callable[[int], object] | None = None

    def where(self, row: int) -> str:
        """Name the place of a row, counted from 0."""
        if self.place_of is None:
            return f"{self.name}, row {row + 1}" if self.name else f"row {row + 1}"
        return str(self.place_of(row))


NOWHERE = Source()


def printable(text: str) -> str:
    """Replace control characters and halves of characters.

    Neither HTML nor SVG may hold them, and a terminal obeys them.

    >>> printable("a" + chr(0) + "b")
    'a�b'
    """
    return UNPRINTABLE.sub("�", text)
