"""Wrong input: what is said, how the command ends, and that no file was touched."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tiebreak as tb
from tiebreak.errors import InputError, InputNote

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

RESPONSES = "task,worker,label\na,u,x\na,v,x\nb,u,y\nb,v,y\nc,u,x\nc,v,y\n"


class Wrong(NamedTuple):
    """Files to write (r.csv holds good responses unless named), arguments, what must be said."""

    files: dict[str, str]
    arguments: str
    said: str


WRONG = {
    "unknown task in links": Wrong(
        {"l.csv": "left,right,link\na,b,must\na,zz,must\n"},
        "r.csv --links l.csv",
        r"1 task of links is not among the responses: 'zz' \(l\.csv, line 3\)\.\n.*--set tasks",
    ),
    "unknown task in gold": Wrong(
        {"g.csv": "task,label\na,x\nzz,y\n"},
        "r.csv --gold g.csv",
        r"1 task of gold is not among the responses: 'zz' \(g\.csv, line 3\)\.\n.*--set tasks",
    ),
    "task known twice": Wrong(
        {"g.csv": "task,label\na,x\na,y\n"}, "r.csv --gold g.csv", r"'a' is known twice.*line 3"
    ),
    "contradicting links": Wrong(
        {"l.csv": "left,right,link\na,b,must\nb,c,must\na,c,cannot\n"},
        "r.csv --links l.csv",
        r"a = b = c, yet a ≠ c.*\n.*--set on_contradiction=drop",
    ),
    "more mutually cannot-linked groups than classes": Wrong(
        {"l.csv": "left,right,link\na,b,cannot\nb,c,cannot\na,c,cannot\n"},
        "r.csv --links l.csv",
        r"With 2 classes these links cannot all hold: .*≠.*≠.*≠",
    ),
    "a task cannot-linked to itself": Wrong(
        {"l.csv": "left,right,link\na,a,cannot\n"}, "r.csv --links l.csv", r"'a' \(l\.csv, line 2\)"
    ),
    "weight zero": Wrong(
        {"l.csv": "left,right,link,weight\na,b,must,0\n"},
        "r.csv --links l.csv",
        r"1 weight is not a finite number above 0: '0' \(l\.csv, line 2\)",
    ),
    "weights negative, infinite and no numbers": Wrong(
        {"l.csv": "left,right,link,weight\na,b,must,-1\na,c,must,inf\nb,c,must,much\n"},
        "r.csv --links l.csv",
        r"3 weights.*'-1' \(l\.csv, line 2\); 'inf' \(l\.csv, line 3\); 'much' \(l\.csv, line 4\)",
    ),
    "neither must nor cannot": Wrong(
        {"l.csv": "left,right,link\na,b,maybe\n"},
        "r.csv --links l.csv",
        r"'maybe' \(l\.csv, line 2\)",
    ),
    "empty file": Wrong({"r.csv": ""}, "r.csv", r"r\.csv is empty"),
    "header only": Wrong({"r.csv": "task,worker,label\n"}, "r.csv", r"r\.csv .* no rows"),
    "no label at all": Wrong({"r.csv": "task,worker,label\na,u,\n"}, "r.csv", r"no label at all"),
    "no worker in a row": Wrong(
        {"r.csv": "task,worker,label\na,u,x\nb,,y\n"},
        "r.csv",
        r"has no worker id \(r\.csv, line 3\)"
    ),
    "header missing": Wrong(
        {"r.csv": "a,u,x\nb,u,y\n"}, "r.csv", r"header is missing.*'a,u,x'\.\nAdd task,worker,label"
    ),
    "column missing": Wrong(
        {"r.csv": "task,colour,label\na,u,x\n"}, "r.csv", r"no column for worker.*'colour'"
    ),
    "labels of mixed types": Wrong(
        {"r.jsonl": '{"task":1,"worker":"u","label":"x"}\n{"task":2,"worker":"u","label":3}\n'},
        "r.jsonl",
        r"Column 'label' mixes types: r.jsonl, line 1 holds 'x'",
    ),
    "a repeat where none is allowed": Wrong(
        {"r.csv": "task,worker,label\na,u,x\na,u,y\n"},
        "r.csv --set repeats=error",
        r"worker 'u' on task 'a'\.\n.*--set repeats=last",
    ),
    "wrong column name": Wrong(
        {}, "r.csv --columns task=item", r"no column 'item' for task\..*'task', 'worker', 'label'"
    ),
    "wrong column role": Wrong({}, "r.csv --columns item=task", r"'item'"),
    "columns without a name": Wrong({}, "r.csv --columns task", r"name=value.*'task'"),
    "missing file": Wrong({}, "nowhere.csv", r"There is no file nowhere\.csv"),
    "missing links": Wrong({}, "r.csv --links nowhere.csv", r"There is no file nowhere\.csv"),
    "labels into the folder that is read": Wrong({}, ".", r"labels\.csv is read or written"),
    "an Excel file": Wrong({"r.xlsx": "PK\x03\x04"}, "r.xlsx", r"Excel.*CSV"),
    "unknown method": Wrong({}, "r.csv --method best", r"best"),
    "unknown link inference": Wrong(
        {"l.csv": "left,right,link\na,b,must\n"},
        "r.csv --links l.csv --set link_options=guess",
        r"link_options must be one of 'exact', 'mean-field'; got 'guess'",
    ),
    "unknown link strength": Wrong({}, "r.csv --set link_options=mean-field --set link_strength=much", r"needs --links"),  # noqa: E501
    "links for a method that cannot use them": Wrong(
        {"l.csv": "left,right,link\na,b,must\n"},
        "r.csv --links l.csv --method ds",
        r"ds cannot use\s+--links;\s+--method vb can",
    ),
    "an option that the method does not have": Wrong(
        {}, "r.csv --method mv --set confusion_prior=uniform --set tol=0.1", r"confusion_prior"
    ),
    "standard input twice": Wrong({}, "- --links -", r"Only one file can be '-'"),
    "no sweeps": Wrong({}, "r.csv --set max_iter=0", r"max_iter"),
}  # fmt: skip


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
    assert re.search(wrong.said, result.stderr, re.DOTALL), result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        (("-o", "nowhere/labels.csv"), r"there is no folder 'nowhere'"),
        (("-o", "labels.csv", "--workers", "nowhere/w.csv"), r"there is no folder 'nowhere'"),
        (("-o", "."), r"is a folder"),
        (("-o", "r.csv"), r"r\.csv is read or written"),
        (("-o", "labels.csv", "--workers", "./labels.csv"), r"is read or written"),
        (("--workers", "-"), r"Only one file can be '-', the standard output"),
        (("--json",), r"stdout.*-o"),
        (("--json", "-o", "-"), r"stdout.*-o"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_anything_is_written(
    run: Run, write: Write, folder: Path, outputs: tuple[str, ...], said: str
) -> None:
    write("r.csv", RESPONSES)
    result = run("fuse", "r.csv", *outputs)
    assert result.exit_code == 2
    assert re.search(said, result.stderr, re.DOTALL), result.stderr
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
    assert result.exit_code == 2
    assert "you may not read it" in result.stderr


# Unusual, yet right


def test_a_class_that_only_gold_names_is_allowed_and_said(run: Run, write: Write) -> None:
    write("r.csv", RESPONSES)
    write("g.csv", "task,label\na,new\n")
    result = run("fuse", "r.csv", "--gold", "g.csv")
    assert result.exit_code == 0
    assert "note: No worker used new, which gold names" in result.stderr
    assert "a,new,1" in result.stdout


def test_contradictions_can_be_dropped_and_are_counted(run: Run, write: Write) -> None:
    write("r.csv", RESPONSES)
    write("l.csv", "left,right,link\na,b,must\nb,c,must\na,c,cannot\n")
    result = run("fuse", "r.csv", "--links", "l.csv", "--set", "on_contradiction=drop")
    assert result.exit_code == 0
    assert "note: 1 cannot-link contradicts must-links: dropped" in result.stderr
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
    assert "note: 2 rows have an empty label" in result.stderr
    assert result.stdout.splitlines()[-1] == "c,x,0.5,0.5,0.5,"


def test_labels_that_are_not_numbers_in_a_table_are_no_answers() -> None:
    table = {"task": ["a", "a", "b"], "worker": ["u", "v", "u"], "label": [1.0, float("nan"), 2.0]}
    with pytest.warns(InputNote, match="1 row has an empty label"):
        labels = tb.MajorityVote().fit(table).labels_
    assert labels.best() == {"a": 1.0, "b": 2.0}


def test_labels_of_mixed_types_in_a_table_are_refused() -> None:
    table = {"task": ["a", "b"], "worker": ["u", "u"], "label": ["x", 3]}
    with pytest.raises(InputError, match="'label' mixes types"):
        tb.VariationalBayes().fit(table)


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
