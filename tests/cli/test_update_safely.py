"""An update that meets another writer, a batch it knows, nothing at all, or a full disk."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.running import code_of
from kept.crowds import Row, crowd, shuffled

import tiebreak as tb
from tiebreak.tables import locks

Run = Callable[..., Any]
Write = Callable[[str, str], Path]
ROWS = shuffled(crowd().responses)
VB = ("--method", "vb")  # keeps counts


def as_csv(rows: list[Row]) -> str:
    return "task,worker,label\n" + "".join(",".join(row) + "\n" for row in rows)


def as_events(rows: list[Row]) -> str:
    return "".join(
        json.dumps({"seq": i, "task": t, "worker": w, "label": k}) + "\n"
        for i, (t, w, k) in enumerate(rows)
    )


def n_counted(path: str = "m.tbm") -> int:
    model = tb.load(path)
    n: int = model.responses_.n_responses
    return n if model._carried is None else n + round(float(model._carried.counts.sum()))


@pytest.fixture(params=["responses", "counts"])
def model(folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the name of a model file of some responses."""
    tb.VariationalBayes().fit(ROWS[:240]).save("m.tbm", keep=request.param)
    return "m.tbm"


# Another writer


@pytest.mark.parametrize("command", ["update", "stream"])
def test_who_comes_second_is_told_who_holds_the_lock(
    run: Run, write: Write, model: str, command: str
) -> None:
    write("b.csv", as_csv(ROWS[240:300]))
    files = ["b.csv"] if command == "update" else []
    with locks.Lock(model, "tiebreak stream"):
        for patience in ([], ["--wait", "0.1"]):
            result = run(command, model, *files, *patience, stdin=as_events(ROWS[240:300]))
            assert (result.exit_code, code_of(result)) == (2, "in-use")
    assert n_counted() == 240
    assert run(command, model, *files, stdin=as_events(ROWS[240:300])).exit_code == 0
    assert n_counted() == 300
    assert {path.name for path in Path().iterdir()} == {"m.tbm", "b.csv"}


def test_a_lock_file_that_a_killed_process_left_stops_nobody(
    run: Run, write: Write, model: str
) -> None:
    write("b.csv", as_csv(ROWS[240:300]))
    write("m.tbm.lock", '{"what": "tiebreak update", "process": 1}').chmod(0o444)
    assert run("update", model, "b.csv").exit_code == 0
    assert not Path("m.tbm.lock").exists()


# A stream before and after


def test_events_sent_again_after_an_update_do_not_count_again(
    run: Run, write: Write, model: str
) -> None:
    write("b.csv", as_csv(ROWS[300:]))
    events = as_events(ROWS[240:300])
    assert run("stream", model, stdin=events).exit_code == 0
    assert run("update", model, "b.csv").exit_code == 0
    result = run("stream", model, stdin=events)
    assert json.loads(result.stdout.splitlines()[0]) == {"done": 59}
    assert n_counted() == len(ROWS)


def test_a_model_that_is_loaded_and_saved_keeps_the_notes_of_its_stream(
    run: Run, model: str
) -> None:
    assert run("stream", model, stdin=as_events(ROWS[240:300])).exit_code == 0
    loaded = tb.load(model)
    loaded.update(ROWS[300:310]).save("copy.tbm", keep="counts")
    assert tb.load("copy.tbm")._stream_notes["seq"] == 59
    loaded.fit(ROWS)  # a fit is a new model, which has seen no stream
    loaded.save("copy.tbm")
    assert "seq" not in tb.load("copy.tbm")._stream_notes


# The same batch twice


def test_a_model_of_counts_knows_a_batch_again(run: Run, write: Write) -> None:
    write("a.csv", as_csv(ROWS[:240]))
    write("b.csv", as_csv(ROWS[240:]))
    write("b2.csv", as_csv(ROWS[240:][::-1]))  # other order, same responses
    assert run("fuse", "a.csv", *VB, "--save", "m.tbm", "--keep", "counts").exit_code == 0
    assert run("update", "m.tbm", "b.csv").exit_code == 0
    for name in ("a.csv", "b.csv", "b2.csv"):
        result = run("update", "m.tbm", name, "-o", "labels.csv", "--json")
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["responses"] == 0
        assert n_counted() == len(ROWS)
        assert tb.read_labels("labels.csv").best() == tb.load("m.tbm").labels_.best()
    assert run("update", "m.tbm", "a.csv", "--again").exit_code == 0
    assert n_counted() == len(ROWS) + 240


def test_a_batch_of_python_is_known_again_by_the_command(run: Run, write: Write) -> None:
    write("b.csv", as_csv(ROWS[240:]))
    model = tb.VariationalBayes().fit(ROWS[:240]).update(ROWS[240:])
    model.save("m.tbm", keep="counts")
    assert "given to this model before" in run("update", "m.tbm", "b.csv").stderr
    write("a.csv", as_csv(ROWS[:240]))
    assert "given to this model before" in run("update", "m.tbm", "a.csv").stderr
    assert n_counted() == len(ROWS)


# Nothing new


def test_a_file_with_a_header_alone_is_nothing_to_do(run: Run, write: Write, model: str) -> None:
    write("none.csv", "task,worker,label\n")
    before = (Path(model) / "about.json").read_bytes()
    result = run("update", model, "none.csv", "-o", "labels.csv", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["responses"] == 0
    assert (Path(model) / "about.json").read_bytes() == before
    assert tb.read_labels("labels.csv").best() == tb.load(model).labels_.best()
    write("gold.csv", "task,label\nt001,c0\n")
    assert run("update", model, "none.csv", "--gold", "gold.csv").exit_code == 0
    assert tb.load(model).labels_["t001"].label == "c0"


# A full disk


@pytest.mark.parametrize("is_first", [True, False])
def test_a_full_disk_is_named_and_leaves_nothing_behind(folder: Path, is_first: bool) -> None:
    tb.VariationalBayes().fit(ROWS[:240]).save("m.tbm")
    Path("b.csv").write_text(as_csv(ROWS[240:]), encoding="utf-8")
    before = {path: path.read_bytes() for path in Path("m.tbm").iterdir()}
    target = ["--save", "new.tbm"] if is_first else []

    def limit() -> None:  # no file can grow beyond this, as on a disk that is full
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))

    done = subprocess.run(
        [sys.executable, "-m", "tiebreak", "update", "m.tbm", "b.csv", *target],
        capture_output=True, text=True, check=False, preexec_fn=limit,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert f"{'new' if is_first else 'm'}.tbm" in done.stderr
    assert {path: path.read_bytes() for path in Path("m.tbm").iterdir()} == before
    assert {path.name for path in Path().iterdir()} == {"m.tbm", "b.csv"}
