"""tiebreak simulate: a crowd whose truth is known."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from tiebreak.cli.arguments import Force, split_list
from tiebreak.cli.messages import print_message
from tiebreak.cli.own_files import writing_own

OWN_FILES = ("responses.csv", "gold.csv", "links.csv")


def simulate(
    out: Annotated[str, typer.Option("-o", "--out", help="Folder to write to.", metavar="DIR")],
    tasks: Annotated[int, typer.Option(help="How many tasks.", metavar="N")] = 1000,
    workers: Annotated[int, typer.Option(help="How many workers.", metavar="N")] = 20,
    classes: Annotated[int, typer.Option(help="How many classes.", metavar="N")] = 2,
    responses_per_task: Annotated[
        int, typer.Option(help="How many workers label each task.", metavar="N")
    ] = 5,
    accuracy: Annotated[
        str, typer.Option(help="How often workers are right.", metavar="LOW,HIGH")
    ] = "0.6,0.95",
    shared: Annotated[
        float, typer.Option(help="Chance that workers err together on a task.", metavar="P")
    ] = 0.0,
    links: Annotated[int, typer.Option(help="How many random links.", metavar="N")] = 0,
    wrong: Annotated[
        float, typer.Option(help="Probability that a link is wrong.", metavar="P")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Same seed, same crowd.", metavar="N", min=0)] = 0,
    force: Force = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary.")] = False,
) -> None:
    """Write a simulated crowd to files.

    The folder gets responses.csv, gold.csv and, if asked, links.csv.
    """
    import numpy as np

    from tiebreak import tables
    from tiebreak.simulate import crowd as draw_crowd
    from tiebreak.simulate import links as draw_links

    for_crowd, for_links = np.random.default_rng(seed).spawn(2)
    crowd = draw_crowd(
        tasks,
        workers,
        classes,
        responses_per_task=responses_per_task,
        accuracy=_accuracy(accuracy),
        shared=shared,
        random_state=for_crowd,
    )
    linked = draw_links(crowd.gold, links, wrong=wrong, random_state=for_links)
    with writing_own(out, OWN_FILES, force=force) as folder:
        tables.write_responses(folder / "responses.csv", crowd.responses)
        tables.write_gold(folder / "gold.csv", crowd.gold)
        if links:
            tables.write_links(folder / "links.csv", linked)
    if not quiet:
        print_message(f"{crowd.responses!r}, {crowd.gold!r}{f', {linked!r}' if links else ''}")
        print_message(f"try: {_next_command(folder, has_links=links > 0)}")


def _accuracy(text: str) -> float | tuple[float, float]:
    """Read LOW,HIGH or one number."""
    try:
        numbers = [float(part) for part in split_list(text)]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2):
        raise typer.BadParameter(f"--accuracy takes LOW,HIGH, such as 0.6,0.95; got {text!r}.")
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def _next_command(folder: Path, *, has_links: bool) -> str:
    with_links = ["--links", str(folder / "links.csv")] if has_links else []
    fuse = ["tiebreak", "fuse", str(folder / "responses.csv"), *with_links]
    return shlex.join([*fuse, "-o", str(folder / "labels.csv")])
