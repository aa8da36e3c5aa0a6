"""Readers: responses, links, gold, labels, tasks and texts from files and tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tiebreak.data import Responses
from tiebreak.data.gold import Gold
from tiebreak.data.ids import Column, as_numbers, encode, offenders
from tiebreak.data.labels import SCORES, Labels, Scores
from tiebreak.data.scale import with_scale
from tiebreak.data.sequences import Sequences
from tiebreak.errors import GoldError, InputError, OptionError, note
from tiebreak.links import Constraints, Links, Sampling
from tiebreak.links.constraints import of_columns
from tiebreak.tables import columns as schemas
from tiebreak.tables.columns import Schema, find_columns, positions_for, positions_of
from tiebreak.tables.json_stream import json_records, line_of_record
from tiebreak.tables.options import ReadingOptions, takes_read_options
from tiebreak.tables.plain import KeepText, Opened, chained_table, open_source
from tiebreak.tables.probabilities import (
    as_probabilities,
    complete,
    has_soft_votes,
    read_classes,
    read_soft_votes,
)
from tiebreak.tables.responses import Long, read_rows, read_table
from tiebreak.tables.source import (
    CONLL,
    FORMATS,
    Content,
    format_of,
    is_file,
    is_packed,
    located,
    names_several,
)
from tiebreak.tables.table import (
    Table,
    is_column,
    is_frame,
    like,
    read_stripped,
    to_arrow,
)
from tiebreak.tables.wide import found_wide, has_gaps, matrix_table, to_long
from tiebreak.wording import Source

Read = TypeVar("Read")

SCHEMAS = {
    "responses": schemas.WITH_EXTRAS,
    "labels": schemas.LABELS,
    "links": schemas.LINKS,
    **dict.fromkeys(("gold", "given", "truth"), schemas.GOLD),
    **dict.fromkeys(("tasks", "among"), schemas.TASKS),
    "features": schemas.FEATURES,
    "texts": schemas.TEXTS,
    "sequences": schemas.SEQUENCES,
    "systems": schemas.SYSTEMS,
    "selection": schemas.SELECTION,
}
OWN_COLUMNS = frozenset(  # no tool has a file of these columns alone
    ("task", "worker", "label", "weight", "run", "order", "group", "confidence")
)
OF_TOOLS = ("question", "task_pattern", "label_pattern", "label_pointer")
SETTLED = ("repeats", "multi_label", "wide", "task_columns", "worker_columns", "turned", *OF_TOOLS)
Names = Mapping[str, object] | None


class Export(NamedTuple):
    """What a file of responses holds: `gold` is None where it names no known label.

    `columns` says which column was read as what, where it is a plain table; `form` is what people
    call the format of a tool, where it is one.
    """

    responses: Responses
    gold: Gold | None
    columns: dict[str, str] | None = None
    form: str | None = None
    sequences: Sequences | None = None  # where the answers are tags of tokens


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
    nested
        Which of two spans counts where one annotator's overlap: the "longest" or the "first".
    label_pattern, label_pointer
        Where a label stands inside a text: a regular expression, or a JSON pointer.
    scale
        The scale that labels are on, such as "1..5": see `VariationalBayes`.

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
    how = ReadingOptions(**options)
    opened = open_responses(source, how)
    if how.tasks is not None:
        how = replace(how, tasks=read_tasks(how.tasks))
    if isinstance(opened, Responses):
        return Export(_extended(opened, how), None)
    if is_packed(opened):
        from tiebreak.tables.array_folder import read_packed

        how.refuse(SETTLED, str(opened), "it was settled when the responses were packed")
        return Export(_extended(read_packed(opened), how), None)
    made = _long(opened, how)
    if not made.is_own and has_soft_votes(made.table, how.named):
        return Export(_extended(read_soft_votes(made.table, how.named), how), None)
    responses, columns = read_table(made)
    known = Gold.from_dict(made.gold) if made.gold else None
    if known is not None:  # a task may be known and have no other answer
        responses = responses.with_tasks(known.tasks)
        if how.fold_labels:
            known = known.with_labels_like(responses.classes)
    named = None if made.is_own else columns
    return Export(responses, known, named, made.form, _sequences_of(made))


def read_every_row(
    source: Any, keep_text: KeepText | None = None, **options: Any
) -> tuple[dict[str, Column], Mapping[Hashable, Hashable], Sequences | None]:
    """Read every response of a file, repeats and all, as columns, and what else is in the file.

    Columns are task, worker, label and those of runs, order, confidence … as there are; then come
    known labels and, where answers are tags of tokens, sequences. `keep_text` is called with each
    task, and what to show for it.
    """
    how = ReadingOptions(**options)
    opened = open_responses(source, how)
    if not isinstance(opened, Opened):
        raise InputError("packed-rows", source=opened)
    made = _long(opened, how, keep_text)
    return read_rows(made), made.gold, _sequences_of(made)


def open_responses(source: Any, how: ReadingOptions) -> Any:
    """Open a source and find out whether it is of a tool, or wide.

    Responses, and the path of a folder of packed ones, are returned as they are.
    """
    source = located(source)
    if isinstance(source, Responses | Opened) or is_packed(source):
        return source
    is_matrix = isinstance(source, np.ndarray) and (how.wide or has_gaps(source))
    opened = open_source(matrix_table(source) if is_matrix else source, _plain_format(how))
    opened.is_wide = bool(is_matrix or how.wide)
    if opened.is_wide:
        return opened
    names_all = {"task", "worker", "label"} <= set(how.named) and how.format is None
    opened.format = None if names_all else _tool_of(opened, how)
    if opened.format is not None:
        return opened
    how.refuse(OF_TOOLS, opened.name, "it is a plain table")
    for each in opened.files() if opened.several and not names_all else ():
        other = _tool_of(each, how)
        if other is not None:
            from tiebreak.tables.formats import mixed

            raise mixed(each.name, other, next(opened.files()).name)
    return opened


def _plain_format(how: ReadingOptions) -> str | None:
    is_plain = how.format is not None and how.format.lower() in (*FORMATS, CONLL)
    return how.format if is_plain else None


def _tool_of(opened: Opened, how: ReadingOptions) -> Any:
    """Return the format of a tool that a source is in; None for a plain table."""
    is_text = opened.container == "delimited" and how.format is None
    if is_text and OWN_COLUMNS.issuperset(map(str.strip, opened.keys)):
        return None  # without a look at all formats, which takes as long as a small table
    from tiebreak.tables.formats import format_of

    return format_of(opened, how.format)


def _sequences_of(made: Long) -> Sequences | None:
    columns: Any = made.sequences
    return None if columns is None else Sequences.from_columns(**columns)


def _long(opened: Opened, how: ReadingOptions, keep_text: KeepText | None = None) -> Long:
    """Make a long table of an opened source: a table, a wide one, or a file of a tool."""
    if opened.format is not None:
        from tiebreak.tables.formats import read_format

        return read_format(opened, how, keep_text)
    if opened.is_wide:
        table = _melted(opened, how)
    else:
        is_said = how.wide is False or how.task_columns or how.worker_columns or how.order_column
        melted = None if is_said else found_wide(opened.table, how.named)
        if melted is None:
            return Long(opened.table, how, is_own=False)
        table = melted
    rest = replace(how, columns=None, order_column=None, task_columns=None, worker_columns=None)
    return Long(table, rest)


def _melted(opened: Opened, how: ReadingOptions) -> Table:
    """Make a long table of a wide source."""
    named = how.named
    for role in [*named, *["task_columns"] * bool(how.task_columns)]:
        if role != "task":
            raise OptionError("wide-role", role=role)
    how.refuse(OF_TOOLS, "A wide table", "it is a plain table")
    tables = {each.name: to_long(each.table, named, how.worker_columns) for each in opened.files()}
    if opened.several is None:
        return tables[opened.name]
    return chained_table(opened.name, list(tables), tables.__getitem__)


def _extended(responses: Responses, options: ReadingOptions) -> Responses:
    """Add tasks without responses and classes that nobody chose."""
    if options.tasks is not None:
        more = like(responses.tasks, options.tasks, "tasks")
        responses = responses.with_tasks(encode(more)[1])
    if options.classes is not None:
        more = like(responses.classes, options.classes, "classes")
        responses = responses.with_classes(encode(more)[1])
    if options.scale is not None:
        responses = with_scale(options.scale, responses, None)[0]
    return responses.with_folded_labels() if options.fold_labels else responses


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
    table, found = load_table(source, schemas.LINKS, columns, format, allow_empty=True)
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


def read_constraints(
    source: Any, *, columns: Names = None, format: str | None = None
) -> Constraints:
    """Read rules about how many of some statements about tasks hold.

    A JSON file has one constraint per object: docs/constraints.md lists them. A table has columns
    constraint, task, label, count, and optionally weight and who; one row per literal.

    Examples
    --------
    >>> read_constraints([{"tasks": ["a", "b"], "label": "cat", "count": "0-1"}])
    Constraints(1 constraint, 2 tasks)
    """
    if isinstance(source, Constraints):
        return source
    if isinstance(source, list | tuple) and all(isinstance(each, Mapping) for each in source):
        return Constraints.from_records(source)
    content = located(source) if is_file(source) else source
    if isinstance(content, Content) and format_of(content, format) == "jsonl":
        name, data = content.name, content.data
        places = Source(name, lambda row: f"{name}, line {line_of_record(data, row):,}")
        return Constraints.from_records(json_records(data, name), places)
    table, found = load_table(content, schemas.CONSTRAINTS, columns, format)
    return of_columns(found, table.source)


def read_groups(source: Any) -> tuple[list[Column], Source]:
    """Read columns task and group, and where each row stands."""
    table, found = load_table(source, schemas.GROUPS, None, None)
    return list(found.values()), table.source


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
    if is_file(source) or names_several(source) or isinstance(source, Opened):
        source = open_source(source, _plain_format(how), schemas.GOLD)
        form = _tool_of(source, how)
        if form is not None:
            from tiebreak.tables.formats import read_format

            source.format = form
            gold = read_format(source, how).gold
            if not gold:
                raise GoldError("no-gold", file=source.name, format=form.title)
            return Gold.from_dict(gold)
    table, read = load_table(source, schemas.GOLD, columns, format, allow_empty=True)
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
    table, found = load_table(source, schemas.LABELS, columns, format)
    task, tasks = complete("task", found["task"], table)
    label, used = complete("label", found["label"], table)
    if len(tasks) < len(task):
        _, first = np.unique(task, return_index=True)
        row = int(np.setdiff1d(np.arange(len(task)), first)[0])
        earlier = int(np.flatnonzero(task == task[row])[0])
        where = table.source.where(earlier), table.source.where(row)
        raise InputError("two-labels", table=table.title, task=tasks[int(task[row])], where=where)
    classes, code_of_used, probabilities = read_classes(table, used)
    said = found.get("probability")
    numbers = [as_numbers(found[name])[0] for name in SCORES if name in found]
    return Labels(
        tasks=tasks,
        classes=classes,
        label=code_of_used[label],
        probability=None if said is None else as_probabilities("probability", said, table.source),
        probabilities=probabilities,
        frame=table.frame,
        scores=Scores(*numbers) if len(numbers) == len(SCORES) else None,
    )


def read_tasks(source: Any, *, columns: Names = None, format: str | None = None) -> Column:
    """Read ids of tasks: a column of its own, or the column `task` of a file or table.

    Examples
    --------
    >>> read_tasks(["a", "b"]).to_pylist()
    ['a', 'b']
    """
    is_objects = isinstance(source, list) and source and isinstance(source[0], Mapping)
    is_table = isinstance(source, Opened | Mapping) or is_file(source) or is_frame(source)
    if is_table or is_objects:
        table, found = load_table(source, schemas.TASKS, columns, format)
        column = found["task"]
    else:
        column = to_arrow("task", source)
        table = Table(("task",), lambda _: [[column]])
    complete("task", column, table)
    return column


def read_sequences(source: Any, *, columns: Names = None, format: str | None = None) -> Sequences:
    """Read which tasks follow each other: columns task and sequence, if there position and text.

    Rows of a sequence are in order where there is no position. See `read_responses` for what
    `source`, `columns` and `format` may be.

    Examples
    --------
    >>> read_sequences({"task": ["a", "b"], "sequence": ["s", "s"], "text": ["New", "York"]})
    Sequences(2 tasks, 1 sequences)
    """
    if isinstance(source, Sequences):
        return source
    table, found = load_table(source, schemas.SEQUENCES, columns, format)
    return Sequences.from_columns(**found, frame=table.frame, source=table.source)


class SpanRow(NamedTuple):
    """A span of a text, by its characters."""

    begin: int
    end: int
    label: str
    probability: float | None = None


def read_spans(source: Any) -> dict[str, list[SpanRow]] | None:
    """Read what `fuse --spans-out` wrote, by text; None where a table is of something else."""
    opened = open_source(source, None, schemas.SPANS)
    if not {"sequence", "first", "last", "label"} <= set(opened.table.names):
        return None
    table, found = load_table(opened, schemas.SPANS, None, None, allow_empty=True)
    if "begin" not in found or "end" not in found:
        raise InputError("spans-of-no-place", table=table.title)
    ends = (as_numbers(found[name])[0].astype(np.int64).tolist() for name in ("begin", "end"))
    n = len(found["begin"])
    sure = as_numbers(found["probability"])[0].tolist() if "probability" in found else [None] * n
    labels = map(str, found["label"].to_pylist())
    spans: dict[str, list[SpanRow]] = {}
    rows = map(SpanRow, *ends, labels, sure)
    for name, row in zip(found["sequence"].to_pylist(), rows, strict=True):
        spans.setdefault(str(name), []).append(row)
    return spans


def read_texts(
    source: Any, *, of: str = "task", columns: Names = None, format: str | None = None
) -> dict[Hashable, str]:
    """Read what tasks look like, or classes mean: an id, `of` what, and a text for it.

    `of` "system" it reads which system each task is about. A mapping of id to text, or a tool's
    export, will do too; an id without a text is left out.

    Examples
    --------
    >>> read_texts([("a", "A cat."), ("b", None)])
    {'a': 'A cat.'}
    >>> read_texts({"class": ["cat"], "text": ["Any feline."]}, of="class")
    {'cat': 'Any feline.'}
    """
    schema = {"task": schemas.TEXTS, "class": schemas.CLASS_TEXTS, "system": schemas.SYSTEMS}[of]
    source, texts = _with_texts(source, schema, format, is_of_tasks=of == "task")
    if texts is not None:
        return texts
    _, found = load_table(source, schema, columns, format)
    return _by_id((key, str(text)) for key, text in _rows(found) if text is not None)


def _rows(found: Mapping[str, Column]) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in found.values()), strict=True)


def _by_id(rows: Iterable[tuple[Hashable, Any]]) -> dict[Hashable, Any]:
    given = list(rows)
    found = dict(given)
    if len(found) < len(given):
        note("texts-twice", n=len(given) - len(found))
    return found


def read_systems(
    source: Any, *, columns: Names = None, format: str | None = None
) -> dict[Hashable, Any]:
    """Read which system each task is about: column system; or which two, of verdicts on pairs.

    >>> read_systems({"task": ["a"], "first": ["gpt"], "second": ["llama"]})
    {'a': ('gpt', 'llama')}
    >>> read_systems({"a": "gpt"})
    {'a': 'gpt'}
    """
    if isinstance(source, Mapping) and all(isinstance(each, tuple) for each in source.values()):
        return dict(source)
    opened = open_source(_unfolded(source, schemas.SYSTEMS), format, schemas.SYSTEMS)
    found = [positions_for(opened.table, role) for role in schemas.OPPONENTS.roles]
    has_two = all(found) and not positions_for(opened.table, schemas.SYSTEM)
    schema = schemas.OPPONENTS if has_two else schemas.SYSTEMS
    _, read = load_table(opened, schema, columns, format)
    named = ((task, tuple(map(str, names))) for task, *names in _rows(read) if None not in names)
    return _by_id((task, names if has_two else names[0]) for task, names in named)


def read_contents(
    source: Any, *, columns: Names = None, format: str | None = None
) -> dict[str, dict[Hashable, str]]:
    """Read all that a page can show of tasks: columns text, markdown, image, audio, as there are.

    Examples
    --------
    >>> read_contents({"task": ["a", "b"], "image": ["a.png", None]})
    {'image': {'a': 'a.png'}}
    """
    source, texts = _with_texts(source, schemas.CONTENTS, format)
    if texts is not None:
        return {"text": texts}
    table, found = load_table(source, schemas.CONTENTS, columns, format)
    if len(found) == 1:
        raise InputError("nothing-to-show", table=table.title)
    tasks = found.pop("task").to_pylist()
    return {
        name: {
            task: str(value)
            for task, value in zip(tasks, column.to_pylist(), strict=True)
            if task is not None and value is not None
        }
        for name, column in found.items()
    }


def _with_texts(
    source: Any, schema: Schema, format: str | None, *, is_of_tasks: bool = True
) -> tuple[Any, dict[Hashable, str] | None]:
    """Open files, which can be read once; of a tool's export return also the texts in it."""
    if not (is_file(source) or names_several(source) or isinstance(source, Opened)):
        return source, None
    opened = open_source(source, format, schema)
    if not is_of_tasks or "text" in opened.keys or _tool_of(opened, ReadingOptions()) is None:
        return opened, None
    from tiebreak.tables import formats

    return opened, formats.read_texts(opened) or {}


