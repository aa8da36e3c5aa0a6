"""What is written is read back equal, in every format."""

from __future__ import annotations

import datetime
import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables.crowd import HARD_IDS, all_of, gold_of, labels_of, links_of, rows_of, some_labels
from tables.said import noted, refused

from tiebreak.data import Responses
from tiebreak.links import Links
from tiebreak.tables import (
    read_gold,
    read_labels,
    read_links,
    read_responses,
    write_labels,
    write_responses,
    write_table,
)

NAMES = [
    "t.csv",
    "t.tsv",
    "t.jsonl",
    "t.parquet",
    "t.csv.gz",
    "t.tsv.gz",
    "t.jsonl.gz",
    "t.pq",
    "t",
    "t.txt",
]
TYPED = ["t.jsonl", "t.parquet", "t.jsonl.gz"]

ids = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from('\r\n",;\t\ufeff\0'), min_size=1
)
without_spaces_around = ids.filter(lambda text: text == text.strip(" "))


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")  # of odd labels
@pytest.mark.parametrize("name", NAMES)
def test_responses_come_back_equal(tmp_path: Path, name: str) -> None:
    n = len(HARD_IDS)
    rows = [(HARD_IDS[i], HARD_IDS[i * 7 % n], HARD_IDS[i * 5 % n]) for i in range(n)]
    responses = Responses.from_rows(rows)
    write_responses(tmp_path / name, responses)
    assert all_of(read_responses(tmp_path / name)) == all_of(responses)


@pytest.mark.parametrize("name", NAMES)
def test_gold_comes_back_equal(tmp_path: Path, name: str) -> None:
    gold = read_gold(dict(zip(HARD_IDS, reversed(HARD_IDS), strict=True)))
    gold.write(tmp_path / name)
    assert gold_of(read_gold(tmp_path / name)) == gold_of(gold)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weights", [None, [2.5, math.nan, 1 / 3, 1e-300]])
@pytest.mark.parametrize("who", [None, ["ann", None, "a,b", "ann"]])
def test_links_come_back_equal(tmp_path: Path, name: str, weights: Any, who: Any) -> None:
    must = np.array([True, False, True, False])
    weight = None if weights is None else np.array(weights)
    links = Links.from_columns(HARD_IDS[:4], HARD_IDS[4:8], must, weight, who)
    links.write(tmp_path / name)
    assert links_of(read_links(tmp_path / name)) == links_of(links)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("probabilities", [False, True])
def test_labels_come_back_equal(tmp_path: Path, name: str, probabilities: bool) -> None:
    labels = some_labels(HARD_IDS, HARD_IDS[:6])
    write_labels(tmp_path / name, labels, probabilities=probabilities)
    back = read_labels(tmp_path / name)
    assert back.best() == labels.best()
    assert labels_of(back)[2] == labels_of(labels)[2]
    if probabilities:
        assert labels_of(back) == labels_of(labels)
    else:
        assert back.probabilities is None


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize(
    ("tasks", "classes"),
    [([3, 1, 2], [0, 1]), ([1.5, 2.0, 0.1], [0.5, 1.0]), (["a", "b", "c"], [False, True])],
)
def test_typed_files_give_typed_labels_back(
    tmp_path: Path, name: str, tasks: list[Any], classes: list[Any]
) -> None:
    labels = some_labels(tasks, classes)
    write_labels(tmp_path / name, labels, probabilities=True)
    back = read_labels(tmp_path / name)
    assert labels_of(back) == labels_of(labels)
    assert {type(task) for task in back.tasks} == {type(tasks[0])}


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")  # of odd labels
@given(
    tasks=st.lists(without_spaces_around, min_size=1, unique=True),
    worker=without_spaces_around,
    label=without_spaces_around,
)
@example(tasks=["\r"], worker="\n", label='"')
@example(tasks=["\ufeff", "\ufefftask"], worker="\0", label=",")
@example(tasks=["a\r"], worker="\rb", label="\r\n")
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl"])
def test_any_text_survives_text_files(
    tmp_path_factory: pytest.TempPathFactory, name: str, tasks: list[str], worker: str, label: str
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    responses = Responses.from_rows([(task, worker, label) for task in tasks])
    write_responses(path, responses)
    assert all_of(read_responses(path)) == all_of(responses)


@given(st.lists(st.floats(0.0, 1.0), min_size=1))
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_probabilities_survive_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, name: str, numbers: list[float]
) -> None:
    path = tmp_path_factory.getbasetemp() / f"p-{name}"
    tasks = [f"t{i}" for i in range(len(numbers))]
    write_table(path, {"task": tasks, "label": tasks, "probability": np.array(numbers)})
    back = read_labels(path).probability
    assert back is not None
    assert back.tobytes() == np.array(numbers).tobytes()


class TestSilence:
    """Tasks without responses and workers without labels exist in the file too."""

    def _crowd(self) -> Responses:
        rows = [
            ("t1", "ann", ""),
            ("t2", "bob", "x"),
            ("t3", "cid", None),
            ("t2", "ann", "y"),
            ("t4", "bob", "x"),
            ("t1", "dan", None),
        ]
        with noted("empty-labels", n=3):
            return read_responses(rows, tasks=["t5"])

    def test_tasks_and_workers_come_back_in_files(self, tmp_path: Path) -> None:
        crowd = self._crowd()
        write_responses(tmp_path / "r.csv", crowd)
        with noted("empty-labels"):
            back = read_responses(tmp_path / "r.csv")
        assert rows_of(back) == rows_of(crowd)
        assert list(back.tasks) == list(crowd.tasks) == ["t1", "t2", "t3", "t4", "t5"]
        assert list(back.workers) == list(crowd.workers) == ["ann", "bob", "cid", "dan"]


