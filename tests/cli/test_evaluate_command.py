"""tiebreak evaluate: the figures of `tiebreak.evaluate`, laid out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.running import code_of

from tiebreak import evaluate

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

LABELS = "task,label,probability\na,x,0.75\nb,y,0.75\nc,x,0.75\n"
GOLD = "task,label\na,x\nb,y\nc,y\nd,x\n"


@pytest.fixture(autouse=True)
def _files(write: Write) -> None:
    write("labels.csv", LABELS)
    write("gold.csv", GOLD)
    write("links.csv", "left,right,link\na,b,must\nb,c,must\n")


def test_figures_stand_in_two_aligned_columns(run: Run) -> None:
    result = run("evaluate", "labels.csv", "gold.csv", "--links", "links.csv")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "tasks scored                      3",
        "coverage of gold             0.7500",
        "accuracy                     0.6667",
        "micro F                      0.6667",
        "macro F                      0.6667",
        "F of x                       0.6667",
        "F of y                       0.6667",
        "calibration error            0.0833",
        "links broken                      2",
        "links broken in the closure       2",
    ]
    assert "--probabilities" in result.stderr


def test_json_holds_the_whole_report(run: Run) -> None:
    result = run("evaluate", "labels.csv", "gold.csv", "--json")
    figures = evaluate.report("labels.csv", "gold.csv")
    assert json.loads(result.stdout) == figures.to_dict()


def test_probabilities_of_all_classes_give_more_figures(run: Run, write: Write) -> None:
    write(
        "labels.csv",
        "task,label,probability,probability_x,probability_y\na,x,0.5,0.5,0.5\n",
    )
    result = run("evaluate", "labels.csv", "gold.csv")
    lines = dict(line.rsplit(maxsplit=1) for line in result.stdout.splitlines())
    assert (lines["log loss"], lines["Brier score"]) == ("0.6931", "0.5000")
    assert result.stderr == ""


def test_a_class_that_only_gold_has_counts(run: Run, write: Write) -> None:
    write("gold.csv", "task,label\na,x\nb,new\n")
    result = run("evaluate", "labels.csv", "gold.csv", "--json")
    assert json.loads(result.stdout)["f_by_class"] == {"x": 1.0, "y": 0.0, "new": 0.0}


def test_tasks_that_fuse_was_given_are_left_out(run: Run, write: Write) -> None:
    write("given.csv", "task,label\nc,y\n")
    result = run("evaluate", "labels.csv", "gold.csv", "--given", "given.csv", "--json")
    figures = json.loads(result.stdout)
    assert (figures["n_tasks"], figures["accuracy"]) == (2, 1.0)


def test_ids_that_do_not_meet_end_with_2_and_show_both(run: Run, write: Write) -> None:
    write("gold.csv", "task,label\n7,x\n")
    result = run("evaluate", "labels.csv", "gold.csv")
    assert result.exit_code == 2
    assert "Gold names '7'; the labels name 'a', 'b', 'c'." in result.stderr
    assert result.stdout == ""


def test_links_to_unknown_tasks_are_told(run: Run, write: Write) -> None:
    write("links.csv", "left,right,link\na,zz,must\n")
    result = run("evaluate", "labels.csv", "gold.csv", "--links", "links.csv")
    assert (result.exit_code, code_of(result)) == (2, "links-unknown-tasks")
    assert "line 2" in result.stderr