def read_selection(
    source: Any, *, columns: Names = None, format: str | None = None
) -> dict[Hashable, float]:
    """Read with which chance each task was drawn to be labelled: above 0, up to 1.

    >>> read_selection([("a", 0.5), ("b", 1)])
    {'a': 0.5, 'b': 1.0}
    """
    table, found = load_table(source, schemas.SELECTION, columns, format)
    values = found["probability"]
    numbers, _ = as_numbers(values)
    wrong = np.flatnonzero(~((numbers > 0.0) & (numbers <= 1.0)))
    if len(wrong):
        raise InputError("no-chance", n=len(wrong), shown=offenders(wrong, values, table.source))
    return dict(zip(found["task"].to_pylist(), numbers.tolist(), strict=True))


def load_table(
    source: Any, schema: Schema, columns: Names, format: str | None, *, allow_empty: bool = False
) -> tuple[Table, dict[str, Column]]:
    """Make a table of the source and read the columns of its schema."""
    how = ReadingOptions(columns=columns, format=format)
    table = open_source(_unfolded(source, schema), how.format, schema).table
    positions = find_columns(table, schema, how.named)
    read = read_stripped(table, list(positions.values()), allow_empty=allow_empty)
    return table, dict(zip(positions, read, strict=True))


def _unfolded(source: Any, schema: Schema) -> Any:
    """Turn a mapping of task to value into columns; a mapping of columns stays as it is."""
    if len(schema.needed) != 2:
        return source
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


