"""The registry of formats: which one a file has, found by content, and how it is read.

A new format is one module with a class (see `Format`), a line in FORMATS, and a file in
`tests/files/formats`.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tiebreak.errors import GoldError, InputError, OptionError
from tiebreak.files.categories import with_class_names
from tiebreak.files.content import FORMATS as PLAIN
from tiebreak.files.content import Content, read_content
from tiebreak.files.formats import wide
from tiebreak.files.formats.argilla import Argilla, ArgillaFlat
from tiebreak.files.formats.batch_api import BatchApi
from tiebreak.files.formats.containers import Opened, open_content, open_table
from tiebreak.files.formats.doccano import Doccano
from tiebreak.files.formats.evaluations import Inspect, Promptfoo
from tiebreak.files.formats.frames import decoded_table, feature_names, list_table
from tiebreak.files.formats.json_array import LARGE, large_table_of_json, table_of_json
from tiebreak.files.formats.label_studio import LabelStudio, LabelStudioTable
from tiebreak.files.formats.list_columns import ListColumns
from tiebreak.files.formats.mturk import MTurk
from tiebreak.files.formats.pairs import PairwiseVerdicts
from tiebreak.files.formats.prodigy import Prodigy
from tiebreak.files.formats.protocol import (
    LABEL_IN_TEXT,
    Format,
    Head,
    ImportOptions,
    Record,
    RecordPlace,
)
from tiebreak.files.formats.rows import Imported, KeepText, Rows
from tiebreak.files.formats.toloka import Toloka
from tiebreak.files.sources import as_table
from tiebreak.files.table import Table

FORMATS: tuple[Format, ...] = (  # the first that knows a file reads it
    LabelStudio(),
    LabelStudioTable(),
    Argilla(),
    ArgillaFlat(),
    Prodigy(),
    MTurk(),
    Toloka(),
    BatchApi(),
    PairwiseVerdicts(),
    Inspect(),
    Promptfoo(),
    Doccano(),
    ListColumns(),
)
WIDE = "wide"


class Located(NamedTuple):
    """A source whose content is at hand, and the format that knows it, if any does."""

    source: Any  # for the reader of plain tables: a path is open by now
    name: str
    opened: Opened | None
    format: Format | None


def import_table(
    source: Any,
    asked: str | None,
    options: ImportOptions,
    row_names: Sequence[str],
    keep_text: KeepText | None = None,
) -> Imported:
    """Make a table of responses of any source: by its format, else as a plain table."""
    if options.wide or asked == WIDE or wide.is_wide_array(source):
        return _import_wide(source, options, row_names)
    located = locate(source, asked)
    if located.format is not None and (asked is not None or not _names_all(options)):
        return _import_format(located, options, keep_text)
    _refuse_idle_options(located.name, options)
    opened = located.opened
    names = {} if opened is None else opened.class_names
    if opened is not None and asked is None and _is_own_table(located):
        if opened.head.container != "table" and len(located.source.data) >= LARGE:
            table = large_table_of_json(opened.records, opened.head, located.name)
            return Imported(table, {}, is_named=False)
        if opened.head.container == "json" or names:
            table = with_class_names(table_of_json(opened.records, located.name), names)
            return Imported(table, {}, is_named=False)
    table = as_table(located.source, row_names, len(row_names), asked)
    return Imported(table, {}, is_named=False)


def import_gold(
    source: Any, asked: str | None, options: ImportOptions
) -> tuple[Any, dict[Hashable, Hashable] | None]:
    """Return the labels that an export says are true, and None where the source is no export.

    The source is returned too, open by now: standard input can be read once only.
    """
    if not _is_file(source):
        return source, None
    located = locate(source, asked)
    if located.format is None:
        return located.source, None
    gold = _import_format(located, options, None).gold
    if not gold:
        raise GoldError(f"{located.name} ({located.format.title}) marks no label as known.")
    return located.source, gold


def import_texts(
    source: Any, asked: str | None, options: ImportOptions, keep_text: KeepText
) -> bool:
    """Hand over what to show for each task of an export; tell whether the source is one."""
    if not isinstance(source, str | os.PathLike):
        return False
    located = locate(source, asked)
    if located.format is None:
        return False
    _import_format(located, options, keep_text)
    return True


def _import_format(
    located: Located, options: ImportOptions, keep_text: KeepText | None
) -> Imported:
    form = located.format
    if form is None or located.opened is None:
        raise InputError(f"{located.name} holds no records of a format.")
    idle = [role for role in options.columns if role not in form.choosable]
    if idle:
        raise OptionError(
            f"{located.name} is a file of {form.title}, whose {idle[0]} is known: columns= "
            "(--columns) does nothing. Leave it out, or name task, worker and label."
        )
    if (options.label_pattern or options.label_pointer) and LABEL_IN_TEXT not in form.choosable:
        raise OptionError(
            f"{located.name} is a file of {form.title}, in which labels are no part of a text: "
            "label_pattern= and label_pointer= (--label-pattern, --label-pointer) do nothing."
        )
    rows = Rows(located.name, form.title, options, keep_text)
    form.read(located.opened.records, rows)
    imported = rows.finish()
    names = located.opened.class_names.get(rows.question or "")
    table = imported.table
    if names is not None and not options.multi_label:
        table = with_class_names(table, {"label": names})
    return imported._replace(table=table, form=form.title)


def _names_all(options: ImportOptions) -> bool:
    """Tell whether the caller names every column, so that the file is a plain table to them."""
    return {"task", "worker", "label"} <= set(options.columns)


def locate(source: Any, asked: str | None = None) -> Located:
    """Open a source and find its format; a plain table has none."""
    wanted = _named(asked)
    if _is_file(source):
        source = read_content(source)
    name = source.name if isinstance(source, Content) else "The table"
    if asked is not None and wanted is None:
        return Located(source, name, None, None)
    if isinstance(source, Content):
        opened = open_content(source)
    else:
        names = feature_names(source)
        source = decoded_table(source)
        opened = _open_objects(source, name, names)
    if wanted is not None:
        if opened is None:
            raise InputError(f"{name} holds no records of format {asked!r}.")
        return Located(source, name, opened, wanted)
    known = () if opened is None else FORMATS
    found = next((form for form in known if opened and form.looks_like(opened.head)), None)
    return Located(source, name, opened, found)


def _is_file(source: Any) -> bool:
    """Tell a path or an open file; a table can be read too, but by columns."""
    if isinstance(source, Table):
        return False
    return isinstance(source, str | os.PathLike) or hasattr(source, "read")


def _open_objects(source: Any, name: str, names: Mapping[str, list[str]]) -> Opened | None:
    """Open a list of dictionaries, or a frame that has lists in it; None for all else."""
    if isinstance(source, list) and source and all(isinstance(row, Mapping) for row in source):

        def records() -> Iterator[tuple[RecordPlace, Record]]:
            for number, row in enumerate(source, start=1):
                yield RecordPlace(name, "row", number), row

        return Opened(Head("json", tuple(source[0]), source[0]), records)
    table = list_table(source)
    return None if table is None else open_table(table, name)._replace(class_names=names)


def _import_wide(source: Any, options: ImportOptions, row_names: Sequence[str]) -> Imported:
    idle = [role for role in options.columns if role != "task"]
    if idle:
        raise OptionError(
            f"A wide table has one column per worker, so none is the {idle[0]}: leave it out of "
            "columns= (--columns)."
        )
    if isinstance(source, np.ndarray):
        return wide.from_array(source)
    return wide.from_table(as_table(source, row_names, len(row_names)), options.columns)


def _named(asked: str | None) -> Format | None:
    """Return the format of a name, None for a plain table; refuse what is neither."""
    if asked is None or asked.lower() in (*PLAIN, WIDE):
        return None
    for known in FORMATS:
        if asked.lower() == known.name:
            return known
    names = (*PLAIN, WIDE, *(known.name for known in FORMATS))
    raise OptionError.unknown("format", asked, names)


def _is_own_table(located: Located) -> bool:
    """Tell whether a plain file is one that the reader of plain tables does not know."""
    opened = located.opened
    if opened is None or not isinstance(located.source, Content):
        return False
    return bool(opened.class_names) or opened.head.container in ("json", "document")


def _refuse_idle_options(name: str, options: ImportOptions) -> None:
    """Refuse options that only formats with questions or texts have."""
    given = {
        "question": options.question,
        "label_pattern": options.label_pattern,
        "label_pointer": options.label_pointer,
    }
    idle = [key for key, value in given.items() if value]
    if idle:
        shown = ", ".join(f"{key}= (--{key.replace('_', '-')})" for key in idle)
        raise OptionError(f"{name} is a plain table, for which {shown} does nothing. Leave it out.")
