"""tiebreak select: which pairs of tasks to ask about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tiebreak.cli.arguments import STANDARD, check_files, number_or, split_pairs
from tiebreak.cli.ending import say, working

if TYPE_CHECKING:
    from tiebreak.selection import Pairs


def select(
    responses: Annotated[
        str, typer.Argument(help="Table of task, worker, label; - is stdin.", metavar="RESPONSES")
    ],
    n: Annotated[int, typer.Option("-n", help="How many pairs.", metavar="N", min=0)] = 20,
    links: Annotated[
        str | None, typer.Option(help="Table of left, right, link (must|cannot).", metavar="FILE")
    ] = None,
    gold: Annotated[
        str | None, typer.Option(help="Table of task, label: known classes.", metavar="FILE")
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help="Table of task: also those without responses.", metavar="FILE"),
    ] = None,
    among: Annotated[
        str | None, typer.Option(help="Table of task: only pairs of these.", metavar="FILE")
    ] = None,
    strategy: Annotated[
        Literal["adaptive", "bvsb", "random"], typer.Option(help="How pairs are chosen.")
    ] = "adaptive",
    link_error: Annotated[
        str | None,
        typer.Option(help="How often links are wrong: a rate, auto, or learn.", metavar="RATE"),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Names of columns: task=…,worker=…,label=…", metavar="PAIRS"),
    ] = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Where pairs go; else stdout.", metavar="FILE")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same pairs.", metavar="N")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no notes.")] = False,
) -> None:
    """Choose pairs of tasks to ask about: the same class or not?

    A table of left, right and gain: how many labels the answer should put right.
    """
    out = out or STANDARD
    check_files((responses, links, gold, tasks, among), (out,))
    from tiebreak import files, selection
    from tiebreak.ask.job import tasks_among
    from tiebreak.inference import VariationalBayes

    error = number_or(("auto", "learn"), "--link-error", link_error)
    with working("reading and fitting", quiet=quiet):
        crowd = files.read_responses(
            responses,
            columns=None if columns is None else split_pairs("--columns", columns),
            tasks=tasks,
        )
        allowed = None if among is None else tasks_among(crowd.tasks, among)
        model = VariationalBayes(link_error=error).fit(crowd, links=links, gold=gold)
        pairs = selection.pairs(model, n, strategy=strategy, among=allowed, random_state=seed)
    _write(out, pairs, as_json=as_json)
    if not quiet:
        worth = f"worth about {pairs.gain.sum():.2g} labels"
        say(f"{len(pairs):,} pairs, {worth}{'' if out == STANDARD else f': wrote {out}'}")


def _write(out: str, pairs: Pairs, *, as_json: bool) -> None:
    from tiebreak import files
    from tiebreak.files.replacing import open_target

    if not as_json:
        columns = {"left": list(pairs.left), "right": list(pairs.right), "gain": pairs.gain}
        files.write_table(out, columns)
        return
    rows = [row._asdict() for row in pairs]
    with open_target(out) as target:
        target.write(json.dumps(rows, ensure_ascii=False, default=str).encode() + b"\n")
