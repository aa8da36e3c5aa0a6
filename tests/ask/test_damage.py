"""A session file that changed on its disk is refused when it is opened, with the way out."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import tiebreak as tb
from tiebreak.errors import SessionError

VOTES = [(task, worker, f"kind-{(task + worker) % 2}") for task in range(6) for worker in range(3)]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a session with answers of each sort, and the fits that were made."""
    path = tmp_path_factory.mktemp("kept") / "s.db"
    with tb.ask.Session(path, VOTES, who="ann", random_state=0) as session:
        session.answer(session.question(0), "kind-0")
        session.answer(session.question(1, 2), "same")
        session.answer(session.question(3), "kind-1")
        session.undo()
        session.answer(session.question(4), "kind-1")
        session.model()
    return path


def opened(path: Path) -> dict[object, object]:
    with tb.ask.Session(path, VOTES, who="ann", random_state=0) as session:
        return dict(session.labels().to_dict())


def changed(kept: Path, folder: Path, *statements: str) -> Path:
    """Return a copy that somebody else wrote to, past every trigger."""
    path = folder / "s.db"
    shutil.copy(kept, path)
    with closing(sqlite3.connect(path)) as db:
        found = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        triggers = db.execute(found).fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            assert db.execute(statement).rowcount == 1
        for _, made in triggers:
            db.execute(made)
        db.commit()
    return path


def assert_damaged(path: Path) -> None:
    with pytest.raises(SessionError) as found:
        opened(path)
    assert (found.value.code, found.value.fields["path"]) == ("session-damaged", path)


def test_what_was_kept_is_read_again(kept: Path) -> None:
    assert opened(kept) == {0: "kind-0", 4: "kind-1"}


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_of_a_label_is_found(kept: Path, tmp_path: Path, bit: int) -> None:
    data = bytearray(kept.read_bytes())
    at = data.index(b"labelkind-0") + len(b"labelkind-")  # bit 0 makes another class of it
    data[at] ^= 1 << bit
    (tmp_path / "s.db").write_bytes(data)
    assert_damaged(tmp_path / "s.db")


@pytest.mark.parametrize(
    "to",
    [
        "id = 90", "token = 'x'", "run = 'hand-1'", "at = '2020-01-01T00:00:00.000Z'",
        "who = 'bob'", "kind = 'unsure'", '"left" = \'5\'', "label = 'kind-0'", "seconds = 0.1",
        "label = X'6b'",
    ],
)  # fmt: skip
def test_every_column_of_an_event_is_covered(kept: Path, tmp_path: Path, to: str) -> None:
    path = changed(kept, tmp_path, f"UPDATE events SET {to} WHERE id = 5")
    assert_damaged(path)


def test_an_event_that_is_gone_is_missed(kept: Path, tmp_path: Path) -> None:
    path = changed(kept, tmp_path, "DELETE FROM events WHERE id = 2")
    assert_damaged(path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE fits SET at = '2020' WHERE id = 1",
        "UPDATE fits SET seen = 1 WHERE id = 1",
        "UPDATE fits SET n_answers = 9 WHERE id = 1",
        "UPDATE fits SET wrong = 0.5 WHERE id = 1",
        "UPDATE fits SET n_changed = 9 WHERE id = 1",
        "DELETE FROM fits WHERE id = 1",
        "UPDATE model SET fit = 2",
        "UPDATE model SET data = X'00'",
        "DELETE FROM model",
    ],
)
def test_every_column_of_a_fit_is_covered(kept: Path, tmp_path: Path, change: str) -> None:
    assert_damaged(changed(kept, tmp_path, change))


def test_a_flipped_bit_of_the_model_is_found(kept: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(kept)) as db:
        ((data,),) = db.execute("SELECT data FROM model").fetchall()
    for at in range(0, len(data), len(data) // 20):
        flipped = bytearray(data)
        flipped[at] ^= 1
        path = changed(kept, tmp_path, f"UPDATE model SET data = X'{flipped.hex()}'")
        assert_damaged(path)


def test_a_process_that_runs_finds_what_changes_below_it(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(kept, path)
    with tb.ask.Session(path, VOTES, who="ann", random_state=0) as session:
        with closing(sqlite3.connect(path)) as db:
            db.execute(
                "INSERT INTO events SELECT 99, 'x', run, at, 'eve', kind, \"left\", \"right\", "
                "about, question, 'kind-0', seconds, checksum FROM events WHERE id = 5"
            )
            db.commit()
        with pytest.raises(SessionError) as found:
            session.answers()
        assert found.value.code == "session-damaged"


@pytest.mark.parametrize("version", [0, 1, 5, 6, 99])
def test_a_file_of_another_version_is_refused_and_left_alone(
    kept: Path, tmp_path: Path, version: int
) -> None:
    path = tmp_path / "s.db"
    shutil.copy(kept, path)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(SessionError) as found:
        opened(path)
    assert found.value.code == "session-version"
    assert found.value.fields["version"] == version
    assert path.read_bytes() == before


def test_no_flipped_bit_changes_what_is_read(kept: Path, tmp_path: Path) -> None:
    """Wherever a bit flips, among values and in what SQLite keeps of tables."""
    data = kept.read_bytes()
    used = [at for at, byte in enumerate(data) if byte]
    for at in random.Random(0).sample(used, 150):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        path = tmp_path / f"{at}.db"
        path.write_bytes(flipped)
        with contextlib.suppress(SessionError):
            assert opened(path) == {0: "kind-0", 4: "kind-1"}, at


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (b"id INTEGER PRIMARY KEY,\n        token", b"id INTEGER0PRIMARY KEY,\n        token"),
        (b"fingerprint", b"fingerprinu"),
        (b"described", b"\xe4escribed"),
    ],
)
def test_damaged_tables_and_marks_are_named(
    kept: Path, tmp_path: Path, written: bytes, found: bytes
) -> None:
    data = kept.read_bytes()
    assert written in data
    (tmp_path / "s.db").write_bytes(data.replace(written, found))
    assert_damaged(tmp_path / "s.db")
