"""tiebreak simulate: files that fuse and evaluate take, the same for the same seed."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tiebreak as tb

Run = Callable[..., Any]
FILES = ("gold.csv", "links.csv", "responses.csv")


def test_the_crowd_is_as_asked(run: Run) -> None:
    result = run(
        "simulate", "-o", "some/where", "--tasks", 30, "--workers", 6, "--classes", 4,
        "--responses-per-task", 3, "--links", 50, "--accuracy", "1", "--seed", 3,
    )  # fmt: skip
    assert result.exit_code == 0
    folder = Path("some/where")
    assert sorted(path.name for path in folder.glob("*.csv")) == list(FILES)
    responses = tb.read_responses(folder / "responses.csv")
    assert (responses.n_responses, responses.n_tasks, responses.n_workers) == (90, 30, 6)
    gold = tb.read_gold(folder / "gold.csv")
    assert tb.MajorityVote().fit(responses).labels_.best() == gold.to_dict()
    links = tb.read_links(folder / "links.csv")
    assert len(links) == 50
    assert tb.evaluate.violations(gold.to_dict(), links).given == 0


def test_the_command_it_suggests_works(run: Run) -> None:
    result = run("simulate", "-o", "a b", "--tasks", 30, "--links", 20)
    suggested = result.stderr.splitlines()[-1].removeprefix("try: tiebreak ")
    assert run(*shlex.split(suggested)).exit_code == 0
    assert Path("a b/labels.csv").exists()


def test_the_same_seed_writes_the_same_bytes(run: Run) -> None:
    for folder, seed in (("one", 5), ("two", 5), ("three", 6)):
        run("simulate", "-o", folder, "--tasks", 40, "--links", 30, "--seed", seed, "--quiet")
    for name in FILES:
        one, two, three = (Path(folder, name).read_bytes() for folder in ("one", "two", "three"))
        assert one == two
        assert one != three


def test_links_are_written_only_if_asked_and_wrong_as_asked(run: Run) -> None:
    run("simulate", "-o", "plain", "--tasks", 10)
    assert not Path("plain/links.csv").exists()
    run("simulate", "-o", "wrong", "--tasks", 10, "--links", 45, "--wrong", 1)
    gold = tb.read_gold("wrong/gold.csv").to_dict()
    assert tb.evaluate.violations(gold, "wrong/links.csv").given == 45


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tasks", "0"], "at least 1 task"),
        (["--accuracy", "high"], "LOW,HIGH"),
        (["--accuracy", "0.1,0.2,0.3"], "LOW,HIGH"),
        (["--accuracy", "0.9,1.1"], "accuracy must be"),
        (["--workers", "2"], "from 1 to the number of workers, 2"),
        (["--tasks", "3", "--links", "4"], "from 0 to 3"),
        (["--links", "1", "--wrong", "2"], "wrong must be a probability"),
    ],
)
def test_what_cannot_be_drawn_is_told_and_no_folder_is_made(
    run: Run, folder: Path, arguments: list[str], said: str
) -> None:
    result = run("simulate", "-o", "out", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not list(folder.iterdir())


def test_a_file_where_the_folder_should_be_is_told(run: Run, folder: Path) -> None:
    (folder / "out").write_text("mine")
    result = run("simulate", "-o", "out")
    assert result.exit_code == 2
    assert "The folder out cannot be made" in result.stderr
    assert (folder / "out").read_text() == "mine"
