"""Scales are read as they are declared, or found; what is on none is refused by its code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import noted, refused

import tiebreak as tb
from tiebreak.data import Scale, coincidences, disagreement, read_scale, share_of_orders

ROWS = [("a", "ann", "1"), ("a", "bob", "3.0"), ("b", "ann", "3"), ("b", "bob", "5")]


def fitted(rows: Any, scale: Any, **given: Any) -> Any:
    return tb.VariationalBayes(scale=scale).fit(rows, **given)


@pytest.mark.parametrize(
    ("declared", "levels"),
    [
        ("1..5", (1, 2, 3, 4, 5)),
        ("0..100/25", (0, 25, 50, 75, 100)),
        ("1..3/0.5", (1.0, 1.5, 2.0, 2.5, 3.0)),
        ("-1..1", (-1, 0, 1)),
        (" 1 .. 3 ", (1, 2, 3)),
        ("3..3", (3,)),
        ("none, mild, severe", ("none", "mild", "severe")),
        (["low", "high"], ("low", "high")),
        (["1", "2", "4"], (1, 2, 4)),
        ([0, 0.5, 2], (0.0, 0.5, 2.0)),
        (np.array([1, 2, 3]), (1, 2, 3)),
        (Scale((1, 2)), (1, 2)),
    ],
)
def test_declared_scales_have_these_levels(declared: Any, levels: tuple[Any, ...]) -> None:
    found = read_scale(declared)
    assert found.levels == levels
    assert [type(each) for each in found.levels] == [type(each) for each in levels]
    assert found.declared


@pytest.mark.parametrize(
    ("declared", "code"),
    [
        ("5..1", "levels-fall"),
        ([3, 2, 1], "levels-fall"),
        ([1, 2, 2], "levels-twice"),
        (["low", "low"], "levels-twice"),
        (["1", "1.0"], "levels-twice"),
        ([1, float("nan")], "levels-not-finite"),
        ([1, float("inf")], "levels-not-finite"),
        (["1", "high"], "levels-not-finite"),
        ("1..nan", "no-scale"),
        ("1..inf", "no-scale"),
        ("stars", "no-scale"),
        (3, "no-scale"),
        (True, "no-scale"),
        ([], "no-scale"),
        ([True, False], "no-scale"),
        ("0..1/0", "no-step"),
        ("0..1/0.3", "no-whole-steps"),
        ("0..1.5", "no-whole-steps"),
        ("0..100", "too-many-levels"),
        ([str(i) for i in range(30)], "too-many-levels"),
    ],
)
def test_what_is_no_scale_is_refused(declared: Any, code: str) -> None:
    with refused(tb.errors.OptionError, code):
        fitted(ROWS, declared)


def test_one_level_has_several_spellings_and_one_that_nobody_gave_exists() -> None:
    for labels in ("1 3.0 3 5", [1, 3, 3, 5], [1.0, 3.0, 3.0, 5.0]):
        label = labels.split() if isinstance(labels, str) else labels
        table = {"task": list("aabb"), "worker": ["ann", "bob"] * 2, "label": label}
        model = fitted(table, "1..5")
        assert list(model.classes_) == [1, 2, 3, 4, 5]
        assert model.responses_.label_of_each().tolist() == [0, 2, 2, 4]
        assert np.isfinite(model.probabilities_).all()
    assert model.scale_.levels == (1, 2, 3, 4, 5)
    assert model.worker_model_ == "scale"


def test_answers_off_the_scale_are_named_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("item,judge,score\na,x,1\na,y,6\nb,x,2\nb,y,7\n")
    columns = {"task": "item", "worker": "judge", "label": "score"}
    with refused(tb.errors.ResponseError, "off-scale") as error:
        tb.read_responses(file, scale="1..5", columns=columns)
    assert error.value.fields["n"] == 2
    assert error.value.fields["names"] == ["6", "7"]
    assert "line 3" in str(error.value.fields["where"])
    assert "line 5" in str(error.value.fields["where"])
    responses = tb.read_responses(file, columns=columns)
    with refused(tb.errors.ResponseError, "off-scale") as error:
        fitted(responses, "1..5")
    assert "y on a" in str(error.value.fields["where"])


def test_answers_between_levels_name_the_scale_that_has_them() -> None:
    with refused(tb.errors.ResponseError, "between-levels") as error:
        fitted([*ROWS, ("b", "cy", "4.5")], "1..5")
    assert error.value.fields["cure"] == "1..5/0.5"
    model = fitted([*ROWS, ("b", "cy", "4.5")], "1..5/0.5")
    assert list(model.classes_)[-2:] == [4.5, 5.0]


def test_with_a_step_answers_count_as_the_nearest_level() -> None:
    rows = [("a", "x", 3), ("a", "y", 29.5), ("b", "x", 70), ("b", "y", 100)]
    model = fitted(rows, "0..100/20")
    assert model.responses_.label_of_each().tolist() == [0, 1, 4, 5]  # halves go up
    with refused(tb.errors.ResponseError, "off-scale"):
        fitted([*rows, ("c", "x", 101)], "0..100/20")


def test_gold_between_levels_is_the_nearest_and_gold_off_the_scale_refused() -> None:
    with noted("gold-between-levels"):
        model = fitted(ROWS, "1..5", gold={"a": 4.33})
    assert model.gold_.to_dict() == {"a": 4}
    assert model.labels_.best()["a"] == 4
    with refused(tb.errors.GoldError, "gold-off-scale"):
        fitted(ROWS, "1..5", gold={"a": "6"})


def test_words_have_the_order_that_is_listed() -> None:
    rows = [("a", "x", "mild"), ("a", "y", "severe"), ("b", "x", "none"), ("b", "y", "mild")]
    model = fitted(rows, "none,mild,severe")
    assert list(model.classes_) == ["none", "mild", "severe"]
    assert model.scores_.min() >= 1.0
    assert model.scores_.max() <= 3.0
    with refused(tb.InputError, "scale-of-words"):
        fitted(rows, "auto")
    with refused(tb.errors.ResponseError, "off-scale"):
        fitted(rows, "none,severe")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"confusion_prior": "uniform"}, "scale-and-prior"),
        ({"worker_model": "subtypes"}, "scale-and-model"),
        ({"worker_model": "coin"}, "scale-and-model"),
    ],
)
def test_what_a_scale_has_no_place_for_is_refused(options: dict[str, Any], code: str) -> None:
    with refused(tb.errors.OptionError, code):
        tb.VariationalBayes(scale="1..5", **options).fit(ROWS)
    with refused(tb.errors.OptionError, "scale-without-levels"):
        tb.VariationalBayes(worker_model="scale").fit(ROWS)
    with refused(tb.errors.OptionError, "scale-of-several"):
        tb.read_responses(ROWS, scale="1..5", multi_label=True)


def test_auto_has_the_same_refusals() -> None:
    with refused(tb.errors.OptionError, "scale-and-prior"):
        tb.Auto(scale="1..5", confusion_prior="uniform").fit(ROWS)
    with refused(tb.errors.OptionError, "no-scale"):
        tb.Auto(scale="x").fit(ROWS)


def test_one_level_is_one_class() -> None:
    rows = [("a", "x", 3), ("a", "y", 3), ("b", "x", 3)]
    with noted("one-class"):
        model = fitted(rows, "3..3")
    assert model.labels_.best() == {"a": 3, "b": 3}
    assert model.scores_.tolist() == [3.0, 3.0]


# Found


def scored(seed: int, **options: Any) -> tb.Responses:
    given = {"scale": 5, "responses_per_task": 4, "random_state": seed} | options
    return tb.simulate.crowd(200, 4, **given).responses


def test_auto_takes_numbers_in_order_and_not_in_any_other() -> None:
    taken = shuffled = 0
    for seed in range(10):
        crowd = scored(seed)
        found = tb.VariationalBayes(scale="auto", max_iter=2, tol=0).fit(crowd)
        if found.scale_ is not None:
            taken += 1
            assert not found.scale_.declared
            assert (found.scale_.share_of_orders or 1.0) <= 0.035
        order = np.random.default_rng(seed).permutation(5)
        mixed = crowd.recoded(crowd.classes, order.astype(np.int32))
        shuffled += (share_of_orders(coincidences(mixed)) or 1.0) <= 0.035
    assert taken >= 9
    assert shuffled <= 2


def test_auto_that_is_not_taken_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    rows = [(str(i // 3), str(i % 3), int(rng.integers(1, 6))) for i in range(300)]
    plain = tb.VariationalBayes().fit(rows)
    with noted("no-order-found"):
        auto = tb.VariationalBayes(scale="auto").fit(rows)
    assert auto.scale_ is None
    assert np.array_equal(auto.probabilities_, plain.probabilities_)
    with noted("too-few-levels"):
        few = tb.VariationalBayes(scale="auto").fit(ROWS)
    assert few.scale_ is None
    many = [(str(i), "x", i) for i in range(40)]
    with refused(tb.InputError, "too-many-numbers") as error:
        tb.VariationalBayes(scale="auto").fit(many)
    assert error.value.fields["cure"] == ("0..40/10", 5)


def test_without_a_scale_a_note_says_that_labels_look_like_one() -> None:
    with noted("looks-like-scale"):
        tb.VariationalBayes().fit(scored(1))
    with noted("looks-like-scale"):
        tb.Auto().fit(scored(1))


def test_ordered_categories_count_as_declared() -> None:
    import pandas as pd
    import polars as pl

    words = ["none", "mild", "severe"]
    rows = {"task": list("aabb"), "worker": list("xyxy"), "label": [*words, "mild"]}
    tables = [
        pd.DataFrame(rows).assign(label=pd.Categorical(rows["label"], words, ordered=True)),
        pl.DataFrame(rows).with_columns(pl.col("label").cast(pl.Enum(words))),
        pa.table(
            rows
            | {"label": pa.DictionaryArray.from_arrays([0, 1, 2, 1], pa.array(words), ordered=True)}
        ),
    ]
    for table in tables:
        model = tb.VariationalBayes(scale="auto").fit(table)
        assert model.scale_ is not None
        assert model.scale_.levels == tuple(words)
        assert model.scale_.declared


@given(st.integers(0, 100), st.integers(3, 9))
def test_the_order_test_knows_no_direction(seed: int, n_levels: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, n_levels, (40, 3))
    triples = [(str(i), str(j), int(rows[i, j])) for i in range(40) for j in range(3)]
    pairs = coincidences(tb.Responses.from_rows(triples))
    share = share_of_orders(pairs)
    assert share is None or 0.0 < share <= 1.0
    if len(pairs) <= 7:
        assert share == share_of_orders(pairs[::-1, ::-1])


def test_disagreement_is_that_of_pairs_counted_one_by_one() -> None:
    rows = [
        ("a", "x", 1),
        ("a", "y", 2),
        ("a", "z", 4),
        ("b", "x", 2),
        ("b", "y", 2),
        ("c", "x", 9),
    ]
    answers = {"a": [1, 2, 4], "b": [2, 2]}
    values = np.array([1.0, 2.0, 4.0, 9.0])
    observed, every = 0.0, []
    for said in answers.values():
        every += said
        observed += sum((i - j) ** 2 for i in said for j in said) / (len(said) - 1)
    expected = sum((i - j) ** 2 for i in every for j in every) / len(every)
    found = disagreement(coincidences(tb.Responses.from_rows(rows)), values[None])[0]
    assert found == pytest.approx(observed / expected)
