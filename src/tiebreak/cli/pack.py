"""tiebreak pack: responses in the order that fits need, so that a refit starts at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tiebreak.cli.arguments import STANDARD, split_list, split_pairs
from tiebreak.cli.ending import say, working

SUFFIX = ".tb"


def pack(
    responses: Annotated[
        str, typer.Argument(help="Table of task, worker, label; - is stdin.", metavar="RESPONSES")
    ],
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="Folder to write. [RESPONSES.tb]", metavar="FOLDER.tb"),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help="Table of task: also those without responses.", metavar="FILE"),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Names of columns: task=…,worker=…,label=…", metavar="PAIRS"),
    ] = None,
    repeats: Annotated[
        Literal["last", "count", "error"],
        typer.Option(help="A worker twice on one task: which label counts."),
    ] = "last",
    classes: Annotated[
        str | None, typer.Option(help="Classes, also those nobody used.", metavar="A,B,…")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no notes.")] = False,
) -> None:
    """Keep responses ready for fits: sorted, in codes, in a folder.

    `tiebreak fuse FOLDER.tb` then starts at once, however large the table was.
    """
    folder = out or _name_for(responses)
    if Path(folder).suffix.lower() != SUFFIX:
        raise typer.BadParameter(f"The folder must end in {SUFFIX}, such as {folder}{SUFFIX}.")
    from tiebreak import files

    with working("reading and packing", quiet=quiet):
        crowd = files.read_responses(
            responses,
            columns=None if columns is None else split_pairs("--columns", columns),
            repeats=repeats,
            tasks=tasks,
            classes=None if classes is None else split_list(classes),
        )
        files.write_responses(folder, crowd)
    if not quiet:
        say(f"{crowd!r}\nwrote {folder}; fit with: tiebreak fuse {folder}")


def _name_for(responses: str) -> str:
    if responses == STANDARD:
        raise typer.BadParameter("Responses from stdin need a name: -o FOLDER.tb.")
    return str(Path(responses).with_suffix(SUFFIX))
