"""Commands on several files: the same as on the one file with all their rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.running import code_of

import tiebreak as tb
from tiebreak import tables

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

HEADER = "task,worker,label"
ROWS = [
    f"t{i},w{j},{'yes' if (i + j * (i % 4 == 0)) % 2 else 'no'}"
    for i in range(30)
    for j in range(4)
]
PARTS = ("p1.csv", "p2.csv", "p3.csv")


@pytest.fixture
def parts(write: Write) -> tuple[str, ...]:
    """Write the rows as one file, and as three in which no task is spread."""
    write("one.csv", "\n".join([HEADER, *ROWS, ""]))
    for i, name in enumerate(PARTS):
        write(name, "\n".join([HEADER, *ROWS[40 * i : 40 * i + 40], ""]))
    write(
        "gold.csv", "task,label\n" + "".join(f"t{i},{'yes' if i % 2 else 'no'}\n" for i in range(9))
    )
    return PARTS


WAYS = {"named": PARTS, "a pattern": ("p?.csv",), "both": ("p1.csv", "p[23].csv")}
COMMANDS = {
    "fuse": "fuse RESPONSES --probabilities",
    "fuse with gold and options": "fuse RESPONSES --gold gold.csv --set repeats=count --method ds",
    "fuse with names of columns": "fuse RESPONSES --columns task=task,label=label --gold gold.csv",
    "describe": "describe RESPONSES -q",
    "describe as JSON": "describe RESPONSES --gold gold.csv --json -q",
    "convert": "convert RESPONSES -q",
    "select": "ask RESPONSES --list 5 --set random_state=1 -q",
    "panel": "judges panel RESPONSES --gold gold.csv -q",
    "rate": "judges rate RESPONSES --gold gold.csv -q",
    "predict": "predict model.tbm RESPONSES -q",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_print_the_same(
    command: str, way: str, run: Run, parts: tuple[str, ...], folder: Path
) -> None:
    if command == "predict":
        assert run("fuse", "one.csv", "--save", "model.tbm", "-o", "l.csv").exit_code == 0

    def printed(*responses: str) -> str:
        words = COMMANDS[command].split()
        at = words.index("RESPONSES")
        done = run(*words[:at], *responses, *words[at + 1 :])
        assert done.exit_code == 0, done.stderr
        assert done.stdout
        return str(done.stdout)

    assert printed(*WAYS[way]) == printed("one.csv")


def test_a_folder_and_an_address_are_read_too(run: Run, parts: Any, folder: Path) -> None:
    inside = folder / "in"
    inside.mkdir()
    for name in PARTS:
        (folder / name).rename(inside / name)
    expected = run("fuse", "one.csv").stdout
    assert run("fuse", "in").stdout == expected
    assert run("fuse", "in/").stdout == expected
    assert run("fuse", f"file://{inside}/p*.csv").stdout == expected
    assert run("fuse", f"file://{inside}/p1.csv", "in/p2.csv", "in/p3.csv").stdout == expected


def test_links_and_gold_may_be_patterns_and_folders(run: Run, write: Write, parts: Any) -> None:
    write("l.csv", "left,right,link\nt1,t3,must\nt2,t4,must\n")
    write("k1.csv", "left,right,link\nt1,t3,must\n")
    write("k2.csv", "left,right,link\nt2,t4,must\n")
    write("h1.csv", "task,label\nt0,no\n")
    write("h2.csv", "task,label\nt1,yes\n")
    write("h.csv", "task,label\nt0,no\nt1,yes\n")
    several = run("fuse", "p?.csv", "--links", "k?.csv", "--gold", "h?.csv")
    one = run("fuse", "one.csv", "--links", "l.csv", "--gold", "h.csv")
    assert several.exit_code == one.exit_code == 0, several.stderr
    assert several.stdout == one.stdout


def test_labels_are_those_of_shards_out_of_core(run: Run, parts: Any, folder: Path) -> None:
    assert run("fuse", *PARTS, "--method", "vb", "-o", "labels.csv").exit_code == 0
    done = run("fuse", *PARTS, "--out-of-core", "-o", "shards")
    assert done.exit_code == 0, done.stderr
    with (folder / "labels.csv").open(encoding="utf-8") as lines:
        rows = {
            row["task"]: (row["label"], float(row["probability"])) for row in csv.DictReader(lines)
        }
    table = tb.shards.LabelFiles(folder / "shards").to_table().to_pylist()
    assert len(table) == len(rows) == 30
    for each in table:
        label, probability = rows[each["task"]]
        assert each["label"] == label
        assert each["probability"] == pytest.approx(probability, rel=1e-12)
    scores = [
        run("evaluate", labels, "gold.csv", "-q").stdout for labels in ("shards", "labels.csv")
    ]
    assert scores[0] == scores[1] != ""
    again = run("predict", "m.tbm", *PARTS, "--out-of-core", "-o", "more", "-q")
    assert again.exit_code == 2  # there is no m.tbm
    assert run("fuse", *PARTS, "--method", "vb", "-o", "l.csv", "--save", "m.tbm").exit_code == 0
    assert run("predict", "m.tbm", *PARTS, "--out-of-core", "-o", "more", "-q").exit_code == 0


def test_update_takes_several_after_the_model(run: Run, parts: Any, folder: Path) -> None:
    assert run("fuse", "p1.csv", "--save", "m.tbm", "-o", "l.csv").exit_code == 0
    done = run("update", "m.tbm", "p2.csv", "p3.csv", "--save", "both.tbm", "-o", "all.csv")
    assert done.exit_code == 0, done.stderr
    assert run("update", "m.tbm", "p[23].csv", "-o", "again.csv").exit_code == 0
    assert (folder / "all.csv").read_text() == (folder / "again.csv").read_text()
    assert len(tb.load(folder / "both.tbm").tasks_) == 30


@pytest.mark.parametrize("command", ["fuse", "describe"])
def test_where_memory_runs_out_the_way_out_is_named(
    command: str, run: Run, parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(tables, "read_export", refuse)
    done = run(command, *PARTS)
    assert done.exit_code == 2
    assert "memory" in done.stderr
    assert ("--out-of-core" in done.stderr) is (command == "fuse")  # which describe has not


def test_several_files_are_packed_as_one(run: Run, parts: Any) -> None:
    assert run("convert", *PARTS, "-o", "all.tb").exit_code == 0
    assert run("fuse", "all.tb").stdout == run("fuse", "one.csv").stdout


def test_route_and_report_take_several(run: Run, parts: Any, folder: Path) -> None:
    done = run("judges", "route", *PARTS, "--gold", "gold.csv", "-o", "routes")
    assert done.exit_code == 0, done.stderr
    assert run("report", *PARTS, "-o", "r.html", "--json", "r.json").exit_code == 0
    assert "p1.csv and 2 other files" in (folder / "r.html").read_text(encoding="utf-8")
    assert run("report", "one.csv", "-o", "s.html", "--json", "s.json").exit_code == 0
    several, one = (
        json.loads((folder / name).read_text(encoding="utf-8")) for name in ("r.json", "s.json")
    )
    assert several.keys() == one.keys()
    assert [name for name in one if several[name] != one[name]] == ["source"]


def test_ask_takes_several(run: Run, parts: Any, folder: Path) -> None:
    done = run("ask", *PARTS, "--session", "s.db", "-o", "l.csv", stdin="q")
    assert done.exit_code == 0, done.stderr
    assert len((folder / "l.csv").read_text().splitlines()) == 31
    assert run("ask", "p?.csv", "--session", "s.db", stdin="q").exit_code == 0  # the same crowd


def test_convert_joins_exports_with_their_gold(run: Run, write: Write, folder: Path) -> None:
    record = {"_input_hash": 1, "_task_hash": 1, "answer": "accept", "options": [{"id": "pos"}]}
    for i, who in enumerate(("ann", "bob")):
        line = record | {
            "text": f"text {i}",
            "_annotator_id": who,
            "accept": ["pos"],
            "_input_hash": i,
        }
        write(f"e{i}.jsonl", json.dumps(line) + "\n")
    done = run("convert", "e0.jsonl", "e1.jsonl", "-o", "r.csv", "--texts-out", "t.csv")
    assert done.exit_code == 0, done.stderr
    assert (folder / "r.csv").read_text().splitlines() == [
        "task,worker,label,time",
        "0,ann,pos,",
        "1,bob,pos,",
    ]
    assert "text 1" in (folder / "t.csv").read_text()


WRONG = {
    "a pattern that fits nothing": ("fuse q*.csv", "no-match"),
    "a file that is not there": ("fuse p1.csv p9.csv", "file-missing"),
    "a file twice": ("fuse p1.csv p?.csv", "file-named-twice"),
    "standard input beside a file": ("fuse p1.csv -", "stdin-among-files"),
    "a folder without tables": ("fuse texts", "no-tables"),
    "labels over a file that is read": ("fuse p?.csv -o p2.csv", "file-taken"),
    "an option between files": ("describe p1.csv --nope p2.csv", "usage"),
    "no file": ("fuse", "usage"),
    "keys in an address": ("fuse s3://me:secret@b/x.csv", "keys-in-address"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_said_and_no_file_is_touched(
    wrong: str, run: Run, parts: Any, folder: Path
) -> None:
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt").write_text("text")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    arguments, code = WRONG[wrong]
    done = run(*arguments.split())
    assert (done.exit_code, code_of(done)) == (2, code)
    assert "secret" not in done.stderr
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
