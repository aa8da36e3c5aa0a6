"""tiebreak report: the page, and its numbers where asked for, from files; what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.running import code_of

import tiebreak as tb

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

JSON = ("--json", "report.json")


@pytest.fixture
def crowd(folder: Path) -> tb.simulate.Crowd:
    drawn = tb.simulate.crowd(80, 8, 3, random_state=0)
    known = list(drawn.gold.to_dict().items())
    drawn.responses.write("responses.csv")
    tb.simulate.links(drawn.gold, 30, random_state=1).write("links.csv")
    tb.Gold.from_dict(dict(known[:25])).write("gold.csv")
    tb.Gold.from_dict(dict(known[25:])).write("truth.csv")
    return drawn


def numbers(folder: Path, name: str = "report.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text("utf-8"))
    return found


@pytest.mark.usefixtures("crowd")
def test_it_writes_a_page_and_its_numbers_where_asked(run: Run, folder: Path) -> None:
    command = ["report", "responses.csv", "--links", "links.csv", "-o", "out.html"]
    assert run(*command).exit_code == 0
    assert not list(folder.glob("*.json"))
    done = run(*command, "--json", "out.json")
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    assert "Report on responses.csv" in (folder / "out.html").read_text("utf-8")
    assert numbers(folder, "out.json")["counts"]["links"] == 30


@pytest.mark.usefixtures("crowd")
def test_truth_is_compared_with_and_kept_from_the_fit(run: Run, folder: Path) -> None:
    done = run("report", "responses.csv", "--truth", "truth.csv", "--gold", "gold.csv", *JSON)
    assert done.exit_code == 0, done.output
    scores = numbers(folder)["sections"]["scores"]
    assert scores["n_tasks"] == 55
    assert not scores["fitted_again_without_gold"]
    model = tb.VariationalBayes().fit("responses.csv", gold="gold.csv")
    assert scores["accuracy"] == tb.evaluate.accuracy(model.labels_, "truth.csv")


@pytest.mark.usefixtures("crowd")
def test_gold_alone_is_scored_by_a_fit_without_it(run: Run, folder: Path) -> None:
    assert run("report", "responses.csv", "--gold", "gold.csv", "-q", *JSON).exit_code == 0
    scores = numbers(folder)["sections"]["scores"]
    assert scores["n_tasks"] == 25
    assert scores["fitted_again_without_gold"]


@pytest.mark.usefixtures("crowd")
def test_texts_and_the_worker_model_are_shown(run: Run, folder: Path, write: Write) -> None:
    rows = "".join(f"t{t:02d},What t{t:02d} says\n" for t in range(1, 81))
    write("texts.csv", "task,text\n" + rows)
    done = run(
        "report", "responses.csv", "--texts", "texts.csv", "--set", "worker_model=kinds", *JSON
    )
    assert done.exit_code == 0, done.output
    found = numbers(folder)["sections"]
    first = found["doubtful_tasks"]["tasks"][0]
    assert first["text"] == f"What {first['task']} says"
    assert found["fit"]["worker_model"] == "kinds"


@pytest.mark.usefixtures("crowd")
def test_contradictory_links_are_reported_instead_of_refused(
    run: Run, folder: Path, write: Write
) -> None:
    write("bad.csv", "left,right,link\nt01,t02,must\nt02,t03,must\nt01,t03,cannot\n")
    done = run("report", "responses.csv", "--links", "bad.csv", *JSON)
    assert done.exit_code == 0, done.output
    shown = numbers(folder)["sections"]["links"]["contradictory"]
    assert [each["chain"] for each in shown] == ["t01 = t02 = t03"]
    assert shown[0]["where"] == "bad.csv, line 4"
    refused = run(
        "report", "responses.csv", "--links", "bad.csv", "--set", "on_contradiction=error"
    )
    assert (refused.exit_code, code_of(refused)) == (2, "links-contradict")


@pytest.mark.usefixtures("crowd")
def test_responses_may_come_from_standard_input(run: Run, folder: Path) -> None:
    text = (folder / "responses.csv").read_text("utf-8")
    assert run("report", "-", "-o", "r.html", stdin=text).exit_code == 0
    assert "Report on standard input" in (folder / "r.html").read_text("utf-8")


@pytest.mark.usefixtures("crowd")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-o", "report.pdf"], "report-ending"),
        (["-o", "same.html", "--json", "same.html"], "file-taken"),
        (["-o", "-"], "report-ending"),
        (["-o", "nowhere/report.html"], "target-folder-missing"),
        (["--set", "on_contradiction=drop"], "option-needs"),
        (["--set", "link_error=0.1"], "option-needs"),
        (["--truth", "absent.csv"], "file-missing"),
        (["--gold", "gold.csv", "--truth", "gold.csv"], "gold-all-given"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(
    run: Run, folder: Path, arguments: list[str], code: str
) -> None:
    before = sorted(path.name for path in folder.iterdir())
    done = run("report", "responses.csv", *arguments)
    assert (done.exit_code, code_of(done)) == (2, code)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.usefixtures("crowd")
def test_a_file_that_is_not_a_report_is_left_alone(run: Run, folder: Path, write: Write) -> None:
    mine = write("report.html", "mine")
    done = run("report", "responses.csv")
    assert done.exit_code == 2
    assert code_of(done) == "report-foreign-file"
    assert mine.read_text("utf-8") == "mine"
    assert run("report", "responses.csv", "--force").exit_code == 0
    assert run("report", "responses.csv").exit_code == 0  # over its own file


@pytest.mark.usefixtures("crowd")
def test_quiet_says_nothing(run: Run) -> None:
    done = run("report", "responses.csv", "-q")
    assert done.exit_code == 0
    assert done.output == ""
