"""The reference that `make docs` writes: every public name is in it, and no link is broken."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

import tiebreak as tb

TOOL = Path(__file__).parent.parent / "tools" / "make_reference.py"


def tool() -> Any:
    """Return the command as a module."""
    pytest.importorskip("pdoc")
    spec = importlib.util.spec_from_file_location("make_reference", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_is_in_the_reference_and_no_link_is_broken(tmp_path: Path) -> None:
    reference = tool()
    reference.make(tmp_path)
    assert reference.broken_links(tmp_path) == []
    page = (tmp_path / "tiebreak.html").read_text("utf-8")
    here = set(re.findall(r'id="(\w+)"', page))
    rooms = {path.stem for path in (tmp_path / "tiebreak").glob("*.html")}
    assert set(tb.__all__) - {"__version__"} <= here | rooms


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    reference = tool()
    (tmp_path / "a.html").write_text('<a href="b.html#x">b</a> <a id="y" href="#y">here</a>')
    assert reference.broken_links(tmp_path) == ["a.html: b.html#x"]
    (tmp_path / "b.html").write_text('<p id="x"><a href="https://example.org">away</a></p>')
    assert reference.broken_links(tmp_path) == []
