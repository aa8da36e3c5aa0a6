"""Importing: a table of responses from any source, by its format or as a plain table."""

from __future__ import annotations

import os
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.errors import GoldError, InputError, OptionError
from tiebreak.files.content import FORMATS as PLAIN
from tiebreak.files.content import Content, TableFiles, read_content
from tiebreak.files.formats.protocol import (
    LABEL_IN_TEXT,
    Format,
    Head,
    Imported,
    ImportOptions,
    KeepText,
    Record,
    RecordPlace,
)
from tiebreak.files.sources import as_table, is_file, names_several, own_columns, resolved
from tiebreak.files.table import Table

if TYPE_CHECKING:
    from tiebreak.files.formats.containers import Opened
    from tiebreak.files.formats.label_studio import StudioTasks

WIDE = "wide"


class Located(NamedTuple):
    """A source whose content is at hand, and the format that knows it, if any does."""

    source: Any  # for the reader of plain tables: a path is open by now
    name: str
    opened: Opened | None
    format: Format | None
    keys: tuple[str, ...] = ()  # columns, or keys of the first record, where they are known


def import_table(
    source: Any,
    asked: str | None,
    options: ImportOptions,
    row_names: Sequence[str],
    keep_text: KeepText | None = None,
) -> Imported:
    """Make a table of responses of any source: by its format, else as a plain table."""
    source = resolved(source)
    if options.wide or asked == WIDE or _is_wide_array(source):
        return _import_wide(source, options, row_names)
    located = locate(source, asked)
    if located.format is not None and (asked is not None or not _names_all(options)):
        return _import_format(located, asked, options, keep_text)
    _refuse_idle_options(located.name, options)
    if not isinstance(source, TableFiles):
        return Imported(_plain_table(located, asked, row_names), {}, is_named=False)
    from tiebreak.files.chained import chained_table

    def open_table(content: Content) -> Table:
        each = locate(content, asked)
        if each.format is not None and not _names_all(options):
            raise _mixed(each.name, each.format, source.files[0].path)
        return _plain_table(each, asked, row_names)

    return Imported(chained_table(source, open_table), {}, is_named=False)


def _plain_table(located: Located, asked: str | None, row_names: Sequence[str]) -> Table:
    table = _table_of_records(located) if asked is None and _is_own_table(located) else None
    return table or as_table(located.source, row_names, len(row_names), asked)


def _mixed(of_tool: str, form: Format, plain: str) -> InputError:
    return InputError(
        f"{of_tool} is of {form.title}, and {plain} is a plain table: they cannot be read "
        f"together. Make plain tables first: tiebreak convert IN -o FILE.csv"
    )


def _table_of_records(located: Located) -> Table | None:
    """Make a table of the records of JSON; None where the reader of plain tables does it."""
    from tiebreak.files.formats.json_array import LARGE, large_table_of_json, table_of_json

    opened = located.opened
    if opened is None:
        return None
    if opened.head.container != "table" and len(located.source.data) >= LARGE:
        return large_table_of_json(opened.records, opened.head, located.name)
    if opened.head.container == "json" or opened.class_names:
        return table_of_json(opened.records, located.name).with_classes(opened.class_names)
    return None


def import_gold(
    source: Any, asked: str | None, options: ImportOptions
) -> tuple[Any, dict[Hashable, Hashable] | None]:
    """Return the labels that an export says are true, and None where the file is no export.

    The source is returned too, open by now: standard input can be read once only.
    """
    located = locate(source, asked)
    if located.format is None:
        return located.source, None
    gold = _import_format(located, asked, options, None).gold
    if not gold:
        raise GoldError(f"{located.name} ({located.format.title}) marks no label as known.")
    return located.source, gold


def import_texts(
    source: Any, asked: str | None, options: ImportOptions, keep_text: KeepText
) -> bool:
    """Hand over what to show for each task of an export; tell whether the source is one."""
    if not isinstance(source, str | os.PathLike) and not names_several(source):
        return False
    located = locate(source, asked)
    if located.format is None:
        return False
    from tiebreak.files.formats.rows import Rows

    # Texts do not depend on the answers: no question need be chosen, nor one label an answer.
    rows = Rows(located.name, "", replace(options, multi_label=True), keep_text)
    for _, form, opened in _each_opened(located, asked):
        form.read(opened.records, rows)
    return True


def import_studio_tasks(source: Any, wanted: Container[str]) -> StudioTasks | None:
    """Return the tasks of an export of Label Studio as they are; None of any other file."""
    from tiebreak.files.formats.label_studio import LabelStudio, StudioTasks

    located = locate(source)
    if not isinstance(located.format, LabelStudio):
        return None
    found = StudioTasks(located.name)
    for _, _, opened in _each_opened(located, None):
        found.add(opened.records, wanted)
    return found


def _import_format(
    located: Located, asked: str | None, options: ImportOptions, keep_text: KeepText | None
) -> Imported:
    """Read the answers of a tool's file, or of several as if they stood in one."""
    from tiebreak.files.formats.rows import Rows

    rows = Rows(located.name, "", options, keep_text)
    if isinstance(located.source, TableFiles):
        rows.places = []
    titles: dict[str, None] = {}
    names: dict[str, None] = {}  # of classes
    for name, form, opened in _each_opened(located, asked):
        _refuse_idle_choices(name, form, options)
        titles[form.title] = None
        rows.title = " and ".join(titles)
        form.read(opened.records, rows)
        names |= dict.fromkeys(opened.class_names.get(rows.question or "", ()))
    imported = rows.finish()
    table = imported.table
    if names and not options.multi_label:
        table = table.with_classes({"label": list(names)})
    return imported._replace(table=table, form=rows.title)


