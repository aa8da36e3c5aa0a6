"""Fetching from a server on this machine: what comes, what breaks, what is left behind."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from public_copies import (
    LABELS,
    LABELS_PATH,
    NAME,
    TRUTHS,
    TRUTHS_PATH,
    Copies,
    catalogue_of,
    serving,
    tiny,
)

import tiebreak as tb
from tiebreak.datasets import catalogue, fetching
from tiebreak.errors import FileError, InputNote, OptionError

pytestmark = pytest.mark.usefixtures("only_tiny")

HALF = len(LABELS) // 2
WHOLE = ["gold.csv", "responses.csv", "source.json"]


def left_in(folder: Path) -> list[str]:
    """Return everything in a folder of datasets, files and folders, as paths."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) if folder.exists() else []


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / NAME).iterdir())


def an_address_that_refuses() -> str:
    with serving() as gone:
        return gone.address


def failure(base: str) -> str:
    """Fetch, which must fail; return the message."""
    with pytest.raises(FileError) as caught:
        tb.datasets.fetch(NAME, base=base)
    return str(caught.value)


def put(cache: Path, content: bytes, name: str) -> Path:
    (cache / NAME).mkdir(parents=True, exist_ok=True)
    path = cache / NAME / name
    path.write_bytes(content)
    return path


# What comes


def test_a_fetched_dataset_is_found_and_loads_without_a_note(server: Copies, cache: Path) -> None:
    assert tb.datasets.fetch(NAME, base=server.address) == cache / NAME
    assert files_of(cache) == WHOLE
    responses, gold, info = tb.datasets.load(NAME)
    assert repr(responses) == "Responses(160 responses, 4 tasks, 40 workers, 2 classes)"
    assert gold.to_dict() == {"1": "yes", "3": "no", "4": "yes"}
    assert info.name == NAME


def test_the_files_say_what_they_were_made_of(server: Copies) -> None:
    folder = tb.datasets.fetch(NAME, base=server.address)
    source = json.loads((folder / "source.json").read_text("utf-8"))
    assert (source["repository"], source["commit"]) == ("some/copies", "0123abcd")
    for name, path, content in (
        ("responses.csv", LABELS_PATH, LABELS),
        ("gold.csv", TRUTHS_PATH, TRUTHS),
    ):
        assert source["files"][name]["path"] == path
        assert source["files"][name]["sha256"] == hashlib.sha256(content).hexdigest()


def test_what_is_here_is_not_fetched_again_unless_forced(server: Copies, cache: Path) -> None:
    folder = tb.datasets.fetch(NAME, base=server.address)
    (folder / "responses.csv").write_text("mine")
    n_asked = len(server.asked)
    tb.datasets.fetch(NAME, base=server.address)
    assert len(server.asked) == n_asked
    assert (folder / "responses.csv").read_text() == "mine"
    tb.datasets.fetch(NAME, base=server.address, force=True)
    assert len(server.asked) == 2 * n_asked
    assert (folder / "responses.csv").read_text().startswith("task,worker,label\n")
    assert files_of(cache) == WHOLE


