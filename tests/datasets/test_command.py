"""tiebreak datasets: list, path, fetch, and how they end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import tiebreak

import tiebreak as tb


def run(*arguments: object) -> Any:
    words = ["datasets", *map(str, arguments)]
    return tiebreak(*words)


@pytest.mark.parametrize("name", ["list", "fetch", "path"])
def test_every_command_has_help_that_fits_a_terminal(name: str) -> None:
    result = run(name, "-h")
    assert result.exit_code == 0
    assert f"Usage: tiebreak datasets {name}" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_list_has_counts_and_what_is_here(cache: Path) -> None:
    (cache / "rte").mkdir(parents=True)
    for name in ("responses.csv", "gold.csv"):
        (cache / "rte" / name).touch()
    lines = run("list").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(tb.datasets.names())
    rows = {line.split()[0]: line.split(maxsplit=6)[1:] for line in lines[1:]}
    assert rows["rte"] == ["800", "164", "2", "8,000", "800", str(cache / "rte")]
    assert rows["trec"] == ["19,033", "762", "2", "88,385", "2,275", "not here"]
    by_name = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    assert by_name["dog"]["n_classes"] == 4
    assert "prints 5" in by_name["dog"]["differences"]
    assert by_name["rte"]["folder"] == str(cache / "rte")
    assert by_name["dog"]["folder"] is None


def test_listing_imports_neither_numpy_nor_pyarrow() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tiebreak", "datasets", "list"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "tomllib" in imported
    assert not imported & {"numpy", "rich", "pyarrow", "scipy", "numba", "requests"}


def test_the_path_is_all_that_is_printed(cache: Path) -> None:
    missing = run("path", "web")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "tiebreak datasets fetch web" in missing.stderr
    (cache / "web").mkdir(parents=True)
    for name in ("responses.csv", "gold.csv"):
        (cache / "web" / name).touch()
    assert run("path", "web").stdout == f"{cache / 'web'}\n"


def test_a_wrong_name_is_told_before_anything_is_fetched(cache: Path, tmp_path: Path) -> None:
    result = run("fetch", "rte", "webb", "--base", tmp_path)
    assert result.exit_code == 2
    assert "Did you mean 'web'?" in result.stderr


def test_a_copy_that_does_not_come_is_wrong_input_without_traceback(
    cache: Path, tmp_path: Path
) -> None:
    result = run("fetch", "all", "--base", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("tiebreak datasets fetch: bluebird cannot be fetched")
    assert not cache.exists()
