"""What goes wrong on machines: an error that names the partition, its folder and the next step."""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster.clusters import local, running
from cluster.shards import assert_alike, cut, even, outcome
from refusals import refused

import tiebreak as tb
from tiebreak.errors import ClusterError, FileError, ResponseError

CROWD = tb.simulate.crowd(600, 20, 2, random_state=6)
LIMIT_S = 35.0  # within which an error is said


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return cut(CROWD.responses, even(600, 4), tmp_path / "shards")


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(bytes(content))


def test_a_damaged_partition_is_named(shards: Path, tmp_path: Path) -> None:
    flip(next((shards / "shard-02.tb").glob("code-*.npy")))
    with refused(FileError, "array-folder-damaged") as error:
        tb.shards.fit(shards, tmp_path / "out")
    assert str(error.value).startswith(f"Shard 2 ({shards / 'shard-02.tb'}): ")


@pytest.mark.dask
def test_a_damaged_partition_is_named_by_a_worker(
    shards: Path, tmp_path: Path, client: Any
) -> None:
    flip(next((shards / "shard-01.tb").glob("start-*.npy")))
    with refused(FileError, "array-folder-damaged") as error:
        tb.shards.fit(shards, tmp_path / "out", client=client)
    assert error.value.fields["shard"] == f"shard 1 ({shards / 'shard-01.tb'})"


def test_an_empty_folder_is_named(shards: Path, tmp_path: Path) -> None:
    for file in (shards / "shard-03.tb").iterdir():
        file.unlink()
    with refused(FileError, "array-folder-damaged") as error:
        tb.shards.fit(shards, tmp_path / "out")
    assert error.value.fields["shard"] == f"shard 3 ({shards / 'shard-03.tb'})"


class Vanishing(tb.shards.Serial):
    """An executor before whose second request a shard goes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.n_requests = 0

    def share(self, task: Any, items: Any) -> Any:
        self.n_requests += 1
        if self.n_requests == 2:
            shutil.rmtree(self.folder)
        return super().share(task, items)


def test_a_shard_that_vanishes_after_it_was_looked_at_is_named(
    shards: Path, tmp_path: Path
) -> None:
    folder = shards / "shard-02.tb"
    with refused(FileError, "array-folder-missing") as error:
        tb.shards.fit(shards, tmp_path / "out", executor=Vanishing(folder))
    assert error.value.fields["shard"] == f"shard 2 ({folder})"


def test_a_missing_shard_is_said(tmp_path: Path) -> None:
    with refused(FileError, "no-match"):
        tb.shards.fit(tmp_path / "nothing-*.parquet", tmp_path / "out")


def test_a_full_disk_leaves_no_half_file_and_the_fit_goes_on(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = outcome(tb.shards.fit(shards, tmp_path / "whole"))
    sync = os.fsync
    n_labels = 0

    def full(handle: int) -> None:
        nonlocal n_labels
        if "checkpoint" not in str(Path(f"/proc/self/fd/{handle}").readlink()):
            n_labels += 1
            if n_labels == 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with refused(FileError, "labels-not-written") as error:
            tb.shards.fit(shards, tmp_path / "out")
    assert "labels-00001.parquet" in str(error.value)
    assert os.strerror(errno.ENOSPC) in str(error.value)
    names = sorted(each.name for each in (tmp_path / "out").iterdir())
    assert names == [".tiebreak", "labels-00000.parquet"]
    seen: list[int] = []
    made = tb.shards.fit(
        shards, tmp_path / "out", resume=True, progress=lambda p: seen.append(p.n_sweeps)
    )
    assert_alike(made, expected)


def test_a_full_disk_under_the_checkpoint_is_said(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = outcome(tb.shards.fit(shards, tmp_path / "whole"))
    sync = os.fsync

    def full(handle: int) -> None:
        at = tmp_path / "out" / ".tiebreak" / "checkpoint"
        if len(list(at.glob("sweep-*.npz"))) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with refused(FileError, "checkpoint-not-written") as error:
            tb.shards.fit(shards, tmp_path / "out")
    assert error.value.fields["number"] == 4
    assert_alike(tb.shards.fit(shards, tmp_path / "out", resume=True), expected)


@pytest.mark.dask
def test_an_item_that_kills_its_workers_is_named() -> None:
    def add_up(items: list[tuple[int]]) -> int:
        if (2,) in items:
            os.kill(os.getpid(), 9)  # as a system out of memory does
        return sum(number for (number,) in items)

    with local(2) as other:
        began = time.monotonic()
        executor = tb.shards.executor_of(other)
        assert sum(executor.share(add_up, [(0,), (1,)])) == 1
        with refused(ClusterError, "workers-died") as error:
            executor.share(add_up, [(0,), (1,), (2,), (3,)])
        assert time.monotonic() - began < LIMIT_S
    assert error.value.fields == {"n": 3, "item": "2"}


@pytest.mark.dask
def test_a_worker_without_tiebreak_is_named(shards: Path, tmp_path: Path) -> None:
    from distributed import Client

    blocker = tmp_path / "blocker"
    blocker.mkdir()
    (blocker / "sitecustomize.py").write_text(
        "import sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'tiebreak':\n"
        "            raise ModuleNotFoundError('No module named tiebreak', name='tiebreak')\n"
        "sys.meta_path.insert(0, Blocker())\n"
    )
    cluster = running(tmp_path / "cluster", 1, first_on_path=blocker)
    with (
        cluster as processes,
        Client(processes.address) as other,
        refused(ClusterError, "tiebreak-missing"),
    ):
        tb.shards.fit(shards, tmp_path / "out", client=other)


@pytest.mark.dask
def test_another_version_on_a_worker_is_named(shards: Path, tmp_path: Path) -> None:
    from distributed import Client

    package = tmp_path / "older" / "tiebreak"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "_version.py").write_text('__version__ = "0.0.1"\n')
    cluster = running(tmp_path / "cluster", 1, first_on_path=package.parent)
    with (
        cluster as processes,
        Client(processes.address) as other,
        refused(ClusterError, "version-differs") as error,
    ):
        tb.shards.fit(shards, tmp_path / "out", client=other)
    assert error.value.fields["there"] == "0.0.1"


def test_tables_that_the_driver_cannot_hold_are_refused_with_the_arithmetic(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 76_800}.get)
    with refused(ResponseError, "shards-too-large") as error:
        tb.shards.fit(shards, tmp_path / "out")
    sizes = ("n_workers", "n_classes", "n_named", "limit")
    assert [error.value.fields[name] for name in sizes] == [20, 2, 0, 300 << 20]


def test_a_foreign_folder_is_not_written_to(shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    with refused(FileError, "labels-into-foreign thesis.txt"):
        tb.shards.fit(shards, out)
    assert (out / "thesis.txt").read_text() == "mine"


def test_success_is_the_last_file(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    replace = os.replace

    def watch(one: Any, other: Any) -> None:
        order.append(Path(other).name)
        replace(one, other)

    monkeypatch.setattr(os, "replace", watch)
    tb.shards.fit(shards, tmp_path / "out")
    written = [name for name in order if name.startswith(("labels", "_"))]
    assert written == [*(f"labels-{i:05d}.parquet" for i in range(4)), "_SUCCESS"]


def test_older_labels_are_replaced_and_none_is_left_over(shards: Path, tmp_path: Path) -> None:
    tb.shards.fit(shards, tmp_path / "out")
    fewer = [str(shards / f"shard-0{i}.tb") for i in range(2)]
    made = tb.shards.fit(fewer, tmp_path / "out")
    assert len(made.labels_.files()) == 2
    assert made.n_tasks == int(np.sum([300]))