# Several tables of one command


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
    found: dict[str, OpenTable] = {}
    names: dict[str, tuple[str, ...]] = {}  # of the columns of each plain table
    for what, source in sources.items():
        if source is None:
            continue
        if what == "responses":
            opened = open_responses(source, ReadingOptions(columns=columns, **options))
            found[what] = OpenTable(opened, {}, options)
        else:
            opened = source if is_packed(source) else open_source(source, None, SCHEMAS[what])
            found[what] = OpenTable(opened, {})
        if isinstance(opened, Opened) and opened.format is None and not opened.is_wide:
            names[what] = opened.table.names
    special = found.get("responses")  # a tool's file, or a wide table
    if special is not None and ("responses" in names or not isinstance(special.source, Opened)):
        special = None
    for role, name in columns.items():
        if special is not None:
            is_own = name in special.source.keys and (role == "task" or not special.source.is_wide)
            if is_own or len(found) == 1:
                special.columns[role] = name
                continue
        users = [what for what in names if role in SCHEMAS[what].names]
        if not names:
            raise OptionError("columns-of-packed")
        if not users:
            allowed = dict.fromkeys(name for what in names for name in SCHEMAS[what].names)
            raise OptionError.unknown("columns: the key", role, tuple(allowed))
        holders = [what for what in users if positions_of(names[what], str(name))]
        for what in holders or users[:1]:
            found[what].columns[role] = name
    return found
