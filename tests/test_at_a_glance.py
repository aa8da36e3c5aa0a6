"""What came out, at a glance: labels, models and links print themselves."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tiebreak as tb

ROWS = [(f"t{i}", w, "<b>" if i % 2 else "y") for i in range(12) for w in ("ann", "bob")]


@pytest.fixture(scope="module")
def model() -> tb.VariationalBayes:
    return tb.VariationalBayes().fit(ROWS, links=[("t1", "t3", "must")])


def test_labels_print_their_first_rows(model: tb.VariationalBayes) -> None:
    lines = repr(model.labels_).splitlines()
    assert lines[0] == "Labels(12 tasks, 2 classes)"
    assert lines[1].split() == ["task", "label", "probability"]
    assert lines[2].split()[:2] == ["t0", "y"]
    assert len(lines) == 13
    assert lines[-1] == "… and 2 more"


def test_labels_without_probabilities_print_two_columns() -> None:
    labels = tb.read_labels([("a", "x"), ("b", "y")])
    assert repr(labels).splitlines()[1:] == ["task  label", "a     x", "b     y"]
    assert labels["a"] == ("a", "x", None)


def test_a_task_is_looked_up_by_its_id(model: tb.VariationalBayes) -> None:
    found = model.labels_["t1"]
    assert found.label == "<b>"
    assert found.probability == model.labels_.probability[1]  # type: ignore[index]
    with pytest.raises(KeyError, match="no task 't99' among 12 labels"):
        model.labels_["t99"]


def test_labels_are_iterated_by_row(model: tb.VariationalBayes) -> None:
    rows = list(model.labels_)
    assert [row.task for row in rows] == [f"t{i}" for i in range(12)]
    assert {row.task: row.label for row in rows} == model.labels_.best()


@pytest.mark.parametrize(
    ("frame", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)]
)
def test_frames_of_every_kind(model: tb.VariationalBayes, frame: str, kind: type) -> None:
    assert isinstance(model.labels_.to_frame(frame), kind)


def test_labels_are_a_series_by_task(model: tb.VariationalBayes) -> None:
    series = model.labels_.to_series()
    assert (series.name, series.index.name) == ("label", "task")
    assert series.to_dict() == model.labels_.best()


def test_an_unknown_kind_of_frame_is_refused(model: tb.VariationalBayes) -> None:
    with pytest.raises(
        tb.errors.OptionError, match="frame must be one of 'pandas', 'polars', 'pyarrow'"
    ):
        model.labels_.to_frame("excel")


def test_notebooks_show_small_escaped_tables(model: tb.VariationalBayes) -> None:
    links = tb.Links.from_pairs(must=[("<i>", "b")])
    assert links._repr_html_().count("<tr>") == 2
    for shown in (model._repr_html_(), model.labels_._repr_html_(), links._repr_html_()):
        assert len(shown) < 2_000
        assert "<b>" not in shown
        assert "<i>" not in shown
    assert "converged after" in model._repr_html_()
    assert "&lt;b&gt;" in model.labels_._repr_html_()
    assert "not fitted" in tb.VariationalBayes()._repr_html_()
