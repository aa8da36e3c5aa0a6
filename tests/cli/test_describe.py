"""tiebreak describe: what was read, how far workers agree, what looks odd."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

ROWS = """item,rater,answer
1,a,yes
1,b,yes
1,c,Yes
2,a,no
2,b,no
2,c,no
2,c,yes
3,a,yes
3,b,
"""


@pytest.fixture
def votes(write: Write) -> Path:
    return write("votes.csv", ROWS)


@pytest.mark.usefixtures("votes")
def test_it_says_what_was_read_and_how(run: Run) -> None:
    done = run("describe", "votes.csv")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[:2] == [
        "7 responses, 3 tasks, 3 workers, 3 classes",
        "columns: task is 'item', worker is 'rater', label is 'answer'",
    ]
    for words in (
        "votes per task: 1 to 3, mean 2.33",
        "1 rows without a label",
        "1 answers repeat a worker on a task",
        "differ only in case, spaces or Unicode form: 'Yes', 'yes' (--set fold_labels)",
        "Krippendorff's α",
        "95 %:",
        "Fleiss' κ",
        "Cohen's κ",
    ):
        assert words in done.stdout


@pytest.mark.usefixtures("votes")
def test_json_has_the_same_for_programs(run: Run) -> None:
    found = json.loads(run("describe", "votes.csv", "--json").stdout)
    assert found["classes"] == {"Yes": 1, "no": 2, "yes": 4}
    assert found["label_variants"] == [["Yes", "yes"]]
    assert found["columns"] == {"task": "item", "worker": "rater", "label": "answer"}
    assert found["agreement"]["tasks"] == 2
    low, high = found["agreement"]["alpha_interval"]
    assert low <= found["agreement"]["alpha"] <= high
    assert any("repeats a worker" in note for note in found["notes"])


def test_ordered_classes_have_an_ordinal_alpha(run: Run, write: Write) -> None:
    write("r.csv", "task,worker,label\na,v,lo\na,w,mid\nb,v,hi\nb,w,hi\nc,v,lo\nc,w,lo\n")
    plain = json.loads(run("describe", "r.csv", "--json").stdout)
    assert plain["agreement"]["alpha_ordinal"] is None
    done = json.loads(run("describe", "r.csv", "--json", "--set", "order=lo,mid,hi").stdout)
    assert done["agreement"]["alpha_ordinal"] > done["agreement"]["alpha"]
    assert run("describe", "r.csv", "--set", "order=lo,hi").exit_code == 2


def test_near_empty_classes_and_suspects_are_named(run: Run, write: Write) -> None:
    lines = ["task,worker,label"]
    for task in range(200):
        truth = "xyz"[task % 3]
        for worker in range(4):
            wrong = (task * 7 + worker * 3) % 10 == 0
            lines.append(f"t{task},w{worker},{'q' if wrong else truth}")
        lines.append(f"t{task},always,x")
    lines.append("t0,late,rare")
    write("r.csv", "\n".join(lines) + "\n")
    found = json.loads(run("describe", "r.csv", "--json").stdout)
    assert found["near_empty_classes"] == ["rare"]
    assert [each["worker"] for each in found["spam"]] == ["always"]


def test_one_label_per_task_has_no_agreement(run: Run, write: Write) -> None:
    write("r.csv", "task,worker,label\na,v,x\nb,w,y\n")
    done = run("describe", "r.csv")
    assert done.exit_code == 0
    assert json.loads(run("describe", "r.csv", "--json").stdout)["agreement"] is None


def test_packed_responses_and_standard_input_are_described_too(run: Run, write: Write) -> None:
    write("r.csv", "task,worker,label\na,v,x\na,w,y\n")
    run("convert", "r.csv", "-o", "r.tb")
    assert run("describe", "r.tb").stdout.startswith("2 responses, 1 task, 2 workers, 2 classes")
    piped = run("describe", "-", stdin="task,worker,label\na,v,x\na,w,y\n")
    assert piped.stdout.startswith("2 responses, 1 task, 2 workers, 2 classes")
