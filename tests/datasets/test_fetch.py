"""Where datasets are looked for, and how public copies come here."""

from __future__ import annotations

import csv
import functools
import sys
import tomllib
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import tiebreak as tb
from tiebreak.errors import FileError, InputNote

NAME = "music_genre"


def put(folder: Path, responses: str = "", gold: str = "") -> Path:
    folder.mkdir(parents=True)
    (folder / "responses.csv").write_text(f"task,worker,label\n{responses}")
    (folder / "gold.csv").write_text(f"task,label\n{gold}")
    return folder


def rows_of(file: Path) -> list[list[str]]:
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.reader(text))[1:]


# Where they are looked for


def test_the_folder_of_data_comes_before_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = put(cache / "rte")
    assert tb.datasets.path("rte") == cached
    monkeypatch.setenv("TIEBREAK_DATA", str(tmp_path / "data"))
    with pytest.warns(InputNote) as caught:
        assert tb.datasets.path("rte") == cached
    note: Any = caught[0].message
    assert note.code == "data-folder-missing"
    ours = put(tmp_path / "data" / "rte")
    assert tb.datasets.path("rte") == tb.datasets.fetch("rte") == ours  # nothing is fetched


def test_a_missing_dataset_tells_where_it_was_looked_for(cache: Path) -> None:
    with pytest.raises(FileError) as caught:
        tb.datasets.load("rte")
    assert caught.value.code == "dataset-not-here"
    assert caught.value.fields == {"name": "rte", "looked": str(cache / "rte")}


def test_files_that_are_not_the_dataset_are_read_with_a_note(cache: Path) -> None:
    put(cache / "rte", "7,ann,1\n8,ann,0\n8,bob,0\n", "7,1\n")
    with pytest.warns(InputNote) as caught:
        responses, gold, info = tb.datasets.load("rte")
    note: Any = caught[0].message
    assert note.code == "dataset-counts"
    assert (note.fields["found"]["n_tasks"], note.fields["expected"]["n_tasks"]) == (2, 800)
    assert list(responses.tasks) == ["7", "8"]
    assert gold.to_dict() == {"7": "1"}
    assert info == tb.datasets.info("rte")


@pytest.mark.data
@pytest.mark.parametrize("name", tb.datasets.names())
def test_every_dataset_loads_with_the_counts_of_the_catalogue(
    name: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What differs would be a note, which is an error here."""
    monkeypatch.setenv("TIEBREAK_DATA", str(data_dir))
    responses, gold, info = tb.datasets.load(name)
    assert set(info.classes) == set(responses.classes) == set(gold.classes)


# How they come: one public copy, rebuilt byte by byte from the real data


@pytest.fixture
def copies(data_dir: Path, tmp_path: Path) -> Path:
    text = resources.files("tiebreak.datasets").joinpath("catalogue.toml").read_text("utf-8")
    copy = tomllib.loads(text)["datasets"][NAME]["copy"]
    said, known = (rows_of(data_dir / NAME / f"{name}.csv") for name in ("responses", "gold"))
    number = {task: str(i) for i, task in enumerate(sorted(task for task, _ in known))}
    code = {ours: theirs for theirs, ours in copy["classes"].items()}
    labels = [f"{number[t]},{int(w[1:]) - 1},{code[label]}" for t, w, label in said]
    truths = [f"{number[t]},{code[label]}" for t, label in known]
    root = tmp_path / "a clone"
    for part, header, rows in (
        ("responses", "item,worker,label", labels),
        ("gold", "item,truth", truths),
    ):
        file = root / copy[part]["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes("\n".join([header, *rows, ""]).encode())
    return root


@pytest.fixture
def server(copies: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=copies)) as http:
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()
        thread.join()


def check(folder: Path, data: Path) -> None:
    """Compare what came with the data, whose tasks and workers have other ids."""
    said, known = (rows_of(data / NAME / f"{name}.csv") for name in ("responses", "gold"))
    number = {task: str(i) for i, task in enumerate(sorted(task for task, _ in known))}
    assert sorted(rows_of(folder / "responses.csv")) == sorted(
        [number[t], str(int(w[1:]) - 1), label] for t, w, label in said
    )
    assert rows_of(folder / "gold.csv") == [[number[t], label] for t, label in known]
    assert tb.datasets.load(NAME).responses.n_classes == 10


@pytest.mark.data
def test_a_copy_on_the_web_becomes_the_dataset(server: str, data_dir: Path, cache: Path) -> None:
    pytest.importorskip("pooch")
    folder = tb.datasets.fetch(NAME, base=server)
    assert folder == cache / NAME
    check(folder, data_dir)
    (folder / "gold.csv").write_text("mine")
    assert tb.datasets.fetch(NAME, base=server) == folder
    assert (folder / "gold.csv").read_text() == "mine"
    tb.datasets.fetch(NAME, base=server, force=True)
    check(folder, data_dir)


@pytest.mark.data
def test_a_folder_of_copies_needs_no_network_and_no_pooch(
    copies: Path, data_dir: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.setenv("TIEBREAK_DATASETS_URL", str(copies))
    check(tb.datasets.fetch(NAME), data_dir)
    chosen = tb.datasets.fetch(NAME, folder=tmp_path / "data")
    assert chosen == tmp_path / "data" / NAME


@pytest.mark.data
def test_files_put_there_by_hand_need_no_network(copies: Path, data_dir: Path, cache: Path) -> None:
    pytest.importorskip("pooch")
    (cache / NAME).mkdir(parents=True)
    for file in copies.rglob("*.csv"):
        (cache / NAME / file.name).write_bytes(file.read_bytes())
    check(tb.datasets.fetch(NAME), data_dir)


@pytest.mark.data
def test_a_wrong_checksum_is_refused(server: str, copies: Path, cache: Path) -> None:
    pytest.importorskip("pooch")
    next(copies.rglob("label.csv")).write_bytes(b"something else")
    for base in (server, str(copies)):
        with pytest.raises(FileError) as caught:
            tb.datasets.fetch(NAME, base=base)
        assert caught.value.code == "dataset-not-fetched"
        assert list(cache.rglob("*.csv")) == []


def test_offline_the_error_tells_the_addresses_and_the_folder(cache: Path) -> None:
    pytest.importorskip("pooch")
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as gone:
        base = f"http://127.0.0.1:{gone.server_address[1]}"
    with pytest.raises(FileError) as caught:
        tb.datasets.fetch(NAME, base=base)
    error = caught.value
    assert error.code == "dataset-not-fetched"
    assert error.fields["folder"] == str(cache / NAME)
    addresses = error.fields["addresses"]
    assert isinstance(addresses, dict)
    assert sorted(addresses) == ["label.csv", "truth.csv"]
    assert all(each.startswith("https://raw.githubusercontent.com/") for each in addresses.values())


def test_without_pooch_fetching_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(tb.errors.MissingExtraError) as caught:
        tb.datasets.fetch(NAME)
    assert caught.value.fields["extra"] == "datasets"
    monkeypatch.delenv("TIEBREAK_CACHE")
    with pytest.raises(FileError):
        tb.datasets.path(NAME)
