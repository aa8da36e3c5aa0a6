"""tiebreak judges panel, rate, route: what judges are worth, and what to do with their verdicts."""

from __future__ import annotations

import json
import shlex
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiebreak.cli.fuse import fit
from tiebreak.cli.look import JUDGES
from tiebreak.cli.options import (
    AcceptsOption,
    ByOption,
    ColumnsOption,
    GoldOption,
    JsonOption,
    Method,
    MethodOption,
    OptionValues,
    ResponsesArgument,
    SetOption,
    build_estimator,
    check_files,
    make_folder,
    read_inputs,
    reading_options,
    require,
    split_numbers,
)
from tiebreak.cli.output import say, stages, wrote
from tiebreak.errors import OptionError
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator
    from tiebreak.judges import PanelReport

N_TO_LABEL = 50


def fit_judges(
    responses: list[str],
    columns: str | None,
    settings: OptionValues,
    method: Method | None,
    **names: str | None,
) -> tuple[Estimator, SimpleNamespace]:
    """Read responses of judges and the tables beside them, and fit; errors are shared by half."""
    reading = settings.take(reading_options())
    name, estimator = build_estimator(method, settings, {"dependence": JUDGES})
    with stages("reading and fitting"):
        inputs = read_inputs(responses, columns, reading, names)
        return fit(name, estimator, inputs, force=False), inputs


