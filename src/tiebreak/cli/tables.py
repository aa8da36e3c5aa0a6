"""Tables of a command: the options that name them and say how they are read, and their reading."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

import typer

from tiebreak.cli.arguments import (
    named_columns,
    new_option,
    one_or_all,
    option_parameter,
    split_list,
    with_options,
)
from tiebreak.errors import note

if TYPE_CHECKING:
    from tiebreak.data import Responses
    from tiebreak.data.gold import Gold
    from tiebreak.data.ids import Column
    from tiebreak.links import Links
    from tiebreak.tables import Export, OpenTable

Read = TypeVar("Read")

ResponsesFiles = Annotated[
    list[str],
    typer.Argument(
        help="Tables of task, worker, label: files, 'patterns*', folders; - is stdin.",
        metavar="RESPONSES",
    ),
]
LinksFile = Annotated[
    str | None, typer.Option(help="Table of left, right, link (must|cannot).", metavar="FILE")
]
LinkSampling = Annotated[
    Literal["pairs", "duplicates"] | None,
    typer.Option(help="How links came about. [without cannot-links: duplicates]"),
]
GoldFile = Annotated[
    str | None, typer.Option(help="Table of task, label: known classes.", metavar="FILE")
]
TasksFile = Annotated[
    str | None, typer.Option(help="Table of task: also those without responses.", metavar="FILE")
]
AmongFile = Annotated[
    str | None, typer.Option(help="Table of task: ask about these only.", metavar="FILE")
]
Columns = Annotated[
    str | None, typer.Option(help="Names of columns, in any table: task=…,left=…", metavar="PAIRS")
]
Repeats = Annotated[
    Literal["runs", "last", "count", "error", "vote"] | None,
    typer.Option(
        help="A worker twice on one task: what counts. [last; runs where columns tell them]"
    ),
]
Classes = Annotated[
    str | None, typer.Option(help="Classes, also those nobody used.", metavar="A,B,…")
]
FoldLabels = Annotated[
    bool,
    typer.Option("--fold-labels", help="Join labels that differ only in case, spaces or form."),
]
FormatName = Annotated[
    str | None,
    typer.Option("--format", help="Format, where its content does not tell.", metavar="NAME"),
]
Question = Annotated[
    str | None, typer.Option(help="Which question, where a file holds several.", metavar="NAME")
]

IMPORT_OPTIONS = (  # about files of tools
    option_parameter("form", FormatName),
    option_parameter("question", Question),
    new_option(
        "multi_label", bool, "Make one yes/no task of each label.", "--multi-label", default=False
    ),
    new_option(
        "task_pattern", str | None, "How ids of a batch split: (?P<task>…) …", metavar="REGEX"
    ),
    new_option("label_pattern", str | None, "Where the label stands in a text.", metavar="REGEX"),
    new_option(
        "label_pointer", str | None, "Where the label stands in a JSON text.", metavar="/KEY"
    ),
    new_option("wide", bool, "One column per worker.", "--wide", default=False),
    new_option(
        "task_columns", str | None, "Columns that make up the task together.", metavar="A,B,…"
    ),
    new_option(
        "worker_columns",
        str | None,
        "Columns that make up the worker together; with --wide, the workers.",
        metavar="A,B,…",
    ),
    new_option(
        "order_column", str | None, "Which column tells the order of two answers.", metavar="NAME"
    ),
    new_option(
        "turned",
        bool | None,
        "Verdicts on two answers: turned back already, or as shown.",
        "--turned/--as-shown",
    ),
)


class Imports(NamedTuple):
    """What was chosen about the file of responses: its format, and the options of readers."""

    form: str | None
    choices: dict[str, Any]


def takes_import_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options about files of tools; it gets what they say as `imports`."""

    def gather(form: str | None, **given: Any) -> Imports:
        return Imports(form, format_choices(**given))

    return with_options(command, "imports", IMPORT_OPTIONS, gather)


class Reading(NamedTuple):
    """What was chosen about how responses are read."""

    columns: str | None
    repeats: Any
    classes: str | None
    form: str | None
    choices: dict[str, Any]

    def read(self, responses: list[str], **more: Any) -> InputTables:
        """Read them, and the tables beside them; `more` is as `read_inputs` takes it."""
        return read_inputs(responses, **self._asdict(), **more)


