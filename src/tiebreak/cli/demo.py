"""tiebreak demo, datasets: see it work, and get real crowds to try it on."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tiebreak.cli import options
from tiebreak.cli.options import Text, option
from tiebreak.cli.output import print_json, say
from tiebreak.errors import FileError
from tiebreak.wording import aligned

ALL = "all"


def demo(
    out: Annotated[
        str, option("DIR", "Write the files into this folder.", "-o", "--out")
    ] = "tiebreak-demo",
    force: options.Force = False,
) -> None:
    """Show in two seconds, on a simulated crowd, what tiebreak does.

    Tells what voting gets wrong, what the committee and links repair, and writes the files.
    """
    from tiebreak import demo as room
    from tiebreak.report.write import check_target

    story = room.run()
    folder = options.make_folder(out)
    check_target(folder / "report.html", overwrite=force)
    with tempfile.TemporaryDirectory(prefix=".tiebreak-", dir=folder) as beside:
        made = Path(beside) / (folder.name or "demo")
        made.mkdir()
        written = room.write(story, made)
        # The same crowd is drawn each time: a table that differs was changed, or is another's.
        for each in written[:-1]:
            there = folder / each.name
            if not force and there.exists() and there.read_bytes() != each.read_bytes():
                raise FileError("file-exists", file=there)
        for each in written:
            each.replace(folder / each.name)
    typer.echo(room.tell(story))
    typer.echo(f"\nWrote {', '.join(each.name for each in written)}\ninto the folder {folder}")
    typer.echo(f"\nLook at it in a browser: {folder / 'report.html'}")
    typer.echo("\nTry next:")
    for command in room.next_commands(folder):
        typer.echo(f"  {command}")


def list_datasets(as_json: options.AsJson = False) -> None:
    """List the datasets, their sizes, and where they lie.

    With --json also what they are, their sources, and how they differ from the paper.
    """
    from tiebreak import datasets

    rows = []
    for name in datasets.names():
        try:
            folder = str(datasets.path(name))
        except FileError:
            folder = None
        rows.append({**dataclasses.asdict(datasets.info(name)), "folder": folder})
    if as_json:
        print_json(rows)
        return
    counts = ("n_tasks", "n_workers", "n_classes", "n_responses", "n_gold")
    sizes = [("name", *(count.removeprefix("n_") for count in counts))]
    sizes += [(row["name"], *(f"{row[count]:,}" for count in counts)) for row in rows]
    where = ["where", *(row["folder"] or "not here" for row in rows)]
    for line, place in zip(aligned(sizes, to_right=True), where, strict=True):
        typer.echo(f"{line}  {place}")


def fetch_dataset(
    names: Annotated[
        list[str], typer.Argument(help="Names of datasets, or all.", metavar="NAME|all")
    ],
    base: Annotated[Text, option("URL", "Copy from this address or folder.")] = None,
    folder: Annotated[Text, option("DIR", "Write here, not to the cache.")] = None,
    force: Annotated[bool, options.flag("--force", "Fetch even what is here.")] = False,
) -> None:
    """Fetch public copies of datasets, check and convert them.

    What is here already is not fetched again. Needs the extra datasets.
    """
    from tiebreak import datasets

    wanted = datasets.names() if ALL in names else tuple(dict.fromkeys(names))
    for name in wanted:
        datasets.info(name)  # a wrong name is told before anything is fetched
    for name in wanted:
        say(f"{name} is in {datasets.fetch(name, base=base, folder=folder, force=force)}")
    if folder is not None:
        say(f"to use them: TIEBREAK_DATA={folder}")


def dataset_path(
    name: Annotated[str, typer.Argument(help="Name of a dataset.", metavar="NAME")],
) -> None:
    """Print the folder of a dataset, which holds responses.csv and gold.csv."""
    from tiebreak import datasets

    typer.echo(datasets.path(name))
