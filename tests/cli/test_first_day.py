"""Files as people bring them: what is written in two ways is told, and the way out works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.running import HEADER, ROWS, Run, Write, told

from tiebreak.errors import InputNote
from tiebreak.tables import read_responses

# One id, written in two ways


def test_tasks_that_are_one_number_are_noted(run: Run, write: Write) -> None:
    write("ann.csv", HEADER + "1,ann,x\n2,ann,y\n3,ann,x\n")
    write("bob.csv", HEADER + "1.0,bob,x\n2.0,bob,y\n4.0,bob,y\n")
    done = run("fuse", "ann.csv", "bob.csv")
    assert done.exit_code == 0
    assert "'1' and '1.0' (and 1 more pair)" in told(done)
    assert "Write them alike" in told(done)
    write("bob.csv", HEADER + "1,bob,x\n2,bob,y\n4,bob,y\n")
    again = run("fuse", "ann.csv", "bob.csv")
    assert "Write them alike" not in told(again)
    assert "4 tasks" in told(again)


def test_workers_that_are_one_number_are_noted(run: Run, write: Write) -> None:
    write("r.csv", HEADER + "a,7,x\nb,7.0,y\n")
    assert "'7' and '7.0'" in told(run("fuse", "r.csv"))


def test_versions_as_ids_are_not_noted(run: Run, write: Write) -> None:
    write("r.csv", HEADER + "1.0,ann,x\n1.1,ann,y\n10,ann,y\nv1,ann,y\nv1.0,ann,y\n")
    assert "Write them alike" not in told(run("fuse", "r.csv"))


@pytest.mark.parametrize("role", ["task", "worker"])
def test_ids_that_are_text_here_and_numbers_there_are_refused(
    run: Run, write: Write, role: str
) -> None:
    rows = [
        {"task": "a", "worker": "ann", "label": "x"} | {role: 1},
        {"task": "a", "worker": "bob", "label": "y"} | {role: "1"},
    ]
    write("r.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    done = run("fuse", "r.jsonl")
    assert done.exit_code == 2
    assert f"Column '{role}' mixes types: r.jsonl, line 1 holds 1 (int)" in told(done)


# One label, written in two ways


def test_labels_that_are_one_number_are_noted_and_joined(run: Run, write: Write) -> None:
    write("r.csv", HEADER + "a,ann,1\na,bob,1.0\nb,ann,0\nb,bob,0.0\nc,ann,1\n")
    done = run("fuse", "r.csv")
    assert "Labels '1', '1.0' are the same number, and are different classes" in told(done)
    assert "4 classes" in told(done)
    assert "2 classes" in told(run("fuse", "r.csv", "--set", "fold_labels", "-o", "labels.csv"))


def test_gold_in_another_form_is_noted_and_joined(run: Run, write: Write) -> None:
    write("r.csv", ROWS)
    write("g.csv", "task,label\na,X\nb,Y\n")
    done = run("fuse", "r.csv", "--gold", "g.csv")
    assert "No worker used X, Y, which gold names" in told(done)
    assert "'X' and 'x' differ only in case, spaces or Unicode form" in told(done)
    assert "--set fold_labels" in told(done)
    folded = run("fuse", "r.csv", "--gold", "g.csv", "--set", "fold_labels")
    assert "2 classes, 2 gold" in told(folded)
    assert "No worker used" not in told(folded)


def test_gold_with_a_new_class_is_not_said_to_be_another_form(run: Run, write: Write) -> None:
    write("r.csv", ROWS)
    write("g.csv", "task,label\na,z\n")
    assert "--set fold_labels" not in told(run("fuse", "r.csv", "--gold", "g.csv"))


def test_gold_of_another_type_is_refused_by_what_it_is(run: Run, write: Write) -> None:
    rows = [{"task": t, "worker": w, "label": "PASS"} for t in "ab" for w in "uv"]
    rows[0]["label"] = "FAIL"
    write("r.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    write("g.jsonl", json.dumps({"task": "a", "label": True}) + "\n")
    done = run("fuse", "r.jsonl", "--gold", "g.jsonl")
    assert done.exit_code == 2
    assert "Gold names True (bool)" in told(done)
    assert "the labels of responses are 'FAIL', 'PASS' (str)" in told(done)
    assert "added to the classes" not in told(done)


# JSON by columns


TABLE = {"task": ["a", "a", "b"], "worker": ["u", "v", "u"], "label": ["x", "y", "x"]}
BY_ROW = {key: {str(i): value for i, value in enumerate(column)} for key, column in TABLE.items()}
SPLIT = {
    "columns": list(TABLE),
    "index": [0, 1, 2],
    "data": list(zip(*TABLE.values(), strict=True)),
}
ORIENTS = {"list": TABLE, "columns": BY_ROW, "split": SPLIT}


@pytest.mark.parametrize("orient", ORIENTS)
def test_json_by_columns_is_refused_with_what_to_write(run: Run, write: Write, orient: str) -> None:
    write("r.json", json.dumps(ORIENTS[orient]))
    done = run("fuse", "r.json")
    assert done.exit_code == 2
    assert "r.json holds a whole table in one object" in told(done)
    assert "df.to_json(path, orient='records', lines=True)" in told(done)
    assert "question" not in told(done)


@pytest.mark.parametrize("n_tasks", [1, 2])
def test_lists_of_labels_and_workers_are_not_a_table_by_columns(
    run: Run, write: Write, n_tasks: int
) -> None:
    record = {"labels": ["x", "y"], "annotators": ["ann", "bob"]}
    write("r.jsonl", f"{json.dumps(record)}\n" * n_tasks)
    assert f"{2 * n_tasks} responses, {n_tasks} task" in told(run("fuse", "r.jsonl"))


def test_gold_as_json_by_columns_is_refused_too(run: Run, write: Write) -> None:
    write("r.csv", ROWS)
    write("g.json", json.dumps({"task": {"0": "a"}, "label": {"0": "x"}}))
    done = run("fuse", "r.csv", "--gold", "g.json")
    assert done.exit_code == 2
    assert "g.json holds a whole table in one object" in told(done)


def test_what_the_refusal_of_json_by_columns_names_works(run: Run, folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE)
    frame.to_json("r.json")
    assert run("fuse", "r.json").exit_code == 2
    frame.to_json("r.json", orient="records", lines=True)
    assert "3 responses, 2 tasks, 2 workers, 2 classes" in told(run("fuse", "r.json"))


# Wide tables with more than workers in them


WIDE = "id,text,ann,bob,source\n1,first text,x,x,web\n2,second text,y,,mail\n3,third text,y,x,web\n"


def test_a_column_that_shares_no_label_is_told_with_the_way_out(run: Run, write: Write) -> None:
    write("r.csv", WIDE)
    done = run("fuse", "r.csv", "--set", "wide")
    assert done.exit_code == 0
    assert "'text', 'source' share no label with the other columns" in told(done)
    assert "--set worker_columns=ann,bob" in told(done)


def test_worker_columns_name_the_workers_of_a_wide_table(run: Run, write: Write) -> None:
    write("r.csv", WIDE)
    done = run("fuse", "r.csv", "--set", "wide", "--set", "worker_columns=ann,bob")
    assert done.exit_code == 0
    assert "5 responses, 3 tasks, 2 workers, 2 classes" in told(done)
    assert "share no label" not in told(done)
    alone = run("convert", "r.csv", "--set", "wide", "--set", "worker_columns=bob")
    assert alone.stdout.splitlines() == ["task,worker,label", "1,bob,x", "3,bob,x"]


def test_worker_columns_that_a_wide_table_lacks_are_named(run: Run, write: Write) -> None:
    write("r.csv", WIDE)
    done = run("fuse", "r.csv", "--set", "wide", "--set", "worker_columns=ann,eve")
    assert done.exit_code == 2
    assert "r.csv has no column 'eve'" in told(done)
    assert "'id', 'text', 'ann', 'bob', 'source'" in told(done)


def test_task_columns_of_a_wide_table_are_refused_plainly(run: Run, write: Write) -> None:
    write("r.csv", WIDE)
    done = run("fuse", "r.csv", "--set", "wide", "--set", "task_columns=id,text")
    assert done.exit_code == 2
    assert "leave --set task_columns out" in told(done)


# What else is named


def test_the_note_on_duplicates_names_the_option_of_the_command(run: Run, write: Write) -> None:
    write("r.csv", ROWS)
    write("l.csv", "left,right,link\na,b,must\n")
    done = run("fuse", "r.csv", "--links", "l.csv")
    assert "--set sampling=pairs" in told(done)
    again = run("fuse", "r.csv", "--links", "l.csv", "--set", "sampling=pairs")
    assert again.exit_code == 0
    assert "count as duplicates" not in told(again)


def test_labels_do_not_go_into_a_file_called_like_a_model(
    run: Run, write: Write, folder: Path
) -> None:
    write("r.csv", ROWS)
    assert run("fuse", "r.csv", "-o", "labels.csv", "--save", "m.tbm").exit_code == 0
    done = run("update", "m.tbm", "r.csv", "-o", "n.tbm")
    assert done.exit_code == 2
    assert "--save" in told(done)
    assert not (folder / "n.tbm").exists()


def test_update_says_all_that_it_wrote(run: Run, write: Write) -> None:
    write("r.csv", ROWS)
    run("fuse", "r.csv", "-o", "labels.csv", "--save", "m.tbm")
    done = run("update", "m.tbm", "r.csv", "-o", "after.csv", "--save", "n.tbm")
    assert "wrote after.csv, n.tbm" in told(done)


def test_tasks_of_a_wide_table_without_an_answer_are_told_and_can_be_kept(
    run: Run, write: Write
) -> None:
    write("r.csv", "id,ann,bob\na,x,x\nb,,\nc,y,x\n")
    done = run("fuse", "r.csv", "--set", "wide")
    assert "1 task has no answer, and is left out" in told(done)
    assert "--set tasks keeps all" in told(done)
    kept = run("fuse", "r.csv", "--set", "wide", "--set", "tasks=r.csv")
    assert [row.split(",")[0] for row in kept.stdout.splitlines()] == ["task", "a", "c", "b"]


# A worker twice on a task, with times


TIMED = "task,worker,label,{name}\na,ann,x,{late}\na,ann,y,{early}\na,bob,x,{early}\n"
STAMPS = {
    "timestamp": ("2024-02-02 10:00:00", "2024-01-30 09:00:00"),
    "created_at": ("2024-02-02T10:00:00Z", "2024-01-30T09:00:00Z"),
    "time": ("1706868000", "1706605200"),
}


@pytest.mark.parametrize("name", STAMPS)
def test_a_last_row_that_is_not_the_latest_is_told(run: Run, write: Write, name: str) -> None:
    late, early = STAMPS[name]
    write("r.csv", TIMED.format(name=name, late=late, early=early))
    done = run("fuse", "r.csv", "--method", "mv")
    assert "the last row counts, not the latest" in told(done)
    assert f"sort the table by {name!r}" in told(done)
    write("r.csv", TIMED.format(name=name, late=early, early=late))
    again = run("fuse", "r.csv", "--method", "mv")
    assert "1 response repeats a worker on a task" in told(again)
    assert "not the latest" not in told(again)


def test_a_named_column_of_times_is_looked_at(run: Run, write: Write) -> None:
    write("r.csv", TIMED.format(name="when", late="2024-02-02", early="2024-01-30"))
    assert "not the latest" not in told(run("fuse", "r.csv"))
    assert "not the latest" in told(run("fuse", "r.csv", "--columns", "time=when"))


@pytest.mark.parametrize("way", ["count", "vote"])
def test_times_are_no_matter_where_the_last_does_not_count(
    run: Run, write: Write, way: str
) -> None:
    late, early = STAMPS["timestamp"]
    write("r.csv", TIMED.format(name="timestamp", late=late, early=early))
    assert "not the latest" not in told(run("fuse", "r.csv", "--set", f"repeats={way}"))


@pytest.mark.parametrize("late", ["", "yesterday"])
def test_times_that_cannot_be_compared_say_nothing(run: Run, write: Write, late: str) -> None:
    write("r.csv", TIMED.format(name="timestamp", late=late, early="2024-01-30"))
    assert "not the latest" not in told(run("fuse", "r.csv"))


def test_times_of_a_typed_table_are_looked_at(run: Run, folder: Path) -> None:
    import datetime

    import pyarrow as pa
    from pyarrow import parquet

    days = [datetime.datetime(2024, 2, 2), datetime.datetime(2024, 1, 30), None]
    columns = {"task": [1, 1, 1], "worker": ["ann", "ann", "bob"], "label": ["x", "y", "x"]}
    parquet.write_table(pa.table({**columns, "timestamp": days}), "r.parquet")
    assert "not the latest" in told(run("fuse", "r.parquet"))


def test_times_of_mixed_types_stop_nobody() -> None:
    pandas = pytest.importorskip("pandas")
    columns = {"task": [1, 1], "worker": ["ann", "ann"], "label": ["x", "y"]}
    frame = pandas.DataFrame({**columns, "timestamp": pandas.Series([1.5, "noon"], dtype=object)})
    with pytest.warns(InputNote):
        assert read_responses(frame).n_responses == 1


# What options take


def test_spaces_around_the_parts_of_a_list_do_not_count(run: Run, write: Write) -> None:
    write("r.csv", ROWS)
    done = run("fuse", "r.csv", "--set", "classes=x , y ,z", "--probabilities")
    assert "3 classes" in told(done)
    assert done.stdout.splitlines()[0].endswith("probability_x,probability_y,probability_z,vote")


JUDGES = "item,gpt,claude,llama,human\nq1,x,x,y,x\nq2,y,y,y,\nq3,x,y,y,y\n"


def test_gold_may_stand_in_a_column_of_a_wide_table(run: Run, write: Write) -> None:
    write("r.csv", JUDGES)
    workers = ("--set", "wide", "--set", "worker_columns=gpt,claude,llama")
    done = run("fuse", "r.csv", *workers, "--gold", "r.csv", "--columns", "label=human")
    assert done.exit_code == 0
    assert "9 responses, 3 tasks, 3 workers, 2 classes, 2 gold" in told(done)
    assert done.stdout.splitlines()[3].startswith("q3,y,1")
    alone = run("fuse", "r.csv", *workers, "--columns", "label=human")
    assert alone.exit_code == 2
    assert "leave label out" in told(alone)


def test_every_command_reads_a_wide_table(run: Run, write: Write) -> None:
    write("r.csv", "id,ann,bob\na,x,x\nb,y,x\nc,y,y\n")
    done = run("report", "r.csv", "-o", "report.html")
    assert done.exit_code == 0
    assert "r.csv has one column per worker: 'ann', 'bob'" in told(done)
    for command in ("fuse", "describe", "convert"):
        assert run(command, "r.csv").exit_code == 0
