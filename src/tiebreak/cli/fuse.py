"""tiebreak fuse: one label per task from many responses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tiebreak.cli.arguments import (
    STANDARD,
    Force,
    Keep,
    Quiet,
    check_files,
    refuse_model_name,
    refuse_unused,
    require_folder,
    takes_cluster_options,
)
from tiebreak.cli.messages import describe, is_terminal, print_message, summarise, working
from tiebreak.cli.model_options import (
    Method,
    build_estimator,
    default_method,
    refuse_without_links,
    takes_link_options,
    takes_model_options,
)
from tiebreak.cli.tables import (
    FoldLabels,
    GoldFile,
    InputTables,
    LinkSampling,
    LinksFile,
    Reading,
    ResponsesFiles,
    TasksFile,
    takes_reading_options,
)
from tiebreak.options import MeanFieldOptions

if TYPE_CHECKING:
    from tiebreak.cli.decisions import Decided
    from tiebreak.estimators.base import Estimator

USES_LINKS = ("auto", "vb", "gibbs")


@takes_link_options
@takes_model_options
@takes_reading_options
@takes_cluster_options
def fuse(
    responses: ResponsesFiles,
    links: LinksFile = None,
    link_sampling: LinkSampling = None,
    gold: GoldFile = None,
    tasks: TasksFile = None,
    method: Annotated[
        Method | None,
        typer.Option(
            help="auto: a committee of models near the votes, vb: variational Bayes, ds: "
            "Dawid-Skene, mv: majority vote, gibbs: sampling. [auto; shards, counts: vb]"
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="Where labels go; else stdout.", metavar="FILE"),
    ] = None,
    workers: Annotated[
        str | None, typer.Option(help="Where to write who confuses what.", metavar="FILE")
    ] = None,
    worker_summary: Annotated[
        str | None,
        typer.Option(help="Where to write how good workers are, with intervals.", metavar="FILE"),
    ] = None,
    cost_matrix: Annotated[
        str | None,
        typer.Option(help="What decisions cost: truth, one column each.", metavar="FILE"),
    ] = None,
    abstain_rate: Annotated[
        float | None,
        typer.Option(help="Leave this share of the tasks open, the least certain.", metavar="X"),
    ] = None,
    expert_list: Annotated[
        str | None, typer.Option(help="Where to write whom an expert sees first.", metavar="FILE")
    ] = None,
    cost_limit: Annotated[
        float | None, typer.Option(help="Plan votes until the cost is below this.", metavar="X")
    ] = None,
    vote_plan: Annotated[
        str | None, typer.Option(help="Where to write the votes to ask for.", metavar="FILE")
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(help="Keep the model, for predict, update, stream.", metavar="MODEL.tbm"),
    ] = None,
    keep: Keep = "responses",
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add one column per class.")
    ] = False,
    reading: Any = None,
    link_options: Any = None,
    model_options: Any = None,
    doubtful: Annotated[
        str | None, typer.Option(help="Where to write links that look wrong.", metavar="FILE")
    ] = None,
    fold_labels: FoldLabels = False,
    partitions: Any = None,
    force: Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Summary as JSON on stdout; needs -o.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Infer one label per task from responses.

    Files are CSV, TSV, Parquet or JSON, or what annotation tools write; labels come with their
    probability. Labels that the file says are true are used as gold.
    """
    are_partitions = partitions.are_given
    out = require_folder(out) if are_partitions else out or STANDARD
    to = FuseOutputs(out, workers, worker_summary, doubtful, expert_list, vote_plan, save)
    if method is None:
        method = default_method(
            model_options,
            link_options,
            over_shards=are_partitions,
            keeps_counts=bool(save) and keep == "counts",
        )
    _refuse_misuse(method, links, link_options, model_options, to, as_json=as_json)
    _refuse_without_costs(cost_matrix, abstain_rate, expert_list, cost_limit, vote_plan)
    reads = (links, gold, tasks, cost_matrix)
    if are_partitions:
        check_files(reads, to.tables())
    else:
        check_files((responses, *reads), (out, *to.tables()))
    refuse_model_name(save)
    estimator = build_estimator(method, model_options | {"link_options": link_options})
    tables = FuseTables(responses, links, link_sampling, gold, tasks, reading, fold_labels)
    if are_partitions:
        not_there = tables.not_of_shards(worker_summary, cost_matrix, abstain_rate)
        refuse_unused("A fit of shards", not_there)
        from tiebreak.cli.cluster import FuseWish, fuse_partitions

        wish = FuseWish(
            *(method, responses, out, links, gold, reading.columns, reading.repeats),
            *(probabilities, workers, doubtful, save, force, as_json, quiet),
        )
        fuse_partitions(estimator, partitions, wish)
        return
    with _working_on(method, estimator, force=force, quiet=quiet):
        model = _read_and_fit(method, estimator, tables, force=force)
        decided = _decide(model, cost_matrix, abstain_rate, cost_limit)
    _write(to, model, decided, probabilities=probabilities)
    if save:
        model.save(save, keep=keep)
    _tell(method, model, decided, to, as_json=as_json, quiet=quiet)


