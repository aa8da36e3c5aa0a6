"""Storage: the events of a session in one SQLite file.

Events are only ever appended, one transaction each, and a transaction that has returned is on
the disk (write-ahead log, full synchronisation). A kill between two instructions loses nothing
that was acknowledged; SQLite takes back what was half written when the file is next opened. Two
processes take turns: every write begins with a lock, and reads what the other wrote first.

Fits are appended too, in a table of their own: they are what a program did, not what somebody
said, and no question goes out of date because one was made.

Each event, and each fit, carries a checksum of all that it says and of the checksum before it.
Reading verifies them, so that a bit that flipped on the disk, or a row that is gone, is found when
the file is opened; SQLite itself checks its structure, not the values in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tiebreak.ask.log import KINDS, QUESTIONS, Event, FitEvent, Subject
from tiebreak.errors import SessionError

APPLICATION = 0x7469_6542  # marks the file as ours: "tieB"
VERSION = 4  # 1 had no fits, 2 pairs only, 3 no checksums: opened as well, and brought up to date
PATIENCE = 10.0  # seconds to wait for another process that writes
NOT_FITTED = "not_fitted"  # in a file of version 1: the last event from before fits were recorded
RESTORE = "Put a copy from before in its place, or name another file."

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
        CHECK ((question IS 'same') = ("right" IS NOT NULL)),
        CHECK (label IS NOT NULL OR NOT (kind = 'label' OR question IS 'is'))
    )""",
    "CREATE UNIQUE INDEX said_once ON events (about, kind) WHERE about IS NOT NULL",
    """CREATE TRIGGER never_changed BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'events are never changed'); END""",
    """CREATE TRIGGER never_deleted BEFORE DELETE ON events
        BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END""",
    """CREATE TABLE fits (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL,
        at TEXT NOT NULL,
        seen INTEGER NOT NULL,
        start INTEGER REFERENCES fits (id),
        link_error TEXT NOT NULL,
        tol REAL NOT NULL,
        checksum TEXT NOT NULL
    )""",
    """CREATE TRIGGER fits_never_changed BEFORE UPDATE ON fits
        BEGIN SELECT RAISE(ABORT, 'fits are never changed'); END""",
    """CREATE TRIGGER fits_never_deleted BEFORE DELETE ON fits
        BEGIN SELECT RAISE(ABORT, 'fits are never deleted'); END""",
    # Who shows which question now. Not part of the record: losing it does no harm.
    """CREATE TABLE leases (
        kind TEXT, "left" TEXT, "right" TEXT, run TEXT NOT NULL, until REAL NOT NULL,
        PRIMARY KEY (kind, "left", "right")
    )""",
    # Who answers under which name on a page: the sitting that holds it, or who is invited to it.
    """CREATE TABLE seats (
        who TEXT PRIMARY KEY, run TEXT, invitation TEXT, is_lead INTEGER NOT NULL
    )""",
)
EVENT_COLUMNS = (
    'id, token, run, at, who, kind, "left", "right", about, question, label, seconds, checksum'
)
FIT_COLUMNS = "id, run, at, seen, start, link_error, tol, checksum"


class Seat(NamedTuple):
    """Who answers under a name on a page: the sitting that holds it, None until somebody came."""

    who: str
    run: str | None
    invitation: str | None  # the last that was made for this name; earlier ones open nothing
    is_lead: bool


class Marks(NamedTuple):
    """What tells one job from another, kept in the file when it is made."""

    fingerprint: str
    described: str  # for people: so many tasks, such as …