def panel(
    responses: ResponsesArgument,
    gold: GoldOption = None,
    by: ByOption = None,
    accepts: AcceptsOption = None,
    prices: Annotated[
        str | None, typer.Option(help="What one call of a judge costs.", metavar="JUDGE=X,…")
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(help="Write tasks to label here, each with its chance.", metavar="FILE"),
    ] = None,
    matrix: Annotated[
        str | None,
        typer.Option(help="Write how errors of judges correlate here.", metavar="FILE"),
    ] = None,
    method: MethodOption = None,
    columns: ColumnsOption = None,
    given: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report on a panel of judges: accuracies, shared errors, who could go.

    Parts of the panel are scored by cross-validation on gold with the same method, so that the
    report takes as long as some 20 fits. Without gold, shared errors cannot be seen: the report
    says which tasks to label (50, or as --set n_to_label=N says), and how to get them as a table.
    """
    check_files((responses, gold, by), (sample, matrix))
    require("--by", by, "--accepts CLASS, the class that accepts an answer", accepts is not None)
    require("--accepts", accepts is not None, "--by FILE, which says who made each answer", by)
    priced = split_numbers("--prices", prices, "gpt=0.002")
    settings = OptionValues(given)
    n = settings.take(["n_to_label"]).get("n_to_label", N_TO_LABEL)
    from tiebreak import tables
    from tiebreak.judges import panel_report, sample_tasks

    model, inputs = fit_judges(responses, columns, settings, method, gold=gold, systems=by)
    with stages() as tell:
        tell("looking at the judges")
        found = panel_report(
            model,
            prices=priced,
            systems=inputs.systems,
            accepts=accepts,
            n_to_label=n,
            progress=tell,
        )
        drawn = sample_tasks(model, n) if sample else None
        names_tasks = not found.n_known and not sample
        if names_tasks:
            found = with_most_useful(found, inputs.responses, n)
    if sample and drawn is not None:
        tasks = [model.tasks_[int(i)] for i in drawn.task]
        tables.write_table(sample, {"task": tasks, "probability": drawn.probability})
    if matrix:
        tables.write_table(matrix, matrix_columns(found))
    typer.echo(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else str(found))
    if names_tasks and not as_json:
        more = ["--columns", columns] if columns else []
        for each in given or ():
            is_of_reading = each.partition("=")[0].replace("-", "_") in reading_options()
            more += ["--set", each] if is_of_reading else []
        command = ["tiebreak", "ask", *responses, *more]
        command += ["--kinds", "label", "--list", str(n), "-o", "to_label.csv"]
        typer.echo(f"These tasks as a table: {shlex.join(command)}")
        typer.echo(
            "They are where the panel is most in doubt. For rates and accuracies that hold for all "
            "tasks, label a sample: --sample to_label.csv"
        )
    say(wrote((sample, matrix)))


def with_most_useful(found: PanelReport, responses: Any, n: int) -> PanelReport:
    """Return the report with the tasks to label that `ask --kinds label --list` chooses."""
    from dataclasses import replace

    from tiebreak.cli.ask import list_questions

    if responses.n_classes < 2:
        return found
    chosen: Any = list_questions(responses, n, ("label",))
    return replace(found, to_label=tuple(row.task for row in chosen), to_label_probability=())


def matrix_columns(found: PanelReport) -> dict[str, list[Any]]:
    """Return pairs of judges and how their errors correlate, as columns."""
    if found.shared is None:
        raise OptionError("no-matrix-without-gold")
    n = len(found.workers)
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    return {
        "left": [found.workers[a] for a, _ in pairs],
        "right": [found.workers[b] for _, b in pairs],
        "correlation": [float(found.shared.pairs[a, b]) for a, b in pairs],
    }


def rate(
    responses: ResponsesArgument,
    gold: GoldOption = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Also write the rates here.", metavar="FILE")
    ] = None,
    by: ByOption = None,
    selection: Annotated[
        str | None,
        typer.Option(help="Table of task, probability: how gold was drawn.", metavar="FILE"),
    ] = None,
    method: MethodOption = None,
    columns: ColumnsOption = None,
    given: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate the rate of each class from judges and a few known labels.

    Also by system (--by), and the differences. Prediction-powered inference, the model's posterior
    set right by gold, Rogan-Gladen for two classes, gold alone and the judges' own share stand
    beside each other. --set level=0.95 gives wider intervals than .9.
    """
    check_files((responses, gold, by, selection), (out,))
    settings = OptionValues(given)
    options = settings.take(["level"])
    from tiebreak import tables
    from tiebreak.judges import estimate_rates

    model, inputs = fit_judges(
        responses, columns, settings, method, gold=gold, systems=by, selection=selection
    )
    with stages("estimating rates"):
        found = estimate_rates(model, systems=inputs.systems, selection=inputs.selection, **options)
    if out:
        names = ("system", "label", "method", "rate", "low", "high", "n_tasks", "n_known")
        titles = ("system", "class", "method", "rate", "low", "high", "tasks", "known")
        rows = {
            title: [getattr(each, name) for each in found.rates]
            for name, title in zip(names, titles, strict=True)
        }
        tables.write_table(out, rows)
    typer.echo(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else str(found))
    say(wrote((out,)))


def route(
    responses: ResponsesArgument,
    out: Annotated[
        str,
        typer.Option("-o", "--out", help="Write the three lists into this folder.", metavar="DIR"),
    ],
    gold: GoldOption = None,
    wrong: Annotated[float, typer.Option(help="Cost of a wrong label.", metavar="X")] = 1.0,
    human: Annotated[float, typer.Option(help="Cost of a human's label.", metavar="X")] = 0.1,
    judge: Annotated[
        str | None,
        typer.Option(help="Cost of one more call, of any judge or of each.", metavar="X|JUDGE=X,…"),
    ] = None,
    method: MethodOption = None,
    columns: ColumnsOption = None,
    given: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send each task where it costs least: done, to a human, or to a judge.

    The folder gets done.csv, human.csv and judge.csv, the most doubtful tasks first. No judge is
    asked again without --judge. --set human_error=P says how often a human is wrong.
    """
    check_files((responses, gold), ())
    settings = OptionValues(given)
    options = settings.take(["human_error"])
    from tiebreak import decide, tables

    folder = make_folder(out)
    files = [folder / f"{name}.csv" for name in decide.ROUTES]
    model, _ = fit_judges(responses, columns, settings, method, gold=gold)
    with stages("planning"):
        found = decide.plan_routes(
            model, wrong=wrong, human=human, judge=read_prices(judge), **options
        )
    for name, each in zip(decide.ROUTES, files, strict=True):
        tables.write_table(each, found.rows(name))
    if as_json:
        summary = {
            "done": found.n_done,
            "human": found.n_human,
            "judge": found.n_judge,
            "cost": found.total,
            "cost_all_done": found.all_done,
            "cost_three_humans": found.three_humans,
            "out": out,
        }
        typer.echo(json.dumps(summary))
    say(
        f"{found.n_done:,} done, {found.n_human:,} to a human, "
        f"{counted(found.n_judge, 'task')} to another judge or run\n"
        f"expected cost {found.total:,.2f}; all labels as they are {found.all_done:,.2f}, "
        f"three humans each {found.three_humans:,.2f}\n{wrote(files)}"
    )


def read_prices(text: str | None) -> float | dict[Any, float] | None:
    """Read what one more call costs: one number for all judges, or JUDGE=X,JUDGE=X.

    >>> read_prices("0.01"), read_prices("gpt=0.002")
    (0.01, {'gpt': 0.002})
    """
    if text is None or "=" in text:
        return split_numbers("--judge", text, "gpt=0.002")
    try:
        return float(text)
    except ValueError:
        raise OptionError(
            "numbers-expected", option="--judge", example="gpt=0.002", text=text
        ) from None
