"""The page of accuracy: made of the record alone, and what it says of published figures."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.accuracy.page")


@pytest.mark.slow
def test_the_page_is_made_of_the_record_alone(page: Any) -> None:
    kept = (ROOT / "docs" / "accuracy.md").read_text("utf-8")
    assert page.text_of(page.kept()) == kept


def test_published_figures_are_reproduced(page: Any) -> None:
    """Hold the record, which `make accuracy` writes, against what was printed."""
    found = page.published(page.kept())
    equal = {method: [e["set"] for e in found if e["method"] == method and e["equal"]] for method in
             {e["method"] for e in found}}  # fmt: skip
    assert len(equal["ibcc"]) == len(equal["bwa"]) == 10
    assert len(equal["ebcc"]) + len(equal["ebcc40"]) >= 7
    for each in found:
        if each["method"].startswith("ebcc") and each["set"] != "web":
            assert abs(each["apart"]) <= 0.0015
    exact = {("mv", "product"), ("zc", "product"), ("pm", "product"), ("kos", "product")}
    exact |= {("mv", name) for name in ("web", "bluebird", "rte", "dog")}
    exact |= {("ds_em", "bluebird"), ("ds_em", "rte")}
    exact |= {("minimax", name) for name in ("web", "bluebird", "dog")}
    assert {(e["method"], e["set"]) for e in found if not e["equal"]} & exact == set()
