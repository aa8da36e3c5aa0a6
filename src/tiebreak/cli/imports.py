"""Options of commands that read what annotation tools and judges write."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tiebreak.cli.arguments import option_parameter, split_list, split_pairs, with_options

if TYPE_CHECKING:
    from tiebreak.files import OpenTable
    from tiebreak.files.formats import FormatOptions

FormatName = Annotated[
    str | None,
    typer.Option("--format", help="Format, where its content does not tell.", metavar="NAME"),
]
Question = Annotated[
    str | None, typer.Option(help="Which question, where a file holds several.", metavar="NAME")
]
MultiLabel = Annotated[
    bool, typer.Option("--multi-label", help="Make one yes/no task of each label.")
]
LabelPattern = Annotated[
    str | None, typer.Option(help="Where the label stands in a text.", metavar="REGEX")
]
LabelPointer = Annotated[
    str | None, typer.Option(help="Where the label stands in a JSON text.", metavar="/KEY")
]
Wide = Annotated[bool, typer.Option("--wide", help="One column per worker.")]
TaskColumns = Annotated[
    str | None, typer.Option(help="Columns that make up the task together.", metavar="A,B,…")
]
WorkerColumns = Annotated[
    str | None, typer.Option(help="Columns that make up the worker together.", metavar="A,B,…")
]

PARAMETER = "imports"  # of a command: what it gets is built from the options below


class Imports(NamedTuple):
    """What was chosen about the file of responses: its format, and the options of readers."""

    form: str | None
    choices: FormatOptions


def takes_import_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options about files of tools; it gets what they say as `imports`."""

    def gather(form: str | None, **given: Any) -> Imports:
        return Imports(form, format_choices(**given))

    made = [
        option_parameter("form", FormatName),
        option_parameter("question", Question),
        option_parameter("multi_label", MultiLabel, default=False),
        option_parameter("label_pattern", LabelPattern),
        option_parameter("label_pointer", LabelPointer),
        option_parameter("wide", Wide, default=False),
        option_parameter("task_columns", TaskColumns),
        option_parameter("worker_columns", WorkerColumns),
    ]
    return with_options(command, PARAMETER, made, gather)


def format_choices(
    question: str | None = None,
    multi_label: bool = False,
    label_pattern: str | None = None,
    label_pointer: str | None = None,
    wide: bool = False,
    task_columns: str | None = None,
    worker_columns: str | None = None,
) -> FormatOptions:
    """Return the options as the readers call them."""
    return {
        "question": question,
        "multi_label": multi_label,
        "label_pattern": label_pattern,
        "label_pointer": label_pointer,
        "wide": wide,
        "task_columns": None if task_columns is None else split_list(task_columns),
        "worker_columns": None if worker_columns is None else split_list(worker_columns),
    }


def open_with_responses(
    responses: str,
    columns: str | None,
    others: dict[str, str | None],
    form: str | None,
    choices: FormatOptions,
) -> tuple[OpenTable, dict[str, OpenTable]]:
    """Open the responses, whatever their format, and the other tables of a job.

    Names of columns that the file of a tool has go to it; the rest is shared out among the
    other tables. A plain table shares with them.
    """
    from tiebreak import files
    from tiebreak.files.columns import RESPONSES
    from tiebreak.files.content import is_packed
    from tiebreak.files.formats import import_options, import_table, locate

    named = {} if columns is None else split_pairs("--columns", columns)
    if is_packed(responses):
        opened = files.open_tables({"responses": responses, **others}, named)
        return opened.pop("responses"), opened
    located = locate(responses, form)
    if located.format is not None or choices.get("wide") or form == "wide":
        is_alone = not any(others.values())
        own: dict[str, object] = {
            role: name for role, name in named.items() if is_alone or name in located.keys
        }
        rest = {role: name for role, name in named.items() if role not in own}
        export = files.OpenTable(located.source, own, {"format": form, **choices})
        return export, files.open_tables(others, rest)
    options = import_options(named, choices)
    table = import_table(located.source, form, options, RESPONSES.names).table
    opened = files.open_tables({"responses": table, **others}, named)
    kept = ("multi_label", "task_columns", "worker_columns")
    plain = opened.pop("responses")
    return plain._replace(options={k: v for k, v in choices.items() if k in kept}), opened


def texts_of_export(responses: str, question: str | None) -> dict[Hashable, str] | None:
    """Return the texts that stand beside the answers in the export of a tool."""
    from tiebreak.files import conversion
    from tiebreak.files.content import is_packed

    if is_packed(responses):
        return None
    return conversion.read_texts(responses, None, {"question": question}) or None
