"""Decisions on the command line: costs, the list for an expert, votes to ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from tiebreak.decisions import Decisions, VotePlan
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
VotePlanFile = Annotated[
    str | None, typer.Option(help="Where to write the votes to ask for.", metavar="FILE")
]


class Decided(NamedTuple):
    """What costs led to."""

    decisions: Decisions
    plan: VotePlan | None


def refuse_without_costs(
    cost_matrix: str | None,
    expert_list: str | None,
    cost_limit: float | None,
    vote_plan: str | None,
) -> None:
    """Refuse options that mean nothing without others."""
    if not cost_matrix and (expert_list or cost_limit is not None):
        unused = "--expert-list" if expert_list else "--cost-limit"
        raise typer.BadParameter(f"{unused} needs --cost-matrix, which says what mistakes cost.")
    if vote_plan and cost_limit is None:
        raise typer.BadParameter("--vote-plan needs --cost-limit: until when to ask.")


def decide_by_costs(model: Any, cost_matrix: str, limit: float | None) -> Decided:
    """Decide for each task and, where there is a limit, plan votes."""
    from tiebreak import decisions

    costs = decisions.read_cost_matrix(cost_matrix, model.classes_)
    plan = None if limit is None else decisions.plan_votes(model, costs, limit=limit)
    return Decided(decisions.decide(model, costs), plan)


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


def describe_decisions(decided: Decided) -> str:
    """Put it into a few lines."""
    found = decided.decisions
    lines = [f"decisions: {found}"]
    first = found.expert_first(SHOWN)
    if first:
        lines.append(f"an expert should see first: {', '.join(map(str, first))}")
    if decided.plan is not None:
        lines.append(str(decided.plan))
    return "\n".join(lines)