def takes_reading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading; it gets what they say as `reading`."""

    def gather(
        columns: str | None, repeats: Any, classes: str | None, form: str | None, **given: Any
    ) -> Reading:
        return Reading(columns, repeats, classes, form, format_choices(**given))

    made = [
        option_parameter("columns", Columns),
        option_parameter("repeats", Repeats),
        option_parameter("classes", Classes),
        *IMPORT_OPTIONS,
    ]
    return with_options(command, "reading", made, gather)


def format_choices(
    question: str | None = None,
    multi_label: bool = False,
    task_pattern: str | None = None,
    label_pattern: str | None = None,
    label_pointer: str | None = None,
    wide: bool = False,
    task_columns: str | None = None,
    worker_columns: str | None = None,
    order_column: str | None = None,
    turned: bool | None = None,
) -> dict[str, Any]:
    """Return the options that were given, as the readers call them."""
    lists = {"task_columns": task_columns, "worker_columns": worker_columns}
    chosen: dict[str, Any] = {
        "question": question,
        "multi_label": multi_label or None,
        "task_pattern": task_pattern,
        "label_pattern": label_pattern,
        "label_pointer": label_pointer,
        "wide": wide or None,
        "order_column": order_column,
        "turned": turned,
        **{name: None if text is None else split_list(text) for name, text in lists.items()},
    }
    return {name: value for name, value in chosen.items() if value is not None}


class InputTables(NamedTuple):
    """The tables that a command was given, read."""

    responses: Responses
    links: Links | None
    gold: Gold | None
    among: Column | None  # ids of tasks
    texts: dict[Hashable, str] | None  # by task
    truth: Gold | None = None  # known labels that a fit is not given
    columns: dict[str, str] | None = None  # which column of the responses was read as what
    form: str | None = None  # what the format of the responses is called, where a tool has it
    systems: dict[Hashable, str] | None = None  # by task
    selection: dict[Hashable, float] | None = None  # by task


def read_inputs(
    responses: list[str],
    *,
    links: str | None = None,
    gold: str | None = None,
    tasks: str | None = None,
    among: str | None = None,
    texts: str | None = None,
    truth: str | None = None,
    systems: str | None = None,
    selection: str | None = None,
    columns: str | None = None,
    repeats: Literal["runs", "last", "count", "error", "vote"] | None = None,
    form: str | None = None,
    choices: dict[str, Any] | None = None,
    classes: str | None = None,
    sampling: Literal["pairs", "duplicates"] | None = None,
    fold_labels: bool = False,
) -> InputTables:
    """Read the files that the options name."""
    from tiebreak import tables
    from tiebreak.tables.source import is_packed

    source = one_or_all(responses)
    if repeats is not None and is_packed(source):
        raise typer.BadParameter("--repeats was settled when the responses were packed.")
    names = {"links": links, "gold": gold, "tasks": tasks, "among": among, "texts": texts}
    names["truth"] = truth
    names |= {"systems": systems, "selection": selection}
    options = {"format": form, **(choices or {})}
    opened = tables.open_tables({"responses": source, **names}, named_columns(columns), **options)
    export: Export = opened.pop("responses").read(
        tables.read_export,
        repeats=repeats,
        tasks=read_if_given(opened, "tasks", tables.read_tasks),
        classes=None if classes is None else split_list(classes),
        fold_labels=fold_labels or None,
    )
    known = read_if_given(opened, "gold", tables.read_gold)
    if known is not None and export.gold is not None:
        note(f"--gold is used; the {len(export.gold):,} known labels in {responses[0]} are not.")
    crowd = export.responses
    known = known or export.gold
    compared = read_if_given(opened, "truth", tables.read_gold)
    if fold_labels:
        known = None if known is None else known.with_labels_like(crowd.classes)
        compared = None if compared is None else compared.with_labels_like(crowd.classes)
    return InputTables(
        crowd,
        read_if_given(opened, "links", partial(tables.read_links, sampling=sampling)),
        known,
        read_if_given(opened, "among", tables.read_tasks),
        read_if_given(opened, "texts", tables.read_texts),
        compared,
        export.columns,
        export.form,
        read_if_given(opened, "systems", tables.read_systems),
        read_if_given(opened, "selection", tables.read_selection),
    )


def open_files(columns: str | None, **names: str | list[str] | None) -> dict[str, OpenTable]:
    """Open files, by what they hold, with the names that --columns gives their columns."""
    from tiebreak import tables

    return tables.open_tables(names, named_columns(columns))


def read_if_given(
    opened: dict[str, OpenTable], what: str, reader: Callable[..., Read]
) -> Read | None:
    """Read one of the files, None where it was not given."""
    return opened[what].read(reader) if what in opened else None


def texts_of_export(responses: list[str], question: str | None) -> dict[Hashable, str] | None:
    """Return the texts that stand beside the answers in the export of a tool."""
    from tiebreak.tables.formats import read_texts
    from tiebreak.tables.source import is_packed

    source = one_or_all(responses)
    if is_packed(source):
        return None
    return read_texts(source) or None
