"""Wrong input: what is said, how the command ends, and that no file was touched."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cli.running import code_of

import tiebreak as tb

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

RESPONSES = "task,worker,label\na,u,x\na,v,x\nb,u,y\nb,v,y\nc,u,x\nc,v,y\n"


class Wrong(NamedTuple):
    """Files to write (r.csv holds good responses unless named), arguments, code, what is shown."""

    files: dict[str, str]
    arguments: str
    code: str
    shown: tuple[str, ...] = ()


WRONG = {
    "unknown task in links": Wrong(
        {"l.csv": "left,right,link\na,b,must\na,zz,must\n"},
        "r.csv --links l.csv",
        "links-unknown-tasks",
        ("'zz' (l.csv, line 3)", "--set tasks"),
    ),
    "unknown task in gold": Wrong(
        {"g.csv": "task,label\na,x\nzz,y\n"},
        "r.csv --gold g.csv",
        "unknown-gold",
        ("'zz' (g.csv, line 3)", "--set tasks"),
    ),
    "task known twice": Wrong(
        {"g.csv": "task,label\na,x\na,y\n"}, "r.csv --gold g.csv", "gold-known-twice", ("line 3",)
    ),
    "contradicting links": Wrong(
        {"l.csv": "left,right,link\na,b,must\nb,c,must\na,c,cannot\n"},
        "r.csv --links l.csv",
        "links-contradict",
        ("a = b = c, yet a ≠ c", "--set on_contradiction=drop", "line 4"),
    ),
    "more mutually cannot-linked groups than classes": Wrong(
        {"l.csv": "left,right,link\na,b,cannot\nb,c,cannot\na,c,cannot\n"},
        "r.csv --links l.csv",
        "links-odd-cycle",
    ),
    "a task cannot-linked to itself": Wrong(
        {"l.csv": "left,right,link\na,a,cannot\n"},
        "r.csv --links l.csv",
        "links-unlike-itself",
        ("l.csv, line 2",),
    ),
    "weight zero": Wrong(
        {"l.csv": "left,right,link,weight\na,b,must,0\n"},
        "r.csv --links l.csv",
        "links-odd-weight",
        ("l.csv, line 2",),
    ),
    "weights negative, infinite and no numbers": Wrong(
        {"l.csv": "left,right,link,weight\na,b,must,-1\na,c,must,inf\nb,c,must,much\n"},
        "r.csv --links l.csv",
        "links-odd-weight",
        ("line 2", "line 3", "line 4"),
    ),
    "neither must nor cannot": Wrong(
        {"l.csv": "left,right,link\na,b,maybe\n"},
        "r.csv --links l.csv",
        "links-odd-word",
        ("l.csv, line 2",),
    ),
    "empty file": Wrong({"r.csv": ""}, "r.csv", "file-empty"),
    "header only": Wrong({"r.csv": "task,worker,label\n"}, "r.csv", "no-rows"),
    "no label at all": Wrong({"r.csv": "task,worker,label\na,u,\n"}, "r.csv", "no-label"),
    "no worker in a row": Wrong(
        {"r.csv": "task,worker,label\na,u,x\nb,,y\n"}, "r.csv", "no-id-in-row", ("r.csv, line 3",)
    ),
    "header missing": Wrong({"r.csv": "a,u,x\nb,u,y\n"}, "r.csv", "header-missing"),
    "column missing": Wrong({"r.csv": "task,colour,label\na,u,x\n"}, "r.csv", "column-missing"),
    "labels of mixed types": Wrong(
        {"r.jsonl": '{"task":1,"worker":"u","label":"x"}\n{"task":2,"worker":"u","label":3}\n'},
        "r.jsonl",
        "mixed-types",
        ("r.jsonl, line 1",),
    ),
    "a repeat where none is allowed": Wrong(
        {"r.csv": "task,worker,label\na,u,x\na,u,y\n"},
        "r.csv --set repeats=error",
        "repeats",
        ("--set repeats=last",),
    ),
    "wrong column name": Wrong({}, "r.csv --columns task=item", "no-such-column"),
    "wrong column role": Wrong({}, "r.csv --columns item=task", "wrong-value"),
    "columns without a name": Wrong({}, "r.csv --columns task", "pairs-expected"),
    "missing file": Wrong({}, "nowhere.csv", "file-missing"),
    "missing links": Wrong({}, "r.csv --links nowhere.csv", "file-missing"),
    "labels into the folder that is read": Wrong({}, ".", "file-taken"),
    "an Excel file": Wrong({"r.xlsx": "PK\x03\x04"}, "r.xlsx", "foreign-file"),
    "unknown method": Wrong({}, "r.csv --method best", "usage"),
    "unknown link inference": Wrong(
        {"l.csv": "left,right,link\na,b,must\n"},
        "r.csv --links l.csv --set link_options=guess",
        "wrong-value",
    ),
    "unknown link strength": Wrong(
        {}, "r.csv --set link_options=mean-field --set link_strength=much", "option-needs"
    ),
    "links for a method that cannot use them": Wrong(
        {"l.csv": "left,right,link\na,b,must\n"},
        "r.csv --links l.csv --method ds",
        "method-without-links",
    ),
    "an option that the method does not have": Wrong(
        {},
        "r.csv --method mv --set confusion_prior=uniform --set tol=0.1",
        "unknown-setting",
        ("confusion_prior",),
    ),
    "standard input twice": Wrong({}, "- --links -", "stdin-twice"),
    "no sweeps": Wrong({}, "r.csv --set max_iter=0", "wrong-value", ("max_iter",)),
}


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in folder.iterdir()}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_wrong_input_is_told_and_no_file_is_touched(
    run: Run, write: Write, folder: Path, wrong: Wrong
) -> None:
    for name, text in ({"r.csv": RESPONSES} | wrong.files).items():
        write(name, text)
    write("labels.csv", "what was here before")
    before = contents(folder)
    outputs = ("-o", "labels.csv", "--workers", "workers.csv")
    result = run("fuse", *wrong.arguments.split(), *outputs, stdin="")
    assert result.exit_code == 2
    assert code_of(result) == wrong.code
    assert [each for each in wrong.shown if each not in result.stderr] == []
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("outputs", "code"),
    [
        (("-o", "nowhere/labels.csv"), "target-folder-missing"),
        (("-o", "labels.csv", "--workers", "nowhere/w.csv"), "target-folder-missing"),
        (("-o", "."), "target-is-folder"),
        (("-o", "r.csv"), "file-taken"),
        (("-o", "labels.csv", "--workers", "./labels.csv"), "file-taken"),
        (("--workers", "-"), "stdin-twice"),
        (("--json",), "json-needs-out"),
        (("--json", "-o", "-"), "json-needs-out"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_anything_is_written(
    run: Run, write: Write, folder: Path, outputs: tuple[str, ...], code: str
) -> None:
    write("r.csv", RESPONSES)
    result = run("fuse", "r.csv", *outputs)
    assert (result.exit_code, code_of(result)) == (2, code)
    assert result.stdout == ""
    assert contents(folder) == {"r.csv": RESPONSES}


def test_a_file_that_may_not_be_read_is_told(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("r.csv", RESPONSES)
    opened = Path.open

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == "r.csv":
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    result = run("fuse", "r.csv")
    assert (result.exit_code, code_of(result)) == (2, "file-unreadable")


# Unusual, yet right


def test_a_class_that_only_gold_names_is_allowed_and_said(run: Run, write: Write) -> None:
    write("r.csv", RESPONSES)
    write("g.csv", "task,label\na,new\n")
    result = run("fuse", "r.csv", "--gold", "g.csv")
    assert result.exit_code == 0
    assert "a,new,1" in result.stdout


def test_contradictions_can_be_dropped_and_are_counted(run: Run, write: Write) -> None:
    write("r.csv", RESPONSES)
    write("l.csv", "left,right,link\na,b,must\nb,c,must\na,c,cannot\n")
    result = run("fuse", "r.csv", "--links", "l.csv", "--set", "on_contradiction=drop")
    assert result.exit_code == 0
    assert "note: " in result.stderr
    assert len({row.split(",")[1] for row in result.stdout.splitlines()[1:]}) == 1


def test_a_single_class_is_allowed_and_said(run: Run, write: Write) -> None:
    write("r.csv", "task,worker,label\na,u,x\nb,u,x\n")
    result = run("fuse", "r.csv")
    assert result.exit_code == 0
    assert "note: All labels are 'x'" in result.stderr
    assert result.stdout == "task,label,probability,vote\na,x,1,x\nb,x,1,x\n"


@pytest.mark.parametrize("method", ["vb", "ds", "mv"])
def test_one_worker_is_enough(run: Run, write: Write, method: str) -> None:
    write("r.csv", "task,worker,label\na,u,x\nb,u,y\n")
    result = run("fuse", "r.csv", "--method", method)
    assert result.exit_code == 0
    assert [row.split(",")[:2] for row in result.stdout.splitlines()[1:]] == [
        ["a", "x"],
        ["b", "y"],
    ]


def test_empty_labels_are_no_answers_and_counted(run: Run, write: Write) -> None:
    write("r.csv", "task,worker,label\na,u,x\na,v,\nb,u,y\nc,v,\n")
    result = run("fuse", "r.csv", "--method", "mv", "--probabilities")
    assert result.exit_code == 0
    assert "note: 2" in result.stderr
    assert result.stdout.splitlines()[-1] == "c,x,0.5,0.5,0.5,"


def test_a_million_classes_are_refused_with_what_they_would_take(run: Run, folder: Path) -> None:
    with (folder / "r.csv").open("w") as file:
        file.write("task,worker,label\n")
        file.writelines(f"t{i % 1000},w{i // 1000},answer {i}\n" for i in range(1_000_000))
    result = run("fuse", "r.csv", "-o", "labels.csv")
    assert result.exit_code == 2
    said = r"1,000,000 classes and 1,000 workers need about [\d,]+ GiB.*this machine has [\d,]+ GiB"
    assert re.search(said, result.stderr)
    assert "right one?" in result.stderr
    assert not (folder / "labels.csv").exists()


def test_ids_with_commas_quotes_newlines_and_emoji_come_back(run: Run, folder: Path) -> None:
    ids = ["a,b", 'say "so"', "two\nlines", "🐈", "two  blanks", "ü\tt", "=1+1"]
    classes = ["yes, sir", 'no "way"', "🙂\nnext"]
    rows = [(task, f"w,{w}\n", classes[i % 3]) for i, task in enumerate(ids) for w in range(3)]
    tb.Responses.from_rows(rows).write("r.csv")
    links = tb.Links.from_pairs(must=[(ids[0], ids[3])], cannot=[(ids[1], ids[2])])
    links.write("l.csv")
    tb.Gold.from_dict({ids[6]: classes[0]}).write("g.csv")
    result = run(
        "fuse", "r.csv", "--links", "l.csv", "--gold", "g.csv", "-o", "labels.csv",
        "--workers", "workers.csv", "--probabilities",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    labels = tb.read_labels("labels.csv")
    assert labels.best() == {task: classes[i % 3] for i, task in enumerate(ids)}
    assert labels.probabilities is not None
    scored = run("evaluate", "labels.csv", "g.csv", "--links", "l.csv", "--json")
    assert '"accuracy": 1.0' in scored.stdout
