"""tiebreak fuse and predict on shards."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from cli.conftest import Run
from cli.running import code_of

import tiebreak as tb

CROWD = tb.simulate.crowd(200, 10, 2, random_state=3)


@pytest.fixture
def shards(folder: Path) -> Path:
    from cluster.shards import cut, even

    return cut(CROWD.responses, even(200, 4), folder / "shards", ".parquet")


def test_shards_are_fitted_out_of_core(run: Run, shards: Path, folder: Path) -> None:
    done = run("fuse", "shards/*.parquet", "--out-of-core", "-o", "labels", "--workers", "w.csv",
               "--save", "m.tbm", "--json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["tasks"] == 200
    assert summary["responses"] == 1000
    assert summary["out"] == "labels"
    assert ds.dataset(sorted(map(str, Path("labels").glob("*.parquet")))).count_rows() == 200
    assert (folder / "labels" / "_SUCCESS").is_file()
    counts = [line.rpartition(",")[2] for line in Path("w.csv").read_text().splitlines()[1:]]
    assert sum(map(int, counts)) == 2 * 1000  # each answer stands beside both truths
    again = run("predict", "m.tbm", "shards", "--out-of-core", "-o", "new", "-q")
    assert again.exit_code == 0, again.stderr
    assert len(list(Path("new").glob("labels-*.parquet"))) == 4


@pytest.mark.dask
def test_shards_are_fitted_on_a_local_cluster(run: Run, shards: Path, folder: Path) -> None:
    CROWD.gold.write("gold.csv")
    given = ("fuse", "shards", "--gold", "gold.csv")
    assert run(*given, "--cluster", "local:2", "-o", "a", "-q").exit_code == 0
    assert run(*given, "--out-of-core", "-o", "b", "-q").exit_code == 0
    one, other = (tb.shards.LabelFiles(folder / name).to_table().to_pylist() for name in "ab")
    assert [each["label"] for each in one] == [each["label"] for each in other]
    assert [each["probability"] for each in one] == pytest.approx(
        [each["probability"] for each in other], abs=1e-9
    )


def test_tasks_in_several_shards_are_brought_together(run: Run, shards: Path, folder: Path) -> None:
    (shards / "again.parquet").write_bytes((shards / "shard-00.parquet").read_bytes())
    done = run("fuse", "shards", "--out-of-core", "-o", "labels")
    assert done.exit_code == 0, done.stderr
    assert "50 tasks" in done.stderr
    assert "250 responses" in done.stderr
    assert ds.dataset(sorted(map(str, Path("labels").glob("*.parquet")))).count_rows() == 200


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("--out-of-core", "shards-need-folder"),
        ("--out-of-core --cluster local -o x", "options-exclude"),
        ("--set resume -o x", "option-needs"),
        ("--out-of-core -o x --set tasks=t.csv", "not-over-shards"),
        ("--out-of-core -o x --safe-csv", "not-over-shards"),
        ("--out-of-core -o x --method gibbs", "shards-estimator"),
        ("--out-of-core -o x --method auto", "shards-estimator"),
        ("--out-of-core -o x --set resume", "checkpoint-missing"),
        ("--cluster local:two -o x", "processes-not-counted"),
    ],
)
def test_what_shards_do_not_have_is_refused(
    more: str, code: str, run: Run, shards: Path, folder: Path
) -> None:
    Path("t.csv").write_text("task\na\n")
    done = run("fuse", "shards", *more.split())
    assert (done.exit_code, code_of(done)) == (2, code)


@pytest.mark.dask
def test_a_cluster_that_is_not_there_is_said(run: Run, shards: Path, folder: Path) -> None:
    done = run("fuse", "shards", "--cluster", "tcp://127.0.0.1:9", "-o", "labels")
    assert (done.exit_code, code_of(done)) == (2, "no-scheduler")
