"""tiebreak demo: the whole idea in two seconds, on a simulated crowd."""

from __future__ import annotations

from typing import Annotated

import typer

from tiebreak.cli.arguments import Force
from tiebreak.cli.own_files import writing_own


def demo(
    out: Annotated[
        str, typer.Option("-o", "--out", help="Folder for the files.", metavar="DIR")
    ] = "tiebreak-demo",
    force: Force = False,
) -> None:
    """See it work on a simulated crowd.

    Tells what voting gets wrong, what the committee and links repair, and writes the files.
    """
    from tiebreak import demo as story_room

    story = story_room.run()
    own = [f"{name}.csv" for name in story_room.FILES] + ["report.html"]
    with writing_own(out, own, force=force) as folder:
        written = story_room.write(story, folder)
    typer.echo(story_room.tell(story))
    typer.echo(f"\nWrote {', '.join(path.name for path in written)}\ninto the folder {folder}")
    typer.echo(f"\nLook at it in a browser: {folder / 'report.html'}")
    typer.echo("\nTry next:")
    for command in story_room.next_commands(folder):
        typer.echo(f"  {command}")