class FuseTables(NamedTuple):
    """The files that a fit reads, and how."""

    responses: list[str]
    links: str | None
    link_sampling: Any
    gold: str | None
    tasks: str | None
    reading: Reading
    fold_labels: bool

    def read(self) -> InputTables:
        """Read them."""
        return self.reading.read(
            self.responses,
            links=self.links,
            gold=self.gold,
            tasks=self.tasks,
            sampling=self.link_sampling,
            fold_labels=self.fold_labels,
        )

    def not_of_shards(
        self, worker_summary: str | None, cost_matrix: str | None, abstain_rate: float | None
    ) -> dict[str, Any]:
        """Return the options that a fit of shards does not have."""
        choices = self.reading.choices.items()
        return {
            "--tasks": self.tasks,
            "--worker-summary": worker_summary,
            "--cost-matrix": cost_matrix,
            "--abstain-rate": abstain_rate is not None,
            "--classes": self.reading.classes,
            "--fold-labels": self.fold_labels,
            "--format": self.reading.form,
            "--link-sampling": self.link_sampling,
            **{f"--{name.replace('_', '-')}": given for name, given in choices},
        }


@contextmanager
def _working_on(
    method: Method, estimator: Estimator, *, force: bool, quiet: bool
) -> Iterator[None]:
    """Show that something long is going on: the bar of a sampler, or else a spinner."""
    from tiebreak.inference import inputs

    shows_bar = method == "gibbs" and not quiet and is_terminal()
    if shows_bar:
        estimator.set_params(progress=True)
    bar_or_not = working("reading and fitting", quiet=quiet or shows_bar)
    with bar_or_not, inputs.unchecked(force=force):
        yield


def _read_and_fit(
    method: Method, estimator: Estimator, tables: FuseTables, *, force: bool
) -> Estimator:
    """Read the tables and fit a model to them."""
    from tiebreak.inference import inputs

    given = tables.read()
    if method != "mv":
        name = estimator.get_params().get("worker_model") or "confusion"
        inputs.note_or_refuse(given.responses, name, force=force)
    return estimator.fit(given.responses, links=given.links, gold=given.gold)


class FuseOutputs(NamedTuple):
    """The files that a fit writes."""

    labels: str
    workers: str | None
    worker_summary: str | None
    doubtful: str | None
    expert_list: str | None
    vote_plan: str | None
    saved: str | None

    def tables(self) -> tuple[str | None, ...]:
        """Return the tables beside the labels."""
        return self[1:-1]


