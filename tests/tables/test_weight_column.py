"""A column `weight`: how often a response counts, from every source, into every file and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables.said import noted, refused

import tiebreak as tb
from tiebreak.data import Ids, Responses

ROWS = {
    "task": ["b", "a", "a", "b", "c"],
    "worker": ["ann", "bob", "ann", "bob", "ann"],
    "label": ["y", "x", "y", "x", "x"],
    "weight": [2.0, 1.0, 0.5, 4.0, 1.0],
}
SOURCES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "columns": lambda rows: rows,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


def read(source: Any, **options: Any) -> Responses:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.InputNote)
        return tb.read_responses(source, **options)


def by_response(responses: Responses) -> dict[tuple[Any, Any, Any], float]:
    assert responses.weight is not None
    codes = zip(
        responses.task_of_each(), responses.worker_of_each(), responses.label_of_each(), strict=True
    )
    named = (
        (responses.tasks[int(t)], responses.workers[int(w)], responses.classes[int(k)])
        for t, w, k in codes
    )
    return dict(zip(named, responses.weight.tolist(), strict=True))


EXPECTED = {
    ("b", "ann", "y"): 2.0,
    ("b", "bob", "x"): 4.0,
    ("a", "bob", "x"): 1.0,
    ("a", "ann", "y"): 0.5,
    ("c", "ann", "x"): 1.0,
}


@pytest.mark.parametrize("kind", SOURCES)
def test_frames_have_weights(kind: str) -> None:
    with noted("weights-found", column="weight"):
        responses = tb.read_responses(SOURCES[kind](ROWS))
    assert by_response(responses) == EXPECTED


@pytest.mark.parametrize("name", ["r.csv", "r.tsv.gz", "r.jsonl", "r.parquet", "r.tb"])
def test_files_keep_weights(tmp_path: Path, name: str) -> None:
    crowd = read(ROWS, tasks=["a", "b", "c", "silent"])
    crowd.write(tmp_path / name)
    again = read(tmp_path / name)
    assert by_response(again) == EXPECTED
    assert sorted(map(str, again.tasks)) == ["a", "b", "c", "silent"]


def test_a_fit_counts_a_response_as_often_as_its_weight_says() -> None:
    votes = read({**ROWS, "weight": [1, 3, 1, 1, 1]})
    assert tb.MajorityVote().fit(votes).labels_["a"].label == "x"
    votes = read({**ROWS, "weight": [1, 1, 3, 1, 1]})
    assert tb.MajorityVote().fit(votes).labels_["a"].label == "y"


def test_nothing_is_one() -> None:
    assert by_response(read({**ROWS, "weight": [2, None, 0.5, 4, None]})) == EXPECTED


@pytest.mark.parametrize("wrong", ["0", "-1", "x", "nan", "inf"])
def test_what_is_not_above_0_is_refused_with_its_line(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"task,worker,label,weight\na,ann,x,1\na,bob,x,{wrong}\n")
    with refused("bad-weight-in-row", where=f"{path}, line 3", value=wrong):
        read(path)


def test_another_name_is_given(tmp_path: Path) -> None:
    renamed = {**ROWS, "times": ROWS["weight"]}
    del renamed["weight"]
    assert read(renamed).weight is None
    assert by_response(read(renamed, columns={"weight": "times"})) == EXPECTED
    with refused("no-such-column", tb.errors.ResponseError, column="tims", role="weight"):
        read(renamed, columns={"weight": "tims"})


def test_the_last_of_several_has_its_own_weight() -> None:
    rows = {"task": ["a", "a"], "worker": ["w", "w"], "label": ["x", "y"], "weight": [5.0, 2.0]}
    assert by_response(read(rows)) == {("a", "w", "y"): 2.0}


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_rows_without_any_label_have_no_weight() -> None:
    rows = {"task": ["a"], "worker": ["u"], "label": [None], "weight": [2.0]}
    found = tb.read_responses(rows, classes=["x"])
    assert (found.n_tasks, found.n_responses, found.n_empty) == (1, 0, 1)


def test_runs_vote_by_weight() -> None:
    rows = {
        "task": ["a", "a", "a", "b", "b"],
        "worker": ["w"] * 5,
        "label": ["x", "y", "y", "x", "y"],
        "run": [1, 2, 3, 1, 2],
        "weight": [5.0, 2.0, 1.0, 1.0, 1.0],
    }
    voted = read(rows, repeats="vote")
    assert by_response(voted) == {("a", "w", "x"): 5.0}  # b is a tie
    other = {**rows, "weight": [1.0, 2.0, 1.0, 2.0, 1.0]}
    assert by_response(read(other, repeats="vote")) == {
        ("a", "w", "y"): 1.5,
        ("b", "w", "x"): 2.0,
    }


def test_folding_and_ordering_classes_move_weights_along() -> None:
    crowd = read({**ROWS, "label": ["Y", "x", "y", "x", "y"]})
    folded = by_response(crowd.with_folded_labels())
    assert folded[("b", "ann", "y")] == 2.0
    assert folded[("b", "bob", "x")] == 4.0
    turned = crowd.with_class_order(Ids(list(crowd.classes)[::-1]))
    assert by_response(turned) == by_response(crowd)


@given(st.data())
def test_rows_may_come_in_any_order(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 25))
    small = st.integers(0, 3)
    columns = [data.draw(st.lists(small, min_size=n, max_size=n)) for _ in range(3)]
    weight = data.draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=n, max_size=n))
    repeats = data.draw(st.sampled_from(["last", "count", "vote"]))
    rows: dict[str, list[Any]] = dict(
        zip(("task", "worker", "label", "weight"), [*columns, weight], strict=True)
    )
    plain = read({k: v for k, v in rows.items() if k != "weight"}, repeats=repeats)
    ones = read({**rows, "weight": [1.0] * n}, repeats=repeats)
    assert ones.weight is not None
    assert (ones.weight == 1.0).all()
    for name in ("start", "code"):
        assert np.array_equal(getattr(plain, name), getattr(ones, name))
    if repeats == "count":
        shuffled = data.draw(st.permutations(range(n)))
        other = read({k: [v[i] for i in shuffled] for k, v in rows.items()}, repeats=repeats)
        mass = read(rows, repeats=repeats)
        assert _mass(other) == _mass(mass)


def _mass(responses: Responses) -> dict[Any, list[float]]:
    assert responses.weight is not None
    found: dict[Any, list[float]] = {}
    columns = responses.task_of_each(), responses.worker_of_each(), responses.label_of_each()
    for t, w, k, weight in zip(*columns, responses.weight, strict=True):
        key = responses.tasks[int(t)], responses.workers[int(w)], responses.classes[int(k)]
        found.setdefault(key, []).append(float(weight))
    return {key: sorted(values) for key, values in found.items()}


def test_a_weight_per_response_is_needed() -> None:
    with refused("unequal-weights", n_responses=2, n=1):
        Responses.from_columns(["a", "b"], ["w", "w"], ["x", "y"], weight=[1.0])
