"""Columns are found by their name, by another common name, or as the caller says."""

from __future__ import annotations

import warnings
from pathlib import Path

import pandas as pd
import pytest
from tables.crowd import BY_TASK, ROWS, rows_of
from tables.said import noted, refused

from tiebreak.errors import (
    GoldError,
    InputNote,
    LinkError,
    OptionError,
    ResponseError,
)
from tiebreak.tables import read_gold, read_labels, read_links, read_responses, read_tasks


def _crowd(*names: str) -> dict[str, list[str]]:
    """Return the crowd with other column names, and columns of junk after the third."""
    columns = [list(column) for column in zip(*ROWS, strict=True)]
    return {name: columns[i] if i < 3 else ["junk"] * 4 for i, name in enumerate(names)}


@pytest.mark.parametrize("names", [("Task", "WORKER", "label "), (" task", "Worker", "LABEL")])
def test_case_and_blanks_do_not_matter_and_are_not_worth_a_word(names: tuple[str, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows_of(read_responses(_crowd(*names))) == BY_TASK


@pytest.mark.parametrize(
    "names",
    [
        ("item", "annotator", "answer"),
        ("question", "rater", "response"),
        ("example", "judge", "vote"),
        ("task_id", "worker_id", "annotation"),
        ("TaskId", "WorkerId", "class"),
        ("Image ID", "labeller", "value"),
        ("sentence", "labeler", "rating"),
        ("datum", "user", "choice"),
        ("object", "model", "label"),
        ("unit", "person", "label"),
        ("instance", "coder", "label"),
        ("id", "who", "label"),
    ],
)
def test_other_common_names_are_accepted_and_said(names: tuple[str, str, str]) -> None:
    with pytest.warns(InputNote) as said:
        assert rows_of(read_responses(_crowd(*names))) == BY_TASK
    assert len(said) == 1
    for role, name in zip(("task", "worker", "label"), names, strict=True):
        assert (f"{name!r} as {role}" in str(said[0].message)) == (name != role)


def test_the_own_name_wins_over_other_names() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_responses(_crowd("task", "worker", "label", "item", "rater", "answer", "id"))
    assert rows_of(found) == BY_TASK


def test_an_id_is_the_task_only_where_nothing_else_is() -> None:
    with noted("columns-read-as", pairs=[("item", "task")]):
        assert rows_of(read_responses(_crowd("item", "worker", "label", "id"))) == BY_TASK


@pytest.mark.parametrize(
    ("names", "role", "both"),
    [
        (("item", "worker", "label", "question"), "task", ("item", "question")),
        (("task", "rater", "label", "model"), "worker", ("rater", "model")),
        (("task", "worker", "answer", "rating"), "label", ("answer", "rating")),
        (("Task", "worker", "label", "TASK"), "task", ("Task", "TASK")),
    ],
)
def test_two_candidates_are_named_with_the_way_to_choose(
    names: tuple[str, ...], role: str, both: tuple[str, str]
) -> None:
    with pytest.raises(ResponseError) as caught:
        read_responses(_crowd(*names))
    message = str(caught.value)
    assert f"2 columns that may be the {role}: {both[0]!r}, {both[1]!r}" in message
    assert f"columns={{{role!r}: {both[0]!r}}}" in message


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("task,task,worker,label\na,b,w,x\n")
    with refused("columns-alike", ResponseError, column="task", n=2):
        read_responses(path)
    frame = pd.DataFrame([["a", "w", "x", "y"]], columns=["task", "worker", "label", "label"])
    with refused("columns-alike", ResponseError, column="label", n=2):
        read_responses(frame)


class TestOverride:
    """The caller may name columns."""

    def test_named_columns_win_and_are_not_worth_a_word(self) -> None:
        chosen = {"task": "my col", "worker": "model", "label": "Unnamed: 3"}
        crowd = _crowd("my col", "model", "Unnamed: 3", "task", "rater", "label")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert rows_of(read_responses(crowd, columns=chosen)) == BY_TASK

    def test_some_may_be_named_and_others_found(self) -> None:
        with noted("columns-read-as", pairs=[("rater", "worker")]):
            found = read_responses(_crowd("x", "rater", "label"), columns={"task": "x"})
        assert rows_of(found) == BY_TASK

    def test_names_need_not_be_text(self) -> None:
        frame = pd.DataFrame(ROWS)
        chosen = {"task": 0, "worker": 1, "label": 2}
        assert rows_of(read_responses(frame, columns=chosen)) == BY_TASK

    def test_the_case_of_named_columns_decides_between_two(self) -> None:
        found = read_responses(_crowd("Item", "worker", "label", "ITEM"), columns={"task": "Item"})
        assert rows_of(found) == BY_TASK

    def test_a_wrong_name_names_those_that_exist(self) -> None:
        with pytest.raises(ResponseError) as caught:
            read_responses(_crowd("my item", "worker", "label"), columns={"task": "my itm"})
        message = "has no column 'my itm' for task. Its columns are 'my item', 'worker', 'label'."
        assert message in str(caught.value)
        assert "Did you mean 'my item'?" in str(caught.value)

    def test_a_wrong_role_is_refused(self) -> None:
        with refused("wrong-value", OptionError, name="columns: the key", value="'item'"):
            read_responses(_crowd("task", "worker", "label"), columns={"item": "task"})


class TestMissing:
    """A missing column is named, with the columns that exist and a guess."""

    def test_a_misspelt_column_is_guessed(self) -> None:
        with pytest.raises(ResponseError) as caught:
            read_responses(_crowd("task", "wroker", "label"))
        message = str(caught.value)
        assert "no column for worker (responses need task, worker, label)" in message
        assert "Its columns are 'task', 'wroker', 'label'." in message
        assert "Did you mean 'wroker' for worker?" in message
        assert "columns={'worker': 'wroker'}" in message

    @pytest.mark.parametrize("ending", [".csv", ".tsv"])
    def test_a_missing_header_is_recognised(self, tmp_path: Path, ending: str) -> None:
        path = tmp_path / f"r{ending}"
        path.write_text("t1,w1,cat\nt2,w1,dog\n".replace(",", "\t" if ending == ".tsv" else ","))
        with pytest.raises(ResponseError) as caught:
            read_responses(path)
        message = str(caught.value)
        assert "the header is missing: the first line is 't1,w1,cat'" in message
        assert "Add task,worker,label as the first line" in message
        assert "columns={'task': 't1', 'worker': 'w1', 'label': 'cat'}" in message

    def test_a_frame_has_no_header_to_miss(self) -> None:
        with refused("column-missing", ResponseError, missing=["task", "worker", "label"]):
            read_responses(pd.DataFrame(ROWS))

    def test_too_few_columns_are_not_a_missing_header(self, tmp_path: Path) -> None:
        path = tmp_path / "r.csv"
        path.write_text("t1:w1:cat\n")
        with refused("column-missing", ResponseError, columns=("t1:w1:cat",)):
            read_responses(path)

    def test_each_kind_of_table_has_its_own_error(self) -> None:
        with refused("column-missing", GoldError, what="gold"):
            read_gold({"x": ["a"], "label": ["b"]})
        with refused("column-missing", LinkError, what="links"):
            read_links({"x": ["a"], "right": ["b"], "link": ["must"]})
        with refused("column-missing", what="labels"):
            read_labels({"x": ["a"], "label": ["b"]})
        with refused("column-missing", what="tasks"):
            read_tasks({"x": ["a"]})


@pytest.mark.parametrize("name", ["truth", "gold", "ground_truth", "Gold Label", "target"])
def test_gold_has_names_of_its_own(name: str) -> None:
    with noted("columns-read-as", pairs=[(name, "label")]):
        assert read_gold({"task": ["a"], name: ["x"]}).to_dict() == {"a": "x"}
    with refused("column-missing", ResponseError, missing=["label"]):
        read_responses({"task": ["a"], "worker": ["w"], name: ["x"]})


@pytest.mark.parametrize(
    ("left", "right", "link"),
    [
        ("a", "b", "kind"),
        ("task_a", "task_b", "type"),
        ("task1", "task2", "relation"),
        ("first", "second", "constraint"),
        ("Item 1", "Item 2", "answer"),
    ],
)
def test_links_have_names_of_their_own(left: str, right: str, link: str) -> None:
    with noted("columns-read-as", pairs=[(left, "left"), (right, "right"), (link, "link")]):
        links = read_links({left: ["p"], right: ["q"], link: ["must"]})
    assert links.pairs() == [("p", "q", "must")]


@pytest.mark.parametrize("name", ["source", "by"])
def test_who_may_be_called_otherwise(name: str) -> None:
    table = {"left": ["p"], "right": ["q"], "link": ["must"], name: ["ann"]}
    with noted("columns-read-as", pairs=[(name, "who")]):
        links = read_links(table)
    assert links.sources is not None
    assert list(links.sources) == ["ann"]


def test_confidence_is_no_weight() -> None:
    links = read_links({"left": ["p"], "right": ["q"], "link": ["must"], "confidence": [0.5]})
    assert links.weight is None
