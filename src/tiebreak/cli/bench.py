"""tiebreak bench: compare methods on responses whose truth is known in part."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tiebreak.cli import options
from tiebreak.cli.options import CommandInputs, Text, file, option, require
from tiebreak.cli.output import print_json, say, stages, wrote
from tiebreak.errors import InputError, OptionError

FAILED = 1  # the exit code where a method failed


def bench(
    responses: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RESPONSES]", help=f"{options.TABLES} Or a record made by -o."),
    ] = None,
    gold: options.Gold = None,
    dataset: Annotated[
        list[str] | None, option("NAME", "A dataset of `tiebreak datasets`, or all.")
    ] = None,
    method: Annotated[
        list[str] | None,
        option("NAME", "A method of tiebreak, or FILE.py with aggregate(crowd). [all of tiebreak]"),
    ] = None,
    out: Annotated[Text, file("Keep each result here, as a line of JSON.", "-o", "--out")] = None,
    resume: Annotated[
        bool, options.flag("--resume", "Measure only what is missing in -o.")
    ] = False,
    page: Annotated[Text, file("Write tables and differences as Markdown.")] = None,
    labels: Annotated[Text, file("Write the labels of all methods, side by side.")] = None,
    gold_share: Annotated[
        float, option("SHARE", "Give methods so much of the gold; the rest scores.")
    ] = 0.0,
    columns: options.Columns = None,
    given: options.Set = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare methods on tasks whose class is known.

    Methods do not see the gold that scores them. --set seeds=N says how often methods that draw are
    run (5), limit=N how many seconds of processor time a method has on a set (60), jobs=N how many
    processes measure. Exit code 1: some method failed; its line says how.
    """
    from tiebreak import bench as room
    from tiebreak import datasets, tables
    from tiebreak.bench.results import is_record

    inputs = CommandInputs(responses or [], columns, given, gold=gold)
    running = inputs.take_last("seeds", "limit", "jobs")
    inputs.check(labels)
    inputs.check(out, page, are_tables=False)
    require("--resume", resume, "-o", out)
    require("--labels", labels, "RESPONSES", responses)
    require("--gold", gold, "RESPONSES", responses)
    if bool(responses) == bool(dataset):
        raise OptionError("bench-one-source")
    if responses and is_record(responses[0]):
        require("--labels", labels, "RESPONSES", False)
        found = room.BenchResults(tuple(room.read_record(responses[0])))
    else:
        sets: Any = datasets.names() if dataset == ["all"] else dataset
        with stages("reading") as tell:
            if responses:
                read = inputs.read()
                if read.gold is None:
                    raise InputError("no-bench-gold")
                sets = {Path(responses[0]).name.partition(".")[0]: (read.responses, read.gold)}
            found = room.run(
                sets,
                method or tuple(room.OWN),
                gold_share=gold_share,
                record=out,
                resume=resume,
                with_labels=labels is not None,
                progress=tell,
                **running,
            )
    if labels:
        by_method = {name: [*of] for (_, name), of in found.labels.items()}
        known = read.gold.to_dict()
        n_labels = [len(set(row)) for row in zip(*by_method.values(), strict=True)]
        order = sorted(range(len(n_labels)), key=lambda i: -n_labels[i])
        tasks = [*read.responses.tasks]
        beside = {"task": tasks, "gold": [known.get(task) for task in tasks], **by_method}
        beside["n_labels"] = n_labels
        tables.write_table(labels, {name: [of[i] for i in order] for name, of in beside.items()})
    if page:
        with tables.open_target(page) as file:
            file.write(found.page().encode())
    if as_json:
        print_json([{k: v for k, v in cell.items() if k != "credit"} for cell in found.cells])
    else:
        typer.echo(str(found))
    for cell in found.failures:
        say(f"{cell['method']} on {cell['set']}: {cell['error']}")
    say(wrote((out, labels, page)))
    if any(not cell["error"].startswith("over ") for cell in found.failures):
        raise typer.Exit(FAILED)
