"""A cache of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache; no setting of the person who runs the tests is seen."""
    for name in ("TIEBREAK_DATA", "TIEBREAK_DATASETS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache"
