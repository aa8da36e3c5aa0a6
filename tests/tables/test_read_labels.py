"""Labels read back: task, label, probability, and one column per class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from tables.crowd import labels_of
from tables.said import refused

from tiebreak.tables import read_labels


def _file(folder: Path, text: str) -> Path:
    path = folder / "labels.csv"
    path.write_text(text)
    return path


def test_labels_alone_are_enough() -> None:
    labels = read_labels([("a", "y"), ("b", "x")])
    assert labels_of(labels) == ({"a": "y", "b": "x"}, ["x", "y"], None, None)


def test_a_mapping_of_task_to_label_is_enough() -> None:
    assert read_labels({"a": "y", "b": "x"}).best() == {"a": "y", "b": "x"}


def test_class_columns_give_all_classes_in_order(tmp_path: Path) -> None:
    text = "task,label,probability,Probability_z,probability_x\na,z,0.75,0.75,0.25\n"
    labels = read_labels(_file(tmp_path, text))
    assert labels_of(labels) == ({"a": "z"}, ["x", "z"], [0.75], [[0.25, 0.75]])


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, dict])
@pytest.mark.parametrize(
    ("label", "other"), [("x", "y"), (1, 2), (1.5, 2.0), (False, True)], ids=str
)
def test_classes_take_the_type_of_the_labels(make: Any, label: Any, other: Any) -> None:
    columns = {
        "task": ["a"],
        "label": [label],
        f"probability_{label}": [0.9],
        f"probability_{other}": [0.1],
    }
    if make is dict and not isinstance(label, str):
        columns["label"] = pa.array([label])
    labels = read_labels(make(columns))
    assert list(labels.classes) == [label, other]
    assert labels.best() == {"a": label}


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("task,label\na,x\na,y\n", "two-labels", "line 3"),
        ("task,label\na,x\nb,\n", "value-missing", "line 3"),
        ("task,label\na,x\n,y\n", "value-missing", "line 3"),
        ("task,label,probability\na,x,1.5\n", "no-probability", "line 2"),
        ("task,label,probability\na,x,\n", "no-probability", "line 2"),
        ("task,label,probability\na,x,sure\n", "no-probability", "line 2"),
        ("task,label,probability_y\na,x,0.5\n", "no-column-of-class", "labels.csv"),
        ("task,label,probability_x\na,x,-1\n", "no-probability", "line 2"),
    ],
)
def test_labels_that_make_no_sense_are_refused(
    tmp_path: Path, text: str, code: str, place: str
) -> None:
    with refused(code, place=place):
        read_labels(_file(tmp_path, text))
