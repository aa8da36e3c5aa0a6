"""Any table gives the same responses, and pandas is never imported unless handed in."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables.crowd import COLUMNS, ROWS, all_of, gold_of, rows_of
from tables.said import noted, refused

from tiebreak.data import Responses
from tiebreak.errors import GoldError, InputError, ResponseError
from tiebreak.links import Links
from tiebreak.tables import read_gold, read_labels, read_links, read_responses, read_tasks

EXPECTED = all_of(Responses.from_rows(ROWS))


def _duckdb() -> Any:
    return duckdb.from_arrow(pa.table(COLUMNS))


def _categories() -> pd.DataFrame:
    kinds = pd.CategoricalDtype(["unused", "dog", "cat"])
    return pd.DataFrame(COLUMNS).astype({"label": kinds, "task": "category"})


SOURCES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas with objects": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas with categories": _categories,
    "pandas with an index": lambda: pd.DataFrame(COLUMNS).set_index(["task", "worker"]),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars, lazy": lambda: pl.LazyFrame(COLUMNS),
    "polars with categories": lambda: pl.DataFrame(COLUMNS).cast(pl.Categorical),
    "pyarrow": lambda: pa.table(COLUMNS),
    "pyarrow batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
    "pyarrow reader": lambda: pa.table(COLUMNS).to_reader(max_chunksize=1),
    "pyarrow, large text": lambda: pa.table(COLUMNS).cast(
        pa.schema({name: pa.large_string() for name in COLUMNS})
    ),
    "pyarrow, run-end encoded": lambda: pa.table(
        {name: pa.compute.run_end_encode(pa.array(v)) for name, v in COLUMNS.items()}
    ),
    "duckdb": _duckdb,
    "dict of lists": lambda: COLUMNS,
    "dict of tuples": lambda: {name: tuple(column) for name, column in COLUMNS.items()},
    "dict of numpy": lambda: {name: np.array(column) for name, column in COLUMNS.items()},
    "dict of objects": lambda: {name: np.array(c, dtype=object) for name, c in COLUMNS.items()},
    "dict of arrow": lambda: {name: pa.array(column) for name, column in COLUMNS.items()},
    "dict of series": lambda: {name: pd.Series(column) for name, column in COLUMNS.items()},
    "dict of polars series": lambda: {name: pl.Series(c) for name, c in COLUMNS.items()},
    "rows": lambda: ROWS,
    "rows as lists": lambda: [list(row) for row in ROWS],
    "rows, once": lambda: iter(ROWS),
    "rows by name": lambda: [dict(zip(COLUMNS, row, strict=True)) for row in ROWS],
    "array of rows": lambda: np.array(ROWS),
    "open file": lambda: io.StringIO("task,worker,label\n" + "\n".join(map(",".join, ROWS))),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_table_gives_the_same_responses(kind: str) -> None:
    assert all_of(read_responses(SOURCES[kind]())) == EXPECTED


@pytest.mark.parametrize(
    ("kind", "frame"),
    [
        ("pandas", "pandas"),
        ("polars", "polars"),
        ("polars, lazy", "polars"),
        ("pyarrow", "pyarrow"),
        ("duckdb", "pyarrow"),
        ("rows", "pyarrow"),
    ],
)
def test_the_kind_of_table_is_remembered(kind: str, frame: str) -> None:
    assert read_responses(SOURCES[kind]()).frame == frame


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_labels_and_links_come_back_as_the_kind_of_table_they_were(make: Any) -> None:
    labels = make({"task": ["a", "b"], "label": ["x", "y"]})
    links = make({"left": ["a"], "right": ["b"], "link": ["must"]})
    assert type(read_labels(labels).to_frame()) is type(labels)
    assert type(read_links(links).to_frame()) is type(links)


def test_what_is_read_already_is_returned_as_it_is() -> None:
    responses, gold = Responses.from_rows(ROWS), read_gold({"a": "x"})
    links = Links.from_pairs(must=[("a", "b")])
    labels = read_labels([("a", "x")])
    assert read_responses(responses) is responses
    assert read_gold(gold) is gold
    assert read_links(links) is links
    assert read_labels(labels) is labels


def test_ids_and_labels_come_back_as_they_went_in() -> None:
    frame = pd.DataFrame({"task": [10, 2], "worker": [1.5, 2.5], "label": [True, False]})
    responses = read_responses(frame)
    assert list(responses.tasks) == [10, 2]
    assert list(responses.workers) == [1.5, 2.5]
    assert list(responses.classes) == [False, True]
    assert all(type(task) is int for task in responses.tasks)


def test_tuples_are_refused_as_ids() -> None:
    rows = [((1, "x"), "ann", "p"), ((2, "y"), "ann", "q")]
    frame = pd.DataFrame({"task": [(1, 2), (3, 4)], "worker": ["a", "b"], "label": ["x", "y"]})
    for source in (rows, frame):
        with refused("no-id", column="task", where="row 1"):
            read_responses(source)
    with refused("no-id", column="label", value=(1, 2)):
        read_gold({"a": (1, 2)})


@pytest.mark.parametrize("task", [10**30, 3j, object()])
def test_what_no_table_holds_is_refused_as_an_id(task: Any) -> None:
    with refused("unfit-values", column="task", value=task):
        read_responses([(task, "ann", "x")])


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["x", "y", ""]), ["x", "y"]),
        (pa.array([1.0, 2.0, float("nan")]), [1.0, 2.0]),
        (pa.array([np.float16(1.0), np.float16(2.0), None], pa.float16()), [1.0, 2.0]),
        (pa.array(["x", "y", None], pa.string_view()), ["x", "y"]),
        (pd.Series([1, 2, None], dtype="Int64"), [1, 2]),
        (pd.Series(["x", "y", np.nan], dtype=object), ["x", "y"]),
        (pd.Series(["x", "y", pd.NA], dtype="string"), ["x", "y"]),
        (pd.Series(["x", "y", None], dtype="category"), ["x", "y"]),
        (np.array([1.0, 2.0, np.nan]), [1.0, 2.0]),
        (["x", "y", None], ["x", "y"]),
        ([1, 2, float("nan")], [1, 2]),
        ([1, 2, np.float32("nan")], [1, 2]),
        (["x", "y", pd.NA], ["x", "y"]),
        (["x", "y", pd.NaT], ["x", "y"]),
    ],
)
def test_missing_labels_are_counted_whatever_stands_for_them(
    column: Any, expected: list[Any]
) -> None:
    table = {"task": ["a", "b", "c"], "worker": ["w", "w", "w"], "label": column}
    with noted("empty-labels", n=1):
        responses = read_responses(table)
    assert list(responses.classes) == expected
    assert responses.n_empty == 1
    assert list(responses.tasks) == ["a", "b", "c"]


def test_a_column_of_nothing_is_refused() -> None:
    table = pa.table({"task": ["a"], "worker": ["w"], "label": pa.nulls(1)})
    with refused("no-label", ResponseError):
        read_responses(table)


def test_whole_numbers_that_pandas_made_floats_are_whole_again() -> None:
    frame = pd.DataFrame({"task": [1, 2, 3], "worker": ["w"] * 3, "label": [1, 0, None]})
    with noted("empty-labels"):
        classes = list(read_responses(frame).classes)
    assert classes == [0, 1]
    assert all(type(name) is int for name in classes)


@pytest.mark.parametrize("values", [[1, "a"], ["a", 1], [None, "a", 2.5, "b"], [pd.NA, 1, "a"]])
def test_a_column_of_mixed_types_is_named_with_the_cure(values: list[Any]) -> None:
    n = len(values)
    frame = pd.DataFrame(
        {"task": pd.Series(values, dtype=object), "worker": ["w"] * n, "label": ["x"] * n}
    )
    with pytest.raises(InputError, match=r"Column 'task' mixes types.*\n.*astype\(str\)") as caught:
        read_responses(frame)
    for kind in {type(value).__name__ for value in values} - {"NoneType", "NAType"}:
        assert f"({kind})" in str(caught.value)


def test_columns_that_nobody_needs_may_hold_anything() -> None:
    frame = pd.DataFrame(COLUMNS)
    frame["extra"] = pd.Series([1, "a", [2], {}], dtype=object)
    assert all_of(read_responses(frame)) == EXPECTED


@pytest.mark.parametrize(
    ("source", "code", "fields"),
    [
        ([("a", "w")], "bad-row", {"row": 1, "parts": "task, worker, label"}),
        ([("a", "w", "x"), ("b", "w", "x", 1)], "bad-row", {"row": 2}),
        ([1, 2], "bad-row", {"row": 1}),
        (5, "no-table", {"type": "int"}),
        (b"task,worker,label", "no-table", {"type": "bytes"}),
        ([], "no-rows", {"table": "The table"}),
        (pd.DataFrame(COLUMNS).head(0), "no-rows", {}),
        (
            {"task": ["a"], "worker": ["w", "v"], "label": ["x"]},
            "unequal-columns",
            {"lengths": {"task": 1, "worker": 2, "label": 1}},
        ),
        ({"task": "abc", "worker": ["w"], "label": ["x"]}, "no-column", {"column": "task"}),
        ({"task": [["a"]], "worker": ["w"], "label": ["x"]}, "no-id", {"value": ["a"]}),
        ({"task": ["a"], "worker": ["w"], "label": [{}]}, "no-id", {"column": "label"}),
        (
            {"task": np.zeros((2, 2)), "worker": ["w"], "label": ["x"]},
            "no-column",
            {"column": "task"},
        ),
        (pa.chunked_array([[1, 2]]), "no-frame", {"type": "ChunkedArray"}),
    ],
)
def test_what_is_no_table_is_refused_in_words(source: Any, code: str, fields: Any) -> None:
    with refused(code, **fields):
        read_responses(source)


class TestGold:
    """Gold is also a mapping of task to label."""

    def test_a_mapping_of_task_to_label_is_gold(self) -> None:
        assert read_gold({"a": "x", "b": "y"}).to_dict() == {"a": "x", "b": "y"}

    def test_tasks_may_be_called_task_and_label(self) -> None:
        known = {"task": "x", "label": "y"}
        assert read_gold(known).to_dict() == known

    @pytest.mark.parametrize("kind", [list, tuple, np.array, pa.array, pd.Series])
    def test_a_mapping_of_columns_is_a_table(self, kind: Callable[[Any], Any]) -> None:
        gold = read_gold({"task": kind(["a", "b"]), "label": kind(["x", "y"])})
        assert gold_of(gold) == [("a", "x"), ("b", "y")]

    def test_a_mapping_of_lists_under_a_wrong_name_is_a_table_with_a_wrong_name(self) -> None:
        with refused("column-missing", GoldError, close={"task": "tsk"}):
            read_gold({"tsk": ["a"], "label": ["x"]})

    def test_pairs_are_gold(self) -> None:
        assert read_gold([("a", "x"), ("b", "y")]).to_dict() == {"a": "x", "b": "y"}
        with refused("mixed-types", column="label", value="x", other=1):
            read_gold([("a", "x"), ("b", 1)])


class TestTasks:
    """Tasks exist if a list of them says so."""

    @pytest.mark.parametrize(
        "listed",
        [
            ["t9", "t1"],
            ("t9", "t1"),
            {"t9": None, "t1": None}.keys(),
            np.array(["t9", "t1"]),
            pa.array(["t9", "t1"]),
            pd.Series(["t9", "t1"]),
            pd.Index(["t9", "t1"]),
            pl.Series(["t9", "t1"]),
            read_gold({"t9": "x", "t1": "x"}).tasks,
            pd.DataFrame({"task": ["t9", "t1"]}),
            pl.DataFrame({"task": ["t9", "t1"]}),
            pa.table({"task": ["t9", "t1"]}),
            {"task": ["t9", "t1"]},
            [{"task": "t9"}, {"task": "t1"}],
        ],
        ids=lambda listed: f"{type(listed).__module__}.{type(listed).__name__}",
    )
    @pytest.mark.parametrize("crowd", [ROWS, pd.DataFrame(COLUMNS), Responses.from_rows(ROWS)])
    def test_listed_tasks_are_added_after_the_others(self, listed: Any, crowd: Any) -> None:
        responses = read_responses(crowd, tasks=listed)
        assert list(responses.tasks) == ["t2", "t1", "t9"]

    def test_tasks_come_from_a_file_too(self, tmp_path: Path) -> None:
        path = tmp_path / "tasks.csv"
        path.write_text("task\nt9\n")
        assert list(read_responses(ROWS, tasks=path).tasks) == ["t2", "t1", "t9"]

    def test_listed_tasks_take_the_type_of_those_in_the_table(self, tmp_path: Path) -> None:
        path = tmp_path / "tasks.csv"
        path.write_text("task\n9\n")
        frame = pd.DataFrame({"task": [1], "worker": ["w"], "label": ["x"]})
        assert list(read_responses(frame, tasks=path).tasks) == [1, 9]

    def test_tasks_that_cannot_be_of_that_type_are_refused(self) -> None:
        frame = pd.DataFrame({"task": [1], "worker": ["w"], "label": ["x"]})
        with refused("other-type-of-ids", what="tasks"):
            read_responses(frame, tasks=["t9"])

    def test_a_missing_task_is_refused(self) -> None:
        with refused("value-missing", n=1, what="task"):
            read_tasks(["a", None])

    def test_a_generator_of_tasks_is_read_once(self) -> None:
        def ids() -> Iterator[str]:
            yield from ("a", "b")

        assert read_tasks(ids()).to_pylist() == ["a", "b"]


@pytest.mark.parametrize("crowd", [ROWS, pd.DataFrame(COLUMNS), Responses.from_rows(ROWS)])
def test_classes_may_be_listed(crowd: Any) -> None:
    assert list(read_responses(crowd, classes=["bird"]).classes) == ["bird", "cat", "dog"]


def test_files_need_neither_pandas_nor_polars_nor_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "responses.csv"
    path.write_text("task,worker,label\na,w,x\n")
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "polars", "duckdb"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from tiebreak.tables import read_responses, write_responses
assert "pyarrow" not in sys.modules, "loading the room loads pyarrow"
responses = read_responses({str(path)!r})
for form in ("csv", "tsv", "jsonl", "parquet"):
    write_responses({str(path)!r}, responses, format=form)
    assert read_responses({str(path)!r}, format=form).n_responses == 1
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_a_wide_table_is_found_by_itself() -> None:
    wide = {"task": ["a", "b"], "ann": ["x", "y"], "bob": ["x", "x"]}
    with noted("wide-found", workers=["ann", "bob"], alone=[]):
        found = read_responses(wide)
    with noted("wide-read", n_cells=4, n_workers=2, n_kept=4):
        assert all_of(read_responses(wide, wide=True)) == all_of(found)
    with refused("column-missing", ResponseError, missing=["worker", "label"]):
        read_responses(wide, wide=False)
    named = read_responses(wide, columns={"worker": "ann", "label": "bob"})
    assert list(named.workers) == ["x", "y"]


def test_columns_that_share_no_label_are_left_out_of_a_wide_table() -> None:
    wide = {"task": [1, 2], "text": ["one", "two"], "ann": ["x", "y"], "bob": ["x", None]}
    with noted("wide-found", workers=["ann", "bob"], alone=["text"]):
        assert rows_of(read_responses(wide)) == [(1, "ann", "x"), (1, "bob", "x"), (2, "ann", "y")]
    with noted("wide-read", n_workers=1):
        assert read_responses(wide, wide=True, worker_columns=["ann"]).n_workers == 1


@pytest.mark.parametrize(
    "columns",
    [
        {"task": ["a", "b"], "text": ["one", "two"], "note": ["three", "four"]},  # nobody agrees
        {"task": ["a", "b"], "wroker": ["w", "w"], "lable": ["x", "y"]},
        {"x": ["a", "b"], "ann": ["x", "y"], "bob": ["x", "x"]},  # which is the task?
    ],
)
def test_other_tables_without_workers_are_not_taken_for_wide(columns: Any) -> None:
    with refused("column-missing", ResponseError):
        read_responses(columns)


def test_an_answer_under_a_wrong_name_is_not_taken_for_a_wide_table() -> None:
    with refused("column-missing", ResponseError, missing=["label"]):
        read_responses({"task": ["a"], "worker": ["ann"], "extra": ["x"]})
