"""A large file, read piece by piece, gives the same responses as the same file read at once."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from tables.crowd import HARD_IDS, all_of
from tables.said import refused

from tiebreak.data import Responses, building
from tiebreak.errors import FileError, InputNote
from tiebreak.tables import plain, read_responses

BLOCK = 256  # bytes of CSV in a piece


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every file as large."""
    monkeypatch.setattr(plain, "LARGE_CSV", 0)
    monkeypatch.setattr(plain, "BLOCK_SIZE", BLOCK)
    monkeypatch.setattr(plain, "BATCH", 7)
    monkeypatch.setattr(building, "TOGETHER", 20)


def table_of(n: int = 100, **changed: Any) -> pa.Table:
    rng = np.random.default_rng(0)
    ids = [f"{HARD_IDS[i % len(HARD_IDS)]}{i}" for i in range(30)]
    columns = {
        "task": [ids[i] for i in rng.integers(0, 30, n)],
        "worker": [ids[i] for i in rng.integers(0, 9, n)],
        "label": [ids[i] for i in rng.integers(0, 3, n)],
    }
    return pa.table(columns | changed)


def write(path: Path, table: pa.Table, **options: Any) -> Path:
    parquet.write_table(table, path, row_group_size=31, **options)
    return path


def at_once(table: pa.Table) -> Responses:
    return Responses.from_columns(*(table.column(i).to_pylist() for i in range(3)))


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
class TestParquet:
    @pytest.mark.parametrize("use_dictionary", [True, False])
    def test_text_is_read_as_at_once(self, tmp_path: Path, use_dictionary: bool) -> None:
        table = table_of()
        path = write(tmp_path / "r.parquet", table, use_dictionary=use_dictionary)
        assert all_of(read_responses(path)) == all_of(at_once(table))

    @pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64(), pa.uint16()], ids=str)
    def test_whole_numbers_keep_their_type(self, tmp_path: Path, kind: pa.DataType) -> None:
        rng = np.random.default_rng(1)
        columns = {name: pa.array(rng.integers(0, 9, 50)).cast(kind) for name in ["task", "worker"]}
        table = table_of(50, **columns, label=pa.array(rng.integers(0, 2, 50) > 0))
        found = read_responses(write(tmp_path / "r.parquet", table))
        assert all_of(found) == all_of(at_once(table))
        assert found.tasks.values.type == kind
        assert list(found.classes) == [False, True]

    def test_other_types_are_read_at_once(self, tmp_path: Path) -> None:
        table = table_of(4, label=[0.5, 1.5, float("nan"), 0.5])
        found = read_responses(write(tmp_path / "r.parquet", table))
        assert list(found.classes) == [0.5, 1.5]
        assert found.n_empty == 1

    def test_a_dictionary_in_another_order_does_not_change_the_order_of_names(
        self, tmp_path: Path
    ) -> None:
        codes = pa.array([2, 0, 2, 1], pa.int32())
        tasks = pa.DictionaryArray.from_arrays(codes, pa.array(["c", "b", "a", "unused"]))
        table = table_of(4, task=tasks, worker=["w"] * 4, label=["x"] * 4)
        found = read_responses(write(tmp_path / "r.parquet", table))
        assert list(found.tasks) == ["a", "c", "b"]

    def test_tasks_and_classes_listed_apart_have_the_type_of_the_file(self, tmp_path: Path) -> None:
        table = table_of(3, task=[3, 1, 3], worker=["v", "w", "w"], label=["x"] * 3)
        path = write(tmp_path / "r.parquet", table)
        found = read_responses(path, tasks=[9, 1], classes=["y"])
        assert (list(found.tasks), list(found.classes)) == ([3, 1, 9], ["x", "y"])

    def test_rows_without_a_name_are_counted_over_all_pieces(self, tmp_path: Path) -> None:
        tasks = ["a"] * 20
        tasks[3], tasks[17] = None, ""  # type: ignore[call-overload]
        path = write(tmp_path / "r.parquet", table_of(20, task=tasks))
        with refused(
            "no-id-in-row", role="task", n=2, places=[f"{path}, row 4", f"{path}, row 18"]
        ):
            read_responses(path)

    def test_a_broken_piece_is_told(self, tmp_path: Path) -> None:
        path = write(tmp_path / "r.parquet", table_of(), compression="zstd")
        data = bytearray(path.read_bytes())
        data[40:120] = bytes(80)
        path.write_bytes(data)
        with refused("parquet-broken", FileError):
            read_responses(path)

    def test_a_file_without_rows_is_told(self, tmp_path: Path) -> None:
        with refused("no-rows"):
            read_responses(write(tmp_path / "r.parquet", table_of(0)))

    def test_a_packed_file_is_unpacked_first(self, tmp_path: Path) -> None:
        path = write(tmp_path / "r.parquet", table_of())
        packed = tmp_path / "r.parquet.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        assert all_of(read_responses(packed)) == all_of(read_responses(path))


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
class TestCsv:
    def write(self, path: Path, table: pa.Table) -> Path:
        rows = zip(*(table.column(i).to_pylist() for i in range(3)), strict=True)
        quoted = (",".join('"' + part.replace('"', '""') + '"' for part in row) for row in rows)
        path.write_bytes(("task,worker,label\n" + "\n".join(quoted) + "\n").encode())
        return path

    def test_text_is_read_as_at_once(self, tmp_path: Path) -> None:
        table = table_of()
        path = self.write(tmp_path / "r.csv", table)
        assert path.stat().st_size > 4 * BLOCK
        assert all_of(read_responses(path)) == all_of(at_once(table))

    def test_a_record_longer_than_a_block_is_read_too(self, tmp_path: Path) -> None:
        long = [f"t{i}" if i != 60 else "t" * 3 * BLOCK for i in range(100)]
        table = table_of(task=long)
        path = self.write(tmp_path / "r.csv", table)
        assert all_of(read_responses(path)) == all_of(at_once(table))

    @pytest.mark.parametrize(
        ("row", "code"),
        [
            (b"a,b\n", "ragged-row"),
            (b"a,b,\xff\n", "not-utf-8"),
            (b'a,b,"c\n', "quote-unclosed"),
        ],
    )
    def test_what_is_wrong_in_a_later_piece_is_told_with_its_line(
        self, tmp_path: Path, row: bytes, code: str
    ) -> None:
        path = tmp_path / "r.csv"
        path.write_bytes(b"task,worker,label\n" + b"task,worker,label\n" * 100 + row)
        with refused(code, line=102):
            read_responses(path)
        path.write_bytes(path.read_bytes().removesuffix(row) + b",b,c\n")
        with refused("no-id-in-row", place="r.csv, line 102"):
            read_responses(path)

    def test_a_header_alone_is_told(self, tmp_path: Path) -> None:
        path = tmp_path / "r.csv"
        path.write_text("task,worker,label\n")
        with refused("no-rows"):
            read_responses(path)

    def test_what_was_dropped_is_told_once_for_all_pieces(self, tmp_path: Path) -> None:
        path = tmp_path / "r.csv"
        path.write_text("task,worker,label\n" + "".join(f"t{i},w,\nt{i},w,x\n" for i in range(90)))
        with pytest.warns(InputNote) as told:
            assert read_responses(path).n_responses == 90
        assert [getattr(each.message, "fields", None) for each in told] == [{"n": 90}]


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=60
    ),
    st.sampled_from(["last", "count"]),
)
@settings(deadline=None, max_examples=50)
@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_any_crowd_is_the_same_in_pieces(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int]], repeats: Any
) -> None:
    columns = list(zip(*rows, strict=True))
    names = ("task", "worker", "label")
    table = pa.table({n: [f"{n}{v}" for v in c] for n, c in zip(names, columns, strict=True)})
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    write(path, table)
    with pytest.MonkeyPatch.context() as patch:
        whole = all_of(read_responses(table, repeats=repeats))
        patch.setattr(plain, "BATCH", 7)
        assert all_of(read_responses(path, repeats=repeats)) == whole
