"""docs/formats.md: every command of the page gives the output that it shows."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tiebreak.cli.app import app
from tiebreak.files.formats.registry import FORMATS

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
BLOCK = re.compile(r"^```console run\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown(block: str) -> list[tuple[str, str]]:
    """Return each command of a block and the output below it."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def output_of(command: str) -> str:
    """Run a command and return all it prints."""
    arguments = shlex.split(command)
    if arguments[0] == "cat":
        return Path(arguments[1]).read_text("utf-8")
    if arguments[0] == "head":
        return "".join(Path(arguments[3]).read_text("utf-8").splitlines(True)[: int(arguments[2])])
    assert arguments[0] == "tiebreak"
    return str(CliRunner().invoke(app, arguments[1:], prog_name="tiebreak").output)


def test_every_command_of_the_page_gives_what_it_shows(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(data, tmp_path / "data"))
    examples = [one for block in BLOCK.findall(PAGE.read_text("utf-8")) for one in shown(block)]
    assert len(examples) >= 15
    for command, output in examples:
        assert output_of(command) == output, command


def test_every_format_stands_in_the_table() -> None:
    page = PAGE.read_text("utf-8")
    for form in FORMATS:
        assert f"`{form.name}`" in page
