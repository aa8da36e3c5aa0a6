"""Escalate: which tasks go to a human, which get another judge or run, which are done.

A task is done at the cost `wrong` · (1 − p), p the probability of its label. A human costs `human`,
and errs with chance `human_error`. One more response of a judge costs its price, and then what is
expected where its answer is followed by the better of the two, `decide.value`. The cheapest of the
three is chosen for each task.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiebreak.arguments import WITH_RESPONSES, checks, number
from tiebreak.data import Responses
from tiebreak.decide import value
from tiebreak.decide.costs import CostMatrix, read_cost_matrix
from tiebreak.errors import OptionError, note
from tiebreak.kernels.layout import Codes, Floats, total_weights
from tiebreak.options import require_number, require_word

DONE = "done"
HUMAN = "human"
JUDGE = "judge"
ROUTES = (DONE, HUMAN, JUDGE)
AT_ONCE = 1 << 21  # numbers in memory
RUN_CORRELATION = 0.7  # of one more run where nothing is known of runs


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
    prices = _prices(judge, model.responses_)
    q = np.asarray(model.probabilities_)
    label = np.asarray(model.labels_.label)
    top = q[np.arange(len(q)), label]
    cost_of_human = human + wrong * human_error
    done = wrong * (1.0 - top)
    n_classes = len(model.classes_)
    costs = read_cost_matrix(
        np.column_stack([wrong * (1.0 - np.eye(n_classes)), np.full(n_classes, cost_of_human)]),
        model.classes_,
    )
    known = np.zeros(len(q), dtype=bool)
    if model.gold_ is not None:
        code = model.tasks_.codes(model.gold_.tasks)
        known[code[code >= 0]] = True
    asked = np.full(len(q), np.inf)
    whom = np.full(len(q), -1, dtype=np.int32)
    for j, price in prices.items():
        cost = price + _after_one_more(model, j, costs)
        better = (cost < asked) & ~known
        asked = np.where(better, cost, asked)
        whom[better] = j
    each = np.stack([done, np.full(len(q), cost_of_human), asked])
    choice = np.argmin(each, axis=0)
    choice[known] = 0
    each[0][known] = 0.0
    cost = each[choice, np.arange(len(q))]
    n_done, n_human, n_judge = np.bincount(choice, minlength=3).tolist()
    if model.calibration_ is None:
        note("probabilities-not-scaled")
    two_of_three_err = 3.0 * human_error**2 * (1.0 - human_error) + human_error**3
    return Route(
        tuple(ROUTES[c] for c in choice.tolist()),
        np.where(choice == 2, whom, -1).astype(np.int32),
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


def _after_one_more(model: Any, j: int, costs: CostMatrix) -> Floats:
    """Return the expected cost of each task after one more response of a judge."""
    responses: Responses = model.responses_
    mine = responses.worker_of_each() == j
    task, weights = responses.task_of_each()[mine], responses.weight_of_each()[mine]
    given: Any = np.bincount(task, weights=weights, minlength=responses.n_tasks)
    total = total_weights(responses.start, responses.weight)
    strength = value.strength(model, total, _added_weight(responses, j, given))
    step = max(1, AT_ONCE // responses.n_classes**2)
    found = np.empty(len(total))
    for low in range(0, len(total), step):
        here = slice(low, low + step)
        now = np.asarray(model.probabilities_[here])[:, None, :]
        joint = value.after(now, model.confusion_[j], strength[here])
        found[here] = value.expected_cost(joint, costs)
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
