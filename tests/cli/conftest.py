"""Run commands inside the test's own folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tiebreak.cli.app import app

Run = Callable[..., Any]
Write = Callable[[str, str], Path]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, which is also where the command runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Write:
    """Return a function that writes a text file into the folder."""

    def write_text(name: str, text: str) -> Path:
        path = folder / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


@pytest.fixture
def run(folder: Path) -> Run:
    """Return a function that runs `tiebreak` and says what it printed and how it ended."""

    def invoke(*arguments: object, stdin: str | None = None) -> Any:
        command = [str(argument) for argument in arguments]
        return CliRunner().invoke(app, command, input=stdin, prog_name="tiebreak")

    return invoke
