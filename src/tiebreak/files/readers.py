"""Readers: responses, links, gold and labels from files and tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from tiebreak import ids
from tiebreak.arguments import MAPPING, TEXT, checks, optional
from tiebreak.errors import InputError, note
from tiebreak.files.columns import GOLD, LABELS, LINKS, RESPONSES, TASKS
from tiebreak.files.content import is_packed
from tiebreak.files.response_table import (
    ResponseColumns,
    build,
    check_twin_ids,
    default_repeats,
    find_response_columns,
    has_soft_votes,
    note_odd_classes,
    tell_order,
)
from tiebreak.files.shown_order import turn_back, with_order_column
from tiebreak.files.sources import (
    ColumnNames,
    columns_table,
    is_file,
    is_table,
    load_table,
    names_several,
    open_own,
    resolved,
    unfolded,
)
from tiebreak.files.table import Table, clean, like
from tiebreak.gold import Gold
from tiebreak.ids import MISSING, Column, Ids
from tiebreak.kernels.layout import Codes
from tiebreak.labels import Labels
from tiebreak.links import Links, Sampling, as_must, as_said
from tiebreak.responses import Repeats, Responses
from tiebreak.wording import agreeing, counted

if TYPE_CHECKING:
    from tiebreak.files.formats import FormatOptions


class Export(NamedTuple):
    """What a file of responses holds: `gold` is None where it names no known label.

    `columns` says which column was read as what, where it is a plain table; `form` is what people
    call the format of a tool, where it is one.
    """

    responses: Responses
    gold: Gold | None
    columns: dict[str, str] | None = None
    form: str | None = None


@checks(columns=optional(MAPPING), repeats=optional(TEXT), format=optional(TEXT))
def read_responses(
    source: Any,
    *,
    columns: ColumnNames | None = None,
    repeats: Repeats | None = None,
    tasks: Any = None,
    classes: Iterable[Any] | None = None,
    format: str | None = None,
    **options: Unpack[FormatOptions],
) -> Responses:
    """Read who gave which label to which task.

    Parameters
    ----------
    source
        A path, "-" (standard input), an open file, a frame (pandas, polars, pyarrow, DuckDB), a
        dictionary of columns, or (task, worker, label) rows. A pattern such as "p*.csv", a folder
        of tables or a list of paths names several files that are read as one; an address such as
        "s3://bucket/p.parquet" is read by pyarrow. Text files are CSV, TSV or JSON,
        also packed with gzip; Parquet is typed. What annotation tools and judges write (Label
        Studio, Argilla, Prodigy, MTurk …) is known by its content. A folder ``x.tb``, written by
        `write_responses`, is read at once: its repeats are settled already.
    columns
        Names of the columns, such as ``{"task": "item"}``, where they are not found.
    repeats
        What counts if a worker labelled a task twice: all, each with less weight as the worker's
        runs err together ("runs"), the "last" label, each in full ("count"), the majority
        ("vote"), or it is an "error". Not given: "runs" where a column tells runs, or the order
        in which answers were shown, else "last".
    tasks, classes
        Tasks that exist even without a response (see `read_tasks`), and classes that exist even
        if nobody chose them.
    format
        "csv", "tsv", "jsonl", "parquet" or the name of a tool's format, such as "label-studio";
        found by content if not given.
    **options
        question
            Which question, where a file holds several.
        multi_label
            Make one yes/no task of each task and label.
        task_pattern
            A regular expression that splits the ids of a batch API: its groups `task`, `run` and
            `order` by name, or its first group as the task.
        label_pattern, label_pointer
            Where a label stands inside a text: a regular expression, or a JSON pointer.
        wide
            One column per worker.
        task_columns, worker_columns
            Columns that make up the task, or the worker, together. Of a wide table
            `worker_columns` are the workers; the other columns are left out.
        order_column
            Which column tells in which order two answers were shown.
        turned
            Whether verdicts on two answers name the same answer in every order (True), or what
            was shown first and second (False), so that they are turned back.

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
    export = read_export(
        source,
        columns=columns,
        repeats=repeats,
        tasks=tasks,
        classes=classes,
        format=format,
        **options,
    )
    if export.gold is not None:
        note(f"{len(export.gold):,} known labels are in the file; read_gold reads them.")
    return export.responses


