"""A driver that was killed, or lost its scheduler, goes on to the same fit."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from cluster.clusters import running
from cluster.shards import Outcome, assert_alike, cut, die_at, even, outcome
from refusals import refused

import tiebreak as tb
from tiebreak.errors import ClusterError, FileError, OptionError

CROWD = tb.simulate.crowd(1500, 30, 3, random_state=4)
GOLD = dict(list(CROWD.gold.to_dict().items())[::30])
LINKS = tb.simulate.links(CROWD.gold, 200, random_state=2)
N_PLAIN = tb.VariationalBayes().fit(CROWD.responses).n_iter_


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut(CROWD.responses, even(1500, 5), tmp_path_factory.mktemp("crowd") / "shards")


@pytest.mark.parametrize(
    ("given", "sweep"),
    [({}, 3), ({"gold": GOLD}, N_PLAIN + 2), ({"links": LINKS, "gold": GOLD}, N_PLAIN + 9)],
    ids=["plain", "gold", "links"],
)
def test_a_killed_driver_goes_on_to_the_same_fit(
    given: dict[str, Any], sweep: int, shards: Path, tmp_path: Path
) -> None:
    links = None
    if "links" in given:  # as the other process reads them
        given["links"].write(tmp_path / "links.csv")
        links = tb.read_links(tmp_path / "links.csv")
    both: dict[str, Any] = {"gold": given.get("gold"), "links": links}
    expected = outcome(tb.shards.fit(shards, tmp_path / "whole", **both))
    die_at(sweep, shards, tmp_path / "out", tmp_path, **given)
    seen: list[float] = []
    made = tb.shards.fit(
        shards, tmp_path / "out", resume=True, progress=lambda p: seen.append(p.n_sweeps), **both
    )
    assert_alike(made, expected)
    assert (tmp_path / "out" / "_SUCCESS").exists()


@pytest.mark.dask
def test_a_killed_driver_of_a_cluster_goes_on_serially(shards: Path, tmp_path: Path) -> None:
    expected = outcome(tb.shards.fit(shards, tmp_path / "whole", gold=GOLD))
    with running(tmp_path / "cluster") as cluster:
        die_at(4, shards, tmp_path / "out", tmp_path, gold=GOLD, address=cluster.address)
    made = tb.shards.fit(shards, tmp_path / "out", resume=True, gold=GOLD)
    assert_alike(made, expected)


@pytest.mark.dask
def test_a_lost_scheduler_is_said_and_another_cluster_goes_on(shards: Path, tmp_path: Path) -> None:
    from distributed import Client

    expected = outcome(tb.shards.fit(shards, tmp_path / "whole"))
    with running(tmp_path / "cluster") as cluster, Client(cluster.address) as client:
        died: list[float] = []

        def kill_scheduler(progress: tb.shards.FitProgress) -> None:
            if progress.n_sweeps == 4:
                os.kill(cluster.scheduler.pid, signal.SIGKILL)
                died.append(time.monotonic())

        with refused(ClusterError, "scheduler-lost"):
            tb.shards.fit(shards, tmp_path / "out", client=client, progress=kill_scheduler)
        assert time.monotonic() - died[0] < 35.0
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    made = tb.shards.fit(shards, tmp_path / "out", resume=True)
    assert_alike(made, expected)


def broken_off(shards: Path, out: Path, **given: Any) -> None:
    """Leave the checkpoint of a fit that stopped after three sweeps."""

    def stop(progress: tb.shards.FitProgress) -> None:
        if progress.n_sweeps == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tb.shards.fit(shards, out, progress=stop, **given)


def test_a_checkpoint_of_another_fit_is_refused(shards: Path, tmp_path: Path) -> None:
    broken_off(shards, tmp_path / "out")
    fewer = sorted(str(each) for each in shards.iterdir())[:4]
    others: dict[str, tuple[Any, dict[str, Any]]] = {
        "gold": (shards, {"gold": GOLD}),
        "options": (shards, {"estimator": tb.VariationalBayes(tol=1e-3)}),
        "responses": (fewer, {}),
    }
    for name, (source, given) in others.items():
        with refused(OptionError, "checkpoint-of-other-fit") as error:
            tb.shards.fit(source, tmp_path / "out", resume=True, **given)
        assert error.value.fields["names"] == [name]
    tb.shards.fit(shards, tmp_path / "out", resume=True)


def test_a_broken_off_fit_is_not_begun_anew_by_mistake(shards: Path, tmp_path: Path) -> None:
    broken_off(shards, tmp_path / "out")
    with refused(FileError, "fit-broken-off") as error:
        tb.shards.fit(shards, tmp_path / "out")
    assert error.value.fields["n"] == 3
    tb.shards.fit(shards, tmp_path / "out", force=True)


def test_there_is_nothing_to_go_on_from(shards: Path, tmp_path: Path) -> None:
    with refused(FileError, "checkpoint-missing"):
        tb.shards.fit(shards, tmp_path / "out", resume=True)


def test_a_damaged_checkpoint_is_said(shards: Path, tmp_path: Path) -> None:
    broken_off(shards, tmp_path / "out")
    file = tmp_path / "out" / ".tiebreak" / "checkpoint" / "sweep-00002.npz"
    file.write_bytes(file.read_bytes()[:100])
    with refused(FileError, "checkpoint-damaged") as error:
        tb.shards.fit(shards, tmp_path / "out", resume=True)
    assert error.value.fields["file"] == file


def test_other_threads_do_not_mind(shards: Path, tmp_path: Path) -> None:
    """Two fits at once in one process keep their units apart."""
    found: dict[int, Outcome] = {}

    def work(i: int) -> None:
        found[i] = outcome(tb.shards.fit(shards, tmp_path / str(i), gold=GOLD if i else None))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_alike(tb.shards.fit(shards, tmp_path / "again"), found[0])
    assert found[1].labels != found[0].labels


@pytest.mark.dask
def test_a_connection_that_breaks_once_is_asked_again(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client
    from distributed.comm.core import CommClosedError

    expected = outcome(tb.shards.fit(shards, tmp_path / "whole"))
    with running(tmp_path / "cluster") as cluster, Client(cluster.address) as client:
        gather = client.gather
        breaks = iter([True])

        def break_once(*given: Any, **options: Any) -> Any:
            if next(breaks, False):
                raise CommClosedError("closed")
            return gather(*given, **options)

        monkeypatch.setattr(client, "gather", break_once)
        made = tb.shards.fit(shards, tmp_path / "out", client=client)
    assert_alike(made, expected)
