"""No silent surprise, in Python: frames, matrices, floats, and inputs that hold nothing."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from tables.said import noted, refused

import tiebreak as tb

ROWS = [("a", "ann", "x"), ("a", "bob", "x"), ("b", "ann", "y")]


def test_empty_links_and_gold_mean_none() -> None:
    plain = tb.VariationalBayes().fit(ROWS)
    model = tb.VariationalBayes().fit(ROWS, links=[], gold={})
    assert model.probabilities_.tobytes() == plain.probabilities_.tobytes()
    assert len(tb.read_links([])) == 0
    assert len(tb.read_gold({})) == 0


def test_a_series_is_read_as_task_to_label() -> None:
    known = pd.Series({"a": "x", "b": "y"}, name="truth")
    assert tb.read_gold(known).to_dict() == {"a": "x", "b": "y"}
    assert tb.read_labels(known).best() == {"a": "x", "b": "y"}


def test_whole_floats_become_whole_numbers() -> None:
    frame = pd.DataFrame({"task": [1.0, 2.0], "worker": ["a", "a"], "label": [1, 0]})
    read = tb.read_responses(frame)
    assert list(read.tasks) == [1, 2]
    assert list(read.classes) == [0, 1]
    halves = tb.read_responses({"task": [1, 2], "worker": ["a", "a"], "label": np.array([0.5, 1])})
    assert list(halves.classes) == [0.5, 1.0]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_ordered_categories_keep_their_order_and_the_unused(kind: str) -> None:
    order = ["low", "mid", "high"]
    columns = {"task": ["a", "b"], "worker": ["w", "w"], "label": ["high", "low"]}
    if kind == "pandas":
        frame = pd.DataFrame(columns)
        frame["label"] = pd.Categorical(frame["label"], categories=order, ordered=True)
    else:
        frame = pl.DataFrame(columns, schema_overrides={"label": pl.Enum(order)})
    read = tb.read_responses(frame)
    assert list(read.classes) == order
    assert read.label_of_each().tolist() == [2, 0]
    model = tb.MajorityVote().fit(frame)
    assert model.labels_.best() == {"a": "high", "b": "low"}
    with noted("classes-of-gold"):
        wider = tb.VariationalBayes().fit(frame, gold={"a": "top"})
    assert list(wider.classes_) == [*order, "top"]


def test_ordered_categories_of_a_parquet_file_are_kept_too(tmp_path: Path) -> None:
    order = ["low", "mid", "high"]
    frame = pd.DataFrame({"task": ["a", "b"], "worker": ["w", "w"]})
    frame["label"] = pd.Categorical(["high", "low"], categories=order, ordered=True)
    frame.to_parquet(tmp_path / "r.parquet")
    assert list(tb.read_responses(tmp_path / "r.parquet").classes) == order
    frame["label"] = frame["label"].astype(str)
    frame.to_parquet(tmp_path / "r.parquet")
    assert list(tb.read_responses(tmp_path / "r.parquet").classes) == ["high", "low"]


@pytest.mark.parametrize("in_lists", [False, True])
def test_the_names_of_a_class_label_are_kept_in_order(tmp_path: Path, in_lists: bool) -> None:
    names = ["poor", "fair", "good"]
    kind = {"_type": "ClassLabel", "names": names}
    value = {"_type": "Value", "dtype": "string"}
    if in_lists:
        columns = {"id": ["a"], "raters": [["v", "w"]], "ratings": [[2, 0]]}
        features = {"id": value, "raters": {"feature": value}, "ratings": {"feature": kind}}
    else:
        columns = {"id": ["a", "a"], "rater": ["v", "w"], "rating": [2, 0]}
        features = {"id": value, "rater": value, "rating": kind}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    parquet.write_table(pa.table(columns).replace_schema_metadata(metadata), tmp_path / "r.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.InputNote)
        found = tb.read_responses(tmp_path / "r.parquet")
    assert list(found.classes) == names
    assert found.label_of_each().tolist() == [2, 0]
    found.write(tmp_path / "r.tb")
    packed = tb.read_responses(tmp_path / "r.tb")
    assert list(packed.classes) == names
    assert packed.is_class_ordered


def test_a_matrix_of_labels_is_not_taken_for_triples_without_a_word() -> None:
    random = np.random.default_rng(0)
    with refused("bad-row"):
        tb.read_responses(random.integers(0, 3, (20, 4)))
    with noted("matrix-as-rows"):
        tb.read_responses(np.array([[i // 3, i % 3, i % 2] for i in range(9)]))
