"""What a ranking says: intervals of ranks, judges, predictions, notes, what to compare next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking.arenas import PLAIN, drawn
from refusals import noted, refused
from scipy.stats import kendalltau

import tiebreak as tb

NOTES = "ignore::tiebreak.errors.InputNote"


@pytest.mark.filterwarnings(NOTES)
@settings(max_examples=3)
@given(st.integers(0, 10**6))
def test_a_ranking_is_consistent(seed: int) -> None:
    arena = drawn(seed, n_items=5)
    model = tb.BradleyTerry().fit(arena.pairs)
    found = model.ranking_
    assert found.rank.tolist() == [1, 2, 3, 4, 5]
    assert (np.diff(found.strength) <= 0).all()
    assert (found.rank_low <= found.rank).all()
    assert (found.rank <= found.rank_high).all()
    assert (found.joint_low <= found.low).all()
    assert (np.diff(found.tier) >= 0).all()
    assert found.probability_best.sum() == pytest.approx(1.0)
    assert model.strengths_.sum() == pytest.approx(0.0, abs=1e-9)
    best, last = found.item[0], found.item[4]
    assert model.probability_better(best, last) >= 0.5
    both = model.probability_better(best, last) + model.probability_better(last, best)
    assert both == pytest.approx(1.0)
    share = model.predict(list(arena.pairs.items[:2]), list(arena.pairs.items[2:4]), "judge001")
    assert share.sum(axis=1) == pytest.approx([1.0, 1.0])


@pytest.mark.filterwarnings(NOTES)
def test_judges_who_take_what_is_first_are_named_and_held_off() -> None:
    taus = {"plain": 0.0, "default": 0.0}
    for seed in range(4):
        arena = drawn(seed, n_items=8, n_judges=12, n_prompts=25, n_each=16, first_judges=5)
        models = {"plain": tb.BradleyTerry(**PLAIN), "default": tb.BradleyTerry()}
        for name, model in models.items():
            strengths = model.fit(arena.pairs).strengths_
            taus[name] += kendalltau(strengths, arena.strength).statistic / 4.0
        named = {judge.worker for judge in models["default"].judges_ if judge.prefers_first}
        assert named >= {f"judge{k:03}" for k in range(5)}
        assert len(named) <= 6
    assert taus["default"] >= taus["plain"]


@pytest.mark.filterwarnings(NOTES)
def test_intervals_are_wider_where_items_vary_on_prompts() -> None:
    arena = drawn(7, n_prompts=20, n_each=40, on_prompts=1.0)
    model = tb.BradleyTerry().fit(arena.pairs)
    assert model.interval_ratio_ > 1.3
    assert model.variance_["v"] == pytest.approx(1.0, abs=0.5)
    assert tb.BradleyTerry(prompts=False).fit(arena.pairs).interval_ratio_ == 1.0


def test_limits_are_noted() -> None:
    votes = [("a", "b", "first"), ("b", "a", "first"), ("c", "d", "tie"), ("d", "c", "first")]
    with noted("items-never-meet"):
        model = tb.BradleyTerry().fit(votes)
    assert sorted(model.ranking_.group.tolist()) == [0, 0, 1, 1]
    assert set(model.ranking_.rank_high.tolist()) <= {1, 2}
    with noted("won-or-lost-all"):
        model = tb.BradleyTerry(together=True).fit([*votes, ("a", "c", "first"), ("a", "e", "e")])
    assert not model.ranking_.group.any()
    with refused(tb.InputError, "no-finite-strength"):
        tb.BradleyTerry(spread=float("inf")).fit([("a", "b", "first")])
    with noted("all-ties"):
        found = tb.BradleyTerry().fit([("a", "b", "tie"), ("b", "c", "tie")]).ranking_
    assert found.rank_low.tolist() == [1, 1, 1]
    assert found.rank_high.tolist() == [3, 3, 3]


def test_what_prompts_tell_is_noted() -> None:
    rows = [("a", "b", "first"), ("b", "a", "tie"), ("a", "b", "second"), ("b", "a", "first")]
    table: dict[str, Any] = {
        name: [row[k] for row in rows] for k, name in enumerate(("first", "second", "verdict"))
    }
    with noted("prompts-not-told"):
        tb.BradleyTerry().fit(table | {"task": ["1", "2", "3", "4"]})
    with noted("few-prompts"):
        tb.BradleyTerry().fit(table | {"task": ["1", "2", "1", "2"]})
    with refused(tb.errors.OptionError, "no-prompts"):
        tb.BradleyTerry(prompts=True).fit(table)


def test_order_that_goes_with_strength_is_noted() -> None:
    votes = [("a", "b", "first"), ("a", "b", "first"), ("a", "b", "second"), ("b", "c", "first")]
    with noted("order-goes-with-strength"):
        tb.BradleyTerry().fit(
            [*votes, ("b", "c", "second"), ("a", "c", "first"), ("a", "c", "tie")]
        )


@pytest.mark.filterwarnings(NOTES)
def test_unknown_items_and_unfitted_models_are_refused() -> None:
    with refused(tb.errors.NotFittedError, "not-fitted"):
        tb.BradleyTerry().predict("a", "b")
    model = tb.BradleyTerry().fit([("a", "b", "first")])
    with refused(tb.InputError, "no-such-item"):
        model.probability_better("a", "z")
    wrong: tuple[dict[str, Any], ...] = (
        {"level": 1.0},
        {"spread": 0.0},
        {"prompts": "some"},
        {"judges": 1},
    )
    for options in wrong:
        with pytest.raises(tb.errors.OptionError):
            tb.BradleyTerry(**options).fit([("a", "b", "first")])


@pytest.mark.filterwarnings(NOTES)
def test_circles_are_counted_by_judge() -> None:
    table = {
        "first": ["a", "b", "c"] * 2,
        "second": ["b", "c", "a"] * 2,
        "verdict": ["a", "b", "c", "a", "b", "a"],
        "worker": ["ann"] * 3 + ["bob"] * 3,
        "task": ["q"] * 6,
    }
    judges = tb.BradleyTerry().fit(table).judges_
    assert {judge.worker: judge.cycles for judge in judges} == {"ann": 1.0, "bob": 0.0}


@pytest.mark.filterwarnings(NOTES)
def test_the_pairs_to_compare_next_lower_the_doubt_most() -> None:
    arena = drawn(4, n_items=8, n_each=20)
    model = tb.BradleyTerry(prompts=False).fit(arena.pairs)
    found = model.next_pairs(5)
    gains = [each.gain for each in found]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] > 0.0
    doubt = [abs(model.probability_better(a, b) - 0.5) for a, b, _ in found]
    assert np.mean(doubt) < 0.4


@pytest.mark.filterwarnings(NOTES)
def test_intervals_cover_in_simulation() -> None:
    """90 % intervals of differences: far more often than those of votes taken as independent."""
    hits: dict[str, list[float]] = {"plain": [], "default": []}
    for seed in range(12):
        arena = drawn(seed, n_items=8, n_prompts=15, n_each=20, on_prompts=0.8)
        a, b = np.triu_indices(8, 1)
        true = arena.strength[a] - arena.strength[b]
        kinds: tuple[tuple[str, dict[str, Any]], ...] = (("plain", PLAIN), ("default", {}))
        for name, options in kinds:
            model = tb.BradleyTerry(**options).fit(arena.pairs)
            c = model.covariance_
            error = np.sqrt(c[a, a] + c[b, b] - 2.0 * c[a, b])
            found = model.strengths_[a] - model.strengths_[b]
            hits[name].append(float((abs(found - true) <= 1.645 * error).mean()))
    assert np.mean(hits["default"]) >= 0.8
    assert np.mean(hits["plain"]) < np.mean(hits["default"]) - 0.05


@pytest.mark.filterwarnings(NOTES)
def test_columns_and_frames() -> None:
    model = tb.BradleyTerry().fit(drawn(1).pairs)
    columns = model.ranking_.columns()
    assert list(columns)[:4] == ["item", "rank", "rank_low", "rank_high"]
    assert "group" not in columns
    assert model.ranking_.to_frame("pandas").shape == (6, 11)
    assert "item" in repr(model.ranking_)
    assert model.describe()
