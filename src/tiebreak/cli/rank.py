"""tiebreak rank: who is best by verdicts on pairs, and how far to trust it."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

import typer

from tiebreak.cli import options
from tiebreak.cli.options import OF_PAIRS, OptionValues, Text, file, option, require, split_pairs
from tiebreak.cli.output import STANDARD, print_json, say, stages, wrote
from tiebreak.errors import OptionError


def rank(
    pairs: Annotated[str, typer.Argument(metavar="PAIRS", help="Table of first, second, verdict.")],
    out: Annotated[str, file("Write the ranking here.", "-o", "--out")] = STANDARD,
    judges: Annotated[Text, file("Write what judges are like here.")] = None,
    next_: Annotated[
        int | None, option("N", "Print the N pairs to compare next.", "--next", min=1)
    ] = None,
    plot: Annotated[Text, file("Draw the ranking: .svg, .html.")] = None,
    columns: options.Columns = None,
    given: options.Set = None,
    as_json: options.JsonSummary = False,
) -> None:
    """Rank items by verdicts on pairs, with intervals.

    Further columns are worker (the judge), task (the prompt), run and weight; files of MT-Bench,
    Arena-Hard, crowd-kit and evalica are read as they are. --set covariates=length holds a number
    of each side fixed; --set judges=no, prompts=no, sharpness, together and level=0.95 are others.
    """
    values = OptionValues(given)
    reading = values.take(*OF_PAIRS)
    to_stdout = out == STANDARD
    require("--next", next_, "-o FILE, as the pairs are printed", not to_stdout)
    if as_json and (to_stdout or next_):
        raise OptionError("json-needs-out")
    options.check_files((pairs,), (out, judges))
    from tiebreak import tables
    from tiebreak.ranking import BradleyTerry, JudgeHabits, NextPair
    from tiebreak.tables.pairs import read_pairs

    model = BradleyTerry(
        **values.take_last(*(each.name for each in fields(BradleyTerry) if each.init))
    )
    with stages("reading and ranking"):
        names = split_pairs("--columns", columns)
        read = read_pairs(pairs, columns=names, covariates=model.covariates, **reading)
        model.fit(read)
    tables.write_table(out, model.ranking_.columns())
    if judges:
        tables.write_table(judges, table_of(model.judges_, JudgeHabits))
    if next_:
        tables.write_table(STANDARD, table_of(model.next_pairs(next_), NextPair))
    if plot:
        from tiebreak.report import charts

        ranking = model.ranking_
        charts.ranking(ranking.rows(), len(ranking), ranking.level).save(plot)
    if as_json:
        print_json(model.summary() | {"out": out})
    say("\n".join(model.describe()))
    say(wrote((out, judges, plot)) or "the ranking is on stdout")


def table_of(rows: Any, kind: Any) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in kind._fields}
