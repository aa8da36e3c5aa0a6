"""Decide: what costs least for each task, as expected, and which tasks an expert sees first."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tiebreak.arguments import TEXT, WITH_TASKS, checks, number, optional, whole
from tiebreak.data.frames import as_frame, as_html, as_text
from tiebreak.data.ids import Column, Ids
from tiebreak.decide.accuracy import AccuracyEstimate, Stated, estimate_accuracy
from tiebreak.decide.costs import NO_LABEL, CostMatrix, read_cost_matrix
from tiebreak.decide.held_out import HeldOut, held_out_of
from tiebreak.errors import NotFittedError, OptionError
from tiebreak.kernels.layout import Codes, Floats, Offsets, total_weights
from tiebreak.wording import counted

SHOWN = 10  # rows


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """One decision per task: tasks[i] gets decisions[decision[i]].

    `expected_cost` is that of the decision, and `saving` what knowing the class would save, as
    expected: tasks with a large saving go to an expert first.
    """

    tasks: Ids
    costs: CostMatrix
    decision: Codes  # (n_tasks,)
    expected_cost: Floats  # (n_tasks,)
    saving: Floats  # (n_tasks,)
    argmax_cost: float  # expected cost of taking the likeliest class of each task
    probability: Floats  # (n_tasks,) of the class decided for; nan where none is
    stated: Stated = field(repr=False)  # what it was decided on
    frame: str = field(default="pyarrow", repr=False)

    def __len__(self) -> int:
        return len(self.decision)

    def __str__(self) -> str:
        words = (
            f"{counted(len(self), 'task')}, expected cost {self.total_cost:.6g} "
            f"(by the likeliest class: {self.argmax_cost:.6g})"
        )
        if self.n_left_open:
            words += f"; {self.n_left_open:,} left open ({self.costs.decisions[-1]})"
        return words

    def __repr__(self) -> str:
        header, rows = self._first_rows()
        more = f"\n… and {len(self) - SHOWN:,} more" if len(self) > SHOWN else ""
        return f"Decisions({self})\n{as_text(header, rows)}{more}"

    def _repr_html_(self) -> str:
        return as_html(f"Decisions({self})", *self._first_rows())

    def _first_rows(self) -> tuple[list[str], list[list[object]]]:
        columns = self.columns(np.arange(min(len(self), SHOWN)))
        values = (v.tolist() if isinstance(v, np.ndarray) else v for v in columns.values())
        return list(columns), [list(row) for row in zip(*values, strict=True)]

    @property
    def total_cost(self) -> float:
        """The expected cost of all decisions together."""
        return float(self.expected_cost.sum())

    @property
    def is_open(self) -> Any:
        """Which tasks are decided for no class, (n_tasks,)."""
        return self.costs.label[self.decision] < 0

    @property
    def n_left_open(self) -> int:
        """How many tasks are decided for no class."""
        return int(self.is_open.sum())

    @property
    def expected_accuracy(self) -> float:
        """The share of right labels among the tasks that get a class, probabilities at their word.

        `estimate_accuracy` says how far to trust it, and what can be promised.
        """
        decided = self.probability[~self.is_open]
        return float(decided.mean()) if len(decided) else float("nan")

    def estimate_accuracy(self, level: float = 0.9) -> AccuracyEstimate:
        """Return the share of right labels among the tasks that get a class, with an interval.

        `promised` is the figure to state: accuracy is as high or higher by four chances in five.
        The more gold there was, the better it is known how much workers err together; without gold
        less is promised. With gold, known tasks that would be decided too are counted, by fits
        without a fourth of the gold each. They are taken to be like the others.

        Examples
        --------
        >>> import tiebreak as tb
        >>> crowd = tb.simulate.crowd(300, 10, 2, responses_per_task=5, random_state=0)
        >>> decided = tb.VariationalBayes().fit(crowd.responses).decide(abstain_rate=0.2)
        >>> found = decided.estimate_accuracy()
        >>> found.low < found.promised < found.expected < found.high
        True
        """
        return estimate_accuracy(self.stated, level)

    def best(self) -> dict[Hashable, str]:
        """Return a mapping of task to decision."""
        names = [self.costs.decisions[d] for d in self.decision]
        return dict(zip(self.tasks, names, strict=True))

    def expert_order(self) -> Offsets:
        """Return the places of tasks, those first whose class would save most; 0 is left out."""
        order = np.argsort(-self.saving, kind="stable")
        return order[self.saving[order] > 0.0]

    @checks(n=optional(whole(0)))
    def expert_first(self, n: int | None = None) -> list[Hashable]:
        """Return the tasks that an expert should see first."""
        return [self.tasks[int(i)] for i in self.expert_order()[:n]]

    def columns(self, at: Offsets | None = None) -> dict[str, Column]:
        """Return task, decision, expected_cost and saving, of all tasks or of those at places."""
        at = np.arange(len(self)) if at is None else at
        return {
            "task": self.tasks.take(at),
            "decision": [self.costs.decisions[d] for d in self.decision[at]],
            "expected_cost": self.expected_cost[at],
            "saving": self.saving[at],
        }

    @checks(frame=optional(TEXT))
    def to_frame(self, frame: str | None = None) -> Any:
        """Return the columns as a table: "pandas", "polars" or "pyarrow"."""
        return as_frame(self.columns(), frame or self.frame)


@checks(model=WITH_TASKS, abstain_rate=optional(number("from 0 to below 1", least=0.0, below=1.0)))
def decide(model: Any, cost_matrix: Any = None, *, abstain_rate: float | None = None) -> Decisions:
    """Return the decision of least expected cost for each task.

    Parameters
    ----------
    model
        Fitted; its probabilities are taken at their word.
    cost_matrix
        What each decision costs by the true class: see `read_cost_matrix`. "absolute" and
        "squared" decide for the median and the rounded mean on a scale. None: a wrong label
        costs 1.
    abstain_rate
        Leave this share of the tasks open, those whose decision is expected to cost most. The
        costs then have no column of their own for that.

    Examples
    --------
    >>> import tiebreak as tb
    >>> votes = [("a", "ann", "ok"), ("a", "bob", "ok"), ("b", "ann", "bad"), ("b", "bob", "ok")]
    >>> model = tb.VariationalBayes().fit(votes)
    >>> costs = {"ok": {"ok": 0, "bad": 1}, "bad": {"ok": 10, "bad": 0}}
    >>> decide(model, costs).best()
    {'a': 'bad', 'b': 'bad'}
    """
    if "probabilities_" not in vars(model):
        raise NotFittedError("not-fitted", name=type(model).__name__)
    costs = read_cost_matrix(cost_matrix, model.classes_, model.scale_)
    q = model.probabilities_
    expected = costs.expected(q)
    decision = expected.argmin(axis=1).astype(np.int32)
    every = np.arange(len(decision))
    least = expected[every, decision]
    place = np.full(len(costs.cost), -1)  # of the decision for each class
    place[costs.label[costs.label >= 0]] = np.flatnonzero(costs.label >= 0)
    of_label = place[np.asarray(model.labels_.label)]
    # A label whose class is no decision costs what the worst decision does.
    of_labels = np.where(of_label < 0, expected.max(axis=1), expected[every, of_label])
    given = costs
    if abstain_rate is not None:
        if costs.may_abstain:
            raise OptionError("cost-of-abstaining", decision=costs.decisions[-1])
        expensive = np.argsort(-least, kind="stable")[: int(abstain_rate * len(decision))]
        costs = CostMatrix(
            np.column_stack([costs.cost, np.zeros(len(costs.cost))]),
            (*costs.decisions, NO_LABEL[0]),
            np.append(costs.label, -1).astype(np.int32),
        )
        decision[expensive] = len(costs.decisions) - 1
        least[expensive] = 0.0
    label = costs.label[decision]
    # With a share left open, the most that a task may cost, as expected, to get a class.
    highest = float(least[label >= 0].max(initial=-np.inf)) if abstain_rate else np.inf
    n_responses = total_weights(model.responses_.start, model.responses_.weight)
    if (carried := getattr(model, "_carried", None)) is not None:
        n_responses = n_responses + carried.n_dropped
    known = held_out_of(model)
    stated = Stated(
        q,
        label,
        n_responses,
        model.calibration_,
        None if known is None else model.gold_.on(model.tasks_, model.classes_).task,
        None if known is None else partial(_recount, known, given, highest),
    )
    return Decisions(
        model.tasks_,
        costs,
        decision,
        least,
        np.maximum(least - costs.of_knowing(q), 0.0),
        float(of_labels.sum()),
        np.where(label < 0, np.nan, q[every, np.maximum(label, 0)]),
        stated,
        model.responses_.frame,
    )


def _recount(held_out: HeldOut, costs: CostMatrix, highest: float) -> tuple[int, int]:
    """Return how many known tasks get a class by these costs, held out, and how many the right one.

    `highest` is what a task may cost at most, as expected, to get a class.
    """
    if held_out.known is None:
        return 0, 0
    gold, q = held_out.known
    expected = costs.expected(q)
    label = costs.label[expected.argmin(axis=1)]
    decided = (label >= 0) & (expected.min(axis=1) <= highest)
    return int(decided.sum()), int((label == gold.label)[decided].sum())
