"""tiebreak fuse --sequences: labels that can follow each other, and spans beside them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.running import code_of

import tiebreak as tb

Run = Callable[..., Any]
WORDS = ("Ada", "met", "Alan", "Turing", ".")
TRUE = ("B-PER", "O", "B-PER", "I-PER", "O")


@pytest.fixture
def tokens(folder: Path) -> list[tuple[str, str, str]]:
    """Write responses.csv and tokens.csv of ten sentences that three people marked."""
    rows, tasks = [], []
    for n in range(10):
        for t, (word, tag) in enumerate(zip(WORDS, TRUE, strict=True)):
            tasks.append((f"{n}:{t}", f"s{n}", t, word))
            for worker in ("ann", "bob", "cy"):
                missed = worker == "cy" and n % 3 == 0
                rows.append((f"{n}:{t}", worker, "O" if missed else tag))
    tb.Responses.from_rows(rows).write("responses.csv")
    with Path("tokens.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("task", "sequence", "position", "text"), *tasks])
    return rows


def read(name: str) -> list[dict[str, str]]:
    with Path(name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_spans_are_written_beside_labels(run: Run, tokens: Any) -> None:
    result = run(
        *("fuse", "responses.csv", "--sequences", "tokens.csv", "-o", "labels.csv"),
        *("--spans-out", "spans.csv", "--set", "sequence_model=chain", "--json"),
    )
    assert result.exit_code == 0, result.stderr
    said = json.loads(result.stdout)
    assert (said["sequences"], said["spans"], said["sequence_model"]) == (10, 20, "chain")
    assert said["method"] == "vb"
    labels = {row["task"]: row["label"] for row in read("labels.csv")}
    assert [labels[f"3:{t}"] for t in range(5)] == list(TRUE)
    spans = [row for row in read("spans.csv") if row["sequence"] == "s3"]
    found = [(row["first"], row["last"], row["label"], row["text"]) for row in spans]
    assert found == [("3:0", "3:0", "PER", "Ada"), ("3:2", "3:3", "PER", "Alan Turing")]
    assert all(0.5 < float(row["probability"]) <= 1 for row in spans)


def test_auto_says_what_it_compared(run: Run, tokens: Any) -> None:
    given = "fuse", "responses.csv", "--sequences", "tokens.csv", "-o", "labels.csv", "--json"
    said = json.loads(run(*given).stdout)
    assert len(said["sequence_choice"]) >= 2
    assert said["sequence_model"] in {each["model"] for each in said["sequence_choice"]}


EXPORT = [
    {
        "id": n,
        "data": {"text": "Ada met Alan Turing ."},
        "annotations": [
            {
                "completed_by": worker,
                "result": [
                    {
                        "from_name": "label",
                        "to_name": "text",
                        "type": "labels",
                        "value": {"start": a, "end": b, "labels": ["PER"]},
                    }
                    for a, b in ((0, 3), (8, 19))[: 1 + (worker != "cy")]
                ],
            }
            for worker in ("ann", "bob", "cy")
        ],
    }
    for n in range(5)
]


def test_spans_of_an_export_are_fused_reported_and_asked_about_as_they_come(
    run: Run, folder: Path
) -> None:
    Path("studio.json").write_text(json.dumps(EXPORT))
    done = run("fuse", "studio.json", "-o", "labels.csv", "--spans-out", "spans.csv", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["method"] == "vb"
    assert {(row["text"], row["label"]) for row in read("spans.csv")} == {
        ("Ada", "PER"),
        ("Alan Turing", "PER"),
    }
    done = run("report", "studio.json", "-o", "report.html", "--json", "report.json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(Path("report.json").read_text())["sections"]["spans"]["n_spans"] == 10
    done = run("describe", "studio.json", "--json")
    assert json.loads(done.stdout)["spans"]["strict"] == pytest.approx(0.8)
    done = run("ask", "studio.json", "--list", "3", "-o", "asked.csv")
    assert done.exit_code == 0, done.stderr
    assert {row["kind"] for row in read("asked.csv")} == {"label"}


def test_a_network_is_fused_by_the_method_that_can(run: Run, tokens: Any) -> None:
    Path("near.csv").write_text("left,right,link\n0:0,1:0,near\n0:1,1:1,near\n")
    done = run("fuse", "responses.csv", "--links", "near.csv", "-o", "labels.csv", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["method"] == "vb"


def test_agreement_of_spans_is_described(run: Run, tokens: Any) -> None:
    said = json.loads(
        run("describe", "responses.csv", "--sequences", "tokens.csv", "--json").stdout
    )
    assert said["spans"]["n_pairs"] == 3
    assert said["spans"]["workers"][0]["worker"] == "cy"
    assert 0.5 < said["spans"]["strict"] <= said["spans"]["relaxed"] < 1.0
    told = run("describe", "responses.csv", "--sequences", "tokens.csv").stdout
    assert "relaxed" in told


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--set", "members=votes", "--sequences", "tokens.csv"), "option-needs"),
        (("--method", "mv", "--sequences", "tokens.csv"), "method-without-sequences"),
        (("--method", "auto", "--sequences", "tokens.csv"), "method-without-sequences"),
        (("--spans-out", "spans.csv"), "option-needs"),
        (("--set", "sequence_model=chain"), "option-needs"),
        (("--sequences", "tokens.csv", "--set", "sequence_model=hmm"), "wrong-value"),
        (("--sequences", "twice.csv"), "task-in-two-places"),
        (("--sequences", "same.csv"), "two-at-one-position"),
        (("--sequences", "odd.csv"), "no-position"),
        (("--sequences", "nameless.csv"), "no-id-in-sequences"),
    ],
)
def test_what_cannot_be_is_refused(
    run: Run, tokens: Any, arguments: tuple[str, ...], code: str
) -> None:
    Path("twice.csv").write_text("task,sequence\n0:0,a\n0:1,a\n0:0,b\n")
    Path("same.csv").write_text("task,sequence,position\n0:0,a,1\n0:1,a,1\n")
    Path("odd.csv").write_text("task,sequence,position\n0:0,a,first\n0:1,a,2\n")
    Path("nameless.csv").write_text("task,sequence\n0:0,\n0:1,a\n")
    result = run("fuse", "responses.csv", *arguments)
    assert result.exit_code == 2
    assert code_of(result) == code


def test_a_saved_model_updates_and_is_no_stream(run: Run, tokens: Any) -> None:
    given = "fuse", "responses.csv", "--sequences", "tokens.csv", "-o", "labels.csv"
    assert run(*given, "--set", "sequence_model=chain", "--save", "m.tbm").exit_code == 0
    tb.Responses.from_rows([("0:0", "dee", "B-PER"), ("0:1", "dee", "O")]).write("more.csv")
    model = tb.load("m.tbm")
    model.update("more.csv")
    assert len(model.spans_) == 20
    assert code_of(run(*given, "--save", "n.tbm", "--keep", "counts")) == "sequences-need-responses"
    with pytest.raises(tb.errors.OptionError) as error:
        model.update([("1:0", "dee", "B-PER")], forget=0.9)
    assert error.value.code == "sequences-need-responses"
