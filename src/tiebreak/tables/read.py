"""Readers: responses, links, gold, labels, tasks and texts from files and tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tiebreak.data import Responses, ids
from tiebreak.data.gold import Gold
from tiebreak.data.ids import Column, as_list
from tiebreak.data.ids.numbers import as_numbers, offenders
from tiebreak.data.labels import Labels
from tiebreak.errors import GoldError, InputError, OptionError, note
from tiebreak.links import Links, Sampling
from tiebreak.tables.columns import (
    CLASS_TEXTS,
    CONTENTS,
    GOLD,
    LABELS,
    LINKS,
    RESPONSES,
    SELECTION,
    SYSTEMS,
    TASKS,
    TEXTS,
    WITH_EXTRAS,
    Schema,
    find_columns,
    positions_of,
)
from tiebreak.tables.options import ReadingOptions, takes_read_options
from tiebreak.tables.plain import Found, KeepText, as_table, chained_table, open_content
from tiebreak.tables.probabilities import (
    as_probabilities,
    complete,
    has_soft_votes,
    read_classes,
    read_soft_votes,
)
from tiebreak.tables.responses import read_rows, read_table
from tiebreak.tables.source import (
    Content,
    TableFiles,
    is_file,
    is_packed,
    names_several,
    opened,
    resolved,
)
from tiebreak.tables.table import Table, is_column, is_frame, like, stripped, to_arrow
from tiebreak.tables.wide import array_to_long, found_wide, is_wide_array, to_long

Read = TypeVar("Read")

SCHEMAS = {
    "responses": WITH_EXTRAS,
    "labels": LABELS,
    "links": LINKS,
    "gold": GOLD,
    "given": GOLD,
    "truth": GOLD,
    "tasks": TASKS,
    "among": TASKS,
    "texts": TEXTS,
    "systems": SYSTEMS,
    "selection": SELECTION,
}
OWN_COLUMNS = frozenset(  # no tool has a file of these columns alone
    ("task", "worker", "label", "weight", "run", "order", "group", "confidence")
)
OF_TOOLS = ("question", "task_pattern", "label_pattern", "label_pointer")
Names = Mapping[str, object] | None
SETTLED = ("repeats", "multi_label", "wide", "task_columns", "worker_columns", "turned", *OF_TOOLS)


class Export(NamedTuple):
    """What a file of responses holds: `gold` is None where it names no known label.

    `columns` says which column was read as what, where it is a plain table; `form` is what people
    call the format of a tool, where it is one.
    """

    responses: Responses
    gold: Gold | None
    columns: dict[str, str] | None = None
    form: str | None = None


class EveryRow(NamedTuple):
    """Columns task, worker, label and those of runs, order, confidence … of every response."""

    columns: dict[str, Column]
    gold: dict[Hashable, Hashable]


class Wide(NamedTuple):
    """A source with one column per worker, before its workers are chosen."""

    source: Any  # a table, an array, or several files
    keys: tuple[str, ...] = ()


@takes_read_options
def read_responses(source: Any, **options: Any) -> Responses:
    """Read which worker gave which label to which task.

    Parameters
    ----------
    source
        A path, "-" (standard input), an open file, a frame (pandas, polars, pyarrow, DuckDB), a
        dictionary of columns, or (task, worker, label) rows. A pattern such as "p*.csv", a folder
        of tables or a list of paths names several files that are read as one; an address such as
        "s3://bucket/p.parquet" is read by pyarrow. Text files are CSV, TSV or JSON, also packed
        with gzip; Parquet is typed. What annotation tools and judges write (Label Studio, Argilla,
        Prodigy, MTurk …) is recognised by its content, and so is a table with one column per
        worker. A folder ``x.tb``, written by `write_responses`, is read at once: its repeats are
        settled already.
    columns
        Names of the columns, such as ``{"task": "item"}``, where they are not found.
    format
        "csv", "tsv", "jsonl", "parquet" or the name of a tool's format, such as "label-studio";
        found by content if not given.
    question
        Which question, where a file holds several.
    repeats
        What counts if a worker labelled a task twice: all, each with less weight as the worker's
        runs err together ("runs"), the "last" label, each in full ("count"), the majority
        ("vote"), or it is an "error". Not given: "runs" where a column tells runs, or the order
        in which answers were shown, else "last".
    tasks, classes
        Tasks that exist even without a response (see `read_tasks`), and classes that exist even
        if nobody chose them.
    fold_labels
        Join labels that differ only in case, spaces or Unicode form.
    multi_label
        Make one yes/no task of each task and label.
    wide
        One column per worker. Not given: as the table looks; False: never.
    task_columns, worker_columns
        Columns that make up the task, or the worker, together. Of a wide table
        `worker_columns` are the workers; the other columns are left out.
    order_column
        Which column tells in which order two answers were shown.
    turned
        Whether verdicts on two answers name the same answer in every order (True), or what
        was shown first and second (False), so that they are turned back.
    task_pattern
        A regular expression that splits the ids of a batch API: its groups `task`, `run` and
        `order` by name, or its first group as the task.
    label_pattern, label_pointer
        Where a label stands inside a text: a regular expression, or a JSON pointer.

    Raises
    ------
    FileError, ResponseError, InputError
        Where the file cannot be read, or its rows cannot be used.

    Examples
    --------
    >>> read_responses([("a", "ann", "cat"), ("b", "ann", "dog"), ("b", "bob", "dog")])
    Responses(3 responses, 2 tasks, 2 workers, 2 classes)
    >>> read_responses({"task": ["a", "b"], "worker": ["ann", "ann"], "label": [1, 0]}).classes
    Ids([0, 1], n=2)
    """
    export = read_export(source, **options)
    if export.gold is not None:
        note("gold-in-file", n=len(export.gold))
    return export.responses


@takes_read_options
def read_export(source: Any, **options: Any) -> Export:
    """Read responses, and the known labels that came with them; see `read_responses`."""
    how = _options(options)
    source = open_responses(source, how)
    if how.tasks is not None:
        how = replace(how, tasks=read_tasks(how.tasks))
    if isinstance(source, Responses):
        return Export(_extended(source, how), None)
    if is_packed(source):
        from tiebreak.tables.array_folder import read_packed

        how.refuse(SETTLED, str(source), "it was settled when the responses were packed")
        return Export(_extended(read_packed(source), how), None)
    if isinstance(source, Table) and has_soft_votes(source, how.named):
        return Export(_extended(read_soft_votes(source, how.named), how), None)
    made = _long(source, how)
    responses, columns = read_table(made.table, made.options, is_own=made.is_own)
    known = Gold.from_dict(made.gold) if made.gold else None
    if known is not None:  # a task may be known and have no other answer
        responses = responses.with_tasks(known.tasks)
        if how.fold_labels:
            known = known.with_labels_like(responses.classes)
    return Export(responses, known, None if made.is_own else columns, made.form)


def read_every_row(
    source: Any, keep_text: Callable[[Hashable, str], object] | None = None, **options: Any
) -> EveryRow:
    """Read every response of a file, repeats and all, as columns.

    `keep_text` is called with each task, and what to show for it.
    """
    how = _options(options)
    source = open_responses(source, how)
    if isinstance(source, Responses) or is_packed(source):
        raise InputError("packed-rows", source=source)
    made = _long(source, how, keep_text)
    return EveryRow(read_rows(made.table, made.options, is_own=made.is_own), made.gold)


class Long(NamedTuple):
    """A table with a row per response, how it is read on, and what else was in the file.

    `is_own`: its columns are known to be task, worker, label, as a format or a wide table was read.
    """

    table: Table
    options: ReadingOptions
    is_own: bool = True
    gold: dict[Hashable, Hashable] = {}  # noqa: RUF012 - never changed
    form: str | None = None


def _long(source: Any, how: ReadingOptions, keep_text: KeepText | None = None) -> Long:
    """Make a long table of an opened source: a table, a wide one, or a file of a tool."""
    if isinstance(source, Found):
        from tiebreak.tables.formats import read_format

        imported = read_format(source, how, keep_text)
        rest = replace(how, columns=None, order_column=None)
        return Long(imported.table, rest, gold=imported.gold, form=imported.form)
    table = _melted(source, how) if isinstance(source, Wide) else _if_wide(source, how)
    if table is None:
        return Long(source, how, is_own=False)
    names: dict[str, Any] = dict.fromkeys(
        ("columns", "order_column", "task_columns", "worker_columns")
    )
    return Long(table, replace(how, **names))


def read_links(
    source: Any,
    *,
    columns: Names = None,
    format: str | None = None,
    sampling: Sampling | None = None,
) -> Links:
    """Read which tasks must, or cannot, be of the same class.

    Columns are left, right and link (must, cannot or duplicate), and optionally weight (above 0;
    the log-odds that the link is right) and who (where the link comes from). See `read_responses`
    for what `source`, `columns` and `format` may be; rows are (left, right, link, weight, who),
    of which the last two may be left out. `sampling` says how the links came about: "pairs" were
    drawn or asked, "duplicates" are copies of one task; None: must-links of a source without
    cannot-links are duplicates, which is reported.

    Examples
    --------
    >>> links = read_links([("a", "b", "must"), ("a", "c", "cannot")])
    >>> links.must.tolist()
    [True, False]
    """
    if isinstance(source, Links):
        return source
    table, found = load_table(source, LINKS, columns, format, allow_empty=True)
    return Links.from_columns(
        found["left"],
        found["right"],
        found["link"],
        weight=found.get("weight"),
        who=found.get("who"),
        sampling=sampling,
        frame=table.frame,
        source=table.source,
    )


def read_gold(
    source: Any, *, columns: Names = None, format: str | None = None, question: str | None = None
) -> Gold:
    """Read tasks whose class is known: columns task and label, or a mapping of task to label.

    Of a tool's export, such as Label Studio's, it reads the labels that the file marks as true.
    See `read_responses` for what `source`, `columns`, `format` and `question` may be.

    Examples
    --------
    >>> read_gold({"a": "cat", "b": "dog"})
    Gold(2 tasks, 2 classes)
    >>> read_gold({"task": ["a", "b"], "label": ["cat", "dog"]}).to_dict()
    {'a': 'cat', 'b': 'dog'}
    """
    if isinstance(source, Gold):
        return source
    how = ReadingOptions(columns=columns, format=format, question=question)
    if is_file(source) or names_several(source):
        source = opened(source)
        found = _found(source, how.format)
        if found.format is not None:
            from tiebreak.tables.formats import read_format

            gold = read_format(found, how).gold
            if not gold:
                raise GoldError("no-gold", file=found.name, format=found.format.title)
            return Gold.from_dict(gold)
    table, read = load_table(_unfolded(source, GOLD), GOLD, columns, format, allow_empty=True)
    how.refuse(["question"], table.title, "it is a table of gold")
    return Gold.from_columns(read["task"], read["label"], source=table.source)


def read_labels(source: Any, *, columns: Names = None, format: str | None = None) -> Labels:
    """Read labels that tiebreak, or another program, has written.

    Columns are task and label, and optionally probability and one ``probability_<class>`` per
    class. See `read_responses` for what `source`, `columns` and `format` may be.

    Examples
    --------
    >>> read_labels([("a", "cat", 0.9), ("b", "dog", 0.8)]).best()
    {'a': 'cat', 'b': 'dog'}
    """
    if isinstance(source, Labels):
        return source
    table, found = load_table(_unfolded(source, LABELS), LABELS, columns, format)
    task, tasks = complete("task", found["task"], table)
    label, used = complete("label", found["label"], table)
    if len(tasks) < len(task):
        _, first = np.unique(task, return_index=True)
        row = int(np.setdiff1d(np.arange(len(task)), first)[0])
        earlier = int(np.flatnonzero(task == task[row])[0])
        where = table.source.where(earlier), table.source.where(row)
        raise InputError("two-labels", table=table.title, task=tasks[int(task[row])], where=where)
    classes = read_classes(table, used)
    said = found.get("probability")
    return Labels(
        tasks=tasks,
        classes=classes.names,
        label=classes.code_of_used[label],
        probability=None if said is None else as_probabilities("probability", said, table.source),
        probabilities=classes.probabilities,
        frame=table.frame,
    )


def read_tasks(source: Any, *, columns: Names = None, format: str | None = None) -> Column:
    """Read ids of tasks: a column of its own, or the column `task` of a file or table.

    Examples
    --------
    >>> read_tasks(["a", "b"]).to_pylist()
    ['a', 'b']
    """
    is_objects = isinstance(source, list) and source and isinstance(source[0], Mapping)
    if isinstance(source, Table | Mapping) or is_file(source) or is_objects or is_frame(source):
        table, found = load_table(source, TASKS, columns, format)
        column = found["task"]
    else:
        column = to_arrow("task", source)
        table = Table(("task",), lambda _: [[column]])
    complete("task", column, table)
    return column


def read_texts(
    source: Any, *, columns: Names = None, format: str | None = None
) -> dict[Hashable, str]:
    """Read what tasks look like: columns task and text. A task without a text is left out.

    Examples
    --------
    >>> read_texts([("a", "A cat."), ("b", None)])
    {'a': 'A cat.'}
    """
    return _texts_of(source, TEXTS, columns, format)


def read_class_texts(
    source: Any, *, columns: Names = None, format: str | None = None
) -> dict[Hashable, str]:
    """Read what classes mean: columns class and text. A class without a text is left out.

    Examples
    --------
    >>> read_class_texts([("cat", "Any feline."), ("dog", None)])
    {'cat': 'Any feline.'}
    """
    return _texts_of(source, CLASS_TEXTS, columns, format)


def read_contents(
    source: Any, *, columns: Names = None, format: str | None = None
) -> dict[str, dict[Hashable, str]]:
    """Read all that a page can show of tasks: columns text, markdown, image, audio, as there are.

    Examples
    --------
    >>> read_contents({"task": ["a", "b"], "image": ["a.png", None]})
    {'image': {'a': 'a.png'}}
    """
    table, found = load_table(source, CONTENTS, columns, format)
    if len(found) == 1:
        raise InputError("nothing-to-show", table=table.title)
    tasks = as_list(found.pop("task"))
    return {
        name: {
            task: str(value)
            for task, value in zip(tasks, as_list(column), strict=True)
            if task is not None and value is not None
        }
        for name, column in found.items()
    }


def read_systems(
    source: Any, *, columns: Names = None, format: str | None = None
) -> dict[Hashable, str]:
    """Read which system each task is about: columns task and system, or a mapping.

    >>> read_systems({"a": "new", "b": "old"})
    {'a': 'new', 'b': 'old'}
    """
    return _texts_of(_unfolded(source, SYSTEMS), SYSTEMS, columns, format)


def read_selection(
    source: Any, *, columns: Names = None, format: str | None = None
) -> dict[Hashable, float]:
    """Read with which chance each task was drawn to be labelled: above 0, up to 1.

    >>> read_selection([("a", 0.5), ("b", 1)])
    {'a': 0.5, 'b': 1.0}
    """
    table, found = load_table(_unfolded(source, SELECTION), SELECTION, columns, format)
    values = found["probability"]
    numbers, _ = as_numbers(values)
    wrong = np.flatnonzero(~((numbers > 0.0) & (numbers <= 1.0)))
    if len(wrong):
        raise InputError("no-chance", n=len(wrong), shown=offenders(wrong, values, table.source))
    return dict(zip(as_list(found["task"]), numbers.tolist(), strict=True))


def load_table(
    source: Any, schema: Schema, columns: Names, format: str | None, *, allow_empty: bool = False
) -> tuple[Table, dict[str, Column]]:
    """Make a table of the source and read the columns of its schema."""
    how = ReadingOptions(columns=columns, format=format)
    table = as_table(source, schema.names, len(schema.needed), how.format)
    positions = find_columns(table, schema, how.named)
    read = stripped(table, table.read(list(positions.values()), allow_empty=allow_empty))
    return table, dict(zip(positions, read, strict=True))


class OpenTable(NamedTuple):
    """A table, or what else responses come from, with the names that were given to its columns."""

    source: Any
    columns: dict[str, object]
    options: dict[str, Any] = {}  # noqa: RUF012 - of the reader; never changed

    def read(self, reader: Callable[..., Read], **options: Any) -> Read:
        """Read the table with one of the readers of this package."""
        return reader(self.source, columns=self.columns, **self.options, **options)


def open_tables(
    sources: Mapping[str, Any], columns: Mapping[str, object], **options: Any
) -> dict[str, OpenTable]:
    """Open tables, by what they hold (see SCHEMAS), and share out the names of columns.

    A name goes to each table that has a use for it and a column of that name. One that no table
    has goes to the first that could use it, whose reader then says what is wrong. Sources that
    are None are left out; a key that no table can use is refused. `options` are those of reading
    the responses.

    Examples
    --------
    >>> responses = {"item": ["a"], "worker": ["ann"], "label": ["cat"]}
    >>> gold = {"task": ["a"], "truth": ["cat"]}
    >>> opened = open_tables({"responses": responses, "gold": gold}, {"task": "item"})
    >>> opened["responses"].columns, opened["gold"].columns
    ({'task': 'item'}, {})
    """
    given = {what: source for what, source in sources.items() if source is not None}
    found: dict[str, OpenTable] = {}
    for what, source in given.items():
        if what == "responses":
            how = _options({"columns": columns, **options})
            found[what] = OpenTable(open_responses(source, how), {}, options)
        else:
            schema = SCHEMAS[what]
            table = (
                source if is_packed(source) else as_table(source, schema.names, len(schema.needed))
            )
            found[what] = OpenTable(table, {})
    tables = {what: each for what, each in found.items() if isinstance(each.source, Table)}
    responses = found.get("responses")
    keys = None if responses is None else getattr(responses.source, "keys", None)
    is_wide = responses is not None and isinstance(responses.source, Wide)
    for role, name in columns.items():
        users = [each for what, each in tables.items() if role in SCHEMAS[what].names]
        if responses is not None and keys is not None:  # of a tool's file, or of a wide table
            is_own = name in keys and (role == "task" or not is_wide)
            if is_own or len(found) == 1:
                responses.columns[role] = name
                continue
        if not users:
            raise _without_use(role, tables)
        holders = [each for each in users if positions_of(each.source.names, str(name))]
        for each in holders or users[:1]:
            each.columns[role] = name
    return found


def open_responses(source: Any, options: ReadingOptions) -> Any:
    """Open a source of responses: return a `Table`, `Wide`, `Found` of a format, or as it is."""
    source = resolved(source)
    if isinstance(source, Responses | Table | Wide | Found) or is_packed(source):
        return source
    if options.wide or str(options.format).lower() == "wide" or is_wide_array(source):
        if isinstance(source, np.ndarray):
            return Wide(source)
        source = opened(source)
        if isinstance(source, TableFiles):
            return Wide(source)
        table = as_table(source, RESPONSES.names, len(RESPONSES.needed))
        return Wide(table, table.names)
    source = opened(source)
    found = _found(source, options.format)
    names_all = {"task", "worker", "label"} <= set(options.named)
    if found.format is not None and (options.format is not None or not names_all):
        return found
    _refuse_of_tools(options, found.name)
    if not isinstance(source, TableFiles):
        return found.first.table()
    path = source.files[0].path

    def open_one(content: Content) -> Table:
        each = _found(content, options.format)
        if each.format is not None and not names_all:
            from tiebreak.tables.formats import mixed

            raise mixed(each.name, each.format, path)
        return each.first.table()

    return chained_table(source, open_one)


def _found(source: Any, asked: str | None) -> Found:
    """Find the format of a source; a text with our own columns only is of no tool."""
    if isinstance(source, Content) and asked is None:
        source = open_content(source)
        head = source.head
        if (
            head
            and head.container == "delimited"
            and OWN_COLUMNS.issuperset(map(str.strip, head.keys))
        ):
            return Found(source.name, source, None, lambda: iter([source]))
    from tiebreak.tables.formats import find

    return find(source, asked)


def _refuse_of_tools(options: ReadingOptions, name: str) -> None:
    options.refuse(OF_TOOLS, name, "it is a plain table")


def _options(given: Mapping[str, Any]) -> ReadingOptions:
    """Make options of the arguments of a reader; refuse names that are none."""
    unknown = sorted(given.keys() - ReadingOptions.__dataclass_fields__.keys())
    if unknown:
        raise TypeError(f"there is no option of reading {unknown[0]!r}")
    return ReadingOptions(**given)


def _if_wide(table: Table, options: ReadingOptions) -> Table | None:
    """Make a long table of one that is wide without anybody having said so."""
    is_said = options.wide is False or options.task_columns or options.worker_columns
    return None if is_said or options.order_column else found_wide(table, options.named)


def _melted(wide: Wide, options: ReadingOptions) -> Table:
    """Make a long table of a wide source."""
    idle = [role for role in options.named if role != "task"]
    if idle:
        raise OptionError("wide-role", role=idle[0])
    if options.task_columns:
        raise OptionError("wide-task-columns", column=options.task_columns[0])
    _refuse_of_tools(options, "A wide table")
    if isinstance(wide.source, np.ndarray):
        return array_to_long(wide.source)
    if isinstance(wide.source, TableFiles):
        return chained_table(
            wide.source,
            lambda content: to_long(
                open_content(content).table(), options.named, options.worker_columns
            ),
        )
    return to_long(wide.source, options.named, options.worker_columns)


def _extended(responses: Responses, options: ReadingOptions) -> Responses:
    """Add tasks without responses and classes that nobody chose."""
    if options.tasks is not None:
        more = like(responses.tasks.values, options.tasks, "tasks")
        responses = responses.with_tasks(ids.encode(more)[1])
    if options.classes is not None:
        more = like(responses.classes.values, options.classes, "classes")
        responses = responses.with_classes(ids.encode(more)[1])
    return responses.with_folded_labels() if options.fold_labels else responses


def _unfolded(source: Any, schema: Schema) -> Any:
    """Turn a mapping of task to value into columns; a mapping of columns stays as it is."""
    task, value = schema.needed
    if is_column(source) and hasattr(source, "index") and hasattr(source, "to_frame"):
        return {task: source.index, value: source}  # a Series of pandas
    if not isinstance(source, Mapping):
        return source
    values = list(source.values())
    is_named = {str(key).strip().casefold() for key in source} >= set(schema.needed)
    if values and all(is_column(v) or (is_named and isinstance(v, tuple)) for v in values):
        return source
    return {task: list(source), value: values}


def _texts_of(
    source: Any, schema: Schema, columns: Names, format: str | None
) -> dict[Hashable, str]:
    """Read a table of two columns, ids and texts; an id without a text is left out."""
    _, found = load_table(source, schema, columns, format)
    rows = zip(*map(as_list, found.values()), strict=True)
    given = [(key, str(text)) for key, text in rows if text is not None]
    texts = dict(given)
    if len(texts) < len(given):
        note("texts-twice", n=len(given) - len(texts))
    return texts


def _without_use(role: str, tables: Mapping[str, OpenTable]) -> OptionError:
    if not tables:
        return OptionError("columns-of-packed")
    allowed = dict.fromkeys(name for what in tables for name in SCHEMAS[what].names)
    return OptionError.unknown("columns: the key", role, tuple(allowed))
