"""Tables too large for messages go by files: the same fit, and the driver keeps few of them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster.clusters import local
from cluster.shards import Killer, Outcome, assert_alike, assert_same_fit, cut, outcome
from refusals import refused

import tiebreak as tb
from tiebreak.errors import FileError

CROWD = tb.simulate.crowd(9000, 11_000, 10, responses_per_task=3, random_state=1)
TRUTH = CROWD.gold.to_dict()
GOLD = dict(list(TRUTH.items())[::50])
TABLE = 8 * CROWD.responses.n_workers * 100  # bytes: above 8 MiB it goes by a file
FEW = tb.VariationalBayes(tol=0.0, max_iter=3)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return shards in which most workers are, and none has all."""
    folder = tmp_path_factory.mktemp("wide") / "shards"
    return cut(CROWD.responses, [0, 2000, 5000, 9000], folder)


@pytest.fixture(scope="module")
def expected(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    made = tb.shards.fit(shards, tmp_path_factory.mktemp("serial"), estimator=FEW, gold=GOLD)
    return outcome(made)


def test_the_fit_is_that_of_one_machine(shards: Path, tmp_path: Path) -> None:
    one = tb.VariationalBayes(tol=0.0, max_iter=3).fit(CROWD.responses, gold=GOLD)
    left: list[int] = []

    def count_files(_: Any) -> None:
        left.append(len(list((tmp_path / "out" / ".tiebreak" / "tables").iterdir())))

    made = tb.shards.fit(
        shards, tmp_path / "out", estimator=FEW, gold=GOLD, probabilities=True, progress=count_files
    )
    assert_same_fit(one, made)
    assert max(left) <= 3  # of the last sweep, of this one, and where an ascent began
    assert min(left) >= 1


@pytest.mark.dask
def test_a_killed_worker_changes_nothing(shards: Path, expected: Outcome, tmp_path: Path) -> None:
    with local(2) as other:
        killer = Killer(other, 5, "during")
        made = tb.shards.fit(shards, tmp_path / "out", executor=killer, estimator=FEW, gold=GOLD)
    assert killer.has_killed
    assert_alike(made, expected)


@pytest.mark.dask
def test_the_driver_holds_few_tables(shards: Path, client: Any, tmp_path: Path) -> None:
    """No message, no frame of an earlier sweep keeps a table: growth ends after two sweeps."""
    import tracemalloc

    held: list[float] = []
    many = tb.VariationalBayes(tol=0.0, max_iter=6)
    tracemalloc.start(1)
    try:
        tb.shards.fit(
            shards, tmp_path / "out", client=client, estimator=many,
            progress=lambda _: held.append(tracemalloc.get_traced_memory()[0] / TABLE),
        )  # fmt: skip
        most = tracemalloc.get_traced_memory()[1] / TABLE
    finally:
        tracemalloc.stop()
    assert held[-1] < held[1] + 0.5
    assert most < 8.0  # six tables, and what 9,000 tasks take


def test_a_full_disk_under_a_table_is_said(
    shards: Path, expected: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = np.save
    n_saved = 0

    def full(path: Any, table: Any) -> None:
        nonlocal n_saved
        n_saved += "table-" in str(path)
        if n_saved == 6:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(path, table)

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", full)
        with refused(FileError, "table-not-written"):
            tb.shards.fit(shards, tmp_path / "out", estimator=FEW, gold=GOLD)
    made = tb.shards.fit(shards, tmp_path / "out", estimator=FEW, gold=GOLD, resume=True)
    assert_alike(made, expected)