@checks(columns=optional(MAPPING), repeats=optional(TEXT), format=optional(TEXT))
def read_export(
    source: Any,
    *,
    columns: ColumnNames | None = None,
    repeats: Repeats | None = None,
    tasks: Any = None,
    classes: Iterable[Any] | None = None,
    format: str | None = None,
    **options: Unpack[FormatOptions],
) -> Export:
    """Read responses, and the known labels that came with them; see `read_responses`."""
    source = resolved(source)
    if isinstance(source, Responses):
        return Export(_extended(source, tasks, classes), None)
    if is_packed(source):
        from tiebreak.files.packed import read_packed

        return Export(_extended(read_packed(source), tasks, classes), None)
    if format is None and not options:
        source = open_own(source)
        if isinstance(source, Table):
            return _read_plain(source, columns, {}, repeats, tasks, classes)
    from tiebreak.files.formats import import_options, import_table

    imported = import_table(source, format, import_options(columns, options), RESPONSES.names)
    table = imported.table
    if not imported.is_named:
        return _read_plain(table, columns, options, repeats, tasks, classes)
    found = find_response_columns(table, None, *imported.composed(options))
    responses = _responses_of(table, found, repeats or default_repeats(found), tasks, classes)
    known = Gold.from_dict(imported.gold) if imported.gold else None
    if known is not None:  # a task may be known and have no other answer
        responses = responses.with_tasks(known.tasks)
    return Export(responses, known, form=imported.form)


def _read_plain(
    table: Table,
    columns: ColumnNames | None,
    options: FormatOptions,
    repeats: Repeats | None,
    tasks: Any,
    classes: Iterable[Any] | None,
) -> Export:
    """Read responses of a plain table, whose columns are found by their names."""
    if has_soft_votes(table, columns):
        from tiebreak.files.soft_votes import read_soft_votes

        return Export(_extended(read_soft_votes(table, columns), tasks, classes), None)
    composed = options.get("task_columns"), options.get("worker_columns")
    found = find_response_columns(table, with_order_column(columns, options), *composed)
    table = turn_back(table, found, options.get("turned"))
    if options.get("multi_label"):
        from tiebreak.files.formats import import_options
        from tiebreak.files.multi_label import split_labels

        table = split_labels(table, found, import_options(columns, options)).table
        found = find_response_columns(table, None)
    settled = repeats or default_repeats(found)
    responses = _responses_of(table, found, settled, tasks, classes)
    if settled == "last" and responses.n_repeats:
        from tiebreak.files.answer_times import note_rows_against_time

        note_rows_against_time(table, found)
    return Export(responses, None, found.understood(table))


def _responses_of(
    table: Table, whole: ResponseColumns, repeats: Repeats, tasks: Any, classes: Any
) -> Responses:
    """Build responses of the columns that were found, and weigh those that say how much."""
    found = whole  # with the order, which is part of the worker only where it is not weighed
    if repeats == "runs":
        found = whole.without_order()
    else:
        tell_order(table, whole)
    order = table.category_order(found.label)
    if order is not None:
        classes = [*order, *(classes or ())]
    built = build(
        table,
        found,
        repeats,
        tasks=None if tasks is None else read_tasks(tasks),
        classes=None if classes is None else clean("classes", classes),
    )
    responses = Responses.from_built(built, table.frame)
    if repeats == "runs" or found.can_weigh(table, responses.n_repeats):
        from tiebreak.files.panel_columns import weigh_panel

        responses = weigh_panel(table, whole, responses)
    if order is not None:
        responses = responses.with_class_order(Ids(order))
    note_odd_classes(responses)
    check_twin_ids(responses, table.source.name)
    return responses


