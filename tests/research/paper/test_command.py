"""python -m tiebreak.research.paper: files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tiebreak.research.paper import runner, runs
from tiebreak.research.paper.__main__ import main

pytestmark = pytest.mark.filterwarnings("ignore:.*of the catalogue:tiebreak.errors.InputNote")


def reproduce(*arguments: object) -> int:
    return main(list(map(str, arguments)))


def test_one_command_writes_results_and_claims(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = reproduce("--datasets", "bluebird", "--runs", 1, "--steps", 2, "--jobs", 1, "-o", out)
    assert done == 0
    assert "claims: " in capsys.readouterr().err
    stored = json.loads((out / "results.json").read_text())
    assert stored["datasets"]["bluebird"]["n_given"] == [0, 6, 12]
    assert "| VB-LC improves with N_C | improves |" in (out / "claims.md").read_text()
    assert len((out / "runs.jsonl").read_text().splitlines()) == 3


def test_a_missing_dataset_is_told_before_anything_is_run(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce("--datasets", "bluebird,rte", "-o", out) == 2
    assert "tiebreak datasets fetch rte" in capsys.readouterr().err
    assert list(out.iterdir()) == []


def test_an_unknown_dataset_and_wrong_numbers_are_refused(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce("--datasets", "cats", "-o", out) == 2
    assert reproduce("--datasets", "bluebird", "--runs", 0, "-o", out) == 2
    capsys.readouterr()
    assert reproduce("--datasets", "bluebird", "--jobs", 0, "-o", out) == 2
    assert "jobs must be 1 or more" in capsys.readouterr().err


def test_an_interruption_keeps_what_is_finished(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = runs.work

    def interrupted(case: runs.Case) -> runner.Row:
        if case.n_given == 0:
            raise KeyboardInterrupt
        return work(case)

    monkeypatch.setattr(runs, "work", interrupted)
    options = ("--datasets", "bluebird", "--runs", 1, "--steps", 2, "--jobs", 1, "-o", out)
    assert reproduce(*options) == 130
    assert len((out / "runs.jsonl").read_text().splitlines()) == 2
