"""Votes: how many more, on which tasks and by which workers, until costs are below a limit.

Votes are taken by gain per vote, which `decide.value` computes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tiebreak.arguments import SEVERAL, WITH_RESPONSES, checks, number, optional, whole
from tiebreak.data import Responses
from tiebreak.data.frames import as_frame
from tiebreak.data.ids import MISSING, Column
from tiebreak.decide.costs import read_cost_matrix
from tiebreak.decide.decide import decide
from tiebreak.decide.value import costs_after
from tiebreak.errors import OptionError
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.wording import counted

MOST_VOTES = 5  # more, on one task
MOST_ANSWERS = 1024  # joint answers of the votes on one task that are looked at
LEAST_GAIN = 1e-12  # below: rounding
SHOWN = 5  # workers named in a summary


class PlannedVote(NamedTuple):
    """A vote to ask for."""

    task: Hashable
    worker: Hashable
    gain: float  # by how much the expected cost falls, its share of what the task's votes gain


@dataclass(frozen=True, slots=True, eq=False)
class VotePlan:
    """Votes to ask for, in order, and what they are expected to do.

    Answers that come in change what is worth asking: ask for some, fit again, and plan again.
    """

    votes: tuple[PlannedVote, ...] = field(repr=False)
    limit: float
    cost_now: float
    cost_after: float
    n_expert_labels: int  # known classes that would do instead

    @property
    def is_reached(self) -> bool:
        """Whether the votes bring the expected cost to the limit."""
        return self.cost_after <= self.limit

    @property
    def n_tasks(self) -> int:
        """How many tasks the votes are on."""
        return len({vote.task for vote in self.votes})

    def by_worker(self) -> dict[Hashable, int]:
        """Return how many votes each worker is asked for, most first."""
        return dict(Counter(vote.worker for vote in self.votes).most_common())

    def __str__(self) -> str:
        if self.cost_now <= self.limit:
            return f"The expected cost, {self.cost_now:.6g}, is below {self.limit:g} already."
        expert = counted(self.n_expert_labels, "label")
        if not self.votes:
            return (
                f"No vote that was tried lowers the expected cost, {self.cost_now:.6g}. {expert} "
                f"by an expert would bring it to {self.limit:g}."
            )
        workers = self.by_worker()
        names = ", ".join(f"{name} ({n:,})" for name, n in list(workers.items())[:SHOWN])
        more = f" and {len(workers) - SHOWN:,} more" if len(workers) > SHOWN else ""
        votes = f"{counted(len(self.votes), 'vote')} on {counted(self.n_tasks, 'task')}"
        change = f"the expected cost from {self.cost_now:.6g} to {self.cost_after:.6g}"
        if self.is_reached:
            return (
                f"{votes} by {names}{more} bring {change}. {expert} by an expert would do as well."
            )
        return (
            f"No number of votes tried brings the expected cost below {self.limit:g}: {votes} by "
            f"{names}{more} bring {change}. {expert} by an expert would."
        )

    def columns(self) -> dict[str, Column]:
        """Return task, worker and gain."""
        return {
            "task": [vote.task for vote in self.votes],
            "worker": [vote.worker for vote in self.votes],
            "gain": np.array([vote.gain for vote in self.votes], dtype=np.float64),
        }

    def to_frame(self, frame: str = "pyarrow") -> Any:
        """Return the columns as a table: "pandas", "polars" or "pyarrow"."""
        return as_frame(self.columns(), frame)


@checks(
    model=WITH_RESPONSES,
    limit=number("a cost, a finite number"),
    workers=optional(SEVERAL),
    most_votes=whole(1),
)
def plan_votes(
    model: Any,
    cost_matrix: Any = None,
    *,
    limit: float,
    workers: Iterable[Hashable] | None = None,
    most_votes: int = MOST_VOTES,
) -> VotePlan:
    """Plan votes until the expected cost of all decisions is at or below a limit.

    Parameters
    ----------
    model
        Fitted.
    cost_matrix
        As for `decide`.
    limit
        Of the expected cost of all tasks together.
    workers
        Who may be asked, each once per task; None: everybody.
    most_votes
        More votes on one task, at most.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(100, 8, 2, responses_per_task=3, random_state=0)
    >>> model = tb.VariationalBayes().fit(crowd.responses)
    >>> plan = plan_votes(model, limit=0.9 * model.decide().total_cost)
    >>> plan.is_reached, bool(plan.cost_after < plan.cost_now)
    (True, True)
    """
    costs = read_cost_matrix(cost_matrix, model.classes_)
    decided = decide(model, costs)
    now = decided.total_cost
    doubtful = decided.expert_order()
    # The labels by an expert that would do: all, where even the truth costs more than the limit.
    enough = np.flatnonzero(now - np.cumsum(decided.saving[doubtful]) <= limit)
    n_expert = 0 if now <= limit else int(enough[0]) + 1 if len(enough) else len(decided)
    if now <= limit or not len(doubtful):
        return VotePlan((), limit, now, now, n_expert)
    sequence = _sequences(model, doubtful, _allowed(model, workers), most_votes)
    gains = _hull_gains(costs_after(model, costs, doubtful, sequence))
    flat = gains.ravel()
    order = np.argsort(-flat, kind="stable")
    order = order[flat[order] > LEAST_GAIN]
    taken = order[: np.searchsorted(np.cumsum(flat[order]), now - limit) + 1]
    votes = tuple(
        PlannedVote(model.tasks_[int(i)], model.workers_[int(w)], float(gain))
        for i, w, gain in zip(
            doubtful[taken // gains.shape[1]], sequence.ravel()[taken], flat[taken], strict=True
        )
    )
    return VotePlan(votes, limit, now, now - float(flat[taken].sum()), n_expert)


def _allowed(model: Any, workers: Iterable[Hashable] | None) -> Codes:
    """Return the workers who may be asked, those whose answers tell most of the class first."""
    allowed = np.arange(len(model.workers_), dtype=np.int32)
    if workers is not None:
        names = list(workers)
        allowed = model.workers_.codes(names)
        unknown = [name for name, w in zip(names, allowed, strict=True) if w == MISSING]
        if unknown or not names:
            raise OptionError("workers-without-response", names=unknown)
    # The mutual information of class and answer.
    joint = model.class_prior_[None, :, None] * model.confusion_[allowed]
    apart = model.class_prior_[None, :, None] * joint.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(joint > 0.0, np.log2(joint / apart), 0.0)
    return allowed[np.argsort(-(joint * logs).sum(axis=(1, 2)), kind="stable")]


def _sequences(model: Any, tasks: Offsets, allowed: Codes, most: int) -> Codes:
    """Return who is asked next on each task, (n_tasks, n_votes): the best who has not answered.

    MISSING where nobody is left.
    """
    crowd: Responses = model.responses_
    n_votes = min(most, max(int(np.log(MOST_ANSWERS + 0.5) / np.log(max(crowd.n_classes, 2))), 1))
    found = np.full((len(tasks), n_votes), MISSING, dtype=np.int32)
    worker = crowd.worker_of_each()
    for i, task in enumerate(tasks):
        given = worker[crowd.start[task] : crowd.start[task + 1]]
        ahead = allowed[: len(given) + n_votes]  # so many are enough
        free = ahead[~np.isin(ahead, given)][:n_votes]
        found[i, : len(free)] = free
    return found


def _hull_gains(after: Floats) -> Floats:
    """Return the gain of each vote on the lower convex hull, never rising from vote to vote.

    One vote alone may change no decision where two would: costs [4, 4, 1] count as gains of 1.5
    and 1.5.

    >>> _hull_gains(np.array([[4.0, 4.0, 1.0, 0.5]])).tolist()
    [[1.5, 1.5, 0.5]]
    """
    n_votes = after.shape[1] - 1
    gains = np.zeros((len(after), n_votes))
    at = np.zeros(len(after), dtype=np.int64)
    every = np.arange(len(after))
    for _ in range(n_votes):
        ahead = np.arange(n_votes + 1)[None, :] - at[:, None]
        slope = (after[every, at][:, None] - after) / np.where(ahead > 0, ahead, 1)
        slope[ahead <= 0] = -1.0
        best = slope.argmax(axis=1)
        rate = slope[every, best]
        inside = (ahead[:, :-1] >= 0) & (np.arange(n_votes) < best[:, None]) & (rate > 0.0)[:, None]
        gains = np.where(inside, rate[:, None], gains)
        at = np.where(rate > 0.0, best, at)
    return gains
