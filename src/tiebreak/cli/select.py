"""tiebreak select: which pairs of tasks to ask about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiebreak.cli.arguments import STANDARD, check_files
from tiebreak.cli.errors import print_message, working
from tiebreak.cli.imports import takes_import_options
from tiebreak.cli.options import (
    Columns,
    GoldFile,
    LinkError,
    LinksFile,
    Quiet,
    ResponsesFile,
    Seed,
    Strategy,
    TasksFile,
    error_rate,
    read_inputs,
)

if TYPE_CHECKING:
    from tiebreak.selection import Pairs


@takes_import_options
def select(
    responses: ResponsesFile,
    n: Annotated[int, typer.Option("-n", help="How many pairs.", metavar="N", min=0)] = 20,
    links: LinksFile = None,
    gold: GoldFile = None,
    tasks: TasksFile = None,
    among: Annotated[
        str | None, typer.Option(help="Table of task: only pairs of these.", metavar="FILE")
    ] = None,
    strategy: Strategy = "adaptive",
    link_error: LinkError = None,
    columns: Columns = None,
    imports: Any = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Where pairs go; else stdout.", metavar="FILE")
    ] = None,
    seed: Seed = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
    quiet: Quiet = False,
) -> None:
    """Choose pairs of tasks to ask about: the same class or not?

    A table of left, right and gain: how many labels the answer should put right.
    """
    out = out or STANDARD
    check_files((responses, links, gold, tasks, among), (out,), are_tables=not as_json)
    from tiebreak import selection
    from tiebreak.ask.job import tasks_among
    from tiebreak.inference import VariationalBayes
    from tiebreak.options import ExactLinkOptions

    error = error_rate(link_error)
    with working("reading and fitting", quiet=quiet):
        given = read_inputs(
            responses,
            links=links,
            gold=gold,
            tasks=tasks,
            among=among,
            columns=columns,
            form=imports.form,
            choices=imports.choices,
        )
        known = given.responses.tasks
        allowed = None if given.among is None else tasks_among(known, given.among)
        model = VariationalBayes(link_options=ExactLinkOptions(error=error))
        model.fit(given.responses, links=given.links, gold=given.gold)
        pairs = selection.pairs(model, n, strategy=strategy, among=allowed, random_state=seed)
    _write(out, pairs, as_json=as_json)
    if not quiet:
        worth = f"worth about {pairs.gain.sum():.2g} labels"
        print_message(f"{len(pairs):,} pairs, {worth}{'' if out == STANDARD else f': wrote {out}'}")


def _write(out: str, pairs: Pairs, *, as_json: bool) -> None:
    from tiebreak import files

    if not as_json:
        columns = {"left": list(pairs.left), "right": list(pairs.right), "gain": pairs.gain}
        files.write_table(out, columns)
        return
    rows = [row._asdict() for row in pairs]
    with files.open_target(out) as target:
        target.write(json.dumps(rows, ensure_ascii=False, default=str).encode() + b"\n")
