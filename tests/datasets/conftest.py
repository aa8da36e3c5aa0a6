"""A cache of the test's own, a server of public copies, a catalogue of one tiny dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from public_copies import Copies, catalogue_of, serving, tiny

from tiebreak.datasets import catalogue


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache; no setting of the person who runs the tests is seen."""
    for name in ("TIEBREAK_DATA", "TIEBREAK_DATASETS_URL", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache"


@pytest.fixture
def server() -> Iterator[Copies]:
    """Serve the copy of the tiny dataset."""
    with serving() as copies:
        yield copies


@pytest.fixture
def only_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tiny dataset the only one there is."""
    whole = catalogue_of(tiny())
    monkeypatch.setattr(catalogue, "whole", lambda: whole)
