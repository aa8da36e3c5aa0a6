"""Options of commands that read what annotation tools and judges write."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak.cli.arguments import split_list, split_pairs

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
    from tiebreak.files.formats import FORMATS, import_options, import_table, locate
    from tiebreak.files.packed import is_packed
    from tiebreak.files.schemas import RESPONSES

    named = {} if columns is None else split_pairs("--columns", columns)
    if is_packed(responses):
        opened = files.open_tables({"responses": responses, **others}, named)
        return opened.pop("responses"), opened
    located = locate(responses, form)
    if located.format in FORMATS or choices.get("wide") or form == "wide":
        keys = located.opened.head.keys if located.opened else ()
        is_alone = not any(others.values())
        own: dict[str, object] = {r: name for r, name in named.items() if is_alone or name in keys}
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
    from tiebreak.files.packed import is_packed

    if is_packed(responses):
        return None
    return conversion.read_texts(responses, None, {"question": question}) or None
