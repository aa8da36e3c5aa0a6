"""Model files on the command line: fuse --save, describe, predict, update, stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.running import code_of
from kept.crowds import Row, crowd, shuffled

import tiebreak as tb

Run = Callable[..., Any]
Write = Callable[[str, str], Path]
ROWS = shuffled(crowd().responses)


def as_csv(rows: list[Row]) -> str:
    return "task,worker,label\n" + "".join(",".join(row) + "\n" for row in rows)


@pytest.fixture
def model(run: Run, write: Write) -> str:
    """Return the name of a model file of the first half of a crowd."""
    write("a.csv", as_csv(ROWS[:240]))
    result = run("fuse", "a.csv", "-o", "a-labels.csv", "--save", "m.tbm")
    assert result.exit_code == 0, result.stderr
    assert "wrote a-labels.csv, m.tbm" in result.stderr
    return "m.tbm"


@pytest.fixture
def vb_model(run: Run, write: Write) -> str:
    """Return the name of a model file that can go on without its responses."""
    write("a.csv", as_csv(ROWS[:240]))
    made = run("fuse", "a.csv", "--method", "vb", "-o", "a-labels.csv", "--save", "m.tbm")
    assert made.exit_code == 0
    return "m.tbm"


def test_describe_says_what_is_inside(run: Run, model: str) -> None:
    result = run("describe", model)
    assert result.exit_code == 0
    assert "240 responses" in result.stdout
    found = json.loads(run("describe", model, "--json").stdout)
    assert (found["responses"], found["keep"]) == (240, "responses")
    assert found["classes"] == ["c0", "c1", "c2"]


def test_predict_writes_labels_and_says_who_is_new(run: Run, write: Write, model: str) -> None:
    write("new.csv", as_csv([("n1", "w1", "c0"), ("n1", "zoe", "c0"), ("n2", "w2", "c1")]))
    result = run("predict", model, "new.csv", "-o", "labels.csv", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["workers_not_seen"] == 1
    assert "1 worker of 3 not seen by the model: 'zoe'" in result.stderr
    expected = tb.VariationalBayes().fit(ROWS[:240])
    with pytest.warns(tb.InputNote):
        labels = expected.predict(tb.read_responses("new.csv"))
    assert tb.read_labels("labels.csv").best() == labels.best()
    write("links.csv", "left,right,link\nn1,n2,cannot\n")
    linked = run("predict", model, "new.csv", "--links", "links.csv", "--probabilities", "-q")
    assert linked.stdout.startswith("task,label,probability,probability_c0")


def test_update_changes_the_model_file(run: Run, write: Write, model: str) -> None:
    write("b.csv", as_csv(ROWS[240:]))
    write("gold.csv", "task,label\nt001,c0\n")
    result = run("update", model, "b.csv", "--gold", "gold.csv", "-o", "all.csv", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["saved"] == model
    back = tb.load(model)
    whole = tb.VariationalBayes().fit(ROWS, gold={"t001": "c0"})
    assert back.responses_.n_responses == len(ROWS)
    assert back.labels_.best() == tb.read_labels("all.csv").best()
    agree = sum(back.labels_[t].label == k for t, k in whole.labels_.best().items())
    assert agree >= 0.95 * len(whole.tasks_)


def test_counts_keep_the_file_small(run: Run, write: Write, vb_model: str) -> None:
    write("b.csv", as_csv(ROWS[240:]))
    assert (
        run("update", vb_model, "b.csv", "--keep", "counts", "--save", "small.tbm").exit_code == 0
    )
    found = json.loads(run("describe", "small.tbm", "--json").stdout)
    assert (found["keep"], found["responses_counted_only"]) == ("counts", len(ROWS))
    write("c.csv", as_csv([("n1", "w1", "c0")]))
    assert run("update", "small.tbm", "c.csv", "--set", "forget=0.9").exit_code == 0


def test_a_committee_needs_its_responses(run: Run, write: Write, model: str) -> None:
    write("b.csv", as_csv(ROWS[240:]))
    refused = run("update", model, "b.csv", "--keep", "counts", "--save", "small.tbm")
    assert refused.exit_code == 2
    assert "VariationalBayes" in refused.stderr
    assert run("fuse", "a.csv", "--keep", "counts", "--save", "c.tbm").exit_code == 0
    assert "VariationalBayes" in run("describe", "c.tbm").stdout


def test_stream_reads_events_and_tells_labels(run: Run, vb_model: str) -> None:
    rows = [
        {"seq": i, "task": t, "worker": w, "label": k} for i, (t, w, k) in enumerate(ROWS[240:])
    ]
    lines = [json.dumps(row) for row in rows]
    lines.insert(3, "{broken")
    result = run("stream", vb_model, "--set", "every=60", stdin="\n".join(lines) + "\n")
    assert result.exit_code == 0, result.stderr
    assert "line 4:" in result.stderr
    assert json.loads(result.stdout.splitlines()[-1]) == {"done": len(rows) - 1}
    assert tb.load(vb_model).responses_.n_responses == len(ROWS)
    about = json.loads(run("describe", vb_model, "--json").stdout)
    assert about["stream"]["seq"] == len(rows) - 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("describe nothing.tbm", "array-folder-missing"),
        ("predict nothing.tbm a.csv", "array-folder-missing"),
        ("predict m.tbm missing.csv", "file-missing"),
        ("predict m.tbm a.csv --json", "json-needs-out"),
        ("update m.tbm", "nothing-new"),
        ("update m.tbm a.csv --set forget=2", "wrong-value"),
        ("update m.tbm a.csv --keep all", "usage"),
        ("stream m.tbm --set every=0", "wrong-value"),
        ("stream a.csv", "array-folder-is-file"),
        ("fuse a.csv --save a.csv", "array-folder-is-file"),
        ("fuse a.csv --save no/such/m.tbm", "target-folder-missing"),
    ],
)
def test_wrong_input_ends_with_2_and_its_code(
    run: Run, model: str, arguments: str, code: str
) -> None:
    done = run(*arguments.split(), stdin="")
    assert (done.exit_code, code_of(done)) == (2, code)
