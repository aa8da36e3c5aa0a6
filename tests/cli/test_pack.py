"""tiebreak convert -o NAME.tb: the same labels, from a packed folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.running import code_of

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

ROWS = "task,worker,label\na,ann,x\na,bob,x\nb,ann,y\nb,bob,x\nb,cid,y\n"


@pytest.fixture(autouse=True)
def responses(write: Write) -> Path:
    return write("responses.csv", ROWS)


def test_packed_responses_give_the_same_labels(run: Run, folder: Path) -> None:
    packed = run("convert", "responses.csv", "-o", "responses.tb")
    assert (packed.exit_code, packed.stdout) == (0, "")
    assert (folder / "responses.tb" / "about.json").is_file()
    plain, fast = run("fuse", "responses.csv"), run("fuse", "responses.tb")
    assert fast.exit_code == 0
    assert fast.stdout == plain.stdout


def test_options_reach_the_reader(run: Run, write: Write) -> None:
    write("votes.csv", "item,judge,verdict\n1,j,no\n1,j,yes\n")
    write("tasks.csv", "task\n2\n")
    options = ["--columns", "task=item,worker=judge,label=verdict", "--set", "repeats=count"]
    done = run(
        "convert",
        "votes.csv",
        "-o",
        "v.tb",
        *options,
        "--set",
        "tasks=tasks.csv",
        "--set",
        "classes=z",
    )
    assert done.exit_code == 0
    found = json.loads(run("describe", "v.tb", "--json").stdout)
    assert (found["responses"], found["tasks"], len(found["classes"])) == (2, 2, 3)


def test_quiet_says_nothing(run: Run) -> None:
    assert run("convert", "responses.csv", "-o", "r.tb", "-q").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("responses.csv -o x.tb --gold-out g.csv", "option-needs"),
        ("nothing.csv -o x.tb", "file-missing"),
        ("responses.csv -o no/x.tb", "target-folder-missing"),
        ("responses.csv --below 0.5", "option-needs"),
    ],
)
def test_what_cannot_be_packed_is_refused(run: Run, arguments: str, code: str) -> None:
    done = run("convert", *arguments.split())
    assert (done.exit_code, code_of(done)) == (2, code)


def test_a_damaged_folder_ends_with_2(run: Run, folder: Path) -> None:
    run("convert", "responses.csv", "-o", "responses.tb")
    (code,) = (folder / "responses.tb").glob("code-*.npy")
    code.write_bytes(b"")
    done = run("fuse", "responses.tb")
    assert (done.exit_code, code_of(done)) == (2, "array-folder-damaged")
