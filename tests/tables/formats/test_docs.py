"""docs/formats.md: every command of the page gives the output that it shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from pages import output_of, steps

from tiebreak.tables import formats

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
BLOCK = re.compile(r"^```console run\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_command_of_the_page_gives_what_it_shows(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(data, tmp_path / "data"))
    examples = [one for block in BLOCK.findall(PAGE.read_text("utf-8")) for one in steps(block)]
    assert len(examples) >= 15
    for command, output in examples:
        assert output_of(command) == output, command


def test_every_format_stands_in_the_table() -> None:
    page = PAGE.read_text("utf-8")
    for form in formats.FORMATS:
        assert f"`{form.name}`" in page
