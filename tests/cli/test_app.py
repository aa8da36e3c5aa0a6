"""The command as a whole: help, version, how it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import tiebreak
from tiebreak import simulate as simulate_room
from tiebreak.cli import app as app_room
from tiebreak.cli import output
from tiebreak.errors import ConvergenceWarning, InputError, note

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def _loud() -> Iterator[None]:
    yield
    output.set_options(quiet=False, safe_csv=False)


def as_process(*arguments: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tiebreak", *arguments],
        cwd=cwd, capture_output=True, text=True, check=False, **options,
    )  # fmt: skip


def test_the_bare_command_shows_help_and_is_content(run: Run) -> None:
    bare, asked = run(), run("--help")
    assert bare.exit_code == asked.exit_code == 0
    assert bare.stdout == asked.stdout
    for name in app_room.COMMANDS:
        assert re.search(rf"^  {name} ", bare.stdout, re.MULTILINE)


@pytest.mark.parametrize("name", app_room.COMMANDS)
def test_every_command_has_help_that_fits_a_terminal(run: Run, name: str) -> None:
    result = run(name, "-h")
    assert result.exit_code == 0
    assert f"Usage: tiebreak {name}" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_version_is_said(run: Run) -> None:
    assert run("--version").stdout == f"tiebreak {tiebreak.__version__}\n"


def test_an_unknown_command_is_wrong_usage(run: Run) -> None:
    result = run("fuze")
    assert result.exit_code == 2
    assert "fuze" in result.stderr


def test_the_module_runs_as_the_command_does(tmp_path: Path) -> None:
    done = as_process("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"tiebreak {tiebreak.__version__}\n")


def test_help_imports_neither_numpy_nor_rich(tmp_path: Path) -> None:
    imported = {name.split(".")[0] for name in imported_by("fuse", "--help", cwd=tmp_path)}
    assert "typer" in imported
    assert not imported & {"numpy", "rich", "pyarrow", "scipy", "numba"}


def imported_by(*words: str, cwd: Path) -> set[str]:
    """Run a command in a process of its own; return the modules that it imported."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tiebreak", *words],
        cwd=cwd, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_a_fit_loads_what_it_was_asked_for(tmp_path: Path) -> None:
    """Formats of tools and clusters are loaded by files and options that need them."""
    (tmp_path / "own.csv").write_text("task,worker,label\na,w,x\nb,w,y\n")
    (tmp_path / "foreign.csv").write_text("item,worker,label\na,w,x\nb,w,y\n")
    cluster = "tiebreak.cli.cluster"
    on_demand = {"tiebreak.tables.formats", "tiebreak.decide", cluster}
    plain = imported_by("fuse", "own.csv", "--method", "mv", "-o", "labels.csv", cwd=tmp_path)
    assert "tiebreak.tables.read" in plain
    assert not plain & on_demand
    asked = imported_by(
        "fuse", "foreign.csv", "--method", "mv", "--set", "abstain_rate=0", "-o", "labels.csv",
        cwd=tmp_path,
    )  # fmt: skip
    assert asked & on_demand == on_demand - {cluster}


def ending_of(body: Callable[..., None], **kwargs: object) -> int:
    """Run a command; return its exit code."""
    try:
        app_room.with_exit_codes("try", body)(**kwargs)
    except typer.Exit as end:
        return end.exit_code
    return 0


def test_a_wrong_input_is_told_without_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> None:
        raise InputError("The file is wrong.\nMend it.")

    assert ending_of(refuse) == 2
    assert capsys.readouterr().err == "tiebreak try: The file is wrong.\nMend it.\n"


def test_an_error_of_ours_is_one_line_and_asks_for_a_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise KeyError("nobody foresaw this")

    monkeypatch.delenv("TIEBREAK_DEBUG", raising=False)
    assert ending_of(fail) == 1
    told = capsys.readouterr().err
    assert "internal error: KeyError: 'nobody foresaw this'" in told
    assert "report" in told
    assert told.count("\n") == 1
    monkeypatch.setenv("TIEBREAK_DEBUG", "1")
    assert ending_of(fail) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_an_interrupt_ends_with_130(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    assert ending_of(interrupt) == 130
    assert capsys.readouterr().err == "interrupted\n"


def speak() -> None:
    for _ in range(2):
        note("one row was dropped.")
    import warnings

    warnings.warn("not settled.", ConvergenceWarning, stacklevel=1)


def test_notes_and_warnings_are_lines_of_their_own_each_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ending_of(speak) == 0
    assert capsys.readouterr().err == "note: one row was dropped.\nwarning: not settled.\n"


def test_quiet_leaves_out_notes_but_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    output.set_options(quiet=True, safe_csv=False)
    assert ending_of(speak) == 0
    assert capsys.readouterr().err == "warning: not settled.\n"


def test_progress_is_shown_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "rich.console", None)  # not even imported
        with output.stages("fitting"):
            pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with output.stages("fitting"):
        pass
    assert "fitting" in capsys.readouterr().err
    output.set_options(quiet=True, safe_csv=False)
    with output.stages("fitting"):
        pass
    assert capsys.readouterr().err == ""


def test_a_reader_that_has_had_enough_is_no_error(tmp_path: Path) -> None:
    """`tiebreak evaluate … | head -0` and `tiebreak fuse … | head -1` end quietly."""
    crowd = simulate_room.crowd(20_000, random_state=0)
    crowd.responses.write(tmp_path / "responses.csv")
    crowd.gold.write(tmp_path / "gold.csv")
    for command in (
        ["fuse", "responses.csv", "--method", "mv", "--quiet"],
        ["evaluate", "gold.csv", "gold.csv", "--quiet"],
    ):
        process = subprocess.Popen(
            [sys.executable, "-m", "tiebreak", *command],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read().decode()
        process.stderr.close()
        assert (process.wait(), told) == (0, "")


def test_an_interrupted_process_leaves_no_half_file(tmp_path: Path) -> None:
    """The code is 130 and what was there before is still there."""
    (tmp_path / "labels.csv").write_text("old")
    code = (
        "import sys, tiebreak as tb\n"
        "def stop(*a, **k): raise KeyboardInterrupt\n"
        "tb.MajorityVote.fit = stop\n"
        "from tiebreak.__main__ import main\n"
        "sys.argv = ['tiebreak', 'fuse', 'r.csv', '--method', 'mv', '-o', 'labels.csv']\n"
        "main()"
    )
    (tmp_path / "r.csv").write_text("task,worker,label\na,w,x\n")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
    assert (tmp_path / "labels.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "r.csv"]


def test_json_is_the_only_thing_on_stdout(run: Run, folder: Path) -> None:
    crowd = simulate_room.crowd(50, random_state=0)
    crowd.responses.write("responses.csv")
    crowd.gold.write("gold.csv")
    simulate_room.links(crowd.gold, 20, random_state=0).write("links.csv")
    fused = run("fuse", "responses.csv", "--links", "links.csv", "-o", "labels.csv", "--json")
    assert json.loads(fused.stdout)["tasks"] == 50
    scored = run("evaluate", "labels.csv", "gold.csv", "--json")
    assert json.loads(scored.stdout)["n_tasks"] == 50


@pytest.mark.parametrize("module", ["typer", "tiebreak.cli.look", "tiebreak.tables", "numpy"])
def test_an_interrupt_while_modules_load_ends_with_130(tmp_path: Path, module: str) -> None:
    (tmp_path / "r.csv").write_text("task,worker,label\na,w,x\n")
    code = (
        "import os, signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "sys.argv = ['tiebreak', 'describe', 'r.csv']\n"
        "from tiebreak.__main__ import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
