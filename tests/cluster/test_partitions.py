"""Shards: which are found, how ids join them, and tasks that are spread over several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cluster.shards import assert_alike, assert_same_fit, even, outcome
from hypothesis import given
from hypothesis import strategies as st
from refusals import noted, refused

import tiebreak as tb
from tiebreak.data import Ids, ids
from tiebreak.errors import FileError, InputError

pytestmark = [  # told in tests of other things; tests of these notes ask for them by name
    pytest.mark.filterwarnings("ignore:The classes of .* differ:tiebreak.errors.InputNote"),
    pytest.mark.filterwarnings("ignore:.*column 'weight' says:tiebreak.errors.InputNote"),
]

ROWS = [("a", "ann", "x"), ("a", "bob", "y"), ("b", "ann", "x"), ("c", "cy", "y"), ("d", "cy", "x")]


def write(folder: Path, *shards: list[tuple[Any, Any, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    for i, rows in enumerate(shards):
        tb.Responses.from_rows(rows).write(folder / f"s{i}.parquet")
    return folder


def test_folders_globs_and_lists_name_shards_in_order(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", ROWS[:2], ROWS[2:3], ROWS[3:])
    (folder / "_SUCCESS").write_text("")
    (folder / "notes.txt").write_text("no table")

    def tasks_of(source: Any) -> list[Any]:
        labels = tb.shards.fit(source, tmp_path / "out").labels_
        return [each["task"] for each in labels]

    assert tasks_of(folder) == tasks_of(f"{folder}/s*.parquet") == ["a", "b", "c", "d"]
    assert tasks_of([folder / "s2.parquet", folder / "s0.parquet"]) == ["c", "d", "a"]
    with refused(InputError, "file-named-twice"):
        tb.shards.fit([folder, folder / "s1.parquet"], tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with refused(FileError, "no-tables"):
        tb.shards.fit(tmp_path / "empty", tmp_path / "out")


def test_workers_stand_in_order_of_first_appearance_and_classes_are_sorted(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", [("a", "zed", "y")], [("b", "ann", "x"), ("b", "zed", "y")])
    with noted("shard-classes-differ"):
        made = tb.shards.fit(folder, tmp_path / "out")
    assert list(made.workers_) == ["zed", "ann"]
    assert list(made.classes_) == ["x", "y"]


def test_empty_shards_are_left_out_and_said(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", ROWS[:3], ROWS[3:])
    (folder / "s8.csv").write_text("task,worker,label\n")
    (folder / "s9.csv").write_text("")
    (folder / "s10.jsonl").write_text('{"task": "q", "worker": "ann", "label": "x"}')  # one is one
    with noted("shards-empty"):
        made = tb.shards.fit(folder, tmp_path / "out")
    assert made.n_tasks == 5


def test_ids_of_different_types_are_refused(tmp_path: Path) -> None:
    odd: dict[str, list[Any]] = {"task ids": [(1, "ann", "x")], "worker ids": [("a", 7, "x")]}
    for what, rows in odd.items():
        folder = write(tmp_path / what, rows, [("b", "ann", "x")])
        with refused(InputError, "shards-of-other-types") as error:
            tb.shards.fit(folder, tmp_path / "out")
        fields = error.value.fields
        assert (fields["what"], fields["kind"], fields["other_kind"]) == (what, "int", "str")


def test_a_class_that_gold_alone_names_is_added_and_said(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", ROWS[:3], ROWS[3:])
    with noted("classes-of-gold"):
        made = tb.shards.fit(folder, tmp_path / "out", gold={"a": "z"})
    assert list(made.classes_) == ["x", "y", "z"]


def test_gold_in_text_names_tasks_that_are_numbers(tmp_path: Path) -> None:
    rows = [(i, f"w{i % 3}", "xy"[i % 2]) for i in range(12)]
    folder = write(tmp_path / "in", rows[:6], rows[6:])
    made = tb.shards.fit(folder, tmp_path / "out", gold={"3": "x", "7": "y"})
    found = {each["task"]: (each["label"], each["probability"]) for each in made.labels_}
    assert found[3] == ("x", 1.0)
    assert found[7] == ("y", 1.0)


def test_unknown_tasks_of_links_and_gold_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", ROWS[:3], ROWS[3:])
    with refused(tb.errors.GoldError, "unknown-gold"):
        tb.shards.fit(folder, tmp_path / "out", gold={"a": "x", "nobody": "x"})
    with refused(tb.errors.LinkError, "links-unknown-tasks"):
        tb.shards.fit(folder, tmp_path / "out", links=[("a", "nobody", "cannot")], force=True)


# Tasks in several shards


def test_tasks_whose_ids_interleave_are_not_spread(tmp_path: Path) -> None:
    mixed = write(tmp_path / "mixed", [ROWS[0], ROWS[3]], [ROWS[2], ROWS[4]])
    made = tb.shards.fit(mixed, tmp_path / "out")  # without a note: warnings are errors
    assert [each["task"] for each in made.labels_] == ["a", "c", "b", "d"]


@given(st.lists(st.text(max_size=12), unique=True, max_size=60))
def test_hashes_depend_on_the_text_alone(names: list[str]) -> None:
    found = ids.hash_ids(Ids(pa.array(names, pa.string())))
    alone = [int(ids.hash_ids(Ids(pa.array([name], pa.string())))[0]) for name in names]
    assert found.tolist() == alone
    assert ids.hash_ids(Ids(names)).tolist() == alone
    assert len(set(alone)) == len(names)


def test_hashes_of_numbers_and_of_many_texts_differ() -> None:
    numbers = ids.hash_ids(Ids(pa.array(np.arange(-50_000, 50_000))))
    assert len(np.unique(numbers)) == 100_000
    texts = ids.hash_ids(Ids(pa.array([f"task-{i}" for i in range(300_000)])))
    assert len(np.unique(texts)) == 300_000
    share = np.bincount((texts % np.uint64(7)).astype(int)) / 300_000
    np.testing.assert_allclose(share, 1 / 7, atol=0.005)


def spread_out(crowd: tb.Responses, n_shards: int, folder: Path) -> Path:
    """Write responses in any order, in tables of equal length."""
    row = np.random.default_rng(0).permutation(crowd.n_responses)
    columns = {
        "task": crowd.tasks.take(crowd.task_of_each()[row]),
        "worker": crowd.workers.take(crowd.worker_of_each()[row]),
        "label": crowd.classes.take(crowd.label_of_each()[row]),
    }
    folder.mkdir()
    for i, at in enumerate(np.array_split(np.arange(len(row)), n_shards)):
        low, high = int(at[0]), int(at[-1]) + 1
        piece = {name: list(column)[low:high] for name, column in columns.items()}
        tb.read_responses(piece).write(folder / f"s{i}.csv")
    return folder


def test_tasks_that_are_spread_are_brought_together(tmp_path: Path) -> None:
    made_up = tb.simulate.crowd(300, 12, 3, random_state=2)
    crowd = made_up.responses
    folder = spread_out(crowd, 5, tmp_path / "in")
    gold = dict(list(made_up.gold.to_dict().items())[::30])
    with noted("tasks-spread"):
        made = tb.shards.fit(folder, tmp_path / "out", gold=gold)
    one = tb.VariationalBayes().fit(crowd, gold=gold)
    table = made.labels_.to_table()
    found = dict(zip(table["task"].to_pylist(), table["probability"].to_pylist(), strict=True))
    expected = {label.task: label.probability for label in one.labels_}
    assert found == pytest.approx(expected, abs=1e-9)
    with noted("tasks-spread"):
        labels = tb.shards.predict(one, folder, tmp_path / "predicted")
    assert labels.dataset().count_rows() == 300
    assert [each.name for each in tmp_path.glob(".*")] == []


def test_a_broken_off_fit_of_spread_tasks_goes_on(tmp_path: Path) -> None:
    folder = spread_out(tb.simulate.crowd(100, 8, 2, random_state=1).responses, 3, tmp_path / "in")
    with noted("tasks-spread"):
        expected = outcome(tb.shards.fit(folder, tmp_path / "whole"))

    def stop(progress: tb.shards.FitProgress) -> None:
        if progress.n_sweeps == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), noted("tasks-spread"):
        tb.shards.fit(folder, tmp_path / "out", progress=stop)
    with noted("tasks-spread"):
        assert_alike(tb.shards.fit(folder, tmp_path / "out", resume=True), expected)


def test_repeats_in_several_shards_follow_their_order(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", [("a", "ann", "x"), ("b", "bob", "x")], [("a", "ann", "y")])
    with noted("repeats-between-shards"):
        made = tb.shards.fit(folder, tmp_path / "out")
    ann = list(made.workers_).index("ann")
    assert made.answers[ann].tolist() == [0, 1]  # y of the second shard took the place of x


def test_tasks_brought_together_keep_weights_and_those_that_nobody_answered(
    tmp_path: Path,
) -> None:
    crowd = tb.read_responses(
        {"task": ["a", "a", "b", "d"], "worker": ["u", "v", "u", "v"],
         "label": ["x", "y", "x", "y"], "weight": [0.5, 2.0, 1.5, 1.0]},
        tasks=["a", "b", "c", "d"],
    )  # fmt: skip
    folder = tmp_path / "in"
    folder.mkdir()
    order = list(crowd.tasks)
    for i, names in enumerate((["a", "c", "d"], ["b"])):
        crowd.on_tasks(np.array([order.index(name) for name in names])).write(folder / f"{i}.tb")
    tb.Responses.from_rows([("d", "u", "x")]).write(folder / "2.tb")
    with noted("tasks-spread"):
        made = tb.shards.fit(folder, tmp_path / "out")
    assert sorted(made.labels_.to_table()["task"].to_pylist()) == ["a", "b", "c", "d"]
    assert made.n_responses == 5
    kept: Any = made.model._carried
    assert kept.counts.sum() == pytest.approx(0.5 + 2.0 + 1.5 + 1.0 + 1.0)


def test_shards_with_classes_of_their_own_are_fitted_alike(tmp_path: Path) -> None:
    rows = [(f"t{i}", f"w{i % 3}", "xyz"[i // 20]) for i in range(60)]
    crowd = tb.Responses.from_rows(rows)
    for i in range(3):
        (tmp_path / "in").mkdir(exist_ok=True)
        part = tb.Responses.from_rows(rows[20 * i : 20 * i + 20])
        part.write(tmp_path / "in" / f"s{i}.tb")
    one = tb.VariationalBayes().fit(crowd)
    with noted("shard-classes-differ"):
        made = tb.shards.fit(tmp_path / "in", tmp_path / "out", probabilities=True)
    assert_same_fit(one, made)


def test_even_cuts() -> None:
    assert even(10, 3) == [0, 3, 7, 10]
