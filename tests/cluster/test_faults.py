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
from cluster.clusters import running
from cluster.shards import assert_alike, cut, even, outcome

import tiebreak as tb
from tiebreak.errors import ClusterError, FileError, ResponseError
from tiebreak.shards.units import Part

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
    with pytest.raises(FileError, match=r"Shard 2 \(.*shard-02.tb\).*Write it again"):
        tb.shards.fit(shards, tmp_path / "out")


@pytest.mark.dask
def test_a_damaged_partition_is_named_by_a_worker(
    shards: Path, tmp_path: Path, client: Any
) -> None:
    flip(next((shards / "shard-01.tb").glob("start-*.npy")))
    with pytest.raises(FileError, match=r"Shard 1 \(.*shard-01.tb\).*is not what was written"):
        tb.shards.fit(shards, tmp_path / "out", client=client)


def test_an_empty_folder_is_named(shards: Path, tmp_path: Path) -> None:
    for file in (shards / "shard-03.tb").iterdir():
        file.unlink()
    with pytest.raises(FileError, match=r"Shard 3 .*it has no about.json"):
        tb.shards.fit(shards, tmp_path / "out")


def test_a_partition_that_vanishes_after_it_was_looked_at_is_named(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Part.__init__

    def load(self: Part, *given: Any) -> None:
        shutil.rmtree(shards / "shard-02.tb", ignore_errors=True)
        first(self, *given)

    monkeypatch.setattr(Part, "__init__", load)
    with pytest.raises(FileError, match=r"Shard 2 \(.*shard-02.tb\): There is no folder"):
        tb.shards.fit(shards, tmp_path / "out")


def test_a_missing_shard_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"No file matches .*nothing-\*\.parquet"):
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
        words = r"Shard 1 .*labels-00001.*No space left on device.*resume=True"
        with pytest.raises(FileError, match=words):
            tb.shards.fit(shards, tmp_path / "out")
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
        with pytest.raises(FileError, match=r"checkpoint of sweep 4 .*No space left.*resume=True"):
            tb.shards.fit(shards, tmp_path / "out")
    assert_alike(tb.shards.fit(shards, tmp_path / "out", resume=True), expected)


@pytest.mark.dask
def test_a_partition_that_kills_its_workers_is_named(shards: Path, tmp_path: Path) -> None:
    from distributed import WorkerPlugin

    from tiebreak.cli.cluster import connected

    class Deadly(WorkerPlugin):
        """Lets whoever loads partition 2 be killed, as a system out of memory does."""

        def setup(self, worker: Any) -> None:
            import os

            from tiebreak.shards import units

            first = units.Part.__init__

            def load(self: Any, one: Any, plan: Any) -> None:
                if one.shard.number == 2:
                    os.kill(os.getpid(), 9)
                first(self, one, plan)

            units.Part.__init__ = load  # type: ignore[method-assign]

    with connected("local:2") as other:
        other.register_plugin(Deadly())
        began = time.monotonic()
        words = r"3 workers died .* at shard 2 \(.*shard-02.tb\).*resume=True"
        with pytest.raises(ClusterError, match=words):
            tb.shards.fit(shards, tmp_path / "out", client=other)
        assert time.monotonic() - began < LIMIT_S
    assert not list((tmp_path / "out").glob("labels-*"))


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
        pytest.raises(ClusterError, match=r"not installed on worker tcp://127.* tiebreak\[dask\]"),
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
    with cluster as processes, Client(processes.address) as other:
        words = rf"tiebreak is 0\.0\.1 on worker .* and {tb.__version__} here"
        with pytest.raises(ClusterError, match=words):
            tb.shards.fit(shards, tmp_path / "out", client=other)


@pytest.mark.dask
def test_a_cluster_that_is_not_there_is_said() -> None:
    from tiebreak.cli.cluster import connected

    began = time.monotonic()
    words = r"No scheduler answers at tcp://127.0.0.1:9"
    with pytest.raises(ClusterError, match=words), connected("tcp://127.0.0.1:9"):
        pass
    assert time.monotonic() - began < LIMIT_S


def test_tables_that_the_driver_cannot_hold_are_refused_with_the_arithmetic(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiebreak.shards import fitting

    monkeypatch.setattr(fitting, "memory_bytes", lambda: 300 << 20)
    words = r"20 workers and 2 classes make .*the driver holds 6; .*this machine has 300 MiB"
    with pytest.raises(ResponseError, match=words):
        tb.shards.fit(shards, tmp_path / "out")


def test_a_foreign_folder_is_not_written_to(shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(FileError, match=r"holds 'thesis.txt', which is none of the labels"):
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