def _each_opened(located: Located, asked: str | None) -> Iterator[tuple[str, Format, Opened]]:
    """Yield the file, or each of several, with its format, which all must have."""
    each_file: Iterable[Located] = [located]
    if isinstance(located.source, TableFiles):
        from tiebreak.files.shards import contents

        each_file = (locate(content, asked) for _, content in contents(located.source))
    for each in each_file:
        if located.format is not None and each.format is None:
            raise _mixed(located.name, located.format, each.name)
        if each.format is None or each.opened is None:
            raise InputError(f"{each.name} holds no records of a format.")
        yield each.name, each.format, each.opened


def _refuse_idle_choices(name: str, form: Format, options: ImportOptions) -> None:
    """Refuse names of columns, and places of labels, that a format has no use for."""
    idle = [role for role in options.columns if role not in form.choosable]
    if idle:
        raise OptionError(
            f"{name} is a file of {form.title}, whose {idle[0]} is known: columns= "
            "(--columns) does nothing. Leave it out, or name task, worker and label."
        )
    if options.order_column is not None or options.turned is not None:
        raise OptionError(
            f"{name} is a file of {form.title}, which says itself what was shown in which order: "
            "order_column= and turned= (--order-column, --turned, --as-shown) do nothing. Leave "
            "them out."
        )
    if options.task_pattern and LABEL_IN_TEXT not in form.choosable:
        raise OptionError(
            f"{name} is a file of {form.title}, whose ids are not split: task_pattern= "
            "(--task-pattern) does nothing. Leave it out."
        )
    if (options.label_pattern or options.label_pointer) and LABEL_IN_TEXT not in form.choosable:
        raise OptionError(
            f"{name} is a file of {form.title}, in which labels are no part of a text: "
            "label_pattern= and label_pointer= (--label-pattern, --label-pointer) do nothing."
        )


def _names_all(options: ImportOptions) -> bool:
    """Tell whether the caller names every column, so that the file is a plain table to them."""
    return {"task", "worker", "label"} <= set(options.columns)


def locate(source: Any, asked: str | None = None) -> Located:
    """Open a source and find its format; a plain table has none."""
    wanted = _named(asked)
    source = resolved(source)
    if isinstance(source, TableFiles):
        from tiebreak.files.shards import contents

        _, first = next(contents(source))
        return locate(first, asked)._replace(source=source, name=source.name)
    if is_file(source):
        source = read_content(source)
    name = source.name if isinstance(source, Content) else "The table"
    if wanted is None and (asked is not None or isinstance(source, Table)):
        return Located(source, name, None, None)
    own = own_columns(source) if isinstance(source, Content) and wanted is None else ()
    if own:
        return Located(source, name, None, None, own)
    source, opened = _opened(source, name)
    if wanted is not None:
        if opened is None:
            raise InputError(f"{name} holds no records of format {asked!r}.")
        return Located(source, name, opened, wanted, opened.head.keys)
    if opened is None:
        return Located(source, name, None, None)
    from tiebreak.files.formats.registry import format_of_head

    return Located(source, name, opened, format_of_head(opened.head), opened.head.keys)


def _opened(source: Any, name: str) -> tuple[Any, Opened | None]:
    """Open what may hold records that a format knows; return the source as tables take it."""
    from tiebreak.files.formats.containers import open_content

    if isinstance(source, Content):
        return source, open_content(source)
    from tiebreak.files.formats.frames import decoded_table, feature_names

    names = feature_names(source)
    source = decoded_table(source)
    return source, _open_objects(source, name, names)


def _open_objects(source: Any, name: str, names: Mapping[str, list[str]]) -> Opened | None:
    """Open a list of dictionaries, or a frame that has lists in it; None for all else."""
    from tiebreak.files.formats.containers import Opened, open_table
    from tiebreak.files.formats.frames import list_table

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
    if options.task_columns:
        raise OptionError(
            f"A wide table has its tasks in one column: name it with columns={{'task': "
            f"{options.task_columns[0]!r}}} (--columns task={options.task_columns[0]}), not with "
            "task_columns= (--task-columns)."
        )
    from tiebreak.files.formats import wide

    if isinstance(source, np.ndarray):
        return wide.from_array(source)
    if isinstance(source, TableFiles):
        from tiebreak.files.chained import chained_table

        def melt(content: Content) -> Table:
            return _import_wide(content, options, row_names).table

        return Imported(chained_table(source, melt), {}, is_wide=True)
    table = as_table(source, row_names, len(row_names))
    return wide.from_table(table, options.columns, options.worker_columns)


def _named(asked: str | None) -> Format | None:
    """Return the format of a name, None for a plain table; refuse what is neither."""
    if asked is None or asked.lower() in (*PLAIN, WIDE):
        return None
    from tiebreak.files.formats.registry import FORMATS

    for known in FORMATS:
        if asked.lower() == known.name:
            return known
    names = (*PLAIN, WIDE, *(known.name for known in FORMATS))
    raise OptionError.unknown("format", asked, names)


def _is_wide_array(source: Any) -> bool:
    """Tell an N × M array with gaps, which can be nothing else than one column per worker."""
    if not isinstance(source, np.ndarray) or source.ndim != 2:
        return False
    return source.dtype.kind == "f" and bool(np.isnan(source).any())


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
        "task_pattern": options.task_pattern,
        "label_pattern": options.label_pattern,
        "label_pointer": options.label_pointer,
    }
    idle = [key for key, value in given.items() if value]
    if idle:
        shown = ", ".join(f"{key}= (--{key.replace('_', '-')})" for key in idle)
        raise OptionError(f"{name} is a plain table, for which {shown} does nothing. Leave it out.")
