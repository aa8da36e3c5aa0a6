"""Run `tiebreak` as a command line does, in this process."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from tiebreak.cli.app import app


def tiebreak(*words: object, stdin: str | None = None) -> Any:
    """Return what a command printed, and how it ended."""
    return CliRunner().invoke(app, [str(word) for word in words], input=stdin, prog_name="tiebreak")