def _refuse_misuse(
    method: Method,
    links: str | None,
    link_options: Any,
    model_options: dict[str, Any],
    to: FuseOutputs,
    *,
    as_json: bool,
) -> None:
    """Refuse options that contradict each other, before anything is read."""
    if as_json and to.labels == STANDARD:
        raise typer.BadParameter(
            "--json writes the summary to stdout, where the labels go. Name a file with -o."
        )
    if links and method not in USES_LINKS:
        raise typer.BadParameter(f"--method {method} cannot use --links; --method vb can.")
    are_exact = links and method != "gibbs" and not isinstance(link_options, MeanFieldOptions)
    if to.doubtful and not are_exact:
        raise typer.BadParameter("--doubtful needs --links, inferred exactly.")
    refuse_without_links(links, link_options, model_options.get("on_contradiction"))
    if to.worker_summary and method == "mv":
        raise typer.BadParameter(
            "--method mv does not model workers; --worker-summary needs it to."
        )


def _refuse_without_costs(
    cost_matrix: str | None,
    abstain_rate: float | None,
    expert_list: str | None,
    cost_limit: float | None,
    vote_plan: str | None,
) -> None:
    """Refuse options that mean nothing without others."""
    if abstain_rate is not None and not 0.0 <= abstain_rate < 1.0:
        raise typer.BadParameter(f"--abstain-rate lies from 0 to below 1; got {abstain_rate:g}.")
    if not cost_matrix and (cost_limit is not None or (expert_list and abstain_rate is None)):
        unused = "--cost-limit" if cost_limit is not None else "--expert-list"
        raise typer.BadParameter(f"{unused} needs --cost-matrix, which says what mistakes cost.")
    if vote_plan and cost_limit is None:
        raise typer.BadParameter("--vote-plan needs --cost-limit: until when to ask.")


def _decide(
    model: Estimator, cost_matrix: str | None, abstain_rate: float | None, limit: float | None
) -> Decided | None:
    """Decide by costs; None where nobody asks for decisions."""
    if not cost_matrix and abstain_rate is None:
        return None
    from tiebreak.cli.decisions import decide_by_costs

    return decide_by_costs(model, cost_matrix, abstain_rate, limit)


def _write(to: FuseOutputs, model: Any, decided: Decided | None, *, probabilities: bool) -> None:
    """Write all that was asked for, together or not at all."""
    from tiebreak import tables
    from tiebreak.estimators.committee import vote_of_each

    vote = vote_of_each(model.responses_)
    if to.worker_summary:
        tables.write_table(to.worker_summary, model.workers_table().columns())
    if decided is not None:
        decided.write(to.expert_list, to.vote_plan)
    if to.workers:
        tables.write_workers(to.workers, model)
    if to.doubtful:
        tables.write_table(to.doubtful, doubtful_columns(model))
    if decided is None:
        tables.write_labels(to.labels, model.labels_, probabilities=probabilities, vote=vote)
    else:
        columns = decided.beside(model.labels_, probabilities=probabilities)
        columns["vote"] = tables.names_of_codes(model.classes_, vote)
        tables.write_table(to.labels, columns)


def _tell(
    method: Method,
    model: Any,
    decided: Decided | None,
    to: FuseOutputs,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say what came out, and where it is."""
    summary = summarise(method, model)
    if decided is not None:
        summary["decisions"] = decided.summarise()
    if as_json:
        places = {"out": to.labels, "workers_out": to.workers, "saved": to.saved}
        typer.echo(json.dumps(summary | places))
    if quiet:
        return
    print_message(describe(summary))
    if decided is not None:
        print_message(decided.describe())
    written = [name for name in (to.labels, *to.tables(), to.saved) if name and name != STANDARD]
    print_message(f"wrote {', '.join(written)}" if written else "labels are on stdout")


def doubtful_columns(model: Any) -> dict[str, Any]:
    """Return links that are more likely wrong than right, and how likely, as columns."""
    found = model.doubtful_links_
    if found is None:
        return {"left": [], "right": [], "link": [], "wrong": []}
    columns: dict[str, Any] = {**found.links.columns(), "wrong": found.probability}
    return columns
