"""docs/rank.md: its commands print what the page shows, but for the last digits of numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import output_of, steps
from test_public import ROOT, blocks

PAGE = ROOT / "docs" / "rank.md"
NUMBER = re.compile(r"\d+\.\d+")


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(blocks(PAGE, "python run")[0], {})
    for block in blocks(PAGE, "console run"):
        ((command, shown),) = steps(block)
        printed = output_of(command)
        assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
        found, expected = (list(map(float, NUMBER.findall(text))) for text in (printed, shown))
        assert found == pytest.approx(expected, abs=0.011)
