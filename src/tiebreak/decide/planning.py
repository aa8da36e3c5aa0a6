"""Plans: what more answers are worth, which votes to ask for, and where each task goes.

Before an answer l of worker w is known it is drawn from what is known of the worker, given the
class. What is expected to be paid after it is an average over answers, each with the decision that
is best then, [eq:answer-cost]:

    Σ_l min_d Σ_k q(k) θ̃(k, l) cost(k, d)

Several answers make a joint table, (task, what was said so far, class). Where errors are shared a
further answer tells less than the first, so that θ̃ ∝ θ^s: it counts as the design effect scales a
task with one response more.

`plan_votes` asks for votes until the expected cost is below a limit, by gain per vote.
`plan_routes` sends each task where it costs least. A task is done at the cost `wrong` · (1 − p), p
the probability of its label. A human costs `human`, and errs with chance `human_error`. One more
response of a judge costs its price, and then what is expected where its answer is followed by the
better of the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tiebreak import templating
from tiebreak.arguments import SEVERAL, WITH_RESPONSES, checks, number, optional, whole
from tiebreak.data import Responses
from tiebreak.data.frames import as_frame
from tiebreak.data.ids import MISSING, Column
from tiebreak.decide.costs import CostMatrix, read_cost_matrix
from tiebreak.decide.decide import decide
from tiebreak.errors import OptionError, note
from tiebreak.kernels.layout import Codes, Floats, Offsets, total_weights
from tiebreak.options import require_number, require_word

AT_ONCE = 1 << 21  # numbers in memory
TINY = np.finfo(float).tiny
MOST_VOTES = 5  # more, on one task
MOST_ANSWERS = 1024  # joint answers of the votes on one task that are looked at
LEAST_GAIN = 1e-12  # below: rounding
SHOWN = 5  # workers named in a summary
ROUTES = ("done", "human", "judge")
RUN_CORRELATION = 0.7  # of one more run where nothing is known of runs


def costs_after(
    model: Any, costs: CostMatrix, tasks: Offsets, sequence: Codes, weight: Floats | None = None
) -> Floats:
    """Return the expected cost of tasks after 0, 1, 2 … more answers, (n_tasks, n_answers + 1).

    Parameters
    ----------
    sequence
        Who answers, (n_tasks, n_answers); MISSING where nobody does, so that nothing changes.
    weight
        Of these answers, of the same shape; None: 1 each.
    """
    crowd = model.responses_
    weight = np.ones(sequence.shape) if weight is None else weight
    n_given = total_weights(crowd.start, crowd.weight)[tasks]
    n_answers = sequence.shape[1]
    found = np.empty((len(tasks), n_answers + 1))
    step = max(1, AT_ONCE // crowd.n_classes ** (n_answers + 1))
    for low in range(0, len(tasks), step):
        part = slice(low, low + step)
        n = n_given[part].astype(np.float64)
        joint = np.asarray(model.probabilities_[tasks[part]])[:, None, :]
        found[part, 0] = _expected(joint, costs)
        for v in range(n_answers):
            who, one = sequence[part, v], weight[part, v]
            n = n + one
            strength = one if model.calibration_ is None else one * model.calibration_.scale(n)
            joint = _with_answer(joint, model.confusion_[np.maximum(who, 0)], strength)
            found[part, v + 1] = np.where(who == MISSING, found[part, v], _expected(joint, costs))
    return np.minimum.accumulate(found, axis=1)


def _with_answer(joint: Floats, confusion: Floats, strength: Floats) -> Floats:
    """Return the joint table, (n_tasks, n_said, n_classes), with one answer more of each task.

    `confusion` is [truth, answer] of the worker who answers each task.
    """
    power = np.maximum(confusion, TINY) ** strength[:, None, None]
    said = power / power.sum(axis=2, keepdims=True)
    more = joint[:, :, None, :] * said.transpose(0, 2, 1)[:, None, :, :]
    return np.asarray(more.reshape(len(joint), -1, joint.shape[2]))


def _expected(joint: Floats, costs: CostMatrix) -> Floats:
    """Return the expected cost of each task where every joint answer gets its best decision."""
    return np.asarray((joint @ costs.cost).min(axis=2).sum(axis=1))


# Votes


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
        workers = [f"{name} ({n:,})" for name, n in self.by_worker().items()]
        more = f" and {len(workers) - SHOWN:,} more" if len(workers) > SHOWN else ""
        named = ", ".join(workers[:SHOWN]) + more
        given = {"plan": self, "by_worker": named}
        return " ".join(templating.sentences("tiebreak.decide", "votes.txt", **given))

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
    costs = read_cost_matrix(cost_matrix, model.classes_, model.scale_)
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


# Routes


@dataclass(frozen=True)
class Route:
    """Where each task goes. `judge` is the code of the judge to ask, −1 elsewhere."""

    route: tuple[str, ...] = field(repr=False)
    judge: Codes = field(repr=False)
    cost: Floats = field(repr=False)  # expected, of the route taken
    probability: Floats = field(repr=False)  # of the present label
    tasks: Any = field(repr=False)
    labels: tuple[Hashable, ...] = field(repr=False)
    workers: Any = field(repr=False)
    n_done: int = 0
    n_human: int = 0
    n_judge: int = 0
    total: float = 0.0  # expected cost of the plan
    all_done: float = 0.0  # … if every label were taken as it is
    three_humans: float = 0.0  # … if three humans labelled every task

    def rows(self, route: str) -> dict[str, list[Any]]:
        """Return the tasks of one route as columns, the most expensive first."""
        require_word("route", route, ROUTES)
        at = np.flatnonzero(np.array(self.route, dtype=object) == route)
        at = at[np.argsort(-self.cost[at], kind="stable")]
        columns: dict[str, list[Any]] = {
            "task": [self.tasks[int(i)] for i in at],
            "label": [self.labels[int(i)] for i in at],
            "probability": self.probability[at].tolist(),
            "cost": self.cost[at].tolist(),
        }
        if route == "judge":
            columns["judge"] = [self.workers[int(self.judge[i])] for i in at]
        return columns


@checks(
    model=WITH_RESPONSES,
    wrong=number("a cost above 0", above=0.0),
    human=number("a cost above 0", above=0.0),
    human_error=number("at least 0 and below 1", least=0.0, below=1.0),
)
def plan_routes(
    model: Any,
    *,
    wrong: float,
    human: float,
    judge: float | Mapping[Hashable, float] | None = None,
    human_error: float = 0.0,
) -> Route:
    """Choose which tasks go to a human, which get another judge or run, and which are done.

    Parameters
    ----------
    model
        Fitted. Its probabilities decide, so give it gold, or `dependence=0.5` for LLM judges.
    wrong, human
        The cost of a wrong label, and of a human's label.
    judge
        The cost of one more response: one number for all judges, or by judge (others are not
        asked). None: no judge is asked again.
    human_error
        How often a human's label is wrong.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(200, 6, responses_per_task=3, random_state=0)
    >>> model = tb.VariationalBayes().fit(crowd.responses)
    >>> found = plan_routes(model, wrong=1.0, human=0.2, judge=0.01)
    >>> found.n_done + found.n_human + found.n_judge
    200
    """
    prices = _prices(judge, model.responses_)
    q = np.asarray(model.probabilities_)
    label = np.asarray(model.labels_.label)
    every = np.arange(len(q))
    top = q[every, label]
    cost_of_human = human + wrong * human_error
    n_classes = len(model.classes_)
    costs = read_cost_matrix(
        np.column_stack([wrong * (1.0 - np.eye(n_classes)), np.full(n_classes, cost_of_human)]),
        model.classes_,
    )
    asked = np.full(len(q), np.inf)
    whom = np.full(len(q), MISSING, dtype=np.int32)
    for j, price in prices.items():
        sequence = np.full((len(q), 1), j, dtype=np.int32)
        weight = _added_weight(model.responses_, j)[:, None]
        cost = price + costs_after(model, costs, every, sequence, weight)[:, 1]
        whom[cost < asked] = j
        asked = np.minimum(cost, asked)
    each = np.stack([wrong * (1.0 - top), np.full(len(q), cost_of_human), asked])
    if model.gold_ is not None:  # known tasks are done, and right
        code = model.tasks_.codes(model.gold_.tasks)
        each[0, code[code >= 0]] = 0.0
    choice = np.argmin(each, axis=0)
    cost = each[choice, every]
    n_done, n_human, n_judge = np.bincount(choice, minlength=3).tolist()
    if model.calibration_ is None:
        note("probabilities-not-scaled")
    two_of_three_err = 3.0 * human_error**2 * (1.0 - human_error) + human_error**3
    return Route(
        tuple(ROUTES[c] for c in choice.tolist()),
        np.where(choice == 2, whom, MISSING).astype(np.int32),
        cost,
        top,
        model.tasks_,
        tuple(model.classes_[int(k)] for k in label),
        model.workers_,
        n_done,
        n_human,
        n_judge,
        total=float(cost.sum()),
        all_done=float(each[0].sum()),
        three_humans=len(q) * (3.0 * human + wrong * two_of_three_err),
    )


def _added_weight(responses: Responses, j: int) -> Floats:
    """Return what one more response of a judge adds to each task: 1 where it is the first.

    k runs weigh k / (1 + ρ (k − 1)) = w; one more makes it (k + 1) / (1 + ρ k), with k from w.
    """
    mine = responses.worker_of_each() == j
    task, weight = responses.task_of_each()[mine], responses.weight_of_each()[mine]
    given = np.bincount(task, weights=weight, minlength=responses.n_tasks)
    runs = None if responses.runs is None else responses.runs.of(responses.workers[j])
    rho = RUN_CORRELATION if runs is None else runs.run_correlation
    rho = RUN_CORRELATION if np.isnan(rho) else max(rho, 0.05)
    k = given * (1.0 - rho) / np.maximum(1.0 - rho * given, 1e-3)
    return np.where(given > 0.0, np.maximum((k + 1.0) / (1.0 + rho * k) - given, 1e-3), 1.0)


def _prices(judge: Any, responses: Responses) -> dict[int, float]:
    """Return the price of each judge that may be asked, by code."""
    if judge is None:
        return {}
    by_name = judge if isinstance(judge, Mapping) else dict.fromkeys(responses.workers, judge)
    codes = responses.workers.codes(list(by_name)).tolist()
    unknown = [str(name) for name, code in zip(by_name, codes, strict=True) if code == MISSING]
    if unknown:
        raise OptionError("judges-without-response", names=unknown)
    for price in by_name.values():
        require_number("The cost of a judge", price, "0 or more", least=0.0)
    return dict(zip(codes, map(float, by_name.values()), strict=True))
