"""Writers: whole files or none, the old one untouched until the new one is complete."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyarrow import csv
from tables.crowd import labels_of, some_labels
from tables.said import refused

from tiebreak import tables
from tiebreak.data import Responses, ids
from tiebreak.errors import FileError, OptionError
from tiebreak.tables import (
    read_gold,
    read_labels,
    write_labels,
    write_table,
    write_workers,
)
from tiebreak.tables import write as writing

COLUMNS = {"task": ["a", "b"], "label": ["x", "y"]}
TEXT = "task,label\na,x\nb,y\n"
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet", "t.tsv.gz"])
class TestCrash:
    """Whatever happens while writing, no half file is left and the old one stays."""

    def _spoil(self, folder: Path, name: str, error: type[BaseException]) -> None:
        old = folder / name
        old.write_bytes(b"old")
        with pytest.raises(error):
            write_table(old, COLUMNS)
        assert old.read_bytes() == b"old"
        assert [path.name for path in folder.iterdir()] == [name]

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
    def test_in_the_middle_of_the_rows(
        self, tmp_path: Path, name: str, error: type[BaseException]
    ) -> None:
        old = tmp_path / name
        old.write_bytes(b"old")

        def write_half() -> None:
            with tables.open_target(old) as out:
                out.write(b"half")
                raise error

        with pytest.raises(error):
            write_half()
        assert old.read_bytes() == b"old"
        assert [path.name for path in tmp_path.iterdir()] == [name]

    @pytest.mark.parametrize("step", ["replace", "fsync"])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
    def test_at_the_end(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, step: str, error: Any
    ) -> None:
        def fail(*_: Any) -> None:
            raise error

        monkeypatch.setattr(os, step, fail)
        is_full = isinstance(error, OSError)
        self._spoil(tmp_path, name, FileError if is_full else KeyboardInterrupt)


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with refused("not-written", FileError, reason="No space left on device"):
        write_table(tmp_path / "t.csv", COLUMNS)


def test_the_file_is_on_disk_before_it_takes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def watch_fsync(handle: int) -> None:
        steps.append(f"fsync {os.fstat(handle).st_size}")
        fsync(handle)

    def watch_replace(source: Any, target: Any) -> None:
        steps.append(f"replace {Path(source).parent == tmp_path} {Path(target).name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watch_fsync)
    monkeypatch.setattr(os, "replace", watch_replace)
    write_table(tmp_path / "t.csv", COLUMNS)
    assert steps == [f"fsync {len(TEXT)}", "replace True t.csv"]


class TestPermissions:
    """A new file gets what the umask leaves, an old one keeps its bits."""

    @pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600)])
    def test_a_new_file_respects_the_umask(self, tmp_path: Path, umask: int, expected: int) -> None:
        before = os.umask(umask)
        try:
            write_table(tmp_path / "t.csv", COLUMNS)
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "t.csv").stat().st_mode) == expected

    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
    def test_an_old_file_keeps_its_bits(self, tmp_path: Path, mode: int) -> None:
        path = tmp_path / "t.csv"
        path.touch()
        path.chmod(mode)
        write_table(path, COLUMNS)
        assert stat.S_IMODE(path.stat().st_mode) == mode

    def test_a_write_protected_file_stays(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "t.csv"
        path.write_text("old")
        monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anything
        with refused("write-protected", FileError):
            write_table(path, COLUMNS)
        assert path.read_text() == "old"

    def test_a_folder_one_may_not_write_to(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any) -> int:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)
        with refused("not-written", FileError):
            write_table(tmp_path / "t.csv", COLUMNS)


class TestTarget:
    """Where a table may go."""

    def test_a_missing_folder_is_said(self, tmp_path: Path) -> None:
        with refused("target-folder-missing", FileError):
            write_table(tmp_path / "nowhere" / "t.csv", COLUMNS)

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        with refused("target-is-folder", FileError):
            write_table(tmp_path, COLUMNS)

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "real.csv").write_text("old")
        (tmp_path / "t.csv").symlink_to("real.csv")
        write_table(tmp_path / "t.csv", COLUMNS)
        assert (tmp_path / "t.csv").is_symlink()
        assert (tmp_path / "real.csv").read_text() == TEXT

    def test_a_pipe_is_written_to_not_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        received: list[str] = []
        reader = threading.Thread(target=lambda: received.append(path.read_text()), daemon=True)
        reader.start()
        write_table(path, COLUMNS)
        assert stat.S_ISFIFO(path.stat().st_mode)
        reader.join()
        assert received == [TEXT]

    def test_the_table_that_was_read_may_be_overwritten(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        path.write_text(TEXT)
        gold = read_gold(path)
        gold.write(path)
        assert path.read_text() == TEXT

    def test_a_given_format_wins_over_the_name(self, tmp_path: Path) -> None:
        write_table(tmp_path / "t.csv", COLUMNS, format="tsv")
        assert (tmp_path / "t.csv").read_text() == TEXT.replace(",", "\t")

    def test_an_unknown_format_is_refused_before_anything_is_written(self, tmp_path: Path) -> None:
        with refused("wrong-value", OptionError, name="format"):
            write_table(tmp_path / "t.csv", COLUMNS, format="xml")
        assert list(tmp_path.iterdir()) == []


class TestStandardOutput:
    """A dash is standard output."""

    def test_a_dash_writes_csv(self, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        write_table("-", COLUMNS)
        assert capfdbinary.readouterr().out == TEXT.encode()

    def test_other_formats_on_request(self, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        write_table("-", COLUMNS, format="parquet")
        assert capfdbinary.readouterr().out[:4] == b"PAR1"

    def test_what_was_printed_before_stays_before(self) -> None:
        code = (
            f"print('first'); from tiebreak.tables import write_table\nwrite_table('-', {COLUMNS})"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env=BUFFERED
        )
        assert done.stdout == b"first\n" + TEXT.encode()

    def test_standard_output_may_take_text_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        notebook = io.StringIO()
        monkeypatch.setattr(sys, "stdout", notebook)
        write_table("-", COLUMNS)
        assert notebook.getvalue() == TEXT

    @pytest.mark.parametrize("n_rows", [1, 200_000])
    def test_a_reader_that_has_had_enough_is_no_error(self, n_rows: int) -> None:
        code = (
            "import sys; from tiebreak.tables import write_table\n"
            "sys.stdin.readline()  # until the reader has gone\n"
            f"write_table('-', {{'task': [f't{{i}}' for i in range({n_rows})]}})\n"
        )
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe, env=BUFFERED
        ) as process:
            assert process.stdout is not None
            process.stdout.close()
            process.stdout = None
            _, said = process.communicate(b"\n")
        assert said == b""
        assert process.returncode == 0


def test_workers_are_written_one_row_per_truth_and_answer(tmp_path: Path) -> None:
    responses = Responses.from_rows(
        [("a", "ann", "x"), ("b", "ann", "x"), ("c", "ann", "z"), ("a", "bob", "z")]
    )
    confusion = np.arange(18).reshape(2, 3, 3) / 18
    model = SimpleNamespace(
        workers_=responses.workers,
        classes_=ids.Ids(["x", "y", "z"]),  # y: a class that only gold has
        confusion_=confusion,
        responses_=responses,
    )
    write_workers(tmp_path / "w.csv", model)
    table = csv.read_csv(tmp_path / "w.csv").to_pydict()
    assert list(table) == ["worker", "truth", "answer", "probability", "responses"]
    assert table["worker"] == ["ann"] * 9 + ["bob"] * 9
    assert table["truth"] == ["x"] * 3 + ["y"] * 3 + ["z"] * 3 + ["x"] * 3 + ["y"] * 3 + ["z"] * 3
    assert table["answer"] == ["x", "y", "z"] * 6
    assert table["probability"] == confusion.ravel().tolist()
    assert table["responses"] == [2, 0, 1] * 3 + [0, 0, 1] * 3


@pytest.mark.parametrize("name", ["l.csv", "l.tsv.gz", "l.jsonl", "l.parquet"])
@pytest.mark.parametrize("tasks", [[f"t{i}" for i in range(10)], list(range(10))])
def test_labels_stream_out_as_if_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, tasks: list[Any]
) -> None:
    labels = some_labels(tasks, ["a,b", "c"])
    at_once, streamed = tmp_path / f"1{name}", tmp_path / f"2{name}"
    write_labels(at_once, labels, probabilities=True)
    monkeypatch.setattr(writing, "BATCH", 3)
    monkeypatch.setattr(writing, "GROUP", 3)
    write_labels(streamed, labels, probabilities=True)
    assert labels_of(read_labels(streamed)) == labels_of(read_labels(at_once))
    if not name.endswith("parquet"):
        assert streamed.read_bytes() == at_once.read_bytes()


def test_batches_do_not_split_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BATCH", 1)
    write_table(tmp_path / "t.csv", COLUMNS)
    assert (tmp_path / "t.csv").read_text() == TEXT
