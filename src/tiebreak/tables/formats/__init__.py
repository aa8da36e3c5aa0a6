"""Formats: the files in which annotation tools and judges keep labels, recognised by content.

A new format is a line in one of the tables FORMATS (a name, a title, how it is recognised, a
function that reads it), and a file in `tests/tables/formats`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from tiebreak.errors import InputError, OptionError
from tiebreak.tables.formats import annotation, judges, lists
from tiebreak.tables.formats.judges import LABEL_IN_TEXT
from tiebreak.tables.formats.records import AnswerRows, Entries, Entry, Format
from tiebreak.tables.formats.spans import SpanAnswers
from tiebreak.tables.options import ReadingOptions
from tiebreak.tables.plain import KeepText, Opened, open_source
from tiebreak.tables.responses import Long
from tiebreak.tables.source import FORMATS as PLAIN

__all__ = ["FORMATS", "Format", "find", "read_format", "read_marked", "read_texts", "records_of"]

FORMATS: tuple[Format, ...] = (*annotation.FORMATS, *judges.FORMATS, *lists.FORMATS)


def find(source: Any, asked: str | None = None) -> Opened:
    """Open a source and find its format; a plain table has none."""
    opened = open_source(source, asked if asked is not None and asked.lower() in PLAIN else None)
    opened.format = format_of(opened, asked)
    return opened


def format_of(file: Opened, asked: str | None) -> Format | None:
    """Return the format of a file, as asked for or recognised; None for a plain table."""
    if asked is None:
        return next((f for f in FORMATS if file.container and f.looks_like(file)), None)
    if asked.lower() in PLAIN:
        return None
    for known in FORMATS:
        if asked.lower() == known.name:
            if not file.container:
                raise InputError("no-records-of-format", file=file.name, format=asked)
            return known
    raise OptionError.unknown("format", asked, (*PLAIN, "wide", *(form.name for form in FORMATS)))


def read_format(found: Opened, options: ReadingOptions, keep_text: KeepText | None = None) -> Long:
    """Read the answers of a tool's file, or of several as if they were one."""
    rows = AnswerRows(found.name, "", options, keep_text)
    titles: dict[str, None] = {}
    names: dict[str, None] = {}  # of classes
    for each, form, records in _each(found, options.format):
        _refuse_idle(each.name, form, options)
        titles[form.title] = None
        rows.title = " and ".join(titles)
        form.read(records, rows)
        names |= dict.fromkeys(each.classes.get(rows.question or "", ()))
    return rows.finish(list(names))


def read_texts(source: Any) -> dict[Hashable, str] | None:
    """Return what to show for each task of an export; None where the file is a plain table."""
    texts: dict[Hashable, str] = {}
    found = find(source)
    if found.format is None:
        return None
    _collected(found, texts.setdefault)
    return texts


def read_marked(source: Any) -> SpanAnswers:
    """Return the texts of an export in which spans are marked, and the tokens that it names."""
    return _collected(find(source)).spans


def _collected(found: Opened, keep_text: KeepText | None = None) -> AnswerRows:
    # Texts do not depend on the answers: no question need be chosen, nor one label an answer.
    rows = AnswerRows(found.name, "", ReadingOptions(multi_label=True), keep_text)
    for _, form, records in _each(found, None):
        form.read(records, rows)
    return rows


def mixed(tool: str, form: Format, plain: str) -> InputError:
    """Describe a file of a tool beside a plain table."""
    return InputError("tool-and-table", file=tool, format=form.title, plain=plain)


def records_of(found: Opened) -> Iterator[Entry]:
    """Yield the records of a tool's file, or of several."""
    for _, _, records in _each(found, None):
        yield from records()


def _each(found: Opened, asked: str | None) -> Iterator[tuple[Opened, Format, Entries]]:
    """Yield the file, or each of several, with its format, which all must have."""
    for each in found.files():
        form = format_of(each, asked)
        if form is None and found.format is not None:
            raise mixed(next(found.files()).name, found.format, each.name)
        if form is None or each.records is None:
            raise InputError("no-records-of-format", file=each.name, format=asked)
        yield each, form, _entries(each.records)


def _entries(records: Callable[[], Iterator[Any]]) -> Entries:
    return lambda: (Entry(at, record) for at, record in records())


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
