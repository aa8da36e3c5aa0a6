"""Decisions: the least expected cost, by brute force; costs that are wrong; plans of votes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from refusals import refused
from scipy.stats import beta

import tiebreak as tb
from tiebreak import decide, simulate
from tiebreak.decide import read_cost_matrix

CROWD = simulate.crowd(80, 8, 3, responses_per_task=3, accuracy=(0.4, 0.8), random_state=1)
MODEL = tb.VariationalBayes().fit(CROWD.responses)
AB = tb.Responses.from_rows([("1", "ann", "a"), ("2", "ann", "b")])
COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [10.0, 3.0, 0.0]])


def test_the_decision_is_the_cheapest_as_expected() -> None:
    found = MODEL.decide(COSTS)
    for i, q in enumerate(MODEL.probabilities_):
        every = [sum(q[k] * COSTS[k, d] for k in range(3)) for d in range(3)]
        assert found.expected_cost[i] == pytest.approx(min(every))
        assert every[found.decision[i]] == pytest.approx(min(every))
        at_best = sum(q[k] * COSTS[k].min() for k in range(3))
        assert found.saving[i] == pytest.approx(min(every) - at_best)
    assert found.total_cost == pytest.approx(found.expected_cost.sum())
    assert found.total_cost <= found.argmax_cost


def test_without_costs_the_likeliest_class_is_taken() -> None:
    found = MODEL.decide()
    assert (found.decision == MODEL.probabilities_.argmax(axis=1)).all()
    assert found.expected_accuracy == pytest.approx(MODEL.probabilities_.max(axis=1).mean())
    assert found.total_cost == pytest.approx(found.argmax_cost)


def test_an_open_decision_is_taken_where_it_is_cheapest() -> None:
    wider = np.column_stack([COSTS, np.full(3, 0.8)])
    found = MODEL.decide(wider)
    expected = MODEL.probabilities_ @ COSTS
    assert (found.is_open == (expected.min(axis=1) > 0.8)).all()
    assert 0 < found.n_left_open < 80
    assert np.isnan(found.probability[found.is_open]).all()
    assert set(found.best().values()) <= {*map(str, MODEL.classes_), "abstain"}


def test_a_share_of_tasks_is_left_open_the_least_certain_first() -> None:
    found = MODEL.decide(abstain_rate=0.25)
    assert found.n_left_open == 20
    top = MODEL.probabilities_.max(axis=1)
    assert top[found.is_open].max() <= top[~found.is_open].min() + 1e-12
    assert found.expected_accuracy == pytest.approx(top[~found.is_open].mean())
    with refused(tb.errors.OptionError, "wrong-value abstain_rate"):
        MODEL.decide(abstain_rate=1.0)
    with refused(tb.errors.OptionError, "cost-of-abstaining"):
        MODEL.decide(np.column_stack([COSTS, np.ones(3)]), abstain_rate=0.1)


def test_an_expert_sees_first_what_saves_most() -> None:
    found = MODEL.decide(COSTS)
    order = found.expert_first()
    saving = dict(zip(found.tasks, found.saving, strict=True))
    assert [saving[task] for task in order] == sorted((saving[t] for t in order), reverse=True)
    assert found.expert_first(3) == order[:3]


# Costs


def test_costs_come_as_tables_mappings_and_arrays(tmp_path: Path) -> None:
    classes = AB.classes
    path = tmp_path / "costs.csv"
    path.write_text("ask,truth,b,a\n0.5,b,0,9\n0.4,a,1,0\n")
    by_truth = {"a": {"a": 0, "b": 1, "ask": 0.4}, "b": {"a": 9, "b": 0, "ask": 0.5}}
    table = {"truth": ["a", "b"], "a": [0, 9], "b": [1, 0], "ask": [0.4, 0.5]}
    for source in (path, by_truth, table):
        found = read_cost_matrix(source, classes)
        assert found.decisions[-1] == "ask"
        costs = dict(zip(found.decisions, found.cost.T.tolist(), strict=True))
        assert costs == {"a": [0.0, 9.0], "b": [1.0, 0.0], "ask": [0.4, 0.5]}
    found = read_cost_matrix(np.array([[0, 1], [9, 0]]), classes)
    assert not found.may_abstain
    assert read_cost_matrix(found, classes) is found


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.zeros((3, 3)), "cost-shape"),
        ({"a": {"a": 0, "b": 1}}, "cost-rows"),
        ({"a": {"a": 0}, "b": {"a": 1}, "c": {"a": 2}}, "cost-rows"),
        ({"a": {"a": 0, "x": 1}, "b": {"a": 1, "x": 0}}, "cost-unknown-decision"),
        ({"a": {"ask": 0}, "b": {"ask": 1}}, "cost-decisions"),
        ({"a": {"a": 0, "b": 1}, "b": {"a": 1}}, "cost-not-finite"),
        ({"a": {"a": 0, "b": float("nan")}, "b": {"a": 1, "b": 0}}, "cost-not-finite"),
        ({"classes": ["a", "b"], "a": [0, 1], "b": [1, 0]}, "cost-no-truth"),
        ({"truth": ["a", "a"], "a": [0, 1], "b": [1, 0]}, "cost-rows"),
    ],
)
def test_costs_that_cannot_be_are_refused(source: Any, message: str) -> None:
    with refused(tb.TiebreakError, message):
        read_cost_matrix(source, AB.classes)


def test_a_model_that_was_not_fitted_is_refused() -> None:
    with pytest.raises(tb.errors.NotFittedError):
        tb.VariationalBayes().decide()


# Votes


def test_costs_after_votes_are_those_of_all_answers() -> None:
    """Two votes on each task: every pair of answers, each with its best decision."""
    model = tb.VariationalBayes(calibrate="none").fit(CROWD.responses)
    plan = decide.plan_votes(model, COSTS, limit=0.0, most_votes=2)
    asked: dict[Any, list[int]] = {}
    gained: dict[Any, float] = {}
    for vote in plan.votes:
        asked.setdefault(vote.task, []).append(int(model.workers_.codes([vote.worker])[0]))
        gained[vote.task] = gained.get(vote.task, 0.0) + vote.gain
    assert any(len(workers) == 2 for workers in asked.values())
    for task, workers in asked.items():
        q = model.probabilities_[int(model.tasks_.codes([task])[0])]
        expected = 0.0
        for answers in product(range(3), repeat=len(workers)):
            said = [model.confusion_[w][:, k] for w, k in zip(workers, answers, strict=True)]
            expected += (q * np.prod(said, axis=0) @ COSTS).min()
        assert (q @ COSTS).min() - gained[task] == pytest.approx(expected)


def test_nobody_is_asked_twice_for_one_task() -> None:
    plan = decide.plan_votes(MODEL, COSTS, limit=0.7 * MODEL.decide(COSTS).total_cost)
    crowd = MODEL.responses_
    given = {
        (crowd.tasks[int(t)], crowd.workers[int(w)])
        for t, w in zip(crowd.task_of_each(), crowd.worker_of_each(), strict=True)
    }
    asked = [(vote.task, vote.worker) for vote in plan.votes]
    assert asked
    assert len(set(asked)) == len(asked)
    assert not given & set(asked)


def test_a_plan_ends_where_the_limit_is_reached() -> None:
    now = MODEL.decide(COSTS).total_cost
    plan = decide.plan_votes(MODEL, COSTS, limit=0.9 * now)
    assert plan.is_reached
    assert plan.cost_now == pytest.approx(now)
    assert plan.cost_after <= 0.9 * now
    assert plan.cost_after + plan.votes[-1].gain > 0.9 * now  # the last one was needed
    assert sum(vote.gain for vote in plan.votes) == pytest.approx(now - plan.cost_after)
    assert sum(plan.by_worker().values()) == len(plan.votes)
    gains = [vote.gain for vote in plan.votes]
    assert gains == sorted(gains, reverse=True)
    assert f"{len(plan.votes)} votes on {plan.n_tasks} tasks" in str(plan)


def test_a_limit_that_votes_cannot_reach_is_said_and_experts_are_counted() -> None:
    decided = MODEL.decide(COSTS)
    limit = 0.05 * decided.total_cost
    plan = decide.plan_votes(MODEL, COSTS, limit=limit)
    assert not plan.is_reached
    assert "No number of votes" in str(plan)
    saved = np.sort(decided.saving)[::-1]
    n = plan.n_expert_labels
    assert decided.total_cost - saved[:n].sum() <= limit
    assert decided.total_cost - saved[: n - 1].sum() > limit


def test_below_the_limit_nothing_is_asked() -> None:
    plan = decide.plan_votes(MODEL, COSTS, limit=1e9)
    assert not plan.votes
    assert plan.n_expert_labels == 0
    assert "already" in str(plan)


def test_only_those_named_are_asked() -> None:
    some = [MODEL.workers_[0], MODEL.workers_[3]]
    plan = decide.plan_votes(MODEL, COSTS, limit=0.0, workers=some)
    assert set(plan.by_worker()) <= set(some)
    with refused(tb.errors.OptionError, "workers-without-response"):
        decide.plan_votes(MODEL, COSTS, limit=0.0, workers=["nobody"])
    with refused(tb.errors.OptionError, "wrong-value limit"):
        decide.plan_votes(MODEL, COSTS, limit=float("nan"))
    with refused(tb.errors.OptionError, "wrong-value most_votes"):
        decide.plan_votes(MODEL, COSTS, limit=1.0, most_votes=0)


def test_shared_errors_make_further_votes_worth_less() -> None:
    """The same probabilities, believed to come from workers who err together or apart."""
    apart = tb.VariationalBayes(calibrate="none").fit(CROWD.responses)
    together = tb.VariationalBayes(calibrate="votes", dependence=0.9).fit(CROWD.responses)
    together.probabilities_ = apart.probabilities_
    for n in (1, 3):
        first, second = (
            decide.plan_votes(model, limit=0.0, most_votes=n) for model in (apart, together)
        )
        assert first.cost_now == pytest.approx(second.cost_now)
        assert first.cost_after < second.cost_after


# How many are right


def restated(decided: decide.Decisions, **changes: Any) -> decide.Decisions:
    """Return the decisions with something else stated of them."""
    return replace(decided, stated=decided.stated._replace(**changes))


def without_known(decided: decide.Decisions, tasks: Any) -> decide.Decisions:
    """Return the decisions without those of some tasks, which are left open."""
    label = decided.stated.label.copy()
    label[decided.tasks.codes(list(tasks))] = -1
    return restated(decided, label=label)


def test_what_is_known_for_sure_leaves_only_chance() -> None:
    decided = MODEL.decide()
    calibration = decided.stated.calibration
    assert calibration is not None
    for found in (None, calibration._replace(dependence_variance=0.0, multiplier_variance=0.0)):
        estimate = restated(decided, calibration=found).estimate_accuracy()
        top = MODEL.probabilities_.max(axis=1)
        width = 1.6449 * np.sqrt((top * (1.0 - top)).mean() / 80)
        assert estimate.expected == pytest.approx(top.mean())
        assert estimate.low == pytest.approx(top.mean() - width, abs=1e-3)
        assert estimate.high == pytest.approx(top.mean() + width, abs=1e-3)
        promise = 0.8416 * np.sqrt((top * (1.0 - top)).mean() / 80)  # a fifth lies below
        assert estimate.promised == pytest.approx(top.mean() - promise, abs=1e-3)


def test_gold_narrows_what_is_promised() -> None:
    made = simulate.crowd(1000, 20, 2, responses_per_task=5, shared=0.3, random_state=4)
    widths = []
    for n in (0, 30, 300):
        known = dict(list(made.gold.to_dict().items())[:n])
        model = tb.VariationalBayes().fit(made.responses, gold=known or None)
        found = model.decide(abstain_rate=0.2).estimate_accuracy()
        assert 0.0 < found.low < found.promised < found.expected < found.high <= 1.0
        widths.append(found.high - found.low)
    assert widths[0] > 1.3 * widths[1] > 1.6 * widths[2]


def test_promises_hold_as_often_as_they_say() -> None:
    held = []
    for seed in range(30):
        shared = (0.0, 0.2, 0.4)[seed % 3]
        made = simulate.crowd(
            400, 15, 2, responses_per_task=5, accuracy=(0.5, 0.9), shared=shared, random_state=seed
        )
        known = dict(list(made.gold.to_dict().items())[:60])
        model = tb.VariationalBayes().fit(made.responses, gold=known)
        found = model.decide(abstain_rate=0.2).estimate_accuracy()
        decided = model.decide(abstain_rate=0.2)
        right = [
            made.gold.to_dict()[task] == label
            for task, label in decided.best().items()
            if label != "abstain"
        ]
        held.append(np.mean(right) >= found.low)
    assert np.mean(held) >= 0.85  # 0.95 is meant


def test_what_is_promised_does_not_hang_on_the_level() -> None:
    decided = MODEL.decide(abstain_rate=0.2)
    found = [decided.estimate_accuracy(level) for level in (0.2, 0.6, 0.9)]
    assert len({each.promised for each in found}) == 1
    assert found[1].low == pytest.approx(found[1].promised)  # a fifth lies below either


@pytest.mark.parametrize("n_known", [0, 100])
def test_what_is_promised_is_kept_within_two_points_where_probabilities_are_calibrated(
    n_known: int,
) -> None:
    kept = []
    as_expected = []
    for seed in range(24):
        made = simulate.crowd(
            800, 25, 2, responses_per_task=5, accuracy=(0.5, 0.9),
            shared=(0.1, 0.2, 0.3)[seed % 3], random_state=9000 + seed,
        )  # fmt: skip
        known = dict(list(made.gold.to_dict().items())[:n_known])
        given = tb.Gold.from_dict(known) if known else None
        model = tb.VariationalBayes().fit(made.responses, gold=given)
        if tb.evaluate.calibration_error(model.labels_, made.gold, 10, given=given) > 0.05:
            continue
        for rate in (0.1, 0.3, 0.5):
            decided = model.decide(abstain_rate=rate)
            found = without_known(decided, known).estimate_accuracy()
            realised = _realised(made, decided, known)
            kept.append(realised >= found.promised - 0.02)
            as_expected.append(realised >= found.expected - 0.02)
    assert len(kept) >= 15
    assert np.mean(kept) >= 0.93  # 0.95 is meant
    assert np.mean(kept) >= np.mean(as_expected)


def _crowd_that_errs_alike(seed: int) -> simulate.Crowd:
    return simulate.crowd(
        500, 20, 4, responses_per_task=5, accuracy=(0.4, 0.9), shared=0.3, random_state=seed
    )


def _realised(made: simulate.Crowd, decided: decide.Decisions, known: dict[Any, Any]) -> float:
    truth = made.gold.to_dict()
    right = [
        truth[task] == label
        for task, label in decided.best().items()
        if label != "abstain" and task not in known
    ]
    return float(np.mean(right))


def test_promises_hold_where_all_who_err_give_the_same_wrong_class() -> None:
    kept = []
    by_scale_alone = []
    for seed in range(6):
        made = _crowd_that_errs_alike(seed)
        known = dict(list(made.gold.to_dict().items())[:100])
        model = tb.VariationalBayes().fit(made.responses, gold=known)
        for rate in (0.0, 0.2, 0.5):
            decided = model.decide(abstain_rate=rate)
            realised = _realised(made, decided, known)
            others = without_known(decided, known)
            kept.append(realised >= others.estimate_accuracy().low)
            alone = restated(others, recount=None)
            by_scale_alone.append(realised >= alone.estimate_accuracy().low)
    assert np.mean(kept) >= 0.8  # 0.95 is meant; crowds are few, and rates share one
    assert np.mean(by_scale_alone) < np.mean(kept)


def test_known_tasks_and_what_the_model_says_make_a_beta() -> None:
    def found(top: float, n: int, n_right: int, n_tasks: int = 100_000) -> Any:
        changes: dict[str, Any] = {
            "q": np.tile([top, 1.0 - top], (n_tasks, 1)),
            "label": np.zeros(n_tasks, dtype=np.int32),
            "n_responses": np.ones(n_tasks),
            "calibration": None,
            "recount": lambda: (n, n_right),
        }
        return restated(MODEL.decide(), **changes).estimate_accuracy()

    many = found(0.9, 40, 30)  # what the model says counts as ten more, Jeffreys as one
    assert many.n_known == 40
    assert many.expected == pytest.approx((9.0 + 30.0 + 0.5) / 51.0)
    for name, at in (("low", 0.05), ("high", 0.95), ("promised", 0.2)):
        assert getattr(many, name) == pytest.approx(beta.ppf(at, 39.5, 11.5), abs=1e-4)
    assert found(1.0, 9, 9, 99).low < 0.95
    few = found(0.9, 40, 30, 20)
    assert few.low < many.low
    assert few.high > many.high


def test_tasks_that_were_told_are_right() -> None:
    made = _crowd_that_errs_alike(0)
    known = dict(list(made.gold.to_dict().items())[:200])
    model = tb.VariationalBayes().fit(made.responses, gold=known)
    all_of_them = model.decide().estimate_accuracy()
    others = without_known(model.decide(), known).estimate_accuracy()
    for name in ("expected", "low", "high", "promised"):
        known_and_not = 0.4 + 0.6 * getattr(others, name)
        assert getattr(all_of_them, name) == pytest.approx(known_and_not)


def test_a_known_task_is_counted_by_fits_that_were_not_told_its_class() -> None:
    """The class of one known task is turned: only whether it counts as right may change."""
    made = simulate.crowd(200, 10, 2, responses_per_task=4, random_state=1)
    known = dict(list(made.gold.to_dict().items())[:40])
    first, *_ = known
    counts = []
    for label in ("c0", "c1"):
        model = tb.VariationalBayes().fit(made.responses, gold=known | {first: label})
        recount = model.decide().stated.recount
        assert recount is not None
        counts.append(recount())
    assert [n for n, _ in counts] == [40, 40]
    assert abs(counts[0][1] - counts[1][1]) == 1


def test_known_tasks_are_fitted_once_for_each_fit() -> None:
    fits: list[Any] = []

    class Counted(tb.VariationalBayes):
        def fit(self, *given: Any, **options: Any) -> Self:
            fits.append(given)
            return super().fit(*given, **options)

    made = simulate.crowd(200, 10, 3, responses_per_task=4, random_state=1)
    known = dict(list(made.gold.to_dict().items())[:40])
    model = Counted().fit(made.responses, gold=known)
    fits.clear()
    decided = model.decide(abstain_rate=0.1)
    assert not fits  # nobody has asked
    before = decided.estimate_accuracy()
    assert len(fits) == 4
    model.decide(abstain_rate=0.3).estimate_accuracy()
    assert len(fits) == 4
    model.update([("new", "w1", "c0")], gold={"new": "c0"})
    fits.clear()
    assert decided.estimate_accuracy() == before
    assert not fits
    model.decide().estimate_accuracy()
    assert len(fits) == 4


def test_a_kept_model_promises_the_same_and_one_of_counts_by_scales(tmp_path: Path) -> None:
    made = simulate.crowd(200, 10, 3, responses_per_task=4, random_state=1)
    known = dict(list(made.gold.to_dict().items())[:40])
    model = tb.VariationalBayes().fit(made.responses, gold=known)
    expected = model.decide().estimate_accuracy()
    model.save(tmp_path / "all.tbm")
    assert tb.load(tmp_path / "all.tbm").decide().estimate_accuracy() == expected
    model.save(tmp_path / "counts.tbm", keep="counts")
    decided = tb.load(tmp_path / "counts.tbm").decide()
    by_scale = restated(decided, recount=None).estimate_accuracy()
    assert decided.estimate_accuracy() == by_scale


def test_a_level_that_is_none_is_refused_and_nothing_decided_has_no_accuracy() -> None:
    with refused(tb.errors.OptionError, "wrong-value level"):
        MODEL.decide().estimate_accuracy(1.0)
    nothing = MODEL.decide(np.column_stack([COSTS, np.zeros(3)])).estimate_accuracy()
    assert np.isnan(nothing.expected)


def test_a_plan_counts_responses_by_weight() -> None:
    once = tb.simulate.crowd(40, 6, 3, responses_per_task=3, random_state=3).responses
    columns = (once.task_of_each(), once.worker_of_each(), once.label_of_each())
    ids = (once.tasks, once.workers, once.classes)
    by_weight = tb.Responses.from_codes(*columns, *ids, weight=np.full(once.n_responses, 4.0))
    task, worker, label = (np.repeat(each, 4) for each in columns)
    repeated = tb.Responses.from_codes(task, worker, label, *ids)
    one, other = (
        decide.plan_votes(tb.VariationalBayes().fit(each), COSTS, limit=0.0)
        for each in (by_weight, repeated)
    )
    assert one.cost_after == pytest.approx(other.cost_after, rel=1e-9)
