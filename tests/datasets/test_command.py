"""tiebreak datasets: list, path, fetch, and how they end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from public_copies import NAME, Copies, serving
from typer.testing import CliRunner, Result

import tiebreak as tb
from tiebreak.cli.app import app
from tiebreak.cli.datasets import COMMANDS
from tiebreak.datasets import catalogue


def run(*arguments: object) -> Result:
    words = ["datasets", *map(str, arguments)]
    return CliRunner().invoke(app, words, prog_name="tiebreak")


def test_the_bare_command_shows_its_commands_and_is_content() -> None:
    bare = run()
    assert (bare.exit_code, bare.stdout) == (0, run("--help").stdout)
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", bare.stdout, re.MULTILINE)
    assert re.search(r"^  datasets ", CliRunner().invoke(app, ["-h"]).stdout, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_fits_a_terminal(name: str) -> None:
    result = run(name, "-h")
    assert result.exit_code == 0
    assert f"Usage: tiebreak datasets {name}" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


# list


def test_the_list_has_counts_and_says_what_is_here(cache: Path) -> None:
    (cache / "rte").mkdir(parents=True)
    for name in ("responses.csv", "gold.csv"):
        (cache / "rte" / name).touch()
    lines = run("list").stdout.splitlines()
    assert lines[0].split() == [
        "name", "tasks", "workers", "classes", "responses", "gold", "where"
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[1:]] == list(tb.datasets.names())
    rows = {line.split()[0]: line.split(maxsplit=6)[1:] for line in lines[1:]}
    assert rows["rte"] == ["800", "164", "2", "8,000", "800", str(cache / "rte")]
    assert rows["trec"] == ["19,033", "762", "2", "88,385", "2,275", "not here"]


def test_the_list_as_json_has_everything_that_is_known(cache: Path) -> None:
    rows = json.loads(run("list", "--json").stdout)
    assert [row["name"] for row in rows] == list(tb.datasets.names())
    by_name = {row["name"]: row for row in rows}
    assert by_name["dog"]["n_classes"] == 4
    assert "prints 5" in by_name["dog"]["differences"]
    assert {row["folder"] for row in rows} == {None}


def test_listing_imports_neither_numpy_nor_pyarrow() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tiebreak", "datasets", "list"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "tomllib" in imported
    assert not imported & {"numpy", "rich", "pyarrow", "scipy", "numba"}


# path


@pytest.mark.usefixtures("only_tiny")
def test_the_path_is_all_that_is_printed(server: Copies, cache: Path) -> None:
    run("fetch", NAME, "--base", server.address)
    result = run("path", NAME)
    assert (result.exit_code, result.stdout) == (0, f"{cache / NAME}\n")
    assert result.stderr == ""


def test_the_path_of_a_missing_dataset_is_wrong_input_that_says_what_to_type() -> None:
    result = run("path", "web")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("tiebreak datasets path: The dataset 'web' is not here.")
    assert "tiebreak datasets fetch web" in result.stderr


# fetch


@pytest.mark.usefixtures("only_tiny")
def test_fetching_says_where_it_went_on_stderr(server: Copies, cache: Path) -> None:
    result = run("fetch", "all", "--base", server.address)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{NAME} is in {cache / NAME}\n"
    assert repr(tb.datasets.load(NAME).gold) == "Gold(3 tasks, 2 classes)"


@pytest.mark.usefixtures("only_tiny")
def test_quiet_says_nothing_and_a_folder_says_how_it_is_found(
    server: Copies, cache: Path, tmp_path: Path
) -> None:
    options = ("--base", server.address, "--folder", tmp_path / "data")
    assert run("fetch", NAME, *options, "--quiet").output == ""
    assert not cache.exists()
    again = run("fetch", NAME, *options, "--force")
    assert again.stderr.endswith(f"to use them: TIEBREAK_DATA={tmp_path / 'data'}\n")
    assert server.n_asked("label.csv") == 2


@pytest.mark.usefixtures("only_tiny")
def test_a_wrong_name_is_told_before_anything_is_fetched(server: Copies) -> None:
    result = run("fetch", NAME, "tinny", "--base", server.address)
    assert result.exit_code == 2
    assert "Did you mean 'tiny'?" in result.stderr
    assert server.asked == []


def test_offline_is_wrong_input_without_traceback(cache: Path) -> None:
    with serving() as gone:
        pass
    result = run("fetch", "all", "--base", gone.address)
    assert result.exit_code == 2
    assert result.stderr.startswith("tiebreak datasets fetch: bluebird cannot be fetched from http")
    assert "By hand" in result.stderr
    assert not cache.exists()


@pytest.mark.usefixtures("only_tiny")
def test_progress_is_shown_on_a_terminal_only(
    server: Copies, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "rich.progress", None)  # not even imported
        COMMANDS["fetch"]([NAME], base=server.address, force=True)
    assert "label.csv" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    COMMANDS["fetch"]([NAME], base=server.address, force=True)
    assert f"{NAME}/label.csv" in capsys.readouterr().err
    COMMANDS["fetch"]([NAME], base=server.address, force=True, quiet=True)
    assert capsys.readouterr().err == ""


def test_an_interrupted_process_ends_with_130_and_leaves_nothing(
    server: Copies, cache: Path
) -> None:
    file = catalogue.find("rte").copy.responses
    server.files[f"/{file.path}"] = b"x" * file.n_bytes
    server.hold = threading.Event()
    server.cuts.append(1000)
    process = subprocess.Popen(
        [sys.executable, "-m", "tiebreak", "datasets", "fetch", "rte", "--base", server.address],
        stderr=subprocess.PIPE, text=True, env=os.environ,
    )  # fmt: skip
    while process.poll() is None and not server.asked:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert (process.returncode, told) == (130, "interrupted\n")
    assert not cache.exists()
