"""tiebreak panel: how good a panel of judges is, and what would make it better."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiebreak.cli.arguments import Quiet, check_files
from tiebreak.cli.judging import (
    Accepts,
    AsJson,
    Prices,
    SystemsFile,
    read_prices,
    require_both,
    takes_judging_options,
)
from tiebreak.cli.messages import print_message, stages
from tiebreak.cli.tables import ResponsesFiles
from tiebreak.errors import OptionError

if TYPE_CHECKING:
    from tiebreak.cli.tables import InputTables
    from tiebreak.estimators.base import Estimator
    from tiebreak.judges import PanelReport


@takes_judging_options
def panel(
    responses: ResponsesFiles,
    judging: Any = None,
    by: SystemsFile = None,
    accepts: Accepts = None,
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
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Report on a panel of judges: accuracies, shared errors, and which of them could go.

    Parts of the panel are scored by cross-validation on gold with the same method, so that the
    report takes as long as some 20 fits.

    Without gold, shared errors cannot be seen: the report says which tasks to label, and how to
    get them as a table.
    """
    check_files((responses, judging.gold, by), (sample, matrix))
    require_both(by, accepts)
    priced = read_prices("--prices", prices)
    from tiebreak import tables
    from tiebreak.judges import panel_report

    judged = judging.fit(responses, systems=by, quiet=quiet)
    with stages(quiet=quiet) as tell:
        tell("looking at the judges")
        found = panel_report(
            judged.model,
            prices=priced,
            systems=judged.given.systems,
            accepts=accepts,
            n_to_label=n_sample,
            progress=tell,
        )
        drawn = sample_columns(judged.model, n_sample) if sample else {}
        names_tasks = not found.n_known and not sample
        if names_tasks:
            found = with_most_useful(found, judged.given, n_sample)
    if sample:
        tables.write_table(sample, drawn)
    if matrix:
        tables.write_table(matrix, matrix_columns(found))
    typer.echo(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else str(found))
    if names_tasks and judging.reads_plainly and not as_json:
        command = select_command(responses, judging.columns, n_sample)
        typer.echo(f"These tasks as a table: {command}")
        typer.echo(
            "They are where the panel is most in doubt. For rates and accuracies that hold for all "
            "tasks, label a sample: --sample to_label.csv"
        )
    written = [name for name in (sample, matrix) if name]
    if written and not quiet:
        print_message(f"wrote {', '.join(written)}")


def sample_columns(model: Estimator, n: int) -> dict[str, Any]:
    """Draw tasks to label; return them as columns, each with the chance that it had."""
    from tiebreak.judges import sample_tasks

    drawn = sample_tasks(model, n)
    tasks = [model.tasks_[int(i)] for i in drawn.task]
    return {"task": tasks, "probability": drawn.probability}


def with_most_useful(found: PanelReport, given: InputTables, n: int) -> PanelReport:
    """Return the report with the tasks to label that `tiebreak select --kinds label` chooses."""
    from dataclasses import replace

    from tiebreak import selection
    from tiebreak.estimators.variational_bayes import VariationalBayes
    from tiebreak.options import ExactLinkOptions

    if given.responses.n_classes < 2:
        return found
    model = VariationalBayes(link_options=ExactLinkOptions()).fit(given.responses)
    chosen = selection.questions(model, n, ("label",))
    return replace(found, to_label=tuple(row.task for row in chosen), to_label_probability=())


def select_command(responses: list[str], columns: str | None, n: int) -> str:
    """Return the command that writes the most useful tasks to label.

    >>> select_command(["my verdicts.csv"], None, 50)
    "tiebreak select 'my verdicts.csv' --kinds label -n 50 -o to_label.csv"
    """
    given = ["tiebreak", "select", *responses]
    if columns is not None:
        given += ["--columns", columns]
    return shlex.join([*given, "--kinds", "label", "-n", str(n), "-o", "to_label.csv"])


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
