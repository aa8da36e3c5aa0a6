"""tiebreak pack: responses in the order that fits need, so that a refit starts at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tiebreak.cli.arguments import STANDARD, Quiet
from tiebreak.cli.messages import print_message, working
from tiebreak.cli.tables import ResponsesFiles, TasksFile, takes_reading_options

SUFFIX = ".tb"


@takes_reading_options
def pack(
    responses: ResponsesFiles,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="Folder to write. [RESPONSES.tb]", metavar="FOLDER.tb"),
    ] = None,
    tasks: TasksFile = None,
    reading: Any = None,
    quiet: Quiet = False,
) -> None:
    """Keep responses ready for fits: sorted, in codes, in a folder.

    `tiebreak fuse FOLDER.tb` then starts at once, however large the table was.
    """
    folder = out or _name_for(responses)
    if Path(folder).suffix.lower() != SUFFIX:
        raise typer.BadParameter(f"The folder must end in {SUFFIX}, such as {folder}{SUFFIX}.")
    from tiebreak import tables

    with working("reading and packing", quiet=quiet):
        given = reading.read(responses, tasks=tasks)
        tables.write_responses(folder, given.responses)
    if not quiet:
        print_message(f"{given.responses!r}\nwrote {folder}; fit with: tiebreak fuse {folder}")


def _name_for(responses: list[str]) -> str:
    """Name the packed folder after the one file or folder that was given."""
    from tiebreak.tables.source import names_several

    path = Path(responses[0])
    if responses == [STANDARD]:
        raise typer.BadParameter("Responses from stdin need a name: -o FOLDER.tb.")
    if len(responses) > 1 or (names_several(responses[0]) and not path.is_dir()):
        raise typer.BadParameter("Several files need a name together: -o FOLDER.tb.")
    return str(path.with_suffix(SUFFIX))
