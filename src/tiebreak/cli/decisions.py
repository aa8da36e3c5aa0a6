"""Decisions by costs on the command line: made, written, and put into words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.data.ids import Column
    from tiebreak.data.labels import Labels
    from tiebreak.decide import AccuracyEstimate, Decisions, VotePlan

SHOWN = 5  # tasks for an expert, in the summary


class Decided(NamedTuple):
    """What costs led to, how many labels should be right, and which votes to ask for."""

    decisions: Decisions
    accuracy: AccuracyEstimate
    plan: VotePlan | None

    def write(self, expert_list: str | None, vote_plan: str | None) -> None:
        """Write the list for an expert and the votes to ask for."""
        from tiebreak import tables

        found = self.decisions
        if expert_list:
            tables.write_table(expert_list, found.columns(found.expert_order()))
        if vote_plan and self.plan is not None:
            tables.write_table(vote_plan, self.plan.columns())

    def beside(self, labels: Labels, *, probabilities: bool) -> dict[str, Column]:
        """Return the labels with what was decided, what that costs, what the truth would save."""
        columns = self.decisions.columns()
        del columns["task"]
        return {**labels.columns(probabilities=probabilities), **columns}

    def summarise(self) -> dict[str, Any]:
        """Collect what the summary says of decisions."""
        found = self.decisions
        summary: dict[str, Any] = {
            "expected_cost": found.total_cost,
            "expected_cost_of_labels": found.argmax_cost,
            "left_open": found.n_left_open,
            **self._summarise_accuracy(),
        }
        if self.plan is not None:
            plan = self.plan
            summary |= {
                "cost_limit": plan.limit,
                "limit_is_reached": plan.is_reached,
                "votes": len(plan.votes),
                "vote_tasks": plan.n_tasks,
                "cost_after_votes": plan.cost_after,
                "expert_labels": plan.n_expert_labels,
            }
        return summary

    def _summarise_accuracy(self) -> dict[str, float | None]:
        """Return what is promised and expected of the labels that were decided; None without."""
        accuracy = self.accuracy
        found = {
            "promised_accuracy": accuracy.promised,
            "expected_accuracy": accuracy.expected,
            "accuracy_low": accuracy.low,
            "accuracy_high": accuracy.high,
            "known_tasks_counted": accuracy.n_known,
        }
        is_any = self.decisions.n_left_open < len(self.decisions)
        return {name: value if is_any else None for name, value in found.items()}

    def describe(self) -> str:
        """Put it into a few lines."""
        found = self.decisions
        lines = [f"decisions: {found}"]
        promised = self._describe_accuracy()
        if promised:
            lines.append(promised)
        first = found.expert_first(SHOWN)
        if first:
            lines.append(f"an expert should see first: {', '.join(map(str, first))}")
        if self.plan is not None:
            lines.append(str(self.plan))
        return "\n".join(lines)

    def _describe_accuracy(self) -> str | None:
        """Say in plain words how many of the labels that were decided should be right."""
        found = self.decisions
        n_decided = len(found) - found.n_left_open
        if not n_decided:
            return None
        accuracy = self.accuracy
        is_at_its_word = found.stated.calibration is None and not accuracy.n_known
        condition = ", if its probabilities are right" if is_at_its_word else ""
        words = (
            f"promised{condition}: {accuracy.promised:.1%} or more of the "
            f"{counted(n_decided, 'label')} decided are right, by four chances in five "
            f"(expected {accuracy.expected:.1%}; {accuracy.level:.0%} interval {accuracy.low:.1%} "
            f"to {accuracy.high:.1%})"
        )
        if accuracy.n_known:
            return f"{words}, as {counted(accuracy.n_known, 'known task')} say"
        is_known = accuracy.low == 1.0  # all that were decided
        return words if is_known else f"{words}; known labels (--gold) say it more closely"


def decide_by_costs(
    model: Any, cost_matrix: str | None, abstain_rate: float | None, limit: float | None
) -> Decided:
    """Decide for each task and, where there is a limit, plan votes."""
    from tiebreak import decide

    costs = decide.read_cost_matrix(cost_matrix, model.classes_)
    found = decide.decide(model, costs, abstain_rate=abstain_rate)
    plan = None if limit is None else decide.plan_votes(model, costs, limit=limit)
    return Decided(found, found.estimate_accuracy(), plan)
