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
    tb.write_responses(path, tb.Responses.from_rows(rows))


def run_script(kind: str, folder: Path) -> None:
    """Run a script of the page, with the command in the path as when tiebreak is installed."""
    (script,) = blocks(PAGE, f"sh {kind}")
    command = folder / "bin" / "tiebreak"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tiebreak "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, env={**os.environ, "PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_nightly_job_runs_for_three_nights(tmp_path: Path) -> None:
    made = crowd()
    rows = shuffled(made.responses)
    write(tmp_path / "responses.csv", rows[:300])
    tb.write_gold(tmp_path / "gold.csv", tb.Gold.from_dict({"t001": "c0"}))
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
