"""Files that cannot be used: each says what is wrong, where, and the way out."""

from __future__ import annotations

import gzip
import io
import mmap
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tables.said import refused

from tiebreak.errors import FileError, InputError
from tiebreak.tables import read_gold, read_responses

HEADER = "task,worker,label\n"
CHUNK = 1 << 20


def _file(folder: Path, content: str | bytes, name: str = "r.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


class TestPath:
    """The file itself is not there or may not be read."""

    def test_a_missing_file_is_guessed_among_its_neighbours(self, tmp_path: Path) -> None:
        _file(tmp_path, HEADER, "responses.csv")
        with refused("file-missing", FileError, meant=tmp_path / "responses.csv"):
            read_responses(tmp_path / "respones.csv")

    def test_a_missing_file_without_a_likely_neighbour(self, tmp_path: Path) -> None:
        _file(tmp_path, HEADER, "z.txt")
        with refused("file-missing", FileError, meant=None):
            read_responses(str(tmp_path / "responses.csv"))

    @pytest.mark.parametrize(
        ("missing", "there", "meant"),
        [
            ("missing.csv", ["asking.svg", "asking.csv"], None),  # neither readable nor near
            ("labels.csv", ["labels.svg", "labels.png"], None),  # near, but no tables
            ("labels.csv", ["labels.svg", "labels.csv.gz"], "labels.csv.gz"),
            ("labels.csv", ["label.tsv", "label.csv"], "label.csv"),
            ("labels", ["labels.parquet"], "labels.parquet"),
            ("run.eval", ["runs.eval", "other.csv"], "runs.eval"),  # as odd as what was asked for
        ],
    )
    def test_only_what_is_near_and_could_be_read_is_suggested(
        self, tmp_path: Path, missing: str, there: list[str], meant: str | None
    ) -> None:
        for name in there:
            (tmp_path / name).write_text("task,worker,label\n")
        with refused("file-missing", FileError, meant=meant and tmp_path / meant):
            read_responses(tmp_path / missing)

    def test_a_missing_folder_is_said(self, tmp_path: Path) -> None:
        with refused("file-missing", FileError):
            read_responses(tmp_path / "nowhere" / "r.csv")

    def test_a_folder_without_tables(self, tmp_path: Path) -> None:
        with refused("no-tables", FileError):
            read_responses(tmp_path)

    def test_a_name_that_no_file_can_have(self) -> None:
        with refused("file-unreadable", FileError):
            read_responses("a\0b")

    def test_a_file_one_may_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = _file(tmp_path, HEADER)

        def refuse(*_: Any, **__: Any) -> Any:  # permissions do not bind the user of a container
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(Path, "open", refuse)
        with refused("file-unreadable", FileError):
            read_responses(path)

    def test_a_disk_that_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> Any:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(mmap, "mmap", fail)
        with refused("file-unreadable", FileError):
            read_responses(_file(tmp_path, HEADER))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "file-empty"),
        ("\n \n\t\n", "file-empty"),
        ("\ufeff", "file-empty"),
        ("task,worker,label", "no-rows"),
        (HEADER, "no-rows"),
        (HEADER + "\n\r\n", "no-rows"),
        (gzip.compress(b"", mtime=0), "file-empty"),
    ],
)
def test_a_file_without_rows_says_what_it_lacks(
    tmp_path: Path, text: str | bytes, code: str
) -> None:
    with refused(code):
        read_responses(_file(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,w,x\nb,w\n", "line 3: expected 3 columns, got 2: 'b', 'w'\n"),
        ("a,w,x\n\n\nb,w,x,y\n", "line 5: expected 3 columns, got 4: 'b', 'w', 'x', 'y'\n"),
        ('"a\n\n",w,x\n"b\nb",w\n', "line 5: expected 3 columns, got 2: 'b\\nb', 'w'\n"),
        ("b," + "w" * 100, f"line 2: expected 3 columns, got 2: 'b', '{'w' * 73}…\n"),
        ("a,w,x\n \n", "line 3: expected 3 columns, got 1: ' '\n"),
        ('a,w,"x\nb,w,y\nc,w,z\n', "line 2: a quote is opened that is never closed"),
        ('a,w,x\nb,"w,y\nc,w,z\n', "line 3: a quote is opened that is never closed"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_broken_row_is_named_by_its_line(
    tmp_path: Path, text: str, message: str, packed: bool
) -> None:
    whole = (HEADER + text).encode()
    path = _file(tmp_path, gzip.compress(whole) if packed else whole)
    with pytest.raises(InputError) as caught:
        read_responses(path)
    assert f"r.csv, {message}" in str(caught.value)


def test_a_quote_that_never_closes_in_the_header_is_said(tmp_path: Path) -> None:
    with refused("quote-unclosed", line=1):
        read_responses(_file(tmp_path, '"task,worker,label\n' + "a,w,x\n" * 100_000))


class TestEncoding:
    """Text is UTF-8."""

    @pytest.mark.parametrize(
        ("name", "start"),
        [
            ("r.csv", HEADER.encode() + b"a,w,x\n"),
            ("r.csv", b"\xef\xbb\xbf" + HEADER.encode() + b"a,w,x\r\n"),
            ("r.csv", b"note,task,worker,label\n1,a,w,x\n2,"),
            ("r.csv", HEADER.encode() + b"a,w,x\n" * (CHUNK // 3)),
            ("r.csv", HEADER.encode() + b"\xc3\xa9,w,x\n" * (CHUNK // 7) + b"\n"),
            ("r.jsonl", b'{"task": "a", "worker": "w", "label": "x"}\n{"worker": "w", "task": "'),
        ],
    )
    def test_a_wrong_byte_is_named_by_line_and_offset(
        self, tmp_path: Path, name: str, start: bytes
    ) -> None:
        rest = b'caf\xe9", "label": "x"}\n' if name == "r.jsonl" else b"caf\xe9,w,x\n"
        path = _file(tmp_path, start + rest, name)
        at, line = len(start) + 3, start.count(b"\n") + 1
        with pytest.raises(InputError) as caught:
            read_responses(path)
        expected = f"{name}, line {line}: byte 0xe9 at offset {at:,} is not UTF-8."
        assert expected in str(caught.value)
        assert "iconv" in str(caught.value)

    def test_a_wrong_byte_in_the_header_is_named(self, tmp_path: Path) -> None:
        with refused("not-utf-8", line=1, offset=3):
            read_responses(_file(tmp_path, b"caf\xe9,task,worker,label\n1,a,w,x\n"))

    def test_a_character_cut_off_at_the_end_is_named(self, tmp_path: Path) -> None:
        with refused("not-utf-8", line=2, offset=22):
            read_responses(_file(tmp_path, HEADER.encode() + b"a,w,\xc3"))

    def test_a_wrong_byte_in_a_column_that_nobody_needs_does_no_harm(self, tmp_path: Path) -> None:
        path = _file(tmp_path, b"task,worker,label,note\na,w,x,caf\xe9\n")
        assert read_responses(path).n_responses == 1


@pytest.mark.parametrize(
    ("start", "code", "what"),
    [
        (b"\xff\xfet\0a", "utf-16-broken", "r"),
        (b"PK\x03\x04....", "foreign-file", "an Excel workbook"),
        (b"ARROW1\0\0", "foreign-file", "an Arrow"),
        (b"\x28\xb5\x2f\xfd...", "foreign-file", "zstd"),
    ],
)
def test_files_of_another_kind_are_recognised(
    tmp_path: Path, start: bytes, code: str, what: str
) -> None:
    with refused(code, place=what):
        read_responses(_file(tmp_path, start, "responses.csv"))


class TestBroken:
    """Files that were cut off or damaged."""

    def test_a_cut_gzip_file(self, tmp_path: Path) -> None:
        whole = gzip.compress((HEADER + "a,w,x\n" * 1000).encode())
        with refused("gzip-broken", FileError):
            read_responses(_file(tmp_path, whole[:-12], "r.csv.gz"))

    def test_a_damaged_gzip_file(self, tmp_path: Path) -> None:
        whole = bytearray(gzip.compress((HEADER + "a,w,x\n" * 1000).encode()))
        whole[20:40] = bytes(20)
        with refused("gzip-broken", FileError):
            read_responses(_file(tmp_path, bytes(whole), "r.csv.gz"))

    def _parquet(self) -> bytearray:
        sink = io.BytesIO()
        table = pa.table({"task": ["a"] * 99, "worker": ["w"] * 99, "label": ["x"] * 99})
        parquet.write_table(table, sink)
        return bytearray(sink.getvalue())

    def test_a_cut_parquet_file(self, tmp_path: Path) -> None:
        with refused("parquet-broken", FileError):
            read_responses(_file(tmp_path, bytes(self._parquet()[:-20]), "r.parquet"))

    def test_a_damaged_parquet_file(self, tmp_path: Path) -> None:
        whole = self._parquet()
        whole[4:40] = b"\xff" * 36
        with refused("parquet-broken", FileError):
            read_responses(_file(tmp_path, bytes(whole), "r.parquet"))

    def test_text_under_a_parquet_name(self, tmp_path: Path) -> None:
        with refused("parquet-broken", FileError):
            read_responses(_file(tmp_path, HEADER + "a,w,x\n", "r.parquet"))


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ('{"task": "a", "label": "x"}\n\n{"task": "b" "label"}\n', "bad-json", 3),
        ('{"task": "a", "label": "x"}\nhello\n', "bad-json", 2),
        ('{"task": "a", "label": "x"}\n[1, 2]\n', "no-object", 2),
        ('{"task": "a", "label": "x"}\n{"task": "b", "la', "bad-json", 2),
        ('{"a":' * 100_000, "bad-json", 1),
        (f'{{"task": {"9" * 5000}}}', "bad-json", 1),
    ],
)
def test_broken_json_is_named_by_its_line(tmp_path: Path, text: str, code: str, line: int) -> None:
    path = _file(tmp_path, text, "g.jsonl")
    with refused(code, file=str(path), line=line):
        read_gold(path)


class TestStandardInput:
    """Standard input that gives nothing."""

    def test_an_empty_pipe(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        with refused("file-empty", file="standard input"):
            read_responses("-")

    def test_a_closed_pipe(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pipe = io.TextIOWrapper(io.BytesIO(b""))
        monkeypatch.setattr(sys, "stdin", pipe)
        pipe.buffer.close()
        with refused("file-unreadable", FileError, file="standard input"):
            read_responses("-")

    def test_a_broken_pipe(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Broken(io.RawIOBase):
            def read(self, size: int = -1) -> bytes:
                raise OSError(5, "Input/output error")

        class Terminal:
            buffer = Broken()

        monkeypatch.setattr(sys, "stdin", Terminal())
        with refused("file-unreadable", FileError, file="standard input"):
            read_responses("-")

    def test_no_standard_input_at_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        with refused("stdin-closed", FileError):
            read_responses("-")
