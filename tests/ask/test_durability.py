"""Nothing that was acknowledged is lost: kills, two processes, a full disk, a read-only file."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import tiebreak as tb
from tiebreak.errors import FileError, SessionError

pytest.importorskip("resource", reason="needs fork and signals")

TESTS = Path(__file__).resolve().parent.parent
VOTES = [("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x")]


def processes(what: str, folder: Path) -> list[dict[str, Any]]:
    """Run what `processes.py` offers; return what it found."""
    done = subprocess.run(
        [sys.executable, "-m", "ask.processes", what, str(folder)],
        cwd=TESTS, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    for each in found:
        assert (each["lost"], each["doubled"], each["sound"]) == ([], [], "ok")
    return found


def test_no_kill_loses_or_doubles_an_answer(tmp_path: Path) -> None:
    found = processes("kill", tmp_path)
    assert len(found) == 50
    assert [each["errors"] for each in found] == [[]] * 50  # no reopening ever failed
    assert sum(each["killed"] for each in found) >= 40  # some may have run out of questions
    # Between a record and its acknowledgement lies one step at most, for each kill of a file.
    for number, each in enumerate(found):
        assert 0 <= each["recorded"] - each["acknowledged"] <= number % 5 + 1
    assert sum(each["acknowledged"] for each in found[4::5]) >= 100 - 10


def test_processes_that_answer_at_once_lose_nothing(tmp_path: Path) -> None:
    for found in processes("two", tmp_path):
        assert found["statuses"] == [0, 0, 0]
        assert found["acknowledged"] == found["recorded"] == 18


def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    found = processes("full", tmp_path)
    for each in found:
        assert each["status"] != 0
        (error,) = each["errors"]
        assert error.startswith("error SessionError session-disk-full")
        assert each["recorded"] == each["acknowledged"]
        assert each["kib"] <= 20 or error.endswith(f" {each['in_force']}")
    assert found[0]["acknowledged"] == 0  # not even the empty file could be made
    assert found[-1]["acknowledged"] > 5


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Return a folder that other users can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_read_only_file_is_told_and_stays_readable(public_folder: Path) -> None:
    (found,) = processes("read_only", public_folder)
    (error,) = found["errors"]
    assert error.split() == ["error", "SessionError", "session-read-only"]
    assert found["recorded"] == found["acknowledged"] == 5


def test_a_failed_write_leaves_memory_and_file_alike(tmp_path: Path) -> None:
    """What could not be kept is not counted, and the session goes on when there is room again."""
    session = tb.ask.Session(tmp_path / "s.db", VOTES, kinds=("same",))
    question = session.next()
    assert question is not None
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        session.desk.storage._db.execute("PRAGMA busy_timeout = 1")
        with pytest.raises(SessionError) as found:
            session.answer(question, "same")
        assert found.value.code == "session-held"
    assert session.answers() == ()
    assert session.next() is question
    assert session.answer(question, "same").says == "same"
    session.close()


def test_a_file_that_cannot_be_used_is_refused_and_left_alone(tmp_path: Path) -> None:
    csv = tmp_path / "labels.csv"
    csv.write_text("task,label\n" * 100)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE mine (x)")
        db.commit()
    for path, code in {
        tmp_path: "session-is-a-folder",
        tmp_path / "nowhere" / "s.db": "session-in-no-folder",
        csv: "session-not-one",
        other: "session-of-another-program",
    }.items():
        before = path.read_bytes() if path.is_file() else b""
        with pytest.raises(SessionError) as found:
            tb.ask.Session(path, VOTES)
        assert (found.value.code, found.value.fields["path"]) == (code, path)
        assert isinstance(found.value, FileError)
        assert not path.is_file() or path.read_bytes() == before


def test_a_closed_session_says_so(tmp_path: Path) -> None:
    session = tb.ask.Session(tmp_path / "s.db", VOTES)
    session.close()
    with pytest.raises(SessionError) as found:
        session.next()
    assert found.value.code == "session-failed"
    assert "closed" in str(found.value.fields["reason"])


def test_every_answer_waits_for_the_disk(tmp_path: Path) -> None:
    with tb.ask.Session(tmp_path / "s.db", VOTES) as session:
        session.answer(session.question("a", "b"), "same")
        database = session.desk.storage._db
        assert database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert database.execute("PRAGMA synchronous").fetchone()[0] == 2  # full
