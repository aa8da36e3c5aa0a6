"""tiebreak fuse: one label per task from many responses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from tiebreak.cli.arguments import STANDARD, check_files, number_or, trusted_workers, workers_named
from tiebreak.cli.cluster import (
    FuseWish,
    fuse_partitions,
    refuse_unused,
    require_folder,
    takes_cluster_options,
)
from tiebreak.cli.decisions import (
    AbstainRate,
    CostLimit,
    CostMatrixFile,
    ExpertList,
    VotePlanFile,
    decide_by_costs,
    describe_decisions,
    refuse_without_costs,
    summarise_decisions,
    with_decisions,
    write_decisions,
)
from tiebreak.cli.errors import is_terminal, print_message, working
from tiebreak.cli.imports import takes_import_options
from tiebreak.cli.link_options import flags_of, takes_link_options
from tiebreak.cli.models import Keep, refuse_model_name
from tiebreak.cli.options import (
    Classes,
    Columns,
    FoldLabels,
    Force,
    GoldFile,
    LinkSampling,
    LinksFile,
    Quiet,
    Repeats,
    ResponsesFile,
    Seed,
    TasksFile,
    read_inputs,
)
from tiebreak.cli.summary import describe, summarise
from tiebreak.options import MeanFieldOptions

if TYPE_CHECKING:
    from tiebreak.inference.estimator import Estimator


OPTIONS = {  # of the command, by the estimator's name for them
    "confusion_prior": "--prior",
    "init": "--init",
    "worker_model": "--worker-model",
    "trust": "--trust",
    "saw_all": "--saw-all",
    "gold_weight": "--gold-weight",
    "calibrate": "--calibrate",
    "dependence": "--dependence",
    "on_contradiction": "--on-contradiction",
    "max_iter": "--max-iter",
    "accelerate": "--accelerate",
    "tol": "--tol",
    "backend": "--backend",
    "n_chains": "--chains",
    "n_draws": "--draws",
}

Method = Literal["vb", "ds", "mv", "pool", "auto", "gibbs"]
USES_LINKS = ("vb", "pool", "auto", "gibbs")
WorkerModelName = Literal[
    "confusion", "coin", "kinds", "subtypes", "kinds+subtypes", "communities", "auto"
]


@takes_link_options
@takes_import_options
@takes_cluster_options
def fuse(
    responses: ResponsesFile,
    links: LinksFile = None,
    link_sampling: LinkSampling = None,
    gold: GoldFile = None,
    tasks: TasksFile = None,
    method: Annotated[
        Method,
        typer.Option(
            help="vb: variational Bayes, ds: Dawid-Skene, mv: majority vote, gibbs: sampling, "
            "pool: workers weighed by gold, auto: what foretells gold best."
        ),
    ] = "vb",
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
    cost_matrix: CostMatrixFile = None,
    abstain_rate: AbstainRate = None,
    expert_list: ExpertList = None,
    cost_limit: CostLimit = None,
    vote_plan: VotePlanFile = None,
    save: Annotated[
        str | None,
        typer.Option(help="Keep the model, for predict, update, stream.", metavar="MODEL.tbm"),
    ] = None,
    keep: Keep = "responses",
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add one column per class.")
    ] = False,
    columns: Columns = None,
    repeats: Repeats = None,
    classes: Classes = None,
    imports: Any = None,
    prior: Annotated[
        Literal["diagonal", "uniform"] | None,
        typer.Option(help="Prior of workers: better than chance, or none. [vb: diagonal]"),
    ] = None,
    worker_model: Annotated[
        WorkerModelName | None, typer.Option(help="How workers are modelled. [vb, ds: confusion]")
    ] = None,
    trust: Annotated[
        str | None,
        typer.Option(help="Workers known to be good: ann, or ann=50,bob=20.", metavar="NAMES"),
    ] = None,
    saw_all: Annotated[
        str | None,
        typer.Option(help="Who saw every task, so that silence counts.", metavar="all|NAMES"),
    ] = None,
    gold_weight: Annotated[
        str | None,
        typer.Option(
            help="How often a known task counts for its workers. [vb, ds: auto]", metavar="auto|N"
        ),
    ] = None,
    init: Annotated[
        Literal["majority", "spectral"] | None,
        typer.Option(help="Start from votes, or from moments. [vb: majority]"),
    ] = None,
    link_options: Any = None,
    calibrate: Annotated[
        Literal["auto", "votes", "none"] | None,
        typer.Option(help="Honest probabilities: by gold and links, by votes, or not. [vb: auto]"),
    ] = None,
    no_calibrate: Annotated[bool, typer.Option("--no-calibrate", hidden=True)] = False,
    dependence: Annotated[
        float | None,
        typer.Option(help="How much errors are shared: .35 people, .5 LLM judges.", metavar="X"),
    ] = None,
    doubtful: Annotated[
        str | None, typer.Option(help="Where to write links that look wrong.", metavar="FILE")
    ] = None,
    on_contradiction: Annotated[
        Literal["error", "drop"] | None,
        typer.Option(help="Links that contradict: refuse, or drop the cannot-link. [vb: error]"),
    ] = None,
    max_iter: Annotated[
        int | None, typer.Option(help="The most sweeps.", metavar="N", min=1)
    ] = None,
    tol: Annotated[
        float | None, typer.Option(help="Stop below this change.", metavar="X", min=0.0)
    ] = None,
    accelerate: Annotated[
        bool | None, typer.Option(help="Fewer sweeps by SQUAREM. [accelerate]")
    ] = None,
    backend: Annotated[
        Literal["auto", "numpy", "numba", "cuda"] | None,
        typer.Option(help="Where sweeps run. [auto]"),
    ] = None,
    chains: Annotated[
        int | None, typer.Option(help="Of gibbs: how many. [gibbs: 4]", metavar="N", min=1)
    ] = None,
    draws: Annotated[
        int | None, typer.Option(help="Kept in each chain. [gibbs: 500]", metavar="N", min=4)
    ] = None,
    seed: Seed = None,
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
    _refuse_misuse(method, links, link_options, on_contradiction, to, as_json=as_json)
    refuse_without_costs(cost_matrix, abstain_rate, expert_list, cost_limit, vote_plan)
    reads = (links, gold, tasks, cost_matrix)
    if are_partitions:
        check_files(reads, to.tables())
    else:
        check_files((responses, *reads), (out, *to.tables()))
    refuse_model_name(save)
    from tiebreak.inference import cost

    chosen = {
        "confusion_prior": prior,
        "init": init,
        "worker_model": worker_model,
        "trust": None if trust is None else trusted_workers(trust),
        "saw_all": None if saw_all is None else workers_named(saw_all),
        "gold_weight": number_or(("auto",), "--gold-weight", gold_weight),
        "link_options": link_options,
        "calibrate": "none" if no_calibrate else calibrate,
        "dependence": dependence,
        "on_contradiction": on_contradiction,
        "max_iter": max_iter,
        "accelerate": accelerate,
        "tol": tol,
        "backend": backend,
        "n_chains": chains,
        "n_draws": draws,
        "random_state": seed,
    }
    estimator = build_estimator(method, chosen)
    if are_partitions:
        not_there = {
            "--tasks": tasks,
            "--worker-summary": worker_summary,
            "--cost-matrix": cost_matrix,
            "--abstain-rate": abstain_rate is not None,
            "--classes": classes,
            "--fold-labels": fold_labels,
            "--format": imports.form,
            "--link-sampling": link_sampling,
            **{f"--{name.replace('_', '-')}": given for name, given in imports.choices.items()},
        }
        refuse_unused("A fit of shards", not_there)
        wish = FuseWish(
            *(method, responses, out, links, gold, columns, repeats, probabilities),
            *(workers, doubtful, save, force, as_json, quiet),
        )
        fuse_partitions(estimator, partitions, wish)
        return
    shows_bar = method == "gibbs" and not quiet and is_terminal()
    if shows_bar:
        estimator.set_params(progress=True)
    bar_or_not = working("reading and fitting", quiet=quiet or shows_bar)
    with bar_or_not, cost.unchecked(force=force):
        given = read_inputs(
            responses,
            links=links,
            gold=gold,
            tasks=tasks,
            columns=columns,
            repeats=repeats,
            classes=classes,
            sampling=link_sampling,
            form=imports.form,
            choices=imports.choices,
            fold_labels=fold_labels,
        )
        if method != "mv":
            cost.note_or_refuse(given.responses, worker_model or "confusion", force=force)
        model = estimator.fit(given.responses, links=given.links, gold=given.gold)
        decided = decide_by_costs(model, cost_matrix, abstain_rate, cost_limit)
    _write(to, model, decided, probabilities=probabilities)
    if save:
        model.save(save, keep=keep)
    _tell(method, model, decided, to, as_json=as_json, quiet=quiet)


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
    on_contradiction: str | None,
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
    if not links and (link_options or on_contradiction):
        unused = flags_of(link_options) if link_options else ["--on-contradiction"]
        raise typer.BadParameter(f"{', '.join(unused)} needs --links. Leave it out.")
    if to.worker_summary and method == "mv":
        raise typer.BadParameter(
            "--method mv does not model workers; --worker-summary needs it to."
        )


def _write(to: FuseOutputs, model: Any, decided: Any, *, probabilities: bool) -> None:
    """Write all that was asked for, together or not at all."""
    from tiebreak import files

    with files.together():
        if to.worker_summary:
            files.write_table(to.worker_summary, model.workers_table().columns())
        if decided is not None:
            write_decisions(decided, to.expert_list, to.vote_plan)
        if to.workers:
            files.write_workers(to.workers, model)
        if to.doubtful:
            files.write_table(to.doubtful, doubtful_columns(model))
        if decided is None:
            files.write_labels(to.labels, model.labels_, probabilities=probabilities)
        else:
            files.write_table(to.labels, with_decisions(model.labels_, decided, probabilities))


def _tell(
    method: Method, model: Any, decided: Any, to: FuseOutputs, *, as_json: bool, quiet: bool
) -> None:
    """Say what came out, and where it is."""
    summary = summarise(method, model)
    if decided is not None:
        summary["decisions"] = summarise_decisions(decided)
    if as_json:
        places = {"out": to.labels, "workers_out": to.workers, "saved": to.saved}
        typer.echo(json.dumps(summary | places))
    if quiet:
        return
    print_message(describe(summary))
    if decided is not None:
        print_message(describe_decisions(decided))
    written = [name for name in (to.labels, *to.tables(), to.saved) if name and name != STANDARD]
    print_message(f"wrote {', '.join(written)}" if written else "labels are on stdout")


def build_estimator(method: Method, chosen: dict[str, Any]) -> Estimator:
    """Make the estimator with the options that were chosen; refuse those it does not have."""
    from tiebreak import inference

    by_method = {
        "vb": "VariationalBayes",
        "ds": "DawidSkene",
        "mv": "MajorityVote",
        "pool": "LogOpinionPool",
        "auto": "Auto",
        "gibbs": "GibbsSampler",
    }
    estimator: Estimator = getattr(inference, by_method[method])()  # the others are not loaded
    known = estimator.get_params()
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if "random_state" not in known:
        chosen.pop("random_state", None)  # nothing is random in it: any seed will do
    unknown = [OPTIONS[name] for name in chosen if name not in known and name in OPTIONS]
    if "link_options" in chosen and "link_options" not in known:
        unknown += flags_of(chosen["link_options"])
    if unknown:
        raise typer.BadParameter(f"--method {method} has no {', '.join(unknown)}. Leave it out.")
    return estimator.set_params(**chosen)


def doubtful_columns(model: Any) -> dict[str, Any]:
    """Return links that are more likely wrong than right, and how likely, as columns."""
    found = model.doubtful_links_
    if found is None:
        return {"left": [], "right": [], "link": [], "wrong": []}
    columns: dict[str, Any] = {**found.links.columns(), "wrong": found.probability}
    return columns
