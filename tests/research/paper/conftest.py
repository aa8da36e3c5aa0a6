"""Tiny datasets under real names, and plans that compile nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import tiebreak as tb
from tiebreak.research.paper import runs

SIZES = {"bluebird": (24, 2), "dog": (18, 3)}  # tasks, classes


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of two tiny crowds, the only datasets that are here."""
    folder = tmp_path / "data"
    for name, (n_tasks, n_classes) in SIZES.items():
        (folder / name).mkdir(parents=True)
        crowd = tb.simulate.crowd(
            n_tasks, 5, n_classes, responses_per_task=3, accuracy=(0.5, 0.8), random_state=7
        )
        crowd.responses.write(folder / name / "responses.csv")
        crowd.gold.write(folder / name / "gold.csv")
    monkeypatch.setenv("TIEBREAK_DATA", str(folder))
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(runs, "BACKEND", "numpy")
    runs.crowd.cache_clear()
    runs.draw.cache_clear()
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return an empty folder for results."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"
