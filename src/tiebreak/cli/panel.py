"""tiebreak panel: how good a panel of judges is, and what would make it better."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiebreak.cli.arguments import check_files
from tiebreak.cli.errors import print_message, working
from tiebreak.cli.judging import (
    JUDGES,
    AsJson,
    Dependence,
    MethodName,
    Prices,
    SystemsFile,
    fit_judges,
    read_prices,
)
from tiebreak.cli.options import (
    Classes,
    Columns,
    FoldLabels,
    GoldFile,
    Quiet,
    Repeats,
    ResponsesFile,
)
from tiebreak.errors import OptionError

if TYPE_CHECKING:
    from tiebreak.panel import PanelReport


def panel(
    responses: ResponsesFile,
    gold: GoldFile = None,
    by: SystemsFile = None,
    accepts: Annotated[
        str | None, typer.Option(help="The class that accepts an answer, with --by.")
    ] = None,
    prices: Prices = None,
    sample: Annotated[
        str | None,
        typer.Option(help="Where to write tasks to label, and their chance.", metavar="FILE"),
    ] = None,
    n_sample: Annotated[
        int, typer.Option("--n-sample", help="How many of them.", metavar="N", min=1)
    ] = 50,
    matrix: Annotated[
        str | None,
        typer.Option(help="Where to write how errors of judges correlate.", metavar="FILE"),
    ] = None,
    method: MethodName = "vb",
    dependence: Dependence = JUDGES,
    columns: Columns = None,
    repeats: Repeats = None,
    classes: Classes = None,
    fold_labels: FoldLabels = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Report on a panel of judges: accuracies, shared errors, its best and smallest part.

    Without gold, shared errors cannot be seen: the report says which tasks to label.
    """
    check_files((responses, gold, by), (sample, matrix))
    if accepts is not None and by is None:
        raise typer.BadParameter("--accepts needs --by FILE, which says who made each answer.")
    if by is not None and accepts is None:
        raise typer.BadParameter("--by needs --accepts CLASS, the class that accepts an answer.")
    priced = read_prices("--prices", prices)
    from tiebreak import files
    from tiebreak import panel as room

    judged = fit_judges(
        responses,
        method=method,
        dependence=dependence,
        gold=gold,
        systems=by,
        columns=columns,
        repeats=repeats,
        classes=classes,
        fold_labels=fold_labels,
        quiet=quiet,
    )
    with working("looking at the judges", quiet=quiet):
        found = room.report(
            judged.model,
            prices=priced,
            systems=judged.given.systems,
            accepts=accepts,
            n_to_label=n_sample,
        )
        drawn = room.sample(judged.model, n_sample) if sample else None
    with files.together():
        if sample and drawn is not None:
            tasks = [judged.model.tasks_[int(i)] for i in drawn.task]
            files.write_table(sample, {"task": tasks, "probability": drawn.probability})
        if matrix:
            files.write_table(matrix, matrix_columns(found))
    typer.echo(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else str(found))
    written = [name for name in (sample, matrix) if name]
    if written and not quiet:
        print_message(f"wrote {', '.join(written)}")


def matrix_columns(found: PanelReport) -> dict[str, list[Any]]:
    """Return pairs of judges and how their errors correlate, as columns."""
    if found.shared is None:
        raise OptionError("How errors correlate cannot be seen without gold. Leave out --matrix.")
    n = len(found.workers)
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    return {
        "left": [found.workers[a] for a, _ in pairs],
        "right": [found.workers[b] for _, b in pairs],
        "correlation": [float(found.shared.pairs[a, b]) for a, b in pairs],
    }
