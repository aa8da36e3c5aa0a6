"""tiebreak reproduce: the paper's experiments, by one command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak.cli.arguments import make_folder, split_list
from tiebreak.cli.messages import print_message

if TYPE_CHECKING:
    from tiebreak.reproduce.results import Results
    from tiebreak.reproduce.runner import Progress


def reproduce(
    datasets: Annotated[
        str | None, typer.Option(help="Which datasets; all ten if left out.", metavar="A,B")
    ] = None,
    runs: Annotated[int, typer.Option(help="Monte Carlo runs.", metavar="N")] = 20,
    steps: Annotated[
        int, typer.Option(help="Steps of N_C, from 0 to half of the gold tasks.", metavar="N")
    ] = 8,
    out: Annotated[
        str, typer.Option("-o", "--out", help="Folder to write to.", metavar="DIR")
    ] = "reproduction",
    jobs: Annotated[
        int | None, typer.Option(help="Processes; all cores if left out.", metavar="N")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No words, no progress.")] = False,
) -> None:
    """Run the paper's experiments, judge its claims, draw its figures.

    Stop it whenever you like: the same command goes on where it stopped.
    """
    from tiebreak import reproduce as room
    from tiebreak.datasets import names

    wanted = tuple(dict.fromkeys(split_list(datasets))) if datasets else names()
    plan = room.Reproduction.of(wanted, runs, steps)
    folder = make_folder(out)
    with _bar(quiet=quiet) as progress:
        rows = room.run(
            plan, folder, jobs=_all_cores() if jobs is None else jobs, progress=progress
        )
    results = room.gather(plan, rows)
    results.write(folder / "results.json")
    _show(results, folder, quiet=quiet)


def _show(results: Results, folder: Path, *, quiet: bool) -> None:
    """Write the claims and the figures, and say where they are."""
    from tiebreak import reproduce as room
    from tiebreak import tables
    from tiebreak.reproduce import figures

    with tables.open_target(folder / "claims.md") as page:
        page.write(room.as_markdown(results).encode())
    made = [folder / "results.json", folder / "claims.md"]
    if figures.is_available():
        figures.draw_all(results, folder / "figures")
        made.append(folder / "figures")
    elif not quiet:
        print_message(
            "no figures: they need matplotlib. Install it with: pip install 'tiebreak[plot]'"
        )
        print_message("then run the same command again; finished runs are not repeated")
    if quiet:
        return
    words = [verdict.word for verdict in room.judge(results)]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    print_message(f"claims: {counts}")
    print_message(f"written: {', '.join(map(str, made))}")


def _all_cores() -> int:
    return os.cpu_count() or 1


@contextmanager
def _bar(*, quiet: bool) -> Iterator[Progress | None]:
    """Show how many cases are finished and the time left, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task("", total=None)

        def tell(n_done: int, n_all: int) -> None:
            bar.update(shown, completed=n_done, total=n_all)

        yield tell
