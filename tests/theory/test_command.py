"""tiebreak bounds: tables, sentences, JSON and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from tiebreak.cli.app import with_exit_codes
from tiebreak.cli.bounds import bounds
from tiebreak.theory.assumption_file import EXAMPLE

CROWD = """
n_tasks = 20000
class_prior = [0.5, 0.5]
failure_probability = 0.1
[[workers]]
count = 60
accuracy = 0.9
"""


def run(*arguments: str, given: str | None = None) -> Result:
    app = typer.Typer()
    app.command("bounds")(with_exit_codes("bounds", bounds))
    return CliRunner().invoke(app, list(arguments), input=given)


@pytest.fixture
def crowd(tmp_path: Path) -> str:
    file = tmp_path / "crowd.toml"
    file.write_text(CROWD)
    return str(file)


def test_a_good_crowd_gets_a_table_and_a_promise(crowd: str) -> None:
    done = run(crowd, "--iterations", "2")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert " ".join(lines[0].split()).endswith("after iteration labels class prior confusions")
    assert [line.split()[0] for line in lines[1:3]] == ["1", "2"]
    assert "With 60 workers this good on 20,000 tasks, every label is right" in done.stdout
    assert "with probability at least 90 %" in done.stdout
    assert "can be proved right is 99." in done.stdout
    assert "vacuous" not in done.stdout


def test_the_plain_bounds_of_a_small_crowd_are_vacuous_and_say_why(crowd: str) -> None:
    done = run(crowd, "--plain")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1].split() == ["1", "vacuous", "vacuous", "vacuous"]
    assert "Too little evidence" in done.stdout


def test_the_printed_formulas_are_shown_with_a_warning(crowd: str) -> None:
    done = run(crowd, "--as-printed")
    assert done.exit_code == 0, done.output
    assert "neither can be relied on" in done.stdout


def test_json_has_every_number(crowd: str) -> None:
    done = run(crowd, "--json", "--iterations", "3", "--until", "0.01")
    shown = json.loads(done.stdout)
    assert shown["version"] == "sharp"
    assert len(shown["label_error"]) == 3
    assert shown["ingredients"]["evidence_per_task"] > 100
    assert shown["estimated"] is False
    assert shown["plan"]["unit"] == "workers"
    assert 30 < shown["plan"]["needed"] < 60
    assert shown["probability_all_right"] > 0.99


@pytest.mark.parametrize("need", ["workers", "responses", "tasks"])
def test_the_plan_answers_how_many(crowd: str, need: str) -> None:
    done = run(crowd, "--need", need)
    assert done.exit_code == 0, done.output
    assert f" {need}" in done.stdout.splitlines()[-1]
    assert "suffice for a label bound below 0.5" in done.stdout


def test_failure_overrides_the_file(crowd: str) -> None:
    assert "at least 75 %" in run(crowd, "--failure", "0.25").stdout


def test_the_example_can_be_fed_back() -> None:
    assert run("--example").stdout == EXAMPLE
    done = run("-", given=EXAMPLE)
    assert done.exit_code == 0, done.output
    assert "linked labels" in done.stdout


def test_responses_lend_estimates_which_is_said(tmp_path: Path) -> None:
    rows = [f"t{i},w{j},{(i + (i * j % 7 == 3)) % 2}" for i in range(60) for j in range(5)]
    (tmp_path / "r.csv").write_text("task,worker,label\n" + "\n".join(rows) + "\n")
    done = run("--from", str(tmp_path / "r.csv"))
    assert done.exit_code == 0, done.output
    assert "estimated from the responses" in done.stdout
    assert "not a certificate" in done.stdout
    assert "With 5 workers this good on 60 tasks the bounds are vacuous" in done.stdout
    shown = json.loads(run("--from", str(tmp_path / "r.csv"), "--json").stdout)
    assert shown["estimated"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "one of the two"),
        (("nowhere.toml",), "nowhere.toml cannot be read"),
        (("{crowd}", "--from", "r.csv"), "one of the two"),
        (("{crowd}", "--failure", "2"), "failure_probability must be between 0 and 1"),
        (("{crowd}", "--until", "3"), "label_error must be between 0 and 1"),
        (("{crowd}", "--until", "0"), "label_error must be between 0 and 1"),
        (("{crowd}", "--as-printed", "--need", "workers"), "nothing can be planned"),
    ],
)
def test_wrong_use_ends_with_a_message_and_code_2(
    crowd: str, arguments: tuple[str, ...], message: str
) -> None:
    done = run(*(argument.format(crowd=crowd) for argument in arguments))
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_tasks_that_links_name_cannot_be_planned(tmp_path: Path) -> None:
    (tmp_path / "linked.toml").write_text(EXAMPLE)
    done = run(str(tmp_path / "linked.toml"), "--need", "tasks")
    assert done.exit_code == 2
    assert "cannot be planned" in done.stderr
