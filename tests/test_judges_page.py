"""docs/judges.md: every command gives the output that it shows; the notebook runs."""

from __future__ import annotations

import contextlib
import io
import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from pages import output_of, rounded

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "judges.md"
NOTEBOOK = DOCS / "notebooks" / "judges.ipynb"
BLOCK = re.compile(r"^```(python|console) run\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def played(page: str) -> str:
    """Run the blocks of a page in their order; return it with what they print."""

    def again(found: re.Match[str]) -> str:
        if found[1] == "python":
            exec(compile(found[2], str(PAGE), "exec"), {})
            return found[0]
        commands = [line for line in found[2].splitlines() if line.startswith("$ ")]
        shown = "".join(f"{line}\n{output_of(line[2:])}" for line in commands)
        return f"```console run\n{shown}```"

    return BLOCK.sub(again, page)


def test_every_command_of_the_page_gives_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text("utf-8")
    assert len(BLOCK.findall(page)) >= 6
    assert rounded(played(page)) == rounded(page)


def test_the_notebook_runs_and_shows_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 6
    for cell in code:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), names)
        shown = "".join("".join(output.get("text", ())) for output in cell["outputs"])
        assert rounded(printed.getvalue()) == rounded(shown), "".join(cell["source"])
