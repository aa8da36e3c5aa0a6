"""Datasets as responses, gold and info."""

from __future__ import annotations

from pathlib import Path

import pytest

import tiebreak as tb
from tiebreak.datasets.convert import wrong_counts
from tiebreak.errors import InputNote


def put(folder: Path, responses: str, gold: str) -> None:
    folder.mkdir(parents=True)
    (folder / "responses.csv").write_text(f"task,worker,label\n{responses}")
    (folder / "gold.csv").write_text(f"task,label\n{gold}")


def test_files_that_are_not_the_dataset_are_read_and_it_is_said(cache: Path) -> None:
    put(cache / "rte", "7,ann,1\n8,ann,0\n8,bob,0\n", "7,1\n")
    with pytest.warns(InputNote, match=r"it has 2 tasks \(expected 800\), 2 workers .*, 1 gold"):
        responses, gold, info = tb.datasets.load("rte")
    assert list(responses.tasks) == ["7", "8"]
    assert gold.to_dict() == {"7": "1"}
    assert info == tb.datasets.info("rte")


def test_a_class_that_only_gold_has_counts() -> None:
    responses = tb.Responses.from_rows([("a", "ann", "x"), ("b", "ann", "y")])
    gold = tb.Gold.from_dict({"a": "z"})
    wrong = wrong_counts(responses, gold, tb.datasets.info("rte"))
    assert "3 classes (expected 2)" in wrong


@pytest.mark.data
@pytest.mark.parametrize("name", tb.datasets.names())
def test_every_dataset_loads_with_the_counts_of_the_catalogue(
    name: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What differs would be said aloud, which is an error here."""
    monkeypatch.setenv("TIEBREAK_DATA", str(data_dir))
    responses, gold, info = tb.datasets.load(name)
    assert tb.datasets.path(name) == data_dir / name
    assert wrong_counts(responses, gold, info) == ""
    assert set(info.classes) == set(responses.classes) == set(gold.classes)
