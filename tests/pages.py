"""Commands that pages of docs/ show, and what they print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from tiebreak.cli.app import app


def steps(block: str) -> list[tuple[str, str]]:
    """Return each command of a block and the output below it."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def output_of(command: str) -> str:
    """Run a command and return all it prints."""
    name, *arguments = shlex.split(command)
    if name == "cat":
        return Path(arguments[0]).read_text("utf-8")
    if name == "head":
        lines = Path(arguments[2]).read_text("utf-8").splitlines(keepends=True)
        return "".join(lines[: int(arguments[1])])
    assert name == "tiebreak"
    return str(CliRunner().invoke(app, arguments, prog_name="tiebreak").output)


def rounded(text: str) -> str:
    """Round long numbers: results agree within 1e-9 on every machine, and not bit by bit."""
    return re.sub(r"\d+\.\d{10,}(e-\d+)?", lambda found: f"{float(found[0]):.9g}", text)
