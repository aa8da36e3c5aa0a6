"""What the caller may choose: questions, several labels, texts, wide tables, composed ids, runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from commands import tiebreak
from tables.formats.answers import answers, expected, notes_of, read
from tables.said import noted, refused

import tiebreak as tb
from tiebreak.tables import formats


class TestQuestions:
    """A file with several questions."""

    @pytest.fixture
    def two(self, data: Path, tmp_path: Path) -> Path:
        tasks = json.loads((data / "label-studio.json").read_text())
        for task in tasks:
            for annotation in task["annotations"]:
                more = [one | {"from_name": "irony"} for one in annotation["result"]]
                annotation["result"] += more[:1]
        path = tmp_path / "two.json"
        path.write_text(json.dumps(tasks))
        return path

    def test_the_error_lists_them(self, two: Path) -> None:
        with refused("several-questions", questions={"sentiment": 17, "irony": 13}):
            read(two)

    def test_one_is_chosen(self, two: Path) -> None:
        assert read(two, question="irony").n_responses == 12
        assert "questions not read: 'sentiment'" in notes_of(two, question="irony")

    def test_an_unknown_one_is_refused(self, two: Path) -> None:
        with refused("no-question", question="mood"):
            read(two, question="mood")

    def test_the_command_names_its_option(self, two: Path) -> None:
        result = tiebreak("fuse", str(two))
        assert result.exit_code == 2
        assert "--set question=sentiment" in result.stderr
        command = ["fuse", str(two), "--set", "question=irony"]
        assert tiebreak(*command).exit_code == 0

    def test_columns_of_json_min_are_found_by_disagreement(self, tmp_path: Path) -> None:
        rows = [
            {"id": 1, "text": "a", "mood": m, "tone": t, "annotator": w}
            | {"annotation_id": w, "lead_time": 1.0}
            for w, (m, t) in enumerate([("p", "x"), ("n", "y")])
        ]
        path = tmp_path / "min.json"
        path.write_text(json.dumps(rows))
        with refused("several-questions", questions={"mood": 2, "tone": 2}):
            read(path)
        assert set(answers(read(path, question="tone")).values()) == {"x", "y"}

    def test_a_plain_table_has_none(self, data: Path) -> None:
        with refused("idle-option", tb.errors.OptionError, options=["question"]):
            read(data / "pipes.txt", question="mood")


class TestLabelStudioKinds:
    """Ratings, taxonomies and pairs are classes too."""

    @pytest.mark.parametrize(
        ("kind", "value", "label"),
        [
            ("rating", {"rating": 4}, 4),
            ("taxonomy", {"taxonomy": [["Animal", "Cat"]]}, "Animal / Cat"),
            ("pairwise", {"selected": "left"}, "left"),
            ("number", {"number": 2}, 2),
        ],
    )
    def test_a_kind(self, tmp_path: Path, kind: str, value: dict[str, Any], label: Any) -> None:
        result = {"from_name": "q", "to_name": "x", "type": kind, "value": value}
        annotation = {"completed_by": 1, "result": [result]}
        path = tmp_path / "ls.json"
        path.write_text(json.dumps([{"id": 1, "data": {}, "annotations": [annotation]}]))
        assert answers(read(path)) == {(1, "1"): label}


class TestSeveralLabels:
    """Check boxes: refused, or one yes/no task of each label."""

    def test_they_are_refused_with_the_way_out(self, data: Path) -> None:
        with refused("several-labels") as caught:
            read(data / "mturk-boxes.csv")
        assert str(caught.value.fields["at"]).endswith("mturk-boxes.csv, line 2")

    def test_each_label_becomes_a_task(self, data: Path) -> None:
        found = answers(read(data / "mturk-boxes.csv", multi_label=True))
        assert found == {
            ("H1 | funny", "ANN"): "yes",
            ("H1 | sad", "ANN"): "yes",
            ("H1 | funny", "BOB"): "yes",
            ("H1 | sad", "BOB"): "no",
            ("H2 | funny", "ANN"): "no",
            ("H2 | sad", "ANN"): "yes",
            ("H2 | funny", "BOB"): "no",
            ("H2 | sad", "BOB"): "yes",
        }

    def test_known_labels_split_too(self, data: Path) -> None:
        command = ["fuse", str(data / "toloka.tsv"), "--set", "multi_label"]
        result = tiebreak(*command)
        assert result.exit_code == 0
        assert "t4 | pos,yes,1,yes\n" in result.stdout
        assert "t4 | neg,no,1,no\n" in result.stdout

    def test_a_box_of_its_own_is_yes_or_no(self, tmp_path: Path) -> None:
        path = tmp_path / "mturk.csv"
        path.write_text("HITId,WorkerId,Answer.spam.on\nH1,A,true\nH1,B,false\n")
        assert answers(read(path)) == {("H1", "A"): "yes", ("H1", "B"): "no"}


class TestLabelsInTexts:
    """Answers of a batch API."""

    def test_prose_needs_a_pattern(self, data: Path) -> None:
        with refused("no-label-in-text", n=12, of=12):
            read(data / "batch-api-prose.jsonl")
        found = read(data / "batch-api-prose.jsonl", label_pattern=r"Verdict: (\w+)")
        assert answers(found) == expected("q{}", ("gpt-a", "gpt-b", "gpt-c"))

    def test_a_pointer_leads_into_json(self, data: Path) -> None:
        found = answers(read(data / "batch-api.jsonl", label_pointer="/verdict"))
        assert found == expected("q{}", ("gpt-a", "gpt-b", "gpt-c"))

    def test_wrong_patterns_and_pointers_are_refused(self, data: Path) -> None:
        path = data / "batch-api.jsonl"
        for options in (
            {"label_pattern": "("},
            {"label_pointer": "verdict"},
            {"label_pattern": "x", "label_pointer": "/x"},
        ):
            with pytest.raises(tb.errors.OptionError):
                read(path, **options)

    def test_several_choices_are_runs(self, tmp_path: Path) -> None:
        choices = [{"message": {"content": label}} for label in ("yes", "no", "yes")]
        body = {"model": "m", "choices": choices}
        path = tmp_path / "batch.jsonl"
        path.write_text(json.dumps({"custom_id": "q", "response": {"body": body}}))
        assert answers(read(path)) == {("q", "m"): "yes"}


class TestWide:
    """One column per worker."""

    def test_a_file(self, data: Path) -> None:
        wanted = expected("t{}", ("ann", "bob", "cat"))
        del wanted["t3", "bob"]
        assert answers(read(data / "wide.csv", wide=True)) == wanted
        assert answers(read(data / "wide.csv", format="wide")) == wanted

    def test_an_array_with_gaps(self) -> None:
        votes = np.array([[0, 1, np.nan], [1, np.nan, 1]])
        found = answers(read(votes))
        assert found == {(0, "0"): 0, (0, "1"): 1, (1, "0"): 1, (1, "2"): 1}
        assert all(type(label) is int for label in found.values())

    def test_frames(self) -> None:
        columns = {"ann": [0, 1], "bob": [None, 1]}
        wanted = {(0, "ann"): 0, (1, "ann"): 1, (1, "bob"): 1}
        for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
            assert answers(read(frame, wide=True)) == wanted

    def test_two_rows_of_one_task_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "w.csv"
        path.write_text("task,ann\na,x\na,y\n")
        with refused("wide-task-twice", n=1):
            read(path, wide=True)


class TestLists:
    """Frames with lists in them."""

    def test_every_kind_of_frame(self) -> None:
        columns = {"id": ["a", "b"], "annotators": [["x"], ["x", "y"]], "labels": [[1], [0, 1]]}
        wanted = {("a", "x"): 1, ("b", "x"): 0, ("b", "y"): 1}
        for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
            assert answers(read(frame)) == wanted


class TestComposedIds:
    """A worker or a task from several columns."""

    def test_from_a_file(self, data: Path) -> None:
        found = read(data / "judges.csv", worker_columns=["judge", "prompt"])
        assert set(found.workers) == {
            f"{judge} | {prompt}" for judge in ("gpt", "claude") for prompt in ("short", "long")
        }

    def test_the_command(self, data: Path) -> None:
        command = ["fuse", str(data / "judges.csv"), "--set", "task_columns=item,epoch"]
        command += ["--set", "worker_columns=judge,prompt"]
        result = tiebreak(*command)
        assert result.exit_code == 0, result.stderr
        assert len(result.stdout.splitlines()) == 9

    def test_parts_with_the_separator_stay_apart(self) -> None:
        table = {"a": ["x | y", "x"], "b": ["z", "y | z"], "worker": ["w", "w"], "label": [0, 1]}
        assert read(table, task_columns=["a", "b"]).n_tasks == 2

    def test_wrong_names_are_refused(self) -> None:
        table = {"task": ["a"], "worker": ["w"], "label": [0]}
        with refused("no-such-column", tb.errors.ResponseError, column="prompt"):
            read(table, worker_columns=["worker", "prompt"])
        with refused("named-twice", tb.errors.OptionError):
            read(table, worker_columns=["worker"], columns={"worker": "worker"})


class TestRuns:
    """Runs are kept with less weight each, or settled in another way on demand."""

    def test_ten_runs_of_one_judge_do_not_beat_three_people(self) -> None:
        rows = [(task, "judge", "wrong", run) for task in "abcdef" for run in range(10)]
        rows += [(task, who, "right", 0) for task in "abcdef" for who in ("ann", "bob", "cat")]
        names = ("task", "worker", "label", "run")
        table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        for repeats in (None, "runs", "vote"):
            crowd = read(table, repeats=repeats)
            assert crowd.n_responses == 6 * 4
            for method in (tb.MajorityVote(), tb.DawidSkene(), tb.VariationalBayes()):
                assert set(method.fit(crowd).labels_.best().values()) == {"right"}

    def test_a_tie_gives_no_vote(self) -> None:
        table = {
            "task": ["a"] * 4 + ["b"],
            "worker": ["w", "w", "w", "w", "w"],
            "label": ["x", "y", "y", "x", "x"],
        }
        with noted("repeats-voted", n_ties=1):
            crowd = tb.read_responses(table, repeats="vote")
        assert answers(crowd) == {("b", "w"): "x"}
        assert list(crowd.tasks) == ["a", "b"]

    def test_vote_agrees_with_counting(self) -> None:
        rng = np.random.default_rng(0)
        rows = rng.integers(0, (20, 4, 3), size=(600, 3)).tolist()
        said: dict[tuple[int, int], list[int]] = {}
        for task, worker, label in rows:
            said.setdefault((task, worker), []).append(label)
        wanted = {}
        for pair, labels in said.items():
            counts = np.bincount(labels, minlength=3)
            if (counts == counts.max()).sum() == 1:
                wanted[pair] = int(counts.argmax())
        with pytest.warns(tb.InputNote):
            voted = tb.Responses.from_rows([tuple(row) for row in rows], repeats="vote")
        assert answers(voted) == wanted
        assert voted.n_tasks == len({task for task, _, _ in rows})

    def test_other_ways_can_be_chosen(self, data: Path) -> None:
        assert read(data / "judges.jsonl", repeats="count").n_responses == 36
        assert read(data / "judges.jsonl").n_responses == 12
        assert "repeats='runs'" in notes_of(data / "judges.jsonl")

    def test_a_sample_is_a_run_beside_a_task(self) -> None:
        table = {"item": ["a", "a", "a"], "sample": [1, 2, 3], "judge": ["j"] * 3}
        crowd = read(table | {"label": [0, 1, 1]})
        assert crowd.weight is not None
        assert crowd.label_of_each().tolist() == [0, 1]
        assert crowd.weight[1] == 2 * crowd.weight[0]

    def test_a_sample_alone_is_the_task(self) -> None:
        table = {"sample": ["a", "b"], "judge": ["j", "j"], "label": [0, 1]}
        assert read(table).n_tasks == 2

    def test_an_epoch_may_be_a_time(self) -> None:
        table = {"task": ["a"] * 3, "worker": ["w"] * 3, "label": [0, 0, 1]}
        assert answers(read(table | {"epoch": [1759995020, 1759995021, 1759995022]})) == {
            ("a", "w"): 1
        }


class TestOrder:
    """Orders are runs of one worker; each is a worker of its own where repeats are not runs."""

    def test_both_orders_are_runs_of_one_worker(self, data: Path) -> None:
        found = read(data / "judges-order.csv")
        assert list(found.workers) == ["gpt", "claude"]
        assert found.runs is not None
        assert found.runs.workers[0].n_both == 4

    def test_workers_carry_the_order(self, data: Path) -> None:
        found = read(data / "judges-order.csv", repeats="last")
        assert "gpt [order=AB]" in list(found.workers)
        assert found.n_workers == 4

    def test_a_place_in_a_queue_is_no_order(self) -> None:
        table = {
            "task": list(range(8)),
            "worker": ["w"] * 8,
            "label": [0, 1] * 4,
            "position": list(range(8)),
        }
        with noted("no-order", n=6):
            assert tb.read_responses(table).n_workers == 1

    def test_no_order_leaves_the_worker(self) -> None:
        table = {"task": [1, 2], "worker": ["w", "w"], "label": [0, 1], "order": ["AB", None]}
        assert list(read(table, repeats="last").workers) == ["w [order=AB]", "w"]
        assert list(read(table).workers) == ["w"]


def test_a_wide_table_has_no_column_of_labels(data: Path) -> None:
    with refused("wide-role", tb.errors.OptionError, role="label"):
        read(data / "wide.csv", wide=True, columns={"label": "ann"})


@pytest.mark.parametrize("kind", ["jsonl", "csv", "list", "polars"])
def test_lists_of_labels_in_a_plain_table(tmp_path: Path, kind: str) -> None:
    rows = [
        {"task": "t", "worker": "w", "label": ["a", "b"]},
        {"task": "t", "worker": "v", "label": ["b"]},
    ]
    source: Any = tmp_path / f"r.{kind}"
    if kind == "jsonl":
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "csv":
        source.write_text('task,worker,label\nt,w,"[""a"",""b""]"\nt,v,b\n')
    elif kind == "list":
        source = rows
    else:
        source = pl.DataFrame(rows)
    assert answers(read(source, multi_label=True)) == {
        ("t | a", "w"): "yes",
        ("t | b", "w"): "yes",
        ("t | a", "v"): "no",
        ("t | b", "v"): "yes",
    }
    if kind != "csv":
        with refused("no-id", column="label"):
            read(source)


def test_options_that_do_nothing_are_refused(data: Path) -> None:
    with refused("idle-option", tb.errors.OptionError, options=["label_pattern"]):
        read(data / "mturk.csv", label_pattern="x")


def test_texts_of_an_export(data: Path) -> None:
    texts = formats.read_texts(str(data / "mturk-items.csv"))
    assert texts == {"H1#1": "good film", "H1#2": "bad film", "H2#1": "dull", "H2#2": "fine"}
    assert formats.read_texts(str(data / "records.json")) is None
