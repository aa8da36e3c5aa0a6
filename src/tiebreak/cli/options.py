"""Options that several commands have, said once: the same name and help everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tiebreak.cli.arguments import number_or, split_list, split_pairs

if TYPE_CHECKING:
    from tiebreak.responses import Responses

ResponsesFile = Annotated[
    str, typer.Argument(help="Table of task, worker, label; - is stdin.", metavar="RESPONSES")
]
LinksFile = Annotated[
    str | None, typer.Option(help="Table of left, right, link (must|cannot).", metavar="FILE")
]
GoldFile = Annotated[
    str | None, typer.Option(help="Table of task, label: known classes.", metavar="FILE")
]
TasksFile = Annotated[
    str | None, typer.Option(help="Table of task: also those without responses.", metavar="FILE")
]
Columns = Annotated[
    str | None, typer.Option(help="Ids of columns: task=…,worker=…,label=…", metavar="PAIRS")
]
Repeats = Annotated[
    Literal["last", "count", "error"],
    typer.Option(help="A worker twice on one task: which label counts."),
]
Classes = Annotated[
    str | None, typer.Option(help="Classes, also those nobody used.", metavar="A,B,…")
]
LinkError = Annotated[
    str | None,
    typer.Option(help="How often links are wrong: a rate, auto, asked, learn.", metavar="RATE"),
]
Strategy = Annotated[
    Literal["adaptive", "bvsb", "random"], typer.Option(help="How pairs are chosen.")
]
Seed = Annotated[int | None, typer.Option(help="For what is random.", metavar="N")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no notes.")]


def read_crowd(
    responses: str,
    columns: str | None,
    tasks: str | None,
    repeats: Literal["last", "count", "error"] = "last",
    classes: str | None = None,
) -> Responses:
    """Read the responses that the options name."""
    from tiebreak import files

    return files.read_responses(
        responses,
        columns=None if columns is None else split_pairs("--columns", columns),
        repeats=repeats,
        tasks=tasks,
        classes=None if classes is None else split_list(classes),
    )


def error_rate(link_error: str | None) -> float | str | None:
    """Read --link-error: a rate, or a word that the model knows."""
    return number_or(("auto", "asked", "learn"), "--link-error", link_error)
