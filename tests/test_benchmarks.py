"""Benchmarks call the inside of the package: tiny runs show that they still can."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_benchmarks_of_sweeps_run_on_the_code_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    linked_sweep = importlib.import_module("benchmarks.scale.linked_sweep")
    monkeypatch.setattr(linked_sweep, "N_WORKERS", 20)
    assert linked_sweep.measure(3, 300)["links"] == 300
    jury = importlib.import_module("benchmarks.scale.jury")
    monkeypatch.setattr(jury, "PAIRS", 1)
    found = jury.measure(20_000)
    assert found["rows"] <= 3**5
    assert found["same_labels"] == 1.0
    judges = importlib.import_module("benchmarks.scale.judges")
    monkeypatch.setattr(judges, "WARM", 300)
    found = judges.measure(400)
    assert found["responses"] == 400 * 9 * 8
    assert 1.0 < found["effective_judges"] <= 9.0
