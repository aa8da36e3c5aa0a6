"""Files that are no table at all, very wide ones, and frames that old pyarrow must read."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest
from commands import tiebreak
from tables.said import refused

import tiebreak as tb
from tiebreak import tables


@pytest.mark.parametrize("n", [1, 1000, 300_000])
@pytest.mark.parametrize("name", ["n.csv.gz", "n.csv", "n.jsonl.gz", "n.tsv"])
def test_a_file_of_nul_bytes_is_no_text(tmp_path: Path, n: int, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"\0" * n) if name.endswith(".gz") else b"\0" * n)
    for command in ("fuse", "convert", "describe"):
        result = tiebreak(command, str(path))
        assert result.exit_code == 2, result.stderr
        assert "NUL" in result.stderr
        assert "quote" not in result.stderr
    with refused("nul-bytes"):
        tb.read_gold(path)


def test_nul_bytes_inside_a_table_are_told_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(b"task,worker,label\na,w,x\n" + b"\0" * 5000)
    with refused("ragged-row", line=3, expected=3):
        tb.read_responses(path)


def _wide(path: Path, first: str) -> Path:
    names = ",".join(f"column{i}" for i in range(100_000))
    path.write_text(f"{first}{names}\n{'x,' * first.count(',')}{','.join(['1'] * 100_000)}\n")
    return path


def test_a_hundred_thousand_columns_are_read(tmp_path: Path) -> None:
    responses = tb.read_responses(_wide(tmp_path / "r.csv", "task,worker,label,"))
    assert list(responses.tasks) == ["x"]


def test_what_is_missing_among_many_columns_is_said_briefly(tmp_path: Path) -> None:
    with pytest.raises(tb.InputError, match="column0") as raised:
        tb.read_responses(_wide(tmp_path / "r.csv", ""))
    assert "quote" not in str(raised.value)
    assert len(str(raised.value)) < 1000


def test_one_endless_line_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("x" * 300_000)
    with pytest.raises(tb.InputError) as raised:
        tb.read_responses(path)
    assert "quote" not in str(raised.value)
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(["a", None, "b"]),
        pl.Series(["a", None, "b"], dtype=pl.Categorical),
        pl.Series(["a", None, "b"], dtype=pl.Enum(["a", "b"])),
        pl.Series([b"a", None, b"b"]),
    ],
)
def test_columns_of_polars_come_without_views(column: pl.Series) -> None:
    """Arrow before 18 cannot cast views of text, in which newer polars hands text over."""
    found = tables.read_tasks(column.drop_nulls())
    assert found.to_pylist() == column.drop_nulls().to_list()
    assert "view" not in str(found.type)
