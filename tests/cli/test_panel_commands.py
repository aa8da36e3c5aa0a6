"""tiebreak panel, rate and route."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from juries.crowds import made

import tiebreak as tb


@pytest.fixture
def jury(folder: Path) -> Path:
    crowd = made()
    crowd.responses.write(folder / "responses.csv")
    tb.Gold.from_dict(crowd.some).write(folder / "gold.csv")
    rows = [f"{task},{('old', 'new')[i % 2]}" for i, task in enumerate(crowd.gold)]
    (folder / "systems.csv").write_text("task,system\n" + "\n".join(rows) + "\n")
    return folder


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_panel(run: Any, jury: Path) -> None:
    done = run("judges", "panel", "responses.csv", "--gold", "gold.csv", "--matrix", "m.csv")
    assert done.exit_code == 0
    assert "independent ones" in done.stdout
    assert len(read(jury / "m.csv")) == 15
    found = json.loads(
        run("judges", "panel", "responses.csv", "--gold", "gold.csv", "--json").stdout
    )
    assert found["n_known"] == 80
    assert 1.0 <= found["shared"]["effective"] <= 6.0


def test_panel_without_gold(run: Any, jury: Path) -> None:
    done = run(
        "judges", "panel", "responses.csv", "--sample", "to_label.csv", "--set", "n_to_label=20"
    )
    assert done.exit_code == 0
    rows = read(jury / "to_label.csv")
    assert len(rows) == 20
    assert all(0.0 < float(row["probability"]) <= 1.0 for row in rows)


def test_panel_without_gold_says_what_to_label_and_the_command_gives_the_same_tasks(
    run: Any, jury: Path
) -> None:
    """From no gold to a report with gold, by what is printed alone."""
    done = run("judges", "panel", "responses.csv")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Shared errors cannot be seen without gold")
    assert lines[1] == "Label these 50 tasks, and give them as gold:"
    end = next(i for i, line in enumerate(lines) if i > 1 and not line.startswith("  "))
    named = " ".join(lines[2:end]).replace(",", " ").split()
    assert len(named) == 50
    (command,) = [line for line in lines if line.startswith("These tasks as a table: ")]
    words = shlex.split(command.partition(": ")[2])
    assert words == [
        *("tiebreak", "ask", "responses.csv", "--kinds", "label", "--list", "50"),
        *("-o", "to_label.csv"),
    ]
    assert run(*words[1:]).exit_code == 0
    asked = [row["task"] for row in read(jury / "to_label.csv")]
    assert asked == named
    assert json.loads(run("judges", "panel", "responses.csv", "--json").stdout)["to_label"] == named
    truth = made().gold
    tb.Gold.from_dict({task: truth[task] for task in asked}).write(jury / "known.csv")
    after = run("judges", "panel", "responses.csv", "--gold", "known.csv")
    assert after.exit_code == 0, after.output
    assert "independent ones" in after.stdout
    assert "These tasks as a table" not in after.stdout


def test_the_command_of_a_panel_without_gold_names_the_columns(run: Any, jury: Path) -> None:
    text = (jury / "responses.csv").read_text("utf-8")
    (jury / "my verdicts.csv").write_text(text.replace("label", "verdict_x", 1), "utf-8")
    given = ("--columns", "label=verdict_x", "--set", "n_to_label=7")
    done = run("judges", "panel", "my verdicts.csv", *given)
    assert done.exit_code == 0, done.output
    (command,) = [line for line in done.stdout.splitlines() if "as a table" in line]
    words = shlex.split(command.partition(": ")[2])
    assert words[2:5] == ["my verdicts.csv", "--columns", "label=verdict_x"]
    assert run(*words[1:]).exit_code == 0
    assert len(read(jury / "to_label.csv")) == 7


def test_the_sample_leads_to_rates(run: Any, jury: Path) -> None:
    run("judges", "panel", "responses.csv", "--sample", "to_label.csv", "--set", "n_to_label=60")
    truth = made().gold
    drawn = {row["task"]: truth[row["task"]] for row in read(jury / "to_label.csv")}
    tb.Gold.from_dict(drawn).write(jury / "known.csv")
    done = run(
        *("judges", "rate", "responses.csv", "--gold", "known.csv", "--selection", "to_label.csv"),
        *("--by", "systems.csv", "-o", "rates.csv"),
    )
    assert done.exit_code == 0, done.output
    rows = read(jury / "rates.csv")
    assert {row["system"] for row in rows} == {"all", "old", "new"}
    assert {row["method"] for row in rows} >= {"ppi", "posterior", "rogan-gladen", "gold", "judges"}


def test_route_writes_three_lists(run: Any, jury: Path) -> None:
    done = run("judges", "route", "responses.csv", "--judge", 0.001, "-o", "plan", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    n = [len(read(jury / "plan" / f"{name}.csv")) for name in ("done", "human", "judge")]
    assert n == [found["done"], found["human"], found["judge"]]
    assert sum(n) == 400


@pytest.mark.parametrize(
    "arguments",
    [
        ("judges", "panel", "responses.csv", "--matrix", "m.csv"),
        ("judges", "panel", "responses.csv", "--by", "systems.csv"),
        ("judges", "panel", "responses.csv", "--accepts", "c0"),
        ("judges", "panel", "responses.csv", "--gold", "gold.csv", "--prices", "nobody=1"),
        ("judges", "panel", "responses.csv", "--prices", "x=y"),
        ("judges", "panel", "responses.csv", "--by", "systems.csv", "--accepts", "nothing"),
        ("judges", "rate", "responses.csv", "--gold", "gold.csv", "--set", "level=2"),
        ("judges", "rate", "responses.csv", "--gold", "gold.csv", "--selection", "gold.csv"),
        ("judges", "rate", "responses.csv", "--gold", "none.csv"),
        ("judges", "route", "responses.csv", "-o", "plan", "--human", "-1"),
        ("judges", "route", "responses.csv", "-o", "plan", "--judge", "x=much"),
    ],
)
def test_wrong_use_ends_with_two(run: Any, jury: Path, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert not (jury / "plan").exists() or not list((jury / "plan").glob("*.csv"))
    assert not (jury / "m.csv").exists()


def test_describe_with_gold_has_the_panel(run: Any, jury: Path) -> None:
    done = run("describe", "responses.csv", "--gold", "gold.csv")
    assert done.exit_code == 0
    assert "independent ones" in done.stdout
    plain = ("describe", "responses.csv", "--json")
    assert "panel" not in json.loads(run(*plain).stdout)
    assert json.loads(run(*plain, "--gold", "gold.csv").stdout)["panel"]["n_known"] == 80


def test_the_report_shows_self_preference(run: Any, jury: Path) -> None:
    """The page has it where it is known who made the answers, with gold and without."""
    rows = read(jury / "responses.csv")
    names = sorted({row["worker"] for row in rows})
    tasks = sorted({row["task"] for row in rows})
    lines = [f"{task},{names[i % 2]}" for i, task in enumerate(tasks)]
    (jury / "made_by.csv").write_text("task,system\n" + "\n".join(lines) + "\n")
    given = ("--by", "made_by.csv", "--accepts", rows[0]["label"], "--force")
    page = ("-o", "page.html", "--json", "page.json")
    for gold in ((), ("--gold", "gold.csv")):
        done = run("report", "responses.csv", *gold, *given, *page)
        assert done.exit_code == 0, done.output
        found = json.loads((jury / "page.json").read_text("utf-8"))["sections"]["judges"]
        assert sorted(each["worker"] for each in found["self_preference"]) == names[:2]
        assert "Self-preference" in (jury / "page.html").read_text("utf-8")
        assert bool(found["judges"]) == bool(gold)
    for wrong in (given[:2], given[2:], ("--by", "made_by.csv", "--accepts", "nothing")):
        done = run("report", "responses.csv", *wrong, "-o", "page.html", "--force")
        assert done.exit_code == 2, wrong
