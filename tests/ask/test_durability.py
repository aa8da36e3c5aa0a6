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
from tiebreak.ask.storage import Marks, Storage
from tiebreak.errors import FileError, SessionError

pytest.importorskip("resource", reason="needs fork and signals")

TESTS = Path(__file__).resolve().parent.parent
VOTES = [("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x")]
MARKS = Marks("fingerprint", "a job")


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
        assert "SessionError" in error
        assert "is the disk full?" in error
        assert each["recorded"] == each["acknowledged"]
        assert each["kib"] <= 20 or f" {each['in_force']} in force" in error
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
    assert "SessionError" in error
    assert "read-only" in error
    assert found["recorded"] == found["acknowledged"] == 5


def test_a_failed_write_leaves_memory_and_file_alike(tmp_path: Path) -> None:
    """What could not be kept is not counted, and the session goes on when there is room again."""
    session = tb.ask.Session(tmp_path / "s.db", VOTES, kinds=("same",))
    question = session.next()
    assert question is not None
    with closing(Storage(tmp_path / "s.db", session._job.marks)) as other, other.writing():
        session._record.storage._db.execute("PRAGMA busy_timeout = 1")
        with pytest.raises(SessionError, match="held by another program"):
            session.answer(question, "same")
    assert session.answers() == ()
    assert session.next() is question
    assert session.answer(question, "same").says == "same"
    session.close()


def test_errors_are_file_errors_too(tmp_path: Path) -> None:
    with pytest.raises(FileError):
        Storage(tmp_path, MARKS)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match=r"is a folder\. Name a file in it"):
        Storage(tmp_path, MARKS)


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="there is no folder"):
        Storage(tmp_path / "nowhere" / "s.db", MARKS)


def test_what_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("task,label\n" * 100)
    with pytest.raises(SessionError, match="not a session file"):
        Storage(path, MARKS)
    assert path.read_text() == "task,label\n" * 100


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE mine (x)")
    db.commit()
    db.close()
    before = path.read_bytes()
    with pytest.raises(SessionError, match="database of another program"):
        Storage(path, MARKS)
    assert path.read_bytes() == before


def test_a_closed_session_says_so(tmp_path: Path) -> None:
    session = tb.ask.Session(tmp_path / "s.db", VOTES)
    session.close()
    with pytest.raises(SessionError, match="closed"):
        session.next()


def test_every_answer_waits_for_the_disk(tmp_path: Path) -> None:
    with closing(Storage(tmp_path / "s.db", MARKS)) as storage:
        assert storage._pragma("journal_mode") == "wal"
        assert storage._pragma("synchronous") == 2  # full
