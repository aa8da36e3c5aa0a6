"""docs/formats.md: every command of the page gives the output that it shows."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pages import output_of, rounded, steps
from tables.formats.answers import answers, read
from tables.said import refused

import tiebreak as tb
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
        assert rounded(output_of(command)) == rounded(output), command


def test_every_format_stands_in_the_table() -> None:
    page = PAGE.read_text("utf-8")
    for form in formats.FORMATS:
        assert f"`{form.name}`" in page


def test_the_format_of_the_page_is_read_and_says_where_a_file_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = PAGE.read_text("utf-8").partition("## A format of your own")[2]
    made: dict[str, Any] = {}
    exec(code.partition("```python\n")[2].partition("```")[0], made)
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, *made["FORMATS"]))
    said = [{"by": "ann", "choice": "cat"}, {"by": "bob", "choice": "x", "skipped": True}]
    records: list[Any] = [{"item": 1, "answers": said}, {"item": 2, "answers": said[:1]}]
    file = tmp_path / "l.json"
    file.write_text(json.dumps(records))
    assert answers(read(file)) == {(1, "ann"): "cat", (2, "ann"): "cat"}
    file.write_text(json.dumps([*records, {"item": 3, "answers": [{"by": "ann", "choice": 7}]}]))
    with refused("wrong-type", key="choice") as caught:
        tb.read_responses(file)
    assert str(caught.value.fields["at"]) == f"{file}, record 3"
