"""Escalate: which tasks go to a human, which get another judge or run, which are done.

A task is done at the cost `wrong` · (1 − p), p the probability of its label. A human costs `human`,
and errs with chance `human_error`. One more response of a judge costs its price, and then the
better of the two: its value is the mean over what the judge may say, [eq:route],

    price + Σ_l P(l) · min(wrong · (1 − max_k q(k | l)), human)

with q(k | l) scaled by how much errors are shared, so that the ninth judge moves less than the
first. The cheapest of the three is chosen for each task.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tiebreak.arguments import WITH_RESPONSES, checks, number
from tiebreak.data import Responses
from tiebreak.errors import OptionError, note
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats, Mask, total_weights
from tiebreak.options import require_number, require_word

DONE = "done"
HUMAN = "human"
JUDGE = "judge"
ROUTES = (DONE, HUMAN, JUDGE)
TASKS_AT_ONCE = 1 << 15
RUN_CORRELATION = 0.7  # of one more run where nothing is known of runs
LOWEST = 1e-12
FLOOR = 1e-6  # of a confusion matrix, before logs are taken


class Costs(NamedTuple):
    """Of a wrong label, of a human's label, and how often that is wrong."""

    wrong: float
    human: float
    human_error: float = 0.0


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
        if route == JUDGE:
            columns["judge"] = [self.workers[int(self.judge[i])] for i in at]
        return columns


@checks(
    model=WITH_RESPONSES,
    wrong=number("a cost above 0", above=0.0),
    human=number("a cost above 0", above=0.0),
    human_error=number("at least 0 and below 1", least=0.0, below=1.0),
)
def plan(
    model: Any,
    *,
    wrong: float,
    human: float,
    judge: float | Mapping[Hashable, float] | None = None,
    human_error: float = 0.0,
) -> Route:
    """Say which tasks go to a human, which get another judge or run, and which are done.

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
    >>> found = plan(model, wrong=1.0, human=0.2, judge=0.01)
    >>> found.n_done + found.n_human + found.n_judge
    200
    """
    costs = _checked(wrong, human, human_error)
    prices = _prices(judge, model.responses_)
    q = np.asarray(model.probabilities_)
    label = np.asarray(model.labels_.label)
    top = q[np.arange(len(q)), label]
    done = costs.wrong * (1.0 - top)
    person = np.full(len(q), costs.human + costs.wrong * costs.human_error)
    known = _known(model)
    asked, whom = _one_more(model, q, costs, prices, ~known)
    choice = np.argmin(np.stack([done, person, asked]), axis=0)
    choice[known] = 0
    done[known] = 0.0
    cost = np.stack([done, person, asked])[choice, np.arange(len(q))]
    route = tuple(ROUTES[c] for c in choice.tolist())
    if model.calibration_ is None:
        note("probabilities-not-scaled")
    return Route(
        route,
        np.where(choice == 2, whom, -1).astype(np.int32),
        cost,
        top,
        model.tasks_,
        tuple(model.classes_[int(k)] for k in label),
        model.workers_,
        n_done=int(np.count_nonzero(choice == 0)),
        n_human=int(np.count_nonzero(choice == 1)),
        n_judge=int(np.count_nonzero(choice == 2)),
        total=float(cost.sum()),
        all_done=float(done.sum()),
        three_humans=len(q)
        * (3.0 * costs.human + costs.wrong * _majority_error(costs.human_error)),
    )


def _majority_error(error: float) -> float:
    """Return how often two of three people are wrong, if they err apart.

    >>> round(_majority_error(0.1), 3)
    0.028
    """
    return 3.0 * error**2 * (1.0 - error) + error**3