class Storage:
    """The file of one session, open in this process.

    Raises SessionError where the file cannot be used, with the reason and the way out.
    """

    def __init__(self, path: str | os.PathLike[str], marks: Marks) -> None:
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
                self._open(marks)
            except BaseException:
                self._db.close()
                raise

    def _open(self, marks: Marks) -> None:
        """Look first: nothing of a file that is not ours is changed."""
        with self._transaction("BEGIN"):  # one look: another process may be making the file
            self._refuse_foreign()
        self._db.execute("PRAGMA synchronous = FULL")
        self._write_ahead()
        with self.writing():
            if self._pragma("application_id") != APPLICATION:
                self._make(marks)
            if self._pragma("user_version") != VERSION:
                self._bring_up_to_date()
            self._refuse_damage()
            self._refuse_another_job(marks)
        self._db.execute("PRAGMA foreign_keys = ON")  # not before: tables are made anew there

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

    def _refuse_foreign(self) -> None:
        if self._pragma("application_id") == APPLICATION:
            version = self._pragma("user_version")
            if version not in range(1, VERSION + 1):
                raise SessionError(
                    f"{self.path} is of version {version}; this tiebreak reads 1 to {VERSION}. "
                    "Use the tiebreak that made it, or begin with another file."
                )
        elif self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise SessionError(
                f"{self.path} is a database of another program. Name another file for the session."
            )

    def _make(self, marks: Marks) -> None:
        self._make_tables(marks._asdict())
        self._db.execute(f"PRAGMA application_id = {APPLICATION}")

    def _make_tables(self, about: dict[str, str]) -> None:
        for statement in SCHEMA:
            self._db.execute(statement)
        self._db.executemany("INSERT INTO about VALUES (?, ?)", about.items())
        self._db.execute(f"PRAGMA user_version = {VERSION}")

    def _bring_up_to_date(self) -> None:
        """Put what an earlier version recorded, as it is, into tables with checksums."""
        version = int(self._pragma("user_version"))
        added = "question, label, seconds"
        if version < 3:  # an event named two tasks or another event
            added = "CASE WHEN about IS NULL THEN 'same' END, NULL, NULL"
        events = self._db.execute(
            'SELECT id, token, run, at, who, kind, "left", "right", about, '
            f"{added} FROM events ORDER BY id"
        ).fetchall()
        about = self._about()
        fits: list[tuple[object, ...]] = []
        if version == 1:
            about[NOT_FITTED] = str(events[-1][0] if events else 0)
        else:
            fits = self._db.execute(
                "SELECT id, run, at, seen, start, link_error, tol FROM fits ORDER BY id"
            ).fetchall()
            self._db.execute("DROP TABLE fits")
        for table in ("events", "leases", "about"):
            self._db.execute(f"DROP TABLE {table}")
        self._make_tables(about)
        for table, rows in (("events", events), ("fits", fits)):
            checksum = ""
            for row in rows:
                checksum = _checksum(checksum, row)
                self._insert(table, (*row, checksum))

    def _refuse_damage(self) -> None:
        """Refuse tables and marks that changed: rows may seem gone then."""
        made = {sql for (sql,) in self._db.execute("SELECT sql FROM sqlite_master") if sql}
        if made != set(SCHEMA) or not set(Marks._fields) <= set(self._about()):
            raise SessionError(
                f"{self.path} is damaged: its tables are not those that were made. {RESTORE}"
            )

    def _refuse_another_job(self, marks: Marks) -> None:
        about = self._about()
        made_for = Marks(*(about[name] for name in Marks._fields))
        if made_for.fingerprint != marks.fingerprint:
            raise SessionError(
                f"{self.path} belongs to another job: it was made for {made_for.described}; "
                f"these responses have {marks.described}.\n"
                "Pass the responses that it was made for, or name another file for this session."
            )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the right to write; what is written inside is kept whole, or not at all."""
        with self._explaining_errors(), self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def leasing(self) -> Iterator[None]:
        """Hold the right to write leases, without waiting for the disk: losing one does no harm.

        With a write-ahead log the next commit that waits takes these along, in their order.
        """
        with self._explaining_errors():
            is_ahead = self._pragma("journal_mode") == "wal"
            if is_ahead:
                self._db.execute("PRAGMA synchronous = NORMAL")
            try:
                with self.writing():
                    yield
            finally:
                if is_ahead:
                    self._db.execute("PRAGMA synchronous = FULL")

    def not_fitted(self) -> int:
        """Return the last event from before fits were recorded; 0: they always were."""
        with self._explaining_errors():
            return int(self._about().get(NOT_FITTED, 0))

    def since(self, last: int) -> list[Event]:
        """Return the events after one of this id, in their order; refuse what was changed."""
        with self._explaining_errors():
            rows = self._verified(
                f"SELECT {EVENT_COLUMNS} FROM events WHERE id >= ? ORDER BY id", last
            )
            return [Event(*row) for row in rows if row[0] > last]

    def with_token(self, token: str) -> int | None:
        """Return the id of the event with this token, if it is recorded."""
        with self._explaining_errors():
            row = self._db.execute("SELECT id FROM events WHERE token = ?", (token,)).fetchone()
            return None if row is None else int(row[0])

    def append(self, event: Event) -> Event:
        """Record an event, inside `writing`; return it with its id."""
        with self._explaining_errors():
            id, checksum = self._last("events")
            event = event._replace(id=id + 1)
            self._insert("events", (*event, _checksum(checksum, event)))
            return event

    def append_fit(self, fit: FitEvent) -> FitEvent:
        """Record a fit, inside `writing`; return it with its id."""
        with self._explaining_errors():
            id, checksum = self._last("fits")
            fit = fit._replace(id=id + 1)
            row = fit._replace(link_error=json.dumps(fit.link_error))
            self._insert("fits", (*row, _checksum(checksum, row)))
            return fit

    def fits(self, last: int) -> list[FitEvent]:
        """Return the last fit that has seen no event after this one, and those it came from.

        The first is a cold one, each other starts at the one before. Of several processes that
        fitted, this is the chain of the one that did so last.
        """
        with self._explaining_errors():
            rows = self._verified(f"SELECT {FIT_COLUMNS} FROM fits WHERE id >= ? ORDER BY id", 0)
        by_id = {row[0]: FitEvent(*row) for row in rows}
        chain: list[FitEvent] = []
        at = max((id for id, fit in by_id.items() if fit.seen <= last), default=None)
        while at is not None:
            fit = by_id[at]
            chain.append(fit._replace(link_error=json.loads(str(fit.link_error))))
            at = fit.start
        return chain[::-1]

    def seats(self) -> list[Seat]:
        """Return who holds which name on a page."""
        with self._explaining_errors():
            rows = self._db.execute("SELECT who, run, invitation, is_lead FROM seats")
            return [Seat(who, run, key, bool(is_lead)) for who, run, key, is_lead in rows]

    def set_seat(self, seat: Seat) -> None:
        """Let a name be held so, inside `writing`."""
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
        """Keep a question for a run for a while, inside `writing`."""
        with self._explaining_errors():
            self._db.execute(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?)",
                (*subject, run, time.time() + seconds),
            )

    def release(self, run: str) -> None:
        """Give up the questions of a run, and all whose time is over, inside `writing`."""
        with self._explaining_errors():
            self._db.execute("DELETE FROM leases WHERE run = ? OR until <= ?", (run, time.time()))

    def close(self) -> None:
        """Close the file; closing twice does no harm."""
        with self._explaining_errors():
            self._db.close()

    def _last(self, table: str) -> tuple[int, str]:
        """Return id and checksum of the last row of a table."""
        found = self._db.execute(f"SELECT id, checksum FROM {table} ORDER BY id DESC LIMIT 1")
        return found.fetchone() or (0, "")

    def _insert(self, table: str, row: tuple[object, ...]) -> None:
        places = ", ".join("?" * len(row))
        self._db.execute(f"INSERT INTO {table} VALUES ({places})", row)

    def _verified(self, query: str, first: int) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds without their checksums, which must be right.

        Where it begins at a row that was read before, that row says how the next one begins.
        """
        found: list[tuple[Any, ...]] = []
        before = ""
        for *row, checksum in self._db.execute(query, (first,)):
            if row[0] != first and checksum != _checksum(before, row):
                raise SessionError(
                    f"{self.path} is damaged: row {row[0]} is not what was recorded there, or rows "
                    f"before it are missing. {RESTORE}"
                )
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

    def _about(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT name, value FROM about"))

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
            raise SessionError(_explained(self.path, error)) from error
        except UnicodeDecodeError as error:
            raise SessionError(f"{self.path} is damaged ({error}). {RESTORE}") from error


def _checksum(before: str, row: Iterable[object]) -> str:
    """Return the checksum of a row that follows one with the checksum `before`."""
    text = json.dumps([before, *row], default=ascii)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _explained(path: Path, error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return (
            f"{path} cannot be written ({error}): is the disk full?\n"
            "What was acknowledged is kept, the last answer is not. Make room and run this again."
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return (
            f"{path} is read-only, so no answer can be kept ({error}). "
            "Make the file and its folder writable, or copy it to where you may write."
        )
    if code == sqlite3.SQLITE_CANTOPEN:
        if path.is_dir():
            return f"{path} is a folder. Name a file in it, such as {path / 'session.db'}."
        if not path.parent.is_dir():
            return f"{path} cannot be made: there is no folder {path.parent}."
        return f"{path} cannot be opened ({error}). May you read and write it and its folder?"
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return f"{path} is not a session file, or it is damaged ({error}). {RESTORE}"
    if "decode to UTF-8" in str(error):
        return f"{path} is damaged ({error}). {RESTORE}"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return (
            f"{path} is held by another program for over {PATIENCE:.0f} seconds ({error}). "
            "Close it there and run this again; what was acknowledged is kept."
        )
    return f"{path}: {error}. What was acknowledged is kept."
