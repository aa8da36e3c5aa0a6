"""tiebreak predict: labels of new tasks by workers as a model file knows them."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from tiebreak.cli.arguments import (
    STANDARD,
    ModelFile,
    Quiet,
    check_files,
    refuse_unused,
    require_folder,
    takes_cluster_options,
)
from tiebreak.cli.messages import SURE, print_message, working
from tiebreak.cli.tables import Columns, LinksFile, Repeats, ResponsesFiles, TasksFile, read_inputs
from tiebreak.wording import counted


@takes_cluster_options
def predict(
    model: ModelFile,
    responses: ResponsesFiles,
    links: LinksFile = None,
    tasks: TasksFile = None,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="Where labels go; else stdout.", metavar="FILE"),
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add one column per class.")
    ] = False,
    columns: Columns = None,
    repeats: Repeats = None,
    partitions: Any = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Summary as JSON on stdout; needs -o.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Label new tasks by workers as they are known; the model stays as it is.

    Links may join new tasks to each other and to tasks of the model.
    """
    if partitions.are_given:
        refuse_unused(
            "A prediction of shards",
            {"--links": links, "--tasks": tasks, "--json": as_json, **partitions.only_of_fits()},
        )
        from tiebreak.cli.cluster import predict_partitions

        n_tasks = predict_partitions(
            model, responses, require_folder(out), partitions, probabilities, columns, repeats
        )
        if not quiet:
            print_message(f"{counted(n_tasks, 'task')} labelled; wrote {out}")
        return
    out = out or STANDARD
    if as_json and out == STANDARD:
        raise typer.BadParameter(
            "--json writes the summary to stdout, where the labels go. Name a file with -o."
        )
    check_files((responses, links, tasks), (out,))
    from tiebreak import tables
    from tiebreak.life import model_file

    with working("reading and predicting", quiet=quiet):
        known = model_file.load(model)
        given = read_inputs(responses, links=links, tasks=tasks, columns=columns, repeats=repeats)
        labels = known.predict(given.responses, links=given.links)
    tables.write_labels(out, labels, probabilities=probabilities)
    n_unsure = 0 if labels.probability is None else int((labels.probability < SURE).sum())
    n_new = int((known.workers_.codes(given.responses.workers) < 0).sum())
    if as_json:
        summary = {
            "responses": given.responses.n_responses,
            "tasks": len(labels),
            "workers": given.responses.n_workers,
            "workers_not_seen": n_new,
            "labels_below_0.9": n_unsure,
            "out": out,
        }
        typer.echo(json.dumps(summary))
    if not quiet:
        print_message(
            f"{counted(len(labels), 'task')} labelled, {n_unsure:,} below probability {SURE}"
        )
