"""tiebreak reproduce: files, figures, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reproduce.made_up import measured, results
from typer.testing import CliRunner

from tiebreak.cli.app import app
from tiebreak.errors import MissingExtraError
from tiebreak.reproduce import experiments, figures, runner


def reproduce(*arguments: object) -> Any:
    command = ["reproduce", *map(str, arguments)]
    return CliRunner().invoke(app, command, prog_name="tiebreak")


def test_one_command_writes_results_claims_and_figures(out: Path) -> None:
    done = reproduce("--datasets", "bluebird", "--runs", 1, "--steps", 2, "--jobs", 1, "-o", out)
    assert done.exit_code == 0, done.stderr
    assert "claims: " in done.stderr
    assert done.stdout == ""
    stored = json.loads((out / "results.json").read_text())
    assert stored["datasets"]["bluebird"]["n_given"] == [0, 6, 12]
    assert "| VB-LC improves with N_C | improves |" in (out / "claims.md").read_text()
    assert len((out / "runs.jsonl").read_text().splitlines()) == 3
    names = {path.name for path in (out / "figures").iterdir()}
    experiments_drawn = ("same_number", "bvsb", "label_derived")
    endings = ("svg", "png")
    assert names == {f"bluebird_{name}.{end}" for name in experiments_drawn for end in endings}


def test_a_missing_dataset_is_told_before_anything_is_run(out: Path) -> None:
    done = reproduce("--datasets", "bluebird,rte", "-o", out)
    assert done.exit_code == 2
    assert "rte" in done.stderr
    assert "tiebreak datasets fetch rte" in done.stderr
    assert list(out.iterdir()) == []


def test_an_unknown_dataset_and_wrong_numbers_are_refused(out: Path) -> None:
    assert reproduce("--datasets", "cats", "-o", out).exit_code == 2
    assert reproduce("--datasets", "bluebird", "--runs", 0, "-o", out).exit_code == 2
    wrong_jobs = reproduce("--datasets", "bluebird", "--jobs", 0, "-o", out)
    assert (wrong_jobs.exit_code, "jobs must be 1 or more" in wrong_jobs.stderr) == (2, True)


def test_an_interruption_says_so_and_keeps_what_is_finished(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = experiments.work

    def interrupted(case: experiments.Case) -> runner.Row:
        if case.n_given == 0:
            raise KeyboardInterrupt
        return work(case)

    monkeypatch.setattr(experiments, "work", interrupted)
    options = ("--datasets", "bluebird", "--runs", 1, "--steps", 2, "--jobs", 1, "-o", out)
    assert reproduce(*options).exit_code == 130
    assert len((out / "runs.jsonl").read_text().splitlines()) == 2


def test_without_matplotlib_all_but_figures_is_written(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "is_available", lambda: False)
    done = reproduce("--datasets", "bluebird", "--runs", 1, "--steps", 2, "--jobs", 1, "-o", out)
    assert done.exit_code == 0
    assert "pip install 'tiebreak[plot]'" in done.stderr
    assert (out / "claims.md").exists()
    with pytest.raises(MissingExtraError, match="needs matplotlib"):
        figures.draw_all(results(rte=measured()), out)


def test_every_method_has_a_line_of_its_own_in_each_figure() -> None:
    for _, shown in figures.EXPERIMENTS.values():
        lines = [figures.LINES[method] for method in shown]
        assert len({(line.marker, line.dashes) for line in lines}) == len(lines)  # without colour
        assert len({(line.colour, line.dashes) for line in lines}) == len(lines)


def test_the_same_numbers_give_the_same_figure(out: Path) -> None:
    made_up = measured(broken={"vb_ilc": 0.1})
    first = [path.read_bytes() for path in figures.draw(made_up, "bvsb", out / "first")]
    again = [path.read_bytes() for path in figures.draw(made_up, "bvsb", out / "again")]
    assert first == again
    assert b"VB-ILC, BVSB" in first[0]