class TestValues:
    """Values that are not text are written as Python prints them, into CSV."""

    @pytest.mark.parametrize(
        ("column", "expected"),
        [
            ([1, 2], ["1", "2"]),
            ([1.0, 2.5], ["1.0", "2.5"]),
            (pd.Series([1.0, 2.5]), ["1.0", "2.5"]),
            ([True, False], ["True", "False"]),
            (pd.Series([True, False]), ["True", "False"]),
            ([b"a", b"\xff"], ["a", "\\xff"]),
            ([datetime.date(2020, 1, 2), datetime.date(2020, 1, 3)], ["2020-01-02", "2020-01-03"]),
            (np.array([0.5, 2.0]), ["0.5", "2.0"]),
        ],
        ids=repr,
    )
    def test_ids_of_other_types_become_text(
        self, tmp_path: Path, column: Any, expected: list[str]
    ) -> None:
        crowd = Responses.from_columns(list(column), ["w", "w"], ["x", "y"])
        write_responses(tmp_path / "r.csv", crowd)
        assert list(read_responses(tmp_path / "r.csv").tasks) == expected

    @pytest.mark.parametrize("name", ["t.jsonl", "t.parquet"])
    @pytest.mark.parametrize(
        ("column", "expected"),
        [
            ([(1, "a"), (2, "b")], ["(1, 'a')", "(2, 'b')"]),
            ([(1, 2), (3, 4)], ["(1, 2)", "(3, 4)"]),
            ([10**30, 10**31], [str(10**30), str(10**31)]),
            ([1, "a"], ["1", "a"]),
        ],
    )
    def test_typed_files_keep_what_they_can_and_write_the_rest_as_text(
        self, tmp_path: Path, name: str, column: list[Any], expected: list[Any]
    ) -> None:
        write_table(tmp_path / name, {"task": column, "label": ["x", "y"]})
        if name == "t.jsonl":
            lines = (tmp_path / name).read_text().splitlines()
            assert [json.loads(line)["task"] for line in lines] == expected
        else:
            assert list(read_gold(tmp_path / name).tasks) == list(map(str, expected))

    def test_a_column_alone_keeps_its_empty_fields(self, tmp_path: Path) -> None:
        write_table(tmp_path / "t.csv", {"x": ["a", None, "b"]})
        assert (tmp_path / "t.csv").read_text() == 'x\na\n""\nb\n'

    @pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
    def test_half_a_character_cannot_be_written(self, tmp_path: Path, name: str) -> None:
        with refused("half-character"):
            write_table(tmp_path / name, {"x": ["\ud800"]})
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("columns", [{}, {"a": [1], "b": [1, 2]}])
    def test_a_table_needs_columns_of_one_length(self, columns: dict[str, list[int]]) -> None:
        with refused("unequal-columns"):
            write_table("-", columns)


class TestBytes:
    """What stands in the file, to the byte."""

    def test_only_fields_that_need_quotes_get_them(self, tmp_path: Path) -> None:
        columns = {
            "a": ["x", 'q"', "c,d", " b ", "t\tb", "r\r", None],
            "n,m": [1, 2, 3, 4, 5, 6, 7],
        }
        write_table(tmp_path / "t.csv", columns)
        text = 'a,"n,m"\nx,1\n"q""",2\n"c,d",3\n b ,4\nt\tb,5\n"r\r",6\n,7\n'
        assert (tmp_path / "t.csv").read_bytes() == text.encode()
        write_table(tmp_path / "t.tsv", columns)
        text = 'a\tn,m\nx\t1\n"q"""\t2\nc,d\t3\n b \t4\n"t\tb"\t5\n"r\r"\t6\n\t7\n'
        assert (tmp_path / "t.tsv").read_bytes() == text.encode()

    def test_json_lines_are_json(self, tmp_path: Path) -> None:
        columns = {"a": ["é", None], "p": np.array([0.1, np.nan]), "k": [math.inf, 2.5]}
        write_table(tmp_path / "t.jsonl", columns)
        text = '{"a": "é", "p": 0.1, "k": "inf"}\n{"a": null, "p": null, "k": 2.5}\n'
        assert (tmp_path / "t.jsonl").read_text(encoding="utf-8") == text

    def test_packed_files_are_the_same_bytes_each_time(self, tmp_path: Path) -> None:
        for name in ("one.csv.gz", "two.csv.gz"):
            write_table(tmp_path / name, {"a": ["x"]})
        one, two = ((tmp_path / name).read_bytes() for name in ("one.csv.gz", "two.csv.gz"))
        assert one == two
        assert one[4:8] == bytes(4)  # no time of writing
        assert gzip.decompress(one) == b"a\nx\n"

    def test_more_rows_than_one_batch(self, tmp_path: Path) -> None:
        n = 100_000
        for name in ("t.csv", "t.jsonl"):
            write_table(
                tmp_path / name,
                {"task": np.arange(n), "label": ["x"] * n},
            )
            assert list(read_gold(tmp_path / name).tasks) == (
                list(range(n)) if name == "t.jsonl" else [str(i) for i in range(n)]
            )
