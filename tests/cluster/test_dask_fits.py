"""On Dask, with any number of workers, and workers that are killed: the serial fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cluster.clusters import local
from cluster.shards import Killer, Outcome, assert_alike, cut, even, outcome
from refusals import refused

import tiebreak as tb
from tiebreak.errors import ClusterError

pytestmark = pytest.mark.dask

CROWD = tb.simulate.crowd(3000, 30, 3, random_state=1)
GOLD = dict(list(CROWD.gold.to_dict().items())[::30])
LINKS = tb.simulate.links(CROWD.gold, 200, random_state=2)
STAGES: dict[str, dict[str, Any]] = {"plain": {}, "gold": {"gold": GOLD}, "links": {"links": LINKS}}
N_PLAIN = tb.VariationalBayes().fit(CROWD.responses).n_iter_  # sweeps before gold or links come in
FIRST = {"plain": 1, "gold": N_PLAIN + 1, "links": N_PLAIN + 1}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crowd") / "shards"
    return cut(CROWD.responses, even(3000, 6), folder)


@pytest.fixture(scope="module")
def expected(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Return what the serial fits give."""
    out = tmp_path_factory.mktemp("serial")
    return {
        name: outcome(tb.shards.fit(shards, out / name, **given)) for name, given in STAGES.items()
    }


@pytest.mark.parametrize("stage", STAGES)
def test_two_workers_give_the_serial_fit(
    stage: str, shards: Path, expected: dict[str, Outcome], client: Any, tmp_path: Path
) -> None:
    made = tb.shards.fit(shards, tmp_path / "out", client=client, **STAGES[stage])
    assert_alike(made, expected[stage])
    assert made.n_lost == 0


@pytest.mark.parametrize("n_workers", [1, 4])
def test_any_number_of_workers_gives_the_same_fit(
    n_workers: int, shards: Path, expected: dict[str, Outcome], tmp_path: Path
) -> None:
    with local(n_workers) as other:
        made = tb.shards.fit(shards, tmp_path / "out", client=other, links=LINKS)
        assert_alike(made, expected["links"])
        tables = cut(CROWD.responses, even(3000, 6), tmp_path / "tables", ".parquet")
        on_cluster = tb.shards.fit(tables, tmp_path / "packed", client=other)
    serial = tb.shards.fit(tables, tmp_path / "serial")
    assert_alike(on_cluster, outcome(serial))


SHORT = [("plain", "during", 0), ("gold", "between", 3), ("links", "during", 2)]
ALL = [
    (stage, when, after)
    for stage in STAGES
    for when, after in (("during", 0), ("between", 3), ("during", 2))
]
MOMENTS = [pytest.param(*each, marks=() if each in SHORT else (pytest.mark.long,)) for each in ALL]


@pytest.mark.parametrize(("stage", "when", "after"), MOMENTS)
def test_a_killed_worker_changes_nothing(
    stage: str, when: str, after: int, shards: Path, expected: dict[str, Outcome], tmp_path: Path
) -> None:
    with local(2) as other:
        killer = Killer(other, FIRST[stage] + after, when)
        made = tb.shards.fit(shards, tmp_path / "out", executor=killer, **STAGES[stage])
    assert killer.has_killed
    assert made.n_lost == 1
    assert_alike(made, expected[stage])


class Unreadable:
    """What no worker can read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("what it is not",)


def test_a_message_that_a_worker_cannot_read_is_said(client: Any) -> None:
    with refused(ClusterError, "worker-failed") as error:
        tb.shards.executor_of(client).share(print, [(Unreadable(),)])
    assert error.value.fields["kind"] == "ValueError"


@pytest.mark.parametrize("estimator", [tb.DawidSkene(), tb.MajorityVote()])
def test_other_estimators_give_the_serial_fit(
    estimator: Any, shards: Path, client: Any, tmp_path: Path
) -> None:
    serial = tb.shards.fit(shards, tmp_path / "a", estimator=estimator, gold=GOLD)
    made = tb.shards.fit(shards, tmp_path / "b", estimator=estimator, gold=GOLD, client=client)
    assert_alike(made, outcome(serial))


def test_security_is_that_of_dask(
    shards: Path, expected: dict[str, Outcome], tmp_path: Path, record_property: Any
) -> None:
    """With certificates in Dask's settings, a scheduler that takes TLS alone is connected to."""
    pytest.importorskip("cryptography", reason="certificates are made with it")
    import dask
    import distributed
    from distributed.security import Security

    security = Security.temporary()
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="tls://127.0.0.1", protocol="tls",
        dashboard_address=None, memory_limit=0, security=security,
    ) as cluster:  # fmt: skip
        assert cluster.scheduler_address.startswith("tls://")
        settings = tls_settings(security, tmp_path)
        with dask.config.set(settings), distributed.Client(cluster.scheduler_address) as client:
            made = tb.shards.fit(shards, tmp_path / "out", client=client, gold=GOLD)
    assert_alike(made, expected["gold"])


def tls_settings(security: Any, folder: Path) -> dict[str, Any]:
    """Return certificates as Dask's settings name them: by files."""
    files = {"ca-file": "tls_ca_file", "cert": "tls_client_cert", "key": "tls_client_key"}
    for field in files.values():
        (folder / f"{field}.pem").write_text(getattr(security, field))
    paths = {name: str(folder / f"{field}.pem") for name, field in files.items()}
    return {
        "distributed.comm.require-encryption": True,
        "distributed.comm.tls.ca-file": paths["ca-file"],
        "distributed.comm.tls.client.cert": paths["cert"],
        "distributed.comm.tls.client.key": paths["key"],
    }


def test_prediction_runs_on_the_cluster(shards: Path, client: Any, tmp_path: Path) -> None:
    made = tb.shards.fit(shards, tmp_path / "fit")
    here = tb.shards.predict(made, shards, tmp_path / "here")
    there = tb.shards.predict(made, shards, tmp_path / "there", client=client)
    assert here.to_table().equals(there.to_table())
