"""Storage: the events of a session, and the last fit, in one SQLite file.

Events are only ever appended, one transaction each, and a transaction that has returned is on
the disk (write-ahead log, full synchronisation). A kill between two instructions loses nothing
that was acknowledged; SQLite takes back what was half written when the file is next opened. Two
processes take turns: every write begins with a lock, and reads what the other wrote first.

Each row carries a checksum of all that it says and of the checksum before it. Reading verifies
them, so that a bit that flipped on the disk, or a row that is gone, is found when the file is
opened; SQLite itself checks its structure, not the values in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tiebreak.ask.log import KINDS, QUESTIONS, Event, Subject, timestamp
from tiebreak.ask.messages import PATIENCE
from tiebreak.errors import SessionError

APPLICATION = 0x7469_6542  # marks the file as ours: "tieB"
VERSION = 7
MOST_BYTES = 900_000_000  # of a fitted model: SQLite takes 1e9 in one row

SCHEMA = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    f"""CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        token TEXT NOT NULL UNIQUE,
        run TEXT NOT NULL,
        at TEXT NOT NULL,
        who TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ({", ".join(map(repr, KINDS))})),
        "left" TEXT,
        "right" TEXT,
        about INTEGER REFERENCES events (id),
        question TEXT CHECK (question IN ({", ".join(map(repr, QUESTIONS))})),
        label TEXT,
        seconds REAL,
        checksum TEXT NOT NULL,
        CHECK ((kind IN ('undo', 'keep')) = (about IS NOT NULL)),
        CHECK ((about IS NULL) = ("left" IS NOT NULL)),
        CHECK ((about IS NULL) = (question IS NOT NULL)),
        CHECK ((question IS 'same' OR question IS 'which') = ("right" IS NOT NULL)),
        CHECK (label IS NOT NULL OR NOT (kind = 'label' OR question IS 'is' OR question IS 'which'))
    )""",
    "CREATE UNIQUE INDEX said_once ON events (about, kind) WHERE about IS NOT NULL",
    """CREATE TABLE fits (
        id INTEGER PRIMARY KEY,
        at TEXT NOT NULL,
        seen INTEGER NOT NULL,
        n_answers INTEGER NOT NULL,
        wrong REAL NOT NULL,
        n_changed INTEGER NOT NULL,
        checksum TEXT NOT NULL
    )""",
    *(
        f"""CREATE TRIGGER {table}_never_{done}d BEFORE {done.upper()} ON {table}
        BEGIN SELECT RAISE(ABORT, '{table} are never {done}d'); END"""
        for table in ("events", "fits")
        for done in ("update", "delete")
    ),
    # The model of the last fit: the next fit goes on from there.
    """CREATE TABLE model (
        fit INTEGER PRIMARY KEY REFERENCES fits (id),
        data BLOB NOT NULL,
        checksum TEXT NOT NULL
    )""",
    # Which question is shown now. Not part of the record: losing it does no harm.
    """CREATE TABLE leases (
        kind TEXT, "left" TEXT, "right" TEXT, run TEXT NOT NULL, until REAL NOT NULL,
        PRIMARY KEY (kind, "left", "right")
    )""",
    # The sitting that holds a name on a page, or the invitation to it.
    """CREATE TABLE seats (
        who TEXT PRIMARY KEY, run TEXT, invitation TEXT, is_lead INTEGER NOT NULL
    )""",
)


class Seat(NamedTuple):
    """A name on a page, and the sitting that holds it: None until somebody came."""

    who: str
    run: str | None
    invitation: str | None  # the last that was made for this name; earlier ones open nothing
    is_lead: bool


class FitPoint(NamedTuple):
    """How far a session was at one fit: a point of the curve that people watch."""

    n_answers: int  # that say something about classes
    wrong: float  # labels, as expected
    n_changed: int  # labels that are others than after the fit before


class Storage:
    """The file of one session, open in this process.

    `marks` tell one job from another, and are kept in the file when it is made: a `fingerprint`,
    and for people what is `described`: how many tasks, such as ….

    Raises SessionError where the file cannot be used, with the reason and what to do.
    """

    def __init__(self, path: str | os.PathLike[str], marks: Mapping[str, str]) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        with self._explaining_errors():
            self._db = sqlite3.connect(
                self.path,
                timeout=PATIENCE,
                isolation_level=None,
                check_same_thread=False,  # the lock sees to it that threads take turns
            )
            try:
                with self._transaction("BEGIN"):  # one look: another process may be making it
                    self._refuse_foreign()  # before anything is changed
                self._write_ahead()
                with self.writing():
                    if self._pragma("application_id") != APPLICATION:
                        for statement in SCHEMA:
                            self._db.execute(statement)
                        self._db.executemany("INSERT INTO about VALUES (?, ?)", marks.items())
                        self._db.execute(f"PRAGMA user_version = {VERSION}")
                        self._db.execute(f"PRAGMA application_id = {APPLICATION}")
                    self._check(marks)
                self._db.execute("PRAGMA foreign_keys = ON")
            except BaseException:
                self._db.close()
                raise

    def _refuse_foreign(self) -> None:
        if self._pragma("application_id") == APPLICATION:
            version = self._pragma("user_version")
            if version != VERSION:
                raise SessionError(
                    "session-version", path=self.path, version=version, known=VERSION
                )
        elif self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise SessionError("session-of-another-program", path=self.path)

    def _check(self, marks: Mapping[str, str]) -> None:
        """Refuse a file whose tables were changed, or that was made for another job."""
        about = dict(self._db.execute("SELECT name, value FROM about"))
        made = {sql for (sql,) in self._db.execute("SELECT sql FROM sqlite_master") if sql}
        if made != set(SCHEMA) or not set(marks) <= set(about):
            raise self._damaged("its tables are not those that were made")
        if about["fingerprint"] != marks["fingerprint"]:
            made_for, given = about["described"], marks["described"]
            raise SessionError(
                "session-of-another-job", path=self.path, made_for=made_for, given=given
            )

    def _write_ahead(self) -> None:
        """Keep a write-ahead log. Of two processes that ask for it at once, one waits here.

        SQLite itself does not wait then: both hold the file and want it alone.
        """
        give_up = time.monotonic() + PATIENCE
        while self._pragma("journal_mode") != "wal":
            try:
                if self._db.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
                    return  # memory, or a disk that cannot: the plain journal is as safe
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(0.01)

    @contextmanager
    def writing(self, *, waits: bool = True) -> Iterator[None]:
        """Hold the right to write; what is written inside is kept whole, or not at all.

        `waits`: for the disk. Leases do not: losing one does no harm, and with a write-ahead log
        the next commit that waits takes them along, in their order.
        """
        with self._explaining_errors():
            is_lasting = waits or self._pragma("journal_mode") != "wal"
            self._db.execute(f"PRAGMA synchronous = {'FULL' if is_lasting else 'NORMAL'}")
            with self._transaction("BEGIN IMMEDIATE"):
                yield

    def since(self, last: int) -> list[Event]:
        """Return the events after one of this id, in their order; refuse what was changed."""
        with self._explaining_errors():
            rows = self._verified("events", "id", last)
            return [Event(*row) for row in rows if row[0] > last]

    def append(self, event: Event) -> Event:
        id, checksum = self._last("events")
        event = event._replace(id=id + 1)
        self._insert("events", event, checksum)
        return event

    def fits(self) -> tuple[list[FitPoint], int, bytes]:
        """Return the fits that were made, by whichever process.

        With them: the last event that the last one knew, and its model, empty where it is not kept.
        """
        with self._explaining_errors(), self._transaction("BEGIN"):
            fits = self._verified("fits", "id", 0)  # id, at, seen, n_answers, wrong, n_changed
            models = self._verified("model", "fit", 0)  # fit, data
        if not fits and not models:
            return [], 0, b""
        if not fits or not models or models[0][0] != fits[-1][0]:
            raise self._damaged("the last fit is not whole")
        return [FitPoint(*fit[3:]) for fit in fits], fits[-1][2], models[0][1]

    def set_fit(self, point: FitPoint, seen: int, model: bytes) -> None:
        with self.writing():
            id, checksum = self._last("fits")
            self._insert("fits", (id + 1, timestamp(), seen, *point), checksum)
            self._db.execute("DELETE FROM model")
            self._insert("model", (id + 1, model if len(model) <= MOST_BYTES else b""), "")

    def seats(self) -> list[Seat]:
        """Return which names on a page are held, and by which sitting."""
        with self._explaining_errors():
            rows = self._db.execute("SELECT who, run, invitation, is_lead FROM seats")
            return [Seat(who, run, key, bool(is_lead)) for who, run, key, is_lead in rows]

    def set_seat(self, seat: Seat) -> None:
        with self._explaining_errors():
            self._db.execute("INSERT OR REPLACE INTO seats VALUES (?, ?, ?, ?)", seat)

    def leased(self, run: str) -> set[Subject]:
        """Return what other runs are asking now."""
        with self._explaining_errors():
            rows = self._db.execute(
                'SELECT kind, "left", "right" FROM leases WHERE run <> ? AND until > ?',
                (run, time.time()),
            )
            return {(kind, left, right) for kind, left, right in rows}

    def lease(self, subject: Subject, run: str, seconds: float) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?)",
            (*subject, run, time.time() + seconds),
        )

    def release(self, run: str) -> None:
        """Give up the questions of a run, and all whose time is over, inside `writing`."""
        self._db.execute("DELETE FROM leases WHERE run = ? OR until <= ?", (run, time.time()))

    def close(self) -> None:
        with self._explaining_errors():
            self._db.close()

    def _last(self, table: str) -> tuple[int, str]:
        found = self._db.execute(f"SELECT id, checksum FROM {table} ORDER BY id DESC LIMIT 1")
        return found.fetchone() or (0, "")

    def _insert(self, table: str, row: tuple[object, ...], before: str) -> None:
        places = ", ".join("?" * (len(row) + 1))
        self._db.execute(f"INSERT INTO {table} VALUES ({places})", (*row, _checksum(before, row)))

    def _verified(self, table: str, key: str, first: int) -> list[tuple[Any, ...]]:
        """Return the rows from a key on without their checksums, which must be right.

        Where it begins at a row that was read before, that row says how the next one begins.
        """
        found: list[tuple[Any, ...]] = []
        before = ""
        query = f"SELECT * FROM {table} WHERE {key} >= ? ORDER BY {key}"
        for *row, checksum in self._db.execute(query, (first,)):
            if row[0] != first and checksum != _checksum(before, row):
                which = f"row {row[0]} of {table}"
                raise self._damaged(f"{which} is not what was recorded, or rows before it are gone")
            found.append(tuple(row))
            before = checksum
        return found

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._db.execute(begin)
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _pragma(self, name: str) -> int | str:
        found: int | str = self._db.execute(f"PRAGMA {name}").fetchone()[0]
        return found

    @contextmanager
    def _explaining_errors(self) -> Iterator[None]:
        """Turn errors of SQLite into messages with a way out; threads take turns.

        A transaction holds its turn from its beginning to its end.
        """
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            raise SessionError(self._code(error), path=self.path, reason=str(error)) from error
        except UnicodeDecodeError as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, reason: str) -> SessionError:
        return SessionError("session-damaged", path=self.path, reason=reason)

    def _code(self, error: sqlite3.Error) -> str:
        if "decode to UTF-8" in str(error):
            return "session-damaged"
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_CANTOPEN:
            if self.path.is_dir():
                return "session-is-a-folder"
            is_there = self.path.parent.is_dir()
            return "session-not-opened" if is_there else "session-in-no-folder"
        return CODES.get(code, "session-failed")


CODES = {
    sqlite3.SQLITE_FULL: "session-disk-full",
    sqlite3.SQLITE_IOERR: "session-disk-full",
    sqlite3.SQLITE_READONLY: "session-read-only",
    sqlite3.SQLITE_PERM: "session-read-only",
    sqlite3.SQLITE_NOTADB: "session-not-one",
    sqlite3.SQLITE_CORRUPT: "session-damaged",
    sqlite3.SQLITE_BUSY: "session-held",
    sqlite3.SQLITE_LOCKED: "session-held",
}


def _checksum(before: str, row: Iterable[object]) -> str:
    text = json.dumps([before, *row], default=lambda data: hashlib.sha256(data).hexdigest())
    return hashlib.sha256(text.encode()).hexdigest()[:32]