def _one_more(
    model: Any, q: Floats, costs: Costs, prices: dict[int, float], wanted: Mask
) -> tuple[Floats, Codes]:
    """Return the cost of asking the best judge once more, and which judge that is."""
    n_tasks = len(q)
    best = np.full(n_tasks, np.inf)
    whom = np.full(n_tasks, -1, dtype=np.int32)
    if not prices:
        return best, whom
    responses = model.responses_
    given = _given(responses, prices)
    confusion = np.maximum(np.asarray(model.confusion_), FLOOR)
    for low in range(0, n_tasks, TASKS_AT_ONCE):
        here = slice(low, min(low + TASKS_AT_ONCE, n_tasks))
        for j, price in prices.items():
            weight = _added_weight(responses, j, given[j][here])
            cost = price + _after(model, q[here], confusion[j], weight, here, costs)
            better = (cost < best[here]) & wanted[here]
            best[here] = np.where(better, cost, best[here])
            whom[here] = np.where(better, j, whom[here])
    return best, whom


def _after(
    model: Any, q: Floats, theta: Floats, weight: Floats, here: slice, costs: Costs
) -> Floats:
    """Return the expected cost after one more response, without its price."""
    total = _weights(model.responses_, here)
    before = _scale(model, total)
    after = _scale(model, total + weight)
    score = np.log(np.maximum(q, LOWEST)) / before[:, None]
    expected = np.zeros(len(q))
    person = costs.human + costs.wrong * costs.human_error
    for label in range(theta.shape[1]):
        chance = q @ theta[:, label]
        moved = score + weight[:, None] * np.log(theta[:, label])
        top = softmax(after[:, None] * moved).max(axis=1)
        expected += chance * np.minimum(costs.wrong * (1.0 - top), person)
    return expected


def _scale(model: Any, weight: Floats) -> Floats:
    if model.calibration_ is None:
        return np.ones_like(weight)
    return np.asarray(model.calibration_.scale(weight))


def _weights(responses: Responses, here: slice) -> Floats:
    """Return the sum of weights of some tasks' responses."""
    start = responses.start[here.start : here.stop + 1]
    weight = None if responses.weight is None else responses.weight[start[0] : start[-1]]
    return total_weights(start - start[0], weight)


def _given(responses: Responses, prices: Mapping[int, float]) -> dict[int, Floats]:
    """Return the weight of what each judge has said on each task."""
    worker = responses.worker_of_each()
    task = responses.task_of_each()
    weight = responses.weight_of_each()
    found = {}
    for j in prices:
        mine = worker == j
        total = np.bincount(task[mine], weights=weight[mine], minlength=responses.n_tasks)
        found[j] = np.asarray(total, dtype=np.float64)
    return found


def _added_weight(responses: Responses, j: int, given: Floats) -> Floats:
    """Return what one more response of a judge adds: 1 where it is the first, less after it.

    k runs weigh k / (1 + ρ (k − 1)) = w; one more makes it (k + 1) / (1 + ρ k), with k from w.
    """
    shown = None if responses.runs is None else responses.runs.of(responses.workers[j])
    rho = RUN_CORRELATION if shown is None else shown.run_correlation
    rho = RUN_CORRELATION if rho != rho else max(rho, 0.05)
    room = np.maximum(1.0 - rho * given, 1e-3)
    k = given * (1.0 - rho) / room
    return np.where(given > 0.0, np.maximum((k + 1.0) / (1.0 + rho * k) - given, 1e-3), 1.0)


def _known(model: Any) -> Mask:
    known = np.zeros(len(model.tasks_), dtype=bool)
    if model.gold_ is not None and len(model.gold_):
        code = model.tasks_.codes(model.gold_.tasks)
        known[code[code >= 0]] = True
    return known


def _checked(wrong: float, human: float, human_error: float) -> Costs:
    return Costs(float(wrong), float(human), float(human_error))


def _prices(judge: Any, responses: Responses) -> dict[int, float]:
    """Return the price of each judge that may be asked, by code."""
    if judge is None:
        return {}
    if isinstance(judge, Mapping):
        codes = responses.workers.codes(list(judge))
        unknown = [str(name) for name, c in zip(judge, codes.tolist(), strict=True) if c < 0]
        if unknown:
            raise OptionError("judges-without-response", names=unknown)
        prices = dict(zip(codes.tolist(), judge.values(), strict=True))
    else:
        prices = dict.fromkeys(range(responses.n_workers), judge)
    for price in prices.values():
        require_number("The cost of a judge", price, "0 or more", least=0.0)
    return {code: float(price) for code, price in prices.items()}
