"""tiebreak judges panel, rate, route: what judges are worth, and what to do with their verdicts."""

from __future__ import annotations

import shlex
from itertools import combinations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiebreak.cli import options
from tiebreak.cli.fuse import fit
from tiebreak.cli.look import JUDGES, require_both
from tiebreak.cli.options import CommandInputs, Text, file, option, split_numbers
from tiebreak.cli.output import print_json, say, stages, wrote
from tiebreak.errors import OptionError
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator
    from tiebreak.judges import PanelReport

N_TO_LABEL = 50


def fit_judges(inputs: CommandInputs) -> tuple[Estimator, SimpleNamespace]:
    """Read the tables and fit with the options left; errors of judges are shared by half."""
    method, estimator = inputs.estimator(None, dependence=JUDGES)
    with stages("reading and fitting"):
        read = inputs.read()
        return fit(method, estimator, read, force=False), read


def panel(
    responses: options.Responses,
    gold: options.Gold = None,
    by: options.By = None,
    accepts: options.Accepts = None,
    prices: Annotated[Text, option("JUDGE=X,…", "What one call of a judge costs.")] = None,
    sample: Annotated[Text, file("Write tasks to label here, each with its chance.")] = None,
    matrix: Annotated[Text, file("Write how errors of judges correlate here.")] = None,
    columns: options.Columns = None,
    given: options.Set = None,
    as_json: options.AsJson = False,
) -> None:
    """Report on a panel of judges: accuracies, shared errors, who could go.

    Parts of the panel are scored by cross-validation on gold with the same method, so that the
    report takes as long as some 20 fits. Without gold, shared errors cannot be seen: the report
    says which tasks to label (50, or as --set n_to_label=N says), and how to get them as a table.
    """
    require_both(by, accepts)
    priced = split_numbers("--prices", prices, "gpt=0.002")
    inputs = CommandInputs(responses, columns, given, gold=gold, systems=by)
    n = inputs.take("n_to_label").get("n_to_label", N_TO_LABEL)
    inputs.check(sample, matrix)
    from tiebreak import tables
    from tiebreak.judges import panel_report, sample_tasks

    model, read = fit_judges(inputs)
    with stages() as tell:
        tell("looking at the judges")
        found = panel_report(
            model,
            prices=priced,
            systems=read.systems,
            accepts=accepts,
            n_to_label=n,
            progress=tell,
        )
        names_tasks = not found.n_known and not sample
        if names_tasks:
            found = with_most_useful(found, read.responses, n)
        if sample:
            drawn = sample_tasks(model, n)
            tasks = [model.tasks_[int(i)] for i in drawn.task]
            tables.write_table(sample, {"task": tasks, "probability": drawn.probability})
    if matrix:
        if found.shared is None:
            raise OptionError("no-matrix-without-gold")
        pairs = list(combinations(range(len(found.workers)), 2))
        columns_of_pairs = {
            "left": [found.workers[a] for a, _ in pairs],
            "right": [found.workers[b] for _, b in pairs],
            "correlation": [float(found.shared.pairs[pair]) for pair in pairs],
        }
        tables.write_table(matrix, columns_of_pairs)
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))
    if names_tasks and not as_json:
        more = ["--columns", columns] if columns else []
        more += [
            word for name in given or () if inputs.is_of_reading(name) for word in ("--set", name)
        ]
        command = ["tiebreak", "ask", *responses, *more, "--kinds", "label", "--list", str(n)]
        typer.echo(f"These tasks as a table: {shlex.join([*command, '-o', 'to_label.csv'])}")
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


def rate(
    responses: options.Responses,
    gold: options.Gold = None,
    out: Annotated[Text, file("Also write the rates here.", "-o", "--out")] = None,
    by: options.By = None,
    selection: Annotated[Text, file("Table of task, probability: how gold was drawn.")] = None,
    columns: options.Columns = None,
    given: options.Set = None,
    as_json: options.AsJson = False,
) -> None:
    """Estimate the rate of each class from judges and a few known labels.

    Also by system (--by), and the differences. Prediction-powered inference, the model's posterior
    corrected by gold, Rogan-Gladen for two classes, gold alone and the judges' own share stand
    beside each other. --set level=0.95 gives wider intervals than .9.
    """
    inputs = CommandInputs(responses, columns, given, gold=gold, systems=by, selection=selection)
    level = inputs.take("level")
    inputs.check(out)
    from tiebreak import tables
    from tiebreak.judges import estimate_rates

    model, read = fit_judges(inputs)
    with stages("estimating rates"):
        found = estimate_rates(model, systems=read.systems, selection=read.selection, **level)
    if out:
        titles = {"label": "class", "n_tasks": "tasks", "n_known": "known"}
        names = ("system", "label", "method", "rate", "low", "high", "n_tasks", "n_known")
        rows = {
            titles.get(name, name): [getattr(each, name) for each in found.rates] for name in names
        }
        tables.write_table(out, rows)
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))
    say(wrote((out,)))


def route(
    responses: options.Responses,
    out: Annotated[str, option("DIR", "Write the three lists into this folder.", "-o", "--out")],
    gold: options.Gold = None,
    wrong: Annotated[float, option("X", "Cost of a wrong label.")] = 1.0,
    human: Annotated[float, option("X", "Cost of a human's label.")] = 0.1,
    judge: Annotated[
        Text, option("X|JUDGE=X,…", "Cost of one more call, of any judge or of each.")
    ] = None,
    columns: options.Columns = None,
    given: options.Set = None,
    as_json: options.AsJson = False,
) -> None:
    """Send each task where it costs least: done, to a human, or to a judge.

    The folder gets done.csv, human.csv and judge.csv, the most doubtful tasks first. No judge is
    asked again without --judge. --set human_error=P says how often a human is wrong.
    """
    inputs = CommandInputs(responses, columns, given, gold=gold)
    errors = inputs.take("human_error")
    inputs.check()
    from tiebreak import decide, tables

    folder = options.make_folder(out)
    files = [folder / f"{name}.csv" for name in decide.ROUTES]
    model, _ = fit_judges(inputs)
    with stages("planning"):
        found = decide.plan_routes(
            model, wrong=wrong, human=human, judge=read_prices(judge), **errors
        )
    for name, path in zip(decide.ROUTES, files, strict=True):
        tables.write_table(path, found.rows(name))
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
        print_json(summary)
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
