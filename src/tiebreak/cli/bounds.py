"""tiebreak bounds: what the theorems promise for a crowd."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from tiebreak.cli.messages import working
from tiebreak.errors import OptionError
from tiebreak.wording import aligned

if TYPE_CHECKING:
    from tiebreak.theory import Assumptions, Bounds, CrowdPlan, LinkedTasks

Need = Literal["workers", "responses", "tasks"]


class BoundsReport(NamedTuple):
    """Everything that the command has to say."""

    bounds: Bounds
    all_right: float | None  # None for the printed formulas, which prove nothing
    plan: CrowdPlan | None
    estimated: bool


def bounds(
    assumptions: Annotated[
        str | None, typer.Argument(help="TOML of assumptions; - is stdin. See --example.")
    ] = None,
    responses: Annotated[
        str | None,
        typer.Option("--from", help="Estimate the crowd from responses.", metavar="FILE"),
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(help="How many are needed until the label bound is below X.", metavar="X"),
    ] = None,
    need: Annotated[Need | None, typer.Option(help="How many of what. [workers]")] = None,
    failure: Annotated[
        float | None,
        typer.Option(help="The bounds may fail with this probability.", metavar="P"),
    ] = None,
    iterations: Annotated[int, typer.Option(help="How many iterations.", min=1, metavar="N")] = 10,
    plain: Annotated[
        bool, typer.Option("--plain", help="The paper's constants, not our sharper ones.")
    ] = False,
    as_printed: Annotated[
        bool, typer.Option("--as-printed", help="The paper's formulas, errors and all.")
    ] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Print a TOML of assumptions and stop.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes.")] = False,
) -> None:
    """Bound the errors of labels and workers, and plan how many workers are needed.

    The theorems speak about a crowd whose skill is known: they plan, they do not certify.
    """
    if example:
        from tiebreak.theory.assumption_file import EXAMPLE

        typer.echo(EXAMPLE, nl=False)
        return
    if as_printed and (until is not None or need is not None):
        raise OptionError("The printed formulas prove nothing, so nothing can be planned by them.")
    crowd, links = _crowd(assumptions, responses, failure, quiet=quiet)
    chosen: dict[str, Any] = {"links": links, "n_iter": iterations, "sharp": not plain}
    with working("computing bounds", quiet=quiet):
        from tiebreak import theory

        plan = None
        if until is not None or need is not None:
            plan = _plan(crowd, need or "workers", 0.5 if until is None else until, chosen)
        report = BoundsReport(
            bounds=theory.bounds(crowd, as_printed=as_printed, **chosen),
            all_right=None if as_printed else theory.probability_all_right(crowd, **chosen),
            plan=plan,
            estimated=responses is not None,
        )
    typer.echo(as_json_text(report) if as_json else as_text(report))


def _crowd(
    assumptions: str | None, responses: str | None, failure: float | None, *, quiet: bool
) -> tuple[Assumptions, LinkedTasks | None]:
    """Read the assumptions, or estimate them from responses."""
    if (assumptions is None) == (responses is None):
        raise OptionError(
            "Name a TOML file of assumptions, or responses with --from; one of the two.\n"
            "tiebreak bounds --example prints such a file."
        )
    from dataclasses import replace

    from tiebreak import theory

    if assumptions is not None:
        crowd, links = theory.read_assumptions(assumptions)
    else:
        from tiebreak import tables
        from tiebreak.inference.variational_bayes import VariationalBayes

        with working("fitting", quiet=quiet):
            model = VariationalBayes().fit(tables.read_responses(responses))
        crowd = theory.assumptions_from(model)
        links = None
    return crowd if failure is None else replace(crowd, failure_probability=failure), links


def _plan(crowd: Assumptions, need: Need, until: float, chosen: dict[str, Any]) -> CrowdPlan:
    from tiebreak import theory

    if need == "workers":
        return theory.workers_needed(crowd, until, **chosen)
    if need == "responses":
        return theory.responses_needed(crowd, until, **chosen)
    if chosen["links"] is not None:
        raise OptionError("Links name their tasks, so the number of tasks cannot be planned.")
    return theory.tasks_needed(crowd, until, n_iter=chosen["n_iter"], sharp=chosen["sharp"])


def as_json_text(report: BoundsReport) -> str:
    """Write the report as one JSON object."""
    shown: dict[str, Any] = report.bounds.to_dict() | {
        "estimated": report.estimated,
        "probability_all_right": report.all_right,
    }
    if report.plan is not None:
        shown["plan"] = report.plan.to_dict()
    return json.dumps(shown, ensure_ascii=False)


def as_text(report: BoundsReport) -> str:
    """Write the report as tables and plain sentences."""
    found = report.bounds
    parts = [
        aligned(list(_iteration_rows(found)), to_right=True),
        aligned(list(_ingredient_rows(found)), to_right=True),
        _sentences(report),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts)


def _iteration_rows(found: Bounds) -> Iterator[list[str]]:
    from tiebreak.theory.verdicts import number

    columns = {
        "labels": found.label_error,
        "linked labels": found.linked_label_error,
        "class prior": found.class_prior_error,
        "confusions": found.confusion_error,
    }
    shown = {name: values for name, values in columns.items() if values is not None}
    yield ["error below, after iteration", *shown]
    for step in range(found.n_iter):
        yield [str(step + 1), *(number(float(values[step])) for values in shown.values())]


def _ingredient_rows(found: Bounds) -> Iterator[list[str]]:
    parts = found.ingredients
    yield ["evidence of the responses on a task, nats", f"{parts.evidence_per_task:.3g}"]
    yield ["the same for one worker", f"{parts.evidence_per_worker:.3g}"]
    yield ["share of it that every task must reach", f"{parts.evidence_threshold:g}"]
    yield ["chance that some task does not, at most", f"{parts.evidence_failure:.3g}"]
    yield ["what the class prior may say against the truth, nats", f"{parts.class_prior_gap:.3g}"]
    yield ["smallest probability of a class", f"{parts.rarest_class:.3g}"]
    yield ["smallest probability of an report", f"{parts.rarest_answer:.3g}"]
    yield ["most responses on one task", f"{parts.most_responses:,}"]
    start = found.assumptions.start
    yield ["assumed error of the start, class prior", f"{start.class_prior_error:g}"]
    yield ["assumed error of the start, confusions", f"{start.confusion_error:g}"]


def _sentences(report: BoundsReport) -> Iterator[str]:
    from tiebreak.theory.verdicts import crowd_in_words, percent

    found = report.bounds
    if report.estimated:
        yield (
            "The crowd is estimated from the responses by variational Bayes. The theorems ask for "
            "the truth, so this is a plan for crowds like it, not a certificate."
        )
    yield found.verdict
    yield from found.reasons
    if report.all_right:
        yield (
            f"{crowd_in_words(found.assumptions)}, the highest probability with which every label "
            f"can be proved right is {percent(report.all_right)}."
        )
    if report.plan is not None:
        yield report.plan.verdict
