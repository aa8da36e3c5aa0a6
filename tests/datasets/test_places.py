"""Where datasets are looked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import tiebreak as tb
from tiebreak.datasets import places
from tiebreak.errors import FileError, InputNote


def put(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names or (places.RESPONSES, places.GOLD):
        (folder / name).write_text("task,label\n")
    return folder


def test_the_folder_of_datasets_comes_before_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = put(cache / "rte")
    assert tb.datasets.path("rte") == cached
    monkeypatch.setenv("TIEBREAK_DATA", str(tmp_path / "data"))
    ours = put(tmp_path / "data" / "rte")
    assert tb.datasets.path("rte") == ours


def test_what_the_folder_of_datasets_does_not_have_is_looked_for_in_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEBREAK_DATA", str(put(tmp_path / "data", "README.md")))
    cached = put(cache / "rte")
    assert tb.datasets.path("rte") == cached


def test_a_folder_of_datasets_that_does_not_exist_is_said_aloud(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEBREAK_DATA", str(tmp_path / "nowhere"))
    put(cache / "rte")
    with pytest.warns(InputNote, match="TIEBREAK_DATA names .*nowhere, which is not a folder"):
        assert tb.datasets.path("rte") == cache / "rte"


def test_a_missing_dataset_says_where_it_was_looked_for_and_how_it_can_come(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEBREAK_DATA", str(tmp_path / "data"))
    put(tmp_path / "data" / "rte", places.RESPONSES)
    with pytest.raises(FileError) as caught:
        tb.datasets.load("rte")
    told = str(caught.value)
    assert f"TIEBREAK_DATA: {tmp_path / 'data' / 'rte'} has no gold.csv" in told
    assert f"the cache: {cache / 'rte'} does not exist" in told
    assert "tiebreak datasets fetch rte" in told
    assert f"put responses.csv (task,worker,label) and gold.csv (task,label) into {cache}" in told


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("linux", ".cache"),
        ("darwin", "Library/Caches"),
        ("win32", "AppData/Local"),
    ],
)
def test_the_cache_lies_where_each_system_keeps_caches(
    platform: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIEBREAK_CACHE")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", platform)
    assert places.cache_folder() == tmp_path / expected / "tiebreak" / "datasets"


def test_the_cache_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIEBREAK_CACHE", "~/mine")
    assert places.cache_folder() == Path("~/mine").expanduser()
    monkeypatch.setenv("TIEBREAK_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert places.cache_folder() == tmp_path / "xdg" / "tiebreak" / "datasets"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert tmp_path in places.cache_folder().parents


def test_without_a_home_a_cache_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("TIEBREAK_CACHE")
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(FileError, match=r"no home folder.*TIEBREAK_CACHE"):
        places.cache_folder()
