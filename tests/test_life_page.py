"""The nightly job of docs/life.md runs as it stands there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kept.crowds import Row, crowd, shuffled
from test_public import ROOT, blocks

import tiebreak as tb

PAGE = ROOT / "docs" / "life.md"

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")


def write(path: Path, rows: list[Row]) -> None:
    tb.Responses.from_rows(rows).write(path)


def run_script(kind: str, folder: Path, n_at_once: int = 1) -> None:
    """Run a script of the page, with the command in the path as when tiebreak is installed."""
    (script,) = blocks(PAGE, f"sh {kind}")
    command = folder / "bin" / "tiebreak"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tiebreak "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    runs = [
        subprocess.Popen(
            ["sh", "-c", script], cwd=folder, env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(n_at_once)
    ]  # fmt: skip
    for each in runs:
        _, words = each.communicate(timeout=100)
        assert each.returncode == 0, words


def test_the_nightly_job_runs_for_three_nights(tmp_path: Path) -> None:
    made = crowd()
    rows = shuffled(made.responses)
    write(tmp_path / "responses.csv", rows[:300])
    tb.Gold.from_dict({"t001": "c0"}).write(tmp_path / "gold.csv")
    (tmp_path / "inbox").mkdir()
    (tmp_path / "done").mkdir()
    run_script("first", tmp_path)
    run_script("nightly", tmp_path)  # a night on which nothing came
    for night, at in enumerate((300, 390)):
        write(tmp_path / "inbox" / f"night{night}.csv", rows[at : at + 90])
        run_script("nightly", tmp_path)
    assert list((tmp_path / "inbox").iterdir()) == []
    model = tb.load(tmp_path / "crowd.tbm")
    assert model.responses_.n_responses == len(rows)
    assert tb.read_labels(tmp_path / "labels.csv").best() == model.labels_.best()
    told = [json.loads(line) for line in (tmp_path / "nightly.jsonl").read_text().splitlines()]
    assert [night["responses"] for night in told] == [90, 90]
    shutil.copy(tmp_path / "done" / "night1.csv", tmp_path / "inbox")  # the machine died there
    run_script("nightly", tmp_path)
    again = tb.load(tmp_path / "crowd.tbm")
    assert again.responses_.n_responses == len(rows)


@pytest.mark.parametrize("keep", ["responses", "counts"])
def test_two_nightly_jobs_at_once_lose_and_double_nothing(tmp_path: Path, keep: str) -> None:
    rows = shuffled(crowd().responses)
    tb.VariationalBayes().fit(rows[:300]).save(tmp_path / "crowd.tbm", keep=keep)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "done").mkdir()
    write(tmp_path / "inbox" / "a.csv", rows[300:390])
    write(tmp_path / "inbox" / "b.csv", rows[390:])
    run_script("nightly", tmp_path, n_at_once=2)
    assert sorted(path.name for path in (tmp_path / "done").iterdir()) == ["a.csv", "b.csv"]
    model = tb.load(tmp_path / "crowd.tbm")
    n_dropped = 0.0 if model._carried is None else model._carried.counts.sum()
    assert model.responses_.n_responses + n_dropped == pytest.approx(len(rows))
    assert tb.read_labels(tmp_path / "labels.csv").best() == model.labels_.best()
    assert not (tmp_path / "crowd.tbm.lock").exists()
