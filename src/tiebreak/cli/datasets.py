"""tiebreak datasets: which real crowds there are, where they lie, and how they come here."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from tiebreak.cli.messages import print_message

ALL = "all"
NOT_HERE = "not here"


def show_all(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes.")] = False,
) -> None:
    """List the datasets, their sizes, and where they lie.

    With --json also what they are, their sources, and how they differ from the paper.
    """
    from tiebreak import datasets
    from tiebreak.errors import FileError

    rows: list[dict[str, Any]] = []
    for name in datasets.names():
        try:
            folder = str(datasets.path(name))
        except FileError:
            folder = None
        rows.append({**dataclasses.asdict(datasets.info(name)), "folder": folder})
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    typer.echo(_as_table(rows))


def show_path(
    name: Annotated[str, typer.Argument(help="Name of a dataset.", metavar="NAME")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes.")] = False,
) -> None:
    """Print the folder of a dataset.

    It holds responses.csv and gold.csv.
    """
    from tiebreak import datasets

    typer.echo(datasets.path(name))


def fetch(
    names: Annotated[
        list[str], typer.Argument(help="Names of datasets, or all.", metavar="NAME|all")
    ],
    base: Annotated[
        str | None,
        typer.Option(help="Where the public copies lie: an address or a folder.", metavar="URL"),
    ] = None,
    folder: Annotated[
        str | None, typer.Option(help="Write here, not to the cache.", metavar="DIR")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Fetch even what is here.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No words.")] = False,
) -> None:
    """Bring public copies of datasets here, check and convert them.

    What is here already is not fetched again. Needs the extra datasets.
    """
    from tiebreak import datasets

    wanted = datasets.names() if ALL in names else tuple(dict.fromkeys(names))
    for name in wanted:
        datasets.info(name)  # a wrong name is told before anything is fetched
    for name in wanted:
        found = datasets.fetch(name, base=base, folder=folder, force=force)
        if not quiet:
            print_message(f"{name} is in {found}")
    if folder is not None and not quiet:
        print_message(f"to use them: TIEBREAK_DATA={folder}")


def _as_table(rows: Sequence[dict[str, Any]]) -> str:
    """Align names to the left and counts to the right; what is not here says so."""
    counts = ("n_tasks", "n_workers", "n_classes", "n_responses", "n_gold")
    table = [("name", *(count.removeprefix("n_") for count in counts), "where")]
    table += [
        (row["name"], *(f"{row[count]:,}" for count in counts), row["folder"] or NOT_HERE)
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(
            (
                f"{name:<{widths[0]}}",
                *(f"{n:>{width}}" for n, width in zip(numbers, widths[1:-1], strict=True)),
                where,
            )
        )
        for name, *numbers, where in table
    )


COMMANDS: dict[str, Callable[..., None]] = {"list": show_all, "fetch": fetch, "path": show_path}
