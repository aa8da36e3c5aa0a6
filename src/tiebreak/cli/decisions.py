"""Decisions on the command line: costs, the list for an expert, votes to ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.decisions import AccuracyEstimate, Decisions, VotePlan
    from tiebreak.ids import Column
    from tiebreak.labels import Labels

SHOWN = 5  # tasks for an expert, in the summary

CostMatrixFile = Annotated[
    str | None,
    typer.Option(help="What decisions cost: truth, one column each.", metavar="FILE"),
]
ExpertList = Annotated[
    str | None, typer.Option(help="Where to write whom an expert sees first.", metavar="FILE")
]
CostLimit = Annotated[
    float | None, typer.Option(help="Plan votes until the cost is below this.", metavar="X")
]
AbstainRate = Annotated[
    float | None,
    typer.Option(help="Leave this share of the tasks open, the least certain.", metavar="X"),
]
VotePlanFile = Annotated[
    str | None, typer.Option(help="Where to write the votes to ask for.", metavar="FILE")
]


class Decided(NamedTuple):
    """What costs led to, how many labels should be right, and which votes to ask for."""

    decisions: Decisions
    accuracy: AccuracyEstimate
    plan: VotePlan | None


def refuse_without_costs(
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


def decide_by_costs(
    model: Any, cost_matrix: str | None, abstain_rate: float | None, limit: float | None
) -> Decided | None:
    """Decide for each task and, where there is a limit, plan votes; None where nobody asks."""
    if not cost_matrix and abstain_rate is None:
        return None
    from tiebreak import decisions

    costs = decisions.read_cost_matrix(cost_matrix, model.classes_)
    found = decisions.decide(model, costs, abstain_rate=abstain_rate)
    plan = None if limit is None else decisions.plan_votes(model, costs, limit=limit)
    return Decided(found, found.estimate_accuracy(), plan)


def write_decisions(decided: Decided, expert_list: str | None, vote_plan: str | None) -> None:
    """Write the list for an expert and the votes to ask for."""
    from tiebreak import files

    found = decided.decisions
    if expert_list:
        files.write_table(expert_list, found.columns(found.expert_order()))
    if vote_plan and decided.plan is not None:
        files.write_table(vote_plan, decided.plan.columns())


def with_decisions(labels: Labels, decided: Decided, probabilities: bool) -> dict[str, Column]:
    """Return the labels with what was decided, what that costs, and what the truth would save."""
    columns = decided.decisions.columns()
    del columns["task"]
    return {**labels.columns(probabilities=probabilities), **columns}


def summarise_decisions(decided: Decided) -> dict[str, Any]:
    """Collect what the summary says of decisions."""
    found = decided.decisions
    summary: dict[str, Any] = {
        "expected_cost": found.total_cost,
        "expected_cost_of_labels": found.argmax_cost,
        "left_open": found.n_left_open,
        **_summarise_accuracy(decided),
    }
    if decided.plan is not None:
        plan = decided.plan
        summary |= {
            "cost_limit": plan.limit,
            "limit_is_reached": plan.is_reached,
            "votes": len(plan.votes),
            "vote_tasks": plan.n_tasks,
            "cost_after_votes": plan.cost_after,
            "expert_labels": plan.n_expert_labels,
        }
    return summary


def _summarise_accuracy(decided: Decided) -> dict[str, float | None]:
    """Return what is promised and expected of the labels that were decided; None without any."""
    accuracy = decided.accuracy
    found = {
        "promised_accuracy": accuracy.promised,
        "expected_accuracy": accuracy.expected,
        "accuracy_low": accuracy.low,
        "accuracy_high": accuracy.high,
        "known_tasks_counted": accuracy.n_known,
    }
    is_any = decided.decisions.n_left_open < len(decided.decisions)
    return {name: value if is_any else None for name, value in found.items()}


def describe_accuracy(decided: Decided) -> str | None:
    """Say in plain words how many of the labels that were decided should be right."""
    found = decided.decisions
    n_decided = len(found) - found.n_left_open
    if not n_decided:
        return None
    accuracy = decided.accuracy
    is_at_its_word = found.stated.calibration is None and not accuracy.n_known
    condition = ", if its probabilities are right" if is_at_its_word else ""
    words = (
        f"promised{condition}: {accuracy.promised:.1%} or more of the "
        f"{counted(n_decided, 'label')} decided are right, by four chances in five "
        f"(expected {accuracy.expected:.1%}; {accuracy.level:.0%} interval {accuracy.low:.1%} to "
        f"{accuracy.high:.1%})"
    )
    if accuracy.n_known:
        return f"{words}, as {counted(accuracy.n_known, 'known task')} say"
    is_known = accuracy.low == 1.0  # all that were decided
    return words if is_known else f"{words}; known labels (--gold) say it more closely"


def describe_decisions(decided: Decided) -> str:
    """Put it into a few lines."""
    found = decided.decisions
    lines = [f"decisions: {found}"]
    promised = describe_accuracy(decided)
    if promised:
        lines.append(promised)
    first = found.expert_first(SHOWN)
    if first:
        lines.append(f"an expert should see first: {', '.join(map(str, first))}")
    if decided.plan is not None:
        lines.append(str(decided.plan))
    return "\n".join(lines)
