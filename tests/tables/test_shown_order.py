"""Verdicts on pairs that were shown in two orders: turned back where they say what was shown."""

from __future__ import annotations

import csv
import random
import warnings
from pathlib import Path
from typing import Any

from commands import tiebreak
from tables.formats.answers import answers, notes_of, read
from tables.said import refused

import tiebreak as tb


def _write(
    path: Path, *, shown: bool, words: tuple[str, str] = ("A", "B"), order: str = "order"
) -> dict[str, str]:
    """Write verdicts of five judges, each pair in one of two orders; return which is better.

    `shown`: the verdict names what was shown first as `words[0]`; else the answer itself.
    """
    random.seed(4)
    truth = {}
    rows = []
    for i in range(120):
        better = random.randrange(2)
        truth[f"q{i}"] = words[better]
        for j in range(5):
            is_swapped = (i + j) % 2 == 1
            says = better if random.random() < 0.7 else 1 - better
            says = 1 - says if shown and is_swapped else says
            rows.append((f"q{i}", f"j{j}", ("AB", "BA")[is_swapped], words[says]))
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("task", "worker", order, "label"), *rows])
    return truth


def _accuracy(responses: Any, truth: dict[str, str]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.InputNote)
        best = tb.VariationalBayes().fit(responses).labels_.best()
    return sum(best[task] == label for task, label in truth.items()) / len(truth)


def test_verdicts_as_shown_are_turned_back(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    truth = _write(path, shown=True)
    assert _accuracy(read(path, turned=False), truth) > 0.8
    plain = tmp_path / "turned.csv"
    _write(plain, shown=False)
    as_named = answers(read(plain, turned=True, repeats="last"))
    assert answers(read(path, turned=False, repeats="last")) == as_named


def test_where_it_cannot_be_known_a_note_asks(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    _write(path, shown=True)
    said = notes_of(path)
    assert "turned=False" in said
    assert "turned=True" in said
    assert "turned=False" not in notes_of(path, turned=True)
    assert "turned back" in notes_of(path, turned=False)


def test_words_that_name_a_place_are_turned_back_by_themselves(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    truth = _write(path, shown=True, words=("first", "second"))
    assert _accuracy(read(path), truth) > 0.8
    assert "turned back" in notes_of(path)


def test_ties_stay_ties(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    rows = "q1,j,AB,A\nq1,k,BA,B\nq2,j,BA,tie\nq3,j,BA,A\n"
    path.write_text("task,worker,order,label\n" + rows)
    found = answers(read(path, turned=False))
    assert found == {("q1", "j"): "A", ("q1", "k"): "A", ("q2", "j"): "tie", ("q3", "j"): "B"}


def test_a_frame_and_whole_numbers_are_turned_back_too() -> None:
    columns = {
        "task": ["a", "b"],
        "worker": ["j", "j"],
        "label": [1, 1],
        "swapped": [False, True],
    }
    found = answers(read(columns, turned=False, classes=[1, 2]))
    assert found == {("a", "j"): 1, ("b", "j"): 2}


def test_a_column_of_zeros_and_ones_tells_what_was_swapped(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("task,worker,swapped,label\nq1,j,0,A\nq2,j,1,A\n")
    assert answers(read(path, turned=False)) == {("q1", "j"): "A", ("q2", "j"): "B"}


def test_orders_that_do_not_tell_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("task,worker,order,label\nq1,j,x,A\nq1,k,y,B\n")
    with refused("cannot-turn", column="order"):
        read(path, turned=False)
    path.write_text("task,worker,label\nq1,j,A\nq1,k,B\n")
    with refused("turned-without-order", tb.TiebreakError):
        read(path, turned=False)


def test_commands_name_the_column_and_turn(tmp_path: Path) -> None:
    path, out = tmp_path / "r.csv", tmp_path / "labels.csv"
    truth = _write(path, shown=True, order="side")
    args = ["fuse", str(path), "--set", "order_column=side", "--set", "turned=no", "-o", str(out)]
    result = tiebreak(*args)
    assert result.exit_code == 0, result.stderr
    with out.open(newline="") as file:
        best = {row["task"]: row["label"] for row in csv.DictReader(file)}
    assert sum(best[q] == label for q, label in truth.items()) > 0.8 * len(truth)
    args = [
        "convert",
        str(path),
        "--set",
        "order_column=side",
        "--set",
        "turned=no",
        "-o",
        str(out),
    ]
    assert tiebreak(*args).exit_code == 0
    assert _accuracy(read(out, turned=True), truth) > 0.8


def test_a_format_that_knows_takes_no_option(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("question_id,model_a,model_b,winner,judge\n1,y,x,A,ann\n2,x,y,x,ann\n")
    with refused("idle-option", tb.errors.OptionError, options=["turned"]):
        read(path, turned=False)
