"""Ids come back as they went in, and are found whatever table they came from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from refusals import refused

import tiebreak as tb
from tiebreak.data import Ids, ids


@pytest.mark.parametrize(
    ("known", "asked", "expected"),
    [
        (pa.array([7, 8]), pa.array(["8", "x", "7"]), [1, -1, 0]),
        (pa.array(["007", "7"]), pa.array([7]), [1]),
        (pa.array([1.0, 0.5]), pa.array(["0.5", "1.0"]), [1, 0]),
        (pa.array([True, False]), pa.array(["False", "True"]), [1, 0]),
        (pa.array([1, 2], pa.int8()), pa.array([300, 2]), [-1, 1]),
        (pa.array(["a", "b"]), pa.array(["b"], pa.large_string()), [1]),
        (pa.array([7, 8]), ["8", "x"], [1, -1]),
        ((7, 8), pa.array(["8"]), [1]),
        (["a", "b"], ["c"], [-1]),
        (["a", "b"], [None], [-1]),
        (["a", "b"], [None, "b"], [-1, 1]),
    ],
)
def test_codes_are_found_across_types(known: Any, asked: Any, expected: list[int]) -> None:
    assert Ids(known).codes(asked).tolist() == expected


@pytest.mark.parametrize("column", [["b", "a", "b", None], pa.array(["b", "a", "b", ""])])
def test_encoding_keeps_the_order_of_first_appearance(column: Any) -> None:
    codes, found = ids.encode(column)
    assert codes.tolist() == [0, 1, 0, -1]
    assert found == ["b", "a"]


def test_a_column_of_nothing_names_nothing() -> None:
    codes, found = ids.encode(pa.nulls(2))
    assert codes.tolist() == [-1, -1]
    assert len(found) == 0


@pytest.mark.parametrize("values", [["a", 1], [1, True], [("a", 1)], [("a", "b")], [{"a": 1}]])
def test_tuples_and_values_of_several_types_are_refused(values: list[Any]) -> None:
    with refused(tb.InputError, "mixed-ids"):
        Ids(values)
    with refused(tb.InputError, "mixed-ids"):
        tb.Responses.from_rows([(value, "ann", "x") for value in values])
    with refused(tb.InputError, "mixed-ids"):
        tb.Gold.from_dict({"t": "x", "u": "y"} | {f"v{i}": v for i, v in enumerate(values)})


def test_merging_refuses_a_name_of_another_type() -> None:
    with refused(tb.InputError, "other-type-of-id"):
        Ids([1, 2]).merge(Ids(["cat"]))
    assert Ids([1, 2]).merge(Ids(["3", "2"])) == [1, 2, 3]
    assert Ids().merge(Ids([7])) == [7]


def test_taking_gives_back_what_was_given() -> None:
    found = Ids(["a", "x", "b"])
    assert found.take(np.array([2, 0])) == ["b", "a"]
    assert found[1:] == ["x", "b"]
    assert "x" in found
    assert found != Ids(["a", "x"])


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([pa.array(["a"]), pa.array(["b"], pa.large_string())], ["a", "b"]),
        ([pa.array([], pa.null()), pa.array([7], pa.int32())], [7]),
    ],
)
def test_columns_are_put_one_after_the_other(columns: list[Any], expected: list[Any]) -> None:
    assert ids.concatenate([Ids(column) for column in columns]) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [(pa.array(["b", "a", "c"]), ("a", "c")), (pa.array([3, 1]), (1, 3))],
)
def test_the_span_of_ids_is_known_where_they_have_an_order(names: Any, expected: Any) -> None:
    assert ids.span(Ids(names)) == expected
