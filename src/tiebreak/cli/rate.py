"""tiebreak rate: what share of tasks is of each class, with intervals that hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiebreak.cli.arguments import Quiet, check_files
from tiebreak.cli.judging import AsJson, SystemsFile, takes_judging_options
from tiebreak.cli.messages import print_message, working
from tiebreak.cli.tables import ResponsesFiles

if TYPE_CHECKING:
    from tiebreak.judges import RateTable


@takes_judging_options
def rate(
    responses: ResponsesFiles,
    judging: Any = None,
    by: SystemsFile = None,
    selection: Annotated[
        str | None,
        typer.Option(help="Table of task, probability: how gold was drawn.", metavar="FILE"),
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals.", metavar="X")] = 0.9,
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Also write them here.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Estimate rates from judges and a few known labels: of each class, by system, and differences.

    Prediction-powered inference, the model's posterior set right by gold, Rogan-Gladen for two
    classes, gold alone and the judges' own share stand beside each other.
    """
    check_files((responses, judging.gold, by, selection), (out,))
    from tiebreak import tables
    from tiebreak.judges import estimate_rates

    judged = judging.fit(responses, systems=by, selection=selection, quiet=quiet)
    with working("estimating rates", quiet=quiet):
        given = judged.given
        found = estimate_rates(
            judged.model, systems=given.systems, selection=given.selection, level=level
        )
    if out:
        tables.write_table(out, rate_columns(found))
    typer.echo(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else str(found))
    if out and not quiet:
        print_message(f"wrote {out}")


def rate_columns(found: RateTable) -> dict[str, list[Any]]:
    """Return rates as columns."""
    names = ("system", "label", "method", "rate", "low", "high", "n_tasks", "n_known")
    titles = ("system", "class", "method", "rate", "low", "high", "tasks", "known")
    return {
        title: [getattr(each, name) for each in found.rates]
        for name, title in zip(names, titles, strict=True)
    }