def test_a_folder_may_be_chosen_and_the_cache_stays_empty(
    server: Copies, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tb.datasets.fetch(NAME, base=server.address, folder=tmp_path / "data")
    assert folder == tmp_path / "data" / NAME
    assert not cache.exists()
    monkeypatch.setenv("TIEBREAK_DATA", str(tmp_path / "data"))
    assert tb.datasets.path(NAME) == folder
    assert tb.datasets.fetch(NAME, base=server.address) == folder  # it is here: nothing to do
    assert not cache.exists()
    with pytest.warns(InputNote, match="TIEBREAK_DATA comes before the cache"):
        tb.datasets.fetch(NAME, base=server.address, force=True)
    assert files_of(cache) == WHOLE


def test_progress_never_falls_and_ends_with_all(server: Copies) -> None:
    told: dict[str, list[tuple[int, int]]] = {}

    def progress(file: str, here: int, in_all: int) -> None:
        told.setdefault(file, []).append((here, in_all))

    tb.datasets.fetch(NAME, base=server.address, progress=progress)
    assert list(told) == [f"{NAME}/label.csv", f"{NAME}/truth.csv"]
    for steps, content in zip(told.values(), (LABELS, TRUTHS), strict=True):
        assert steps == sorted(steps)
        assert steps[-1] == (len(content), len(content))


# Where from


def test_the_address_may_come_from_the_environment(
    server: Copies, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEBREAK_DATASETS_URL", f"{server.address}/")
    assert tb.datasets.fetch(NAME) == cache / NAME
    assert server.asked == [f"/{LABELS_PATH}", f"/{TRUTHS_PATH}"]


def test_the_address_that_is_passed_wins(server: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIEBREAK_DATASETS_URL", an_address_that_refuses())
    tb.datasets.fetch(NAME, base=server.address)
    assert server.asked


@pytest.mark.parametrize("as_base", [str, Path, Path.as_uri])
def test_a_folder_may_stand_for_the_address(
    tmp_path: Path, cache: Path, as_base: Callable[[Path], str | Path]
) -> None:
    clone = tmp_path / "a clone"
    (clone / LABELS_PATH).parent.mkdir(parents=True)
    (clone / LABELS_PATH).write_bytes(LABELS)
    (clone / TRUTHS_PATH).write_bytes(TRUTHS)
    tb.datasets.fetch(NAME, base=as_base(clone))
    assert files_of(cache) == WHOLE


def test_a_folder_without_the_files_is_told(tmp_path: Path) -> None:
    assert "cannot be reached: No such file" in failure(str(tmp_path))


def test_an_address_of_another_kind_is_refused() -> None:
    with pytest.raises(OptionError, match=r"begins with https://, http://, file:// or is a folder"):
        tb.datasets.fetch(NAME, base="ftp://127.0.0.1/copies")


# What breaks


def test_a_wrong_checksum_is_told_and_nothing_is_left(server: Copies, cache: Path) -> None:
    wrong = LABELS.replace(b",1\n", b",0\n", 1)
    server.files[f"/{LABELS_PATH}"] = wrong
    told = failure(server.address)
    assert f"sha256 {hashlib.sha256(wrong).hexdigest()}; expected" in told
    assert left_in(cache) == []


def test_a_wrong_checksum_of_the_second_file_leaves_no_dataset(server: Copies, cache: Path) -> None:
    server.files[f"/{TRUTHS_PATH}"] = TRUTHS.replace(b"0,1", b"0,0")
    assert "truth.csv: what came has the wrong checksum" in failure(server.address)
    assert left_in(cache) == []


def test_a_file_of_another_size_is_refused_before_it_comes(server: Copies, cache: Path) -> None:
    server.files[f"/{LABELS_PATH}"] = LABELS * 2
    assert f"has {2 * len(LABELS):,} bytes, expected {len(LABELS):,}" in failure(server.address)
    assert left_in(cache) == []


def test_a_body_without_end_is_not_read_to_its_end(server: Copies, cache: Path) -> None:
    server.says_length = False
    server.files[f"/{LABELS_PATH}"] = b"x" * (len(LABELS) + 1_000_000)
    told = []
    with pytest.raises(FileError, match="wrong checksum"):
        tb.datasets.fetch(NAME, base=server.address, progress=lambda *step: told.append(step))
    assert max(here for _, here, _ in told) == len(LABELS)
    assert left_in(cache) == []


def test_a_broken_connection_is_tried_again(server: Copies, cache: Path) -> None:
    server.cuts.extend([HALF, 10])
    tb.datasets.fetch(NAME, base=server.address)
    assert server.n_asked("label.csv") == 3
    assert files_of(cache) == WHOLE


def test_a_server_that_dies_half_way_leaves_nothing_and_the_next_fetch_works(
    server: Copies, cache: Path
) -> None:
    def die(file: str, here: int, in_all: int) -> None:
        if here >= HALF:
            server.stop()

    server.cuts.append(HALF)
    with pytest.raises(FileError, match="cannot be reached: Connection refused"):
        tb.datasets.fetch(NAME, base=server.address, progress=die)
    assert left_in(cache) == []
    with serving() as alive:
        tb.datasets.fetch(NAME, base=alive.address)
    assert files_of(cache) == WHOLE


def test_a_server_that_always_breaks_off_is_given_up(server: Copies, cache: Path) -> None:
    server.cuts.extend([HALF] * 100)
    told = failure(server.address)
    assert f"ended after {HALF:,} of {len(LABELS):,} bytes, {fetching.TRIES} times" in told
    assert len(server.asked) == fetching.TRIES
    assert left_in(cache) == []


def test_a_server_that_falls_silent_is_given_up(
    server: Copies, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "TIMEOUT", 0.2)
    server.hold = threading.Event()
    server.cuts.extend([HALF] * fetching.TRIES)
    assert f"ended after {HALF:,} of" in failure(server.address)
    assert left_in(cache) == []


def test_a_missing_file_is_told_with_its_address(server: Copies, cache: Path) -> None:
    server.files.clear()
    told = failure(server.address)
    assert f"{server.address}/data/some%20folder/label.csv: the server answered 404" in told
    assert left_in(cache) == []


# Offline


def test_offline_the_message_names_the_address_the_reason_and_the_way_by_hand(cache: Path) -> None:
    base = an_address_that_refuses()
    told = failure(base)
    assert f"{NAME} cannot be fetched from {base}/data/some%20folder/label.csv" in told
    assert "cannot be reached: Connection refused" in told
    assert "TIEBREAK_DATASETS_URL" in told
    at_home = "https://raw.githubusercontent.com/some/copies/0123abcd/data/some%20folder"
    assert f"{at_home}/label.csv as label.csv\n  {at_home}/truth.csv as truth.csv" in told
    assert f"in {cache / NAME} and fetch again" in told
    assert left_in(cache) == []


def test_files_put_there_by_hand_need_no_network(cache: Path) -> None:
    put(cache, LABELS, "label.csv")
    put(cache, TRUTHS, "truth.csv")
    tb.datasets.fetch(NAME, base=an_address_that_refuses())
    assert files_of(cache) == WHOLE


def test_a_wrong_file_put_there_by_hand_is_told_and_stays(cache: Path) -> None:
    mine = put(cache, b"something else", "label.csv")
    assert "What lies there as label.csv is not the right file" in failure(
        an_address_that_refuses()
    )
    assert mine.read_bytes() == b"something else"


# What is left behind


def interrupt(file: str, here: int, in_all: int) -> None:
    """Press Ctrl-C half-way."""
    if here >= HALF:
        raise KeyboardInterrupt


def test_an_interrupted_fetch_leaves_nothing(server: Copies, cache: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        tb.datasets.fetch(NAME, base=server.address, progress=interrupt)
    assert left_in(cache) == []


@pytest.mark.parametrize("n_fetches", [2, 5])
def test_fetches_at_once_do_not_disturb_each_other(
    server: Copies, cache: Path, n_fetches: int
) -> None:
    server.meeting = threading.Barrier(
        n_fetches, timeout=60
    )  # all are under way before one can end
    with ThreadPoolExecutor(n_fetches) as pool:
        running = [
            pool.submit(tb.datasets.fetch, NAME, base=server.address) for _ in range(n_fetches)
        ]
        assert {run.result() for run in running} == {cache / NAME}
    assert server.n_asked("label.csv") == n_fetches
    assert files_of(cache) == WHOLE
    assert tb.datasets.load(NAME).responses.n_responses == 160


def test_wrong_counts_keep_nothing_and_what_was_there_before_stays(
    server: Copies, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = catalogue_of(tiny(n_workers=41))
    monkeypatch.setattr(catalogue, "whole", lambda: whole)
    assert "40 workers (expected 41)" in failure(server.address)
    assert left_in(cache) == []
    for name in ("responses.csv", "gold.csv"):
        put(cache, b"old", name)
    with pytest.raises(FileError, match="expected 41"):
        tb.datasets.fetch(NAME, base=server.address, force=True)
    assert left_in(cache) == [NAME, f"{NAME}/gold.csv", f"{NAME}/responses.csv"]
    assert (cache / NAME / "gold.csv").read_bytes() == b"old"


def test_a_disk_that_refuses_is_told_and_what_was_there_before_stays(
    server: Copies, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("responses.csv", "gold.csv"):
        put(cache, b"old", name)
    monkeypatch.setattr("tiebreak.tables.write_gold", full)
    with pytest.raises(FileError, match=r"cannot be written: No space left.*TIEBREAK_CACHE"):
        tb.datasets.fetch(NAME, base=server.address, force=True)
    assert files_of(cache) == ["gold.csv", "responses.csv"]
    assert (cache / NAME / "responses.csv").read_bytes() == b"old"


def test_a_file_where_the_cache_should_be_is_told(server: Copies, cache: Path) -> None:
    cache.write_text("mine")
    with pytest.raises(FileError, match=r"cannot be written: .*TIEBREAK_CACHE"):
        tb.datasets.fetch(NAME, base=server.address)
    assert cache.read_text() == "mine"
