"""tiebreak route: which tasks go to a human, which get another judge, which are done."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from tiebreak.cli.arguments import Force, Quiet, check_files
from tiebreak.cli.judging import AsJson, Prices, read_prices, takes_judging_options
from tiebreak.cli.messages import print_message, working
from tiebreak.cli.own_files import writing_own
from tiebreak.cli.tables import ResponsesFiles
from tiebreak.wording import counted

OWN_FILES = ("done.csv", "human.csv", "judge.csv")


@takes_judging_options
def route(
    responses: ResponsesFiles,
    out: Annotated[
        str, typer.Option("-o", "--out", help="Folder of the three lists.", metavar="DIR")
    ],
    wrong: Annotated[float, typer.Option(help="Cost of a wrong label.", metavar="X")] = 1.0,
    human: Annotated[float, typer.Option(help="Cost of a human's label.", metavar="X")] = 0.1,
    judge: Annotated[
        float | None,
        typer.Option(help="Cost of one more call of a judge. [none asked]", metavar="X"),
    ] = None,
    prices: Prices = None,
    human_error: Annotated[
        float, typer.Option(help="How often a human is wrong.", metavar="P")
    ] = 0.0,
    judging: Any = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Send each task where it costs least: done, to a human, or to another judge or run.

    The folder gets done.csv, human.csv and judge.csv, the most doubtful tasks first.
    """
    check_files((responses, judging.gold), ())
    if judge is not None and prices is not None:
        raise typer.BadParameter("--judge and --prices both say what a call costs. Give one.")
    priced = read_prices("--prices", prices)
    from tiebreak import tables
    from tiebreak.decide import routing

    judged = judging.fit(responses, quiet=quiet)
    with working("planning", quiet=quiet):
        found = routing.plan(
            judged.model,
            wrong=wrong,
            human=human,
            judge=judge if priced is None else priced,
            human_error=human_error,
        )
    with writing_own(out, OWN_FILES, force=force) as folder:
        for name in routing.ROUTES:
            tables.write_table(folder / f"{name}.csv", found.rows(name))
    summary = {
        "done": found.n_done,
        "human": found.n_human,
        "judge": found.n_judge,
        "cost": found.total,
        "cost_all_done": found.all_done,
        "cost_three_humans": found.three_humans,
        "out": out,
    }
    if as_json:
        typer.echo(json.dumps(summary))
    if not quiet:
        print_message(
            f"{found.n_done:,} done, {found.n_human:,} to a human, "
            f"{counted(found.n_judge, 'task')} to another judge or run"
        )
        print_message(
            f"expected cost {found.total:,.2f}; all labels as they are {found.all_done:,.2f}, "
            f"three humans each {found.three_humans:,.2f}"
        )
        print_message(f"wrote {', '.join(f'{folder / name}' for name in OWN_FILES)}")
