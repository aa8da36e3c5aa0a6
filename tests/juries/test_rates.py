"""Honest rates: intervals that hold, by every method, also where gold is not a random sample."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from juries.crowds import fitted, made

import tiebreak as tb

pytestmark = pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")


@cache
def coverage(*, unequal: bool, n_draws: int = 200) -> dict[str, float]:
    """Return how often intervals of 90 % hold the true share, by method, over samples of gold."""
    crowd = made(n_tasks=800, shared=0.5)
    model = fitted(crowd.responses)
    name = model.classes_[0]
    share = np.mean([label == name for label in crowd.gold.values()])
    hits: Counter[str] = Counter()
    for seed in range(n_draws):
        if unequal:
            drawn = tb.judges.sample_tasks(model, 60, random_state=seed)
            tasks = [model.tasks_[int(i)] for i in drawn.task]
            selection = dict(zip(tasks, drawn.probability.tolist(), strict=True))
        else:
            at = np.random.default_rng(seed).choice(800, 60, replace=False)
            tasks, selection = [model.tasks_[int(i)] for i in at], None
        known = {task: crowd.gold[task] for task in tasks}
        rates = tb.judges.estimate_rates(model, known, selection=selection, random_state=seed)
        hits.update(
            rate.method
            for rate in rates.rates
            if rate.label == name and rate.low <= share <= rate.high
        )
    return {method: n / n_draws for method, n in hits.items()}


@pytest.mark.parametrize("unequal", [False, True])
def test_intervals_hold(unequal: bool) -> None:
    """Between .87 and .94, within two standard errors of 200 draws (.042)."""
    found = coverage(unequal=unequal)
    for method in ("ppi", "posterior"):
        assert 0.83 <= found[method] <= 0.98


def test_other_intervals_hold() -> None:
    found = coverage(unequal=False)
    assert min(found["gold"], found["rogan-gladen"]) >= 0.83


def test_judges_make_the_interval_narrower() -> None:
    crowd = made(n_tasks=2000, shared=0.2)
    rates = tb.judges.estimate_rates(fitted(crowd.responses), crowd.some)
    ppi = rates.of("c0")
    gold = rates.of("c0", method="gold")
    assert ppi.high - ppi.low < gold.high - gold.low


def test_all_gold_is_the_truth() -> None:
    crowd = made(n_tasks=300, n_known=300)
    rate = tb.judges.estimate_rates(fitted(crowd.responses), crowd.gold).of("c0")
    share = np.mean([label == "c0" for label in crowd.gold.values()])
    assert rate.rate == pytest.approx(share, abs=0.01)
    assert rate.high - rate.low < 0.02


def test_a_model_that_saw_gold_gives_the_same_rates() -> None:
    crowd = made()
    blind = tb.judges.estimate_rates(fitted(crowd.responses), crowd.some)
    told = tb.judges.estimate_rates(fitted(crowd.responses, crowd.some))
    assert str(blind) == str(told)


def test_systems_and_their_difference() -> None:
    rng = np.random.default_rng(5)
    systems = {i: ("old", "new")[i % 2] for i in range(2000)}
    truth = {i: int(rng.random() < (0.5, 0.7)[i % 2]) for i in range(2000)}
    rows = [
        (i, f"judge {j}", int(truth[i] ^ (rng.random() < 0.2)))
        for i in range(2000)
        for j in range(5)
    ]
    known = {int(i): truth[int(i)] for i in rng.choice(2000, 300, replace=False)}
    model = fitted(tb.Responses.from_rows(rows))
    rates = tb.judges.estimate_rates(model, known, systems=systems)
    for name in ("old", "new"):
        share = np.mean([truth[i] for i in truth if systems[i] == name])
        rate = rates.of(1, name)
        assert rate.low - 0.02 < share < rate.high + 0.02
    (step,) = [d for d in rates.differences if d.label == 1 and d.method == "ppi"]
    assert (step.left, step.right) == ("new", "old")
    assert 0.0 < step.low < 0.2 < step.high + 0.06
    json.dumps(rates.to_dict())
    assert "new − old" in str(rates)


def test_without_gold_the_judges_share_stands_alone() -> None:
    rates = tb.judges.estimate_rates(fitted(made().responses))
    assert {rate.method for rate in rates.rates} == {"judges"}


def test_tasks_of_systems_without_responses_are_left_out() -> None:
    crowd = made()
    systems = {task: ("a", "b")[i % 2] for i, task in enumerate(crowd.gold)}
    model = fitted(crowd.responses)
    found = tb.judges.estimate_rates(model, crowd.some, systems=systems)
    more = tb.judges.estimate_rates(model, crowd.some, systems=systems | {"elsewhere": "a"})
    assert more == found


@pytest.mark.parametrize("n_known", [1, 5])
def test_a_handful_of_gold_gives_wide_intervals_or_none(n_known: int) -> None:
    crowd = made(n_known=n_known)
    rates = tb.judges.estimate_rates(fitted(crowd.responses), crowd.some)
    wide = [rate for rate in rates.rates if rate.method == "ppi"]
    assert all(rate.high - rate.low > 0.3 for rate in wide)


def test_gold_of_one_class_is_not_taken_for_all() -> None:
    crowd = made()
    same = dict([item for item in crowd.gold.items() if item[1] == "c0"][:40])
    rates = tb.judges.estimate_rates(fitted(crowd.responses), same)
    assert rates.of("c0").low == 0.0
    assert rates.of("c0").high == 1.0
    assert {rate.method for rate in rates.rates} == {"judges", "ppi"}


def test_a_random_sample_of_one_class_says_that_the_other_is_rare() -> None:
    """Known tasks that look like all to the judges are taken at their word."""
    rng = np.random.default_rng(0)
    rows = [
        (i, f"j{j}", "bad" if rng.random() < 0.02 else "good") for i in range(400) for j in "ab"
    ]
    known = {int(i): "good" for i in rng.choice(400, 50, replace=False)}
    found = tb.judges.estimate_rates(fitted(tb.Responses.from_rows(rows)), known).of("good")
    assert 0.9 < found.low < found.high == 1.0


def test_gold_that_is_no_random_sample_is_said_and_chances_set_it_right() -> None:
    crowd = made(n_tasks=800)
    model = fitted(crowd.responses)
    rng = np.random.default_rng(99)  # not that of the crowd, whose classes it would draw again
    said = np.asarray(model.labels_.label)
    chance = np.where(said == 0, 0.3, 0.06)
    drawn = np.flatnonzero(rng.random(800) < chance)
    known = {model.tasks_[int(i)]: crowd.gold[model.tasks_[int(i)]] for i in drawn}
    with pytest.warns(tb.InputNote) as caught:
        tb.judges.estimate_rates(model, known)
    codes = {note.message.code: note.message.fields for note in caught}  # type: ignore[union-attr]
    assert codes["known-unlike-all"]["label"] in model.classes_
    selection = {model.tasks_[int(i)]: float(chance[i]) for i in drawn}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Known tasks are not like")
        tb.judges.estimate_rates(model, known, selection=selection)
        for seed in range(40):
            some = np.random.default_rng(seed).choice(list(crowd.gold), 60, replace=False)
            tb.judges.estimate_rates(model, {task: crowd.gold[task] for task in some})


def test_rogan_gladen_needs_judges_who_have_to_do_with_the_truth() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(2000) < 0.3
    task = rng.choice(2000, 100, replace=False)
    gold = {int(i): "yes" if truth[i] else "no" for i in task}

    def found(said: Any) -> Any:
        rows = [(i, "judge", "yes" if yes else "no") for i, yes in enumerate(said.tolist())]
        model = tb.MajorityVote().fit(tb.Responses.from_rows(rows))
        rates = tb.judges.estimate_rates(model, gold).rates
        return [each for each in rates if (each.method, each.label) == ("rogan-gladen", "yes")]

    assert found(rng.random(2000) < 0.5) == []
    (turned,) = found(~truth ^ (rng.random(2000) < 0.2))  # who says the opposite says much
    assert turned.low < 0.3 < turned.high
    assert turned.high - turned.low < 0.4


def test_ppi_is_not_to_be_quoted_where_it_is_gold_alone() -> None:
    """Twelve known tasks of the new system, one of them bad: judges play no part in its rate."""
    rng = np.random.default_rng(5)
    truth = {i: bool(rng.random() < (0.6 if i % 2 else 0.95)) for i in range(400)}
    rows = [
        (i, f"judge {j}", "good" if good ^ (rng.random() < 0.15) else "bad")
        for i, good in truth.items()
        for j in range(4)
    ]
    gold = {i: "good" if truth[i] else "bad" for i in range(60)}
    systems = {i: "old" if i % 2 else "new" for i in range(400)}
    model = fitted(tb.Responses.from_rows(rows))
    found = tb.judges.estimate_rates(model, gold, systems=systems)
    alone = {rate.system: rate.is_gold_alone for rate in found.rates if rate.method == "ppi"}
    assert alone == {"all": False, "new": True, "old": False}
    new, of_gold = found.of("bad", "new"), found.of("bad", "new", "gold")
    assert (new.rate, new.low, new.high) == (of_gold.rate, of_gold.low, of_gold.high)
    assert all(each.is_gold_alone for each in found.differences if each.method == "ppi")
    text = str(found)
    assert text.count("gold alone") >= 3, text
    few = str(tb.judges.estimate_rates(model, dict(list(gold.items())[:6])))
    assert "quote ppi" not in few
    assert "quote gold" in few
