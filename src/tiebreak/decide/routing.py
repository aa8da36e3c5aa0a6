"""Routes: which tasks go to a human, which get another judge or run, which are done.

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
from tiebreak.data.ids import MISSING
from tiebreak.decide.costs import read_cost_matrix
from tiebreak.decide.value import costs_after
from tiebreak.errors import OptionError, note
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.options import require_number, require_word

DONE = "done"
HUMAN = "human"
JUDGE = "judge"
ROUTES = (DONE, HUMAN, JUDGE)
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
    >>> found = plan(model, wrong=1.0, human=0.2, judge=0.01)
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