@checks(columns=optional(MAPPING), format=optional(TEXT))
def read_links(
    source: Any,
    *,
    columns: ColumnNames | None = None,
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
        as_must(found["link"], table.source),
        said=as_said(found["link"]),
        weight=found.get("weight"),
        who=found.get("who"),
        sampling=sampling,
        frame=table.frame,
        source=table.source,
    )


@checks(columns=optional(MAPPING), format=optional(TEXT), question=optional(TEXT))
def read_gold(
    source: Any,
    *,
    columns: ColumnNames | None = None,
    format: str | None = None,
    question: str | None = None,
) -> Gold:
    """Read tasks whose class is known: columns task and label, or a mapping of task to label.

    Of a tool's export, such as Label Studio's, it reads the labels that the file says are true.
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
    if is_file(source) or names_several(source):
        from tiebreak.files.formats import import_gold, import_options

        options = import_options(columns, {"question": question})
        source, known = import_gold(source, format, options)
        if known is not None:
            return Gold.from_dict(known)
    made = unfolded(source, GOLD)
    table, found = load_table(made, GOLD, columns, format, allow_empty=True)
    return Gold.from_columns(found["task"], found["label"], source=table.source)


@checks(columns=optional(MAPPING), format=optional(TEXT))
def read_labels(
    source: Any, *, columns: ColumnNames | None = None, format: str | None = None
) -> Labels:
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
    table, found = load_table(unfolded(source, LABELS), LABELS, columns, format)
    from tiebreak.files.probability_columns import as_probabilities, read_classes

    task_code, tasks = _complete("task", found["task"], table)
    label, used = _complete("label", found["label"], table)
    _refuse_repeats(task_code, tasks, table)
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


@checks(columns=optional(MAPPING))
def read_tasks(source: Any, *, columns: ColumnNames | None = None) -> Column:
    """Read ids of tasks: a column of its own, or the column `task` of a file or table.

    `columns` names that column, such as ``{"task": "item"}``, where it is not found.

    Examples
    --------
    >>> read_tasks(["a", "b"])
    ['a', 'b']
    """
    if is_table(source):
        table, found = load_table(source, TASKS, columns, None)
        column = found["task"]
    else:
        column = clean("task", source)
        table = columns_table({"task": column})
    _complete("task", column, table)
    return column


def _complete(what: str, column: Column, table: Table) -> tuple[Codes, Ids]:
    """Encode a column in which no value may be missing."""
    codes, found = ids.encode(column)
    rows = np.flatnonzero(codes == MISSING)
    n = len(rows)
    if n:
        raise InputError(
            f"{table.title}: {counted(n, 'row')} {agreeing(n, 'have')} no {what} "
            f"({table.source.where(int(rows[0]))}). Fill it in or remove the row."
        )
    return codes, found


def _refuse_repeats(codes: Codes, tasks: Ids, table: Table) -> None:
    """Refuse a task that has two labels."""
    if len(tasks) == len(codes):
        return
    _, first = np.unique(codes, return_index=True)
    row = int(np.setdiff1d(np.arange(len(codes)), first)[0])
    earlier = int(np.flatnonzero(codes == codes[row])[0])
    raise InputError(
        f"{table.title}: task {tasks[int(codes[row])]!r} has two labels "
        f"({table.source.where(earlier)}; {table.source.where(row)}). Keep one of them."
    )


def _extended(responses: Responses, tasks: Any, classes: Iterable[Any] | None) -> Responses:
    """Add tasks without responses and classes that nobody chose."""
    if tasks is not None:
        more = like(responses.tasks.values, read_tasks(tasks), "tasks")
        responses = responses.with_tasks(ids.encode(more)[1])
    if classes is not None:
        more = like(responses.classes.values, clean("classes", classes), "classes")
        responses = responses.with_classes(ids.encode(more)[1])
    return responses
