"""Tables that the page hands out are opened in spreadsheets: no cell of them may run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import tiebreak as tb
from tiebreak.page import watch


def test_downloads_hold_no_cell_that_a_spreadsheet_would_run() -> None:
    known = tb.Gold.from_dict({"=HYPERLINK(1)": "@x", "plain": "-1"})
    desk: Any = SimpleNamespace(labels=lambda: known)
    lines = watch.download(desk, "known", "csv").decode().splitlines()
    assert lines == ["task,label", "'=HYPERLINK(1),'@x", "plain,-1"]
    assert b"'=" not in watch.download(desk, "known", "parquet")
