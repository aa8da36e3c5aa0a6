"""Routing: every task goes where it costs least."""

from __future__ import annotations

import numpy as np
import pytest
from juries.crowds import fitted, made
from refusals import refused

import tiebreak as tb

pytestmark = pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")


def test_done_and_human_are_split_by_probability() -> None:
    crowd = made()
    model = fitted(crowd.responses)
    plan = tb.decide.plan_routes(model, wrong=1.0, human=0.2)
    top = model.probabilities_.max(axis=1)
    is_human = np.array(plan.route) == "human"
    assert (is_human == (1.0 - top > 0.2)).all()
    assert plan.n_judge == 0
    assert plan.total <= plan.all_done + 1e-9


def test_costs_are_those_of_the_routes() -> None:
    crowd = made(n_judges=4)
    model = fitted(crowd.responses)
    with_judges = tb.decide.plan_routes(model, wrong=1.0, human=0.2, judge=0.001)
    without = tb.decide.plan_routes(model, wrong=1.0, human=0.2)
    assert with_judges.total <= without.total + 1e-9
    assert with_judges.n_judge > 0
    rows = with_judges.rows("judge")
    assert len(rows["task"]) == with_judges.n_judge
    assert set(rows["judge"]) <= set(model.workers_)
    assert rows["cost"] == sorted(rows["cost"], reverse=True)
    assert sum(len(with_judges.rows(name)["task"]) for name in tb.decide.ROUTES) == 400


def test_only_priced_judges_are_asked() -> None:
    crowd = made(n_judges=4)
    model = fitted(crowd.responses)
    name = model.workers_[1]
    plan = tb.decide.plan_routes(model, wrong=1.0, human=0.3, judge={name: 0.0001})
    assert set(plan.rows("judge")["judge"]) <= {name}
    with refused(tb.errors.OptionError, "judges-without-response"):
        tb.decide.plan_routes(model, wrong=1.0, human=0.3, judge={"nobody": 0.1})


def test_known_tasks_are_done() -> None:
    crowd = made()
    plan = tb.decide.plan_routes(fitted(crowd.responses, crowd.some), wrong=100.0, human=0.1)
    done = set(plan.rows("done")["task"])
    assert set(crowd.some) <= done


def test_one_more_run_is_worth_less_than_one_more_judge() -> None:
    """A judge that has answered is asked again on fewer tasks than an equal one that has not."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(400):
        said = [int(i % 2) ^ (rng.random() < 0.25) for _ in range(4)]
        rows += [(i, f"j{j}", int(said[j])) for j in range(4) if j < 3 or i < 100]
    model = fitted(tb.Responses.from_rows(rows))
    plan = tb.decide.plan_routes(model, wrong=1.0, human=0.3, judge={"j3": 0.01})
    asked = set(plan.rows("judge")["task"])
    assert len(asked & set(range(100, 400))) > 50
    assert not asked & set(range(100))


@pytest.mark.parametrize(
    "costs",
    [
        {"wrong": 0.0, "human": 1.0},
        {"wrong": 1.0, "human": -1.0},
        {"wrong": np.nan, "human": 1.0},
        {"wrong": 1.0, "human": 1.0, "judge": -1.0},
        {"wrong": 1.0, "human": 1.0, "human_error": 1.0},
    ],
)
def test_costs_that_cannot_be_are_refused(costs: dict[str, float]) -> None:
    with pytest.raises(tb.errors.OptionError):
        tb.decide.plan_routes(fitted(made().responses), **costs)
