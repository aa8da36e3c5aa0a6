"""tiebreak report: what a fit found, as a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tiebreak.cli.arguments import STANDARD, Force, Quiet, Seed, check_files
from tiebreak.cli.judging import Accepts, SystemsFile, require_both
from tiebreak.cli.messages import print_message, stages
from tiebreak.cli.model_options import (
    WorkerModelName,
    build_estimator,
    default_method,
    refuse_without_links,
    takes_link_options,
)
from tiebreak.cli.tables import (
    Classes,
    Columns,
    FoldLabels,
    FormatName,
    GoldFile,
    InputTables,
    LinkSampling,
    LinksFile,
    Question,
    Repeats,
    ResponsesFiles,
    TasksFile,
    format_choices,
    read_inputs,
    texts_of_export,
)
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.estimators.base import Estimator
    from tiebreak.options import LinkOptions


@takes_link_options
def report(
    responses: ResponsesFiles,
    out: Annotated[
        str, typer.Option("-o", "--out", help="Where to write the page.", metavar="FILE")
    ] = "report.html",
    json_path: Annotated[
        str | None,
        typer.Option("--json", help="Write the same numbers as JSON.", metavar="FILE"),
    ] = None,
    links: LinksFile = None,
    link_sampling: LinkSampling = None,
    gold: GoldFile = None,
    truth: Annotated[
        str | None,
        typer.Option(help="Known classes to compare with, kept from the fit.", metavar="FILE"),
    ] = None,
    texts: Annotated[
        str | None, typer.Option(help="Table of task, text: what to show.", metavar="FILE")
    ] = None,
    by: SystemsFile = None,
    accepts: Accepts = None,
    tasks: TasksFile = None,
    columns: Columns = None,
    repeats: Repeats = None,
    classes: Classes = None,
    form: FormatName = None,
    question: Question = None,
    worker_model: Annotated[
        WorkerModelName | None, typer.Option(help="One worker model, in place of a committee.")
    ] = None,
    link_options: Any = None,
    on_contradiction: Annotated[
        Literal["error", "drop"] | None,
        typer.Option(help="Links that contradict: refuse, or drop and report them. [drop]"),
    ] = None,
    seed: Seed = None,
    fold_labels: FoldLabels = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fuse responses and write a page about the result.

    The page says how far the labels can be used, compares them with voting, and shows workers,
    the tasks to look at with reasons, links and what to ask next. It is one file without scripts
    that needs no network.
    """
    refuse_without_links(links, link_options, on_contradiction)
    require_both(by, accepts)
    reads = (responses, links, gold, truth, texts, tasks, by)
    from tiebreak.report.write import check_target

    check_target(out, overwrite=force)
    written = [out] if json_path is None else [out, json_path]
    check_files(reads, written, are_tables=False)
    with stages(quiet=quiet) as tell:
        tell("reading")
        is_export = not texts and responses != [STANDARD]  # which can be read only once
        shown = texts_of_export(responses, question) if is_export else None
        given = read_inputs(
            responses,
            links=links,
            gold=gold,
            tasks=tasks,
            texts=texts,
            truth=truth,
            systems=by,
            columns=columns,
            repeats=repeats,
            classes=classes,
            sampling=link_sampling,
            form=form,
            choices=format_choices(question),
            fold_labels=fold_labels,
        )
        tell("fitting")
        model = _fit(given, worker_model, link_options, on_contradiction, seed, force)
        model.report(
            out,
            truth=given.truth,
            texts=given.texts if texts else shown,
            source=_title(responses),
            systems=given.systems,
            accepts=accepts,
            json_path=json_path,
            overwrite=force,
            watch=tell,
        )
    if not quiet:
        print_message(f"wrote {' and '.join(written)}")


def _title(responses: list[str]) -> str:
    """Name the files for the page."""
    first = "standard input" if responses == [STANDARD] else Path(responses[0]).name
    n_more = len(responses) - 1
    return f"{first} and {counted(n_more, 'other file')}" if n_more else first


def _fit(
    given: InputTables,
    worker_model: WorkerModelName | None,
    link_options: LinkOptions | None,
    on_contradiction: Literal["error", "drop"] | None,
    seed: int | None,
    force: bool,
) -> Estimator:
    """Fit a model to the tables, unless that would take too long."""
    from tiebreak.inference import inputs

    chosen: dict[str, Any] = {} if worker_model is None else {"worker_model": worker_model}
    method = default_method(chosen, link_options)
    inputs.note_or_refuse(given.responses, worker_model or "confusion", force=force)
    chosen |= {
        "link_options": link_options,
        "on_contradiction": on_contradiction or "drop",
        "random_state": seed,
    }
    model = build_estimator(method, chosen)
    return model.fit(given.responses, links=given.links, gold=given.gold)
