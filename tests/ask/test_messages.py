"""Each error and note of asking, by its code: what brings it about, and what it says."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tiebreak import errors
from tiebreak.ask import Desk, Session, messages
from tiebreak.errors import InputNote, TiebreakError

VOTES = [("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x"), ("c", "bob", "y")]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session(tmp_path / "s.db", VOTES) as opened:
        yield opened


def as_sqlite_says(session: Session, code: int) -> None:
    """Let SQLite fail with a code, as it does on a full disk."""
    error = sqlite3.OperationalError("no luck")
    error.sqlite_errorcode = code
    with session.desk.storage.writing():
        raise error


def opened_as(path: Path, *statements: str) -> None:
    """Open a database that somebody made."""
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    Session(path, VOTES)


def answered_twice(session: Session) -> None:
    question = session.question("a", "b")
    session.answer(question, "same")
    session.answer(question, "different")


def labelled_twice(session: Session) -> Session:
    for label in ("x", "y"):
        session.answer(session.question("a"), label)
    return session


def flipped(session: Session) -> None:
    session.answer(session.question("a"), "x")
    with closing(sqlite3.connect(session.desk.storage.path)) as db:
        db.execute("DROP TRIGGER events_never_updated")
        db.execute("UPDATE events SET label = 'y'")
        db.commit()
    Session(session.desk.storage.path, VOTES)


def unknown_class(session: Session) -> None:
    session.answer(session.question("a"), "x")
    storage = session.desk.storage
    with storage.writing():
        storage.append(storage.since(0)[-1]._replace(label="z", token="other"))
    session.answers()


def unreadable_model(session: Session) -> None:
    session.model()
    storage = session.desk.storage
    storage.set_fit(storage.fits()[0][-1], 0, b"what is this?")
    Session(storage.path, VOTES).close()


def ended(session: Session) -> None:
    with Desk(":memory:", VOTES, background=True) as desk:
        assert desk.background is not None
        desk.background.error = MemoryError("no room")
        desk.model()


def missing_folder(session: Session) -> None:
    Session(session.desk.storage.path.parent / "nowhere" / "s.db", VOTES)


def another_job(session: Session) -> None:
    Session(session.desk.storage.path, [*VOTES, ("d", "bob", "y")])


CASES: dict[str, Callable[[Session], Any]] = {
    "session-version": lambda s: opened_as(
        s.desk.storage.path.with_name("o.db"),
        "PRAGMA application_id = 0x74696542",
        "PRAGMA user_version = 4",
    ),
    "session-of-another-program": lambda s: opened_as(
        s.desk.storage.path.with_name("o.db"), "CREATE TABLE mine (x)"
    ),
    "session-of-another-job": another_job,
    "session-names-unknown": unknown_class,
    "session-damaged": flipped,
    "session-not-one": lambda s: as_sqlite_says(s, sqlite3.SQLITE_NOTADB),
    "session-disk-full": lambda s: as_sqlite_says(s, sqlite3.SQLITE_FULL),
    "session-read-only": lambda s: as_sqlite_says(s, sqlite3.SQLITE_READONLY),
    "session-is-a-folder": lambda s: Session(s.desk.storage.path.parent, VOTES),
    "session-in-no-folder": missing_folder,
    "session-not-opened": lambda s: as_sqlite_says(s, sqlite3.SQLITE_CANTOPEN),
    "session-held": lambda s: as_sqlite_says(s, sqlite3.SQLITE_BUSY),
    "session-failed": lambda s: as_sqlite_says(s, sqlite3.SQLITE_MISUSE),
    "session-worker-ended": ended,
    "session-model-unreadable": unreadable_model,
    "answer-not-offered": lambda s: s.answer(s.question("a"), "z"),
    "answer-given-before": answered_twice,
    "answer-not-there": lambda s: s.keep(9),
    "answered-labels-left-out": lambda s: labelled_twice(s).labels(),
    "question-about-two-things": lambda s: s.question("a", "b", label="x"),
    "unknown-task": lambda s: s.question("z"),
    "unknown-class": lambda s: s.answer(s.question("a", label="z"), "yes"),
    "among-unknown": lambda s: Session(":memory:", VOTES, among=["y", "z"]),
    "texts-unused": lambda s: Session(
        ":memory:", VOTES, texts={**dict.fromkeys("abc", "text"), "z": "text"}
    ),
    "texts-missing": lambda s: Session(":memory:", VOTES, texts={"a": "text"}),
    "costs-unknown-word": lambda s: Session(":memory:", VOTES, costs="money"),
    "kinds-need-adaptive": lambda s: Session(
        ":memory:", VOTES, kinds=("label",), strategy="random"
    ),
    "votes-need-one-person": lambda s: Desk(":memory:", VOTES, kinds=("vote",), background=True),
    "which-needs-rules": lambda s: Session(":memory:", VOTES, kinds=("which",)),
    "who-empty": lambda s: Session(":memory:", VOTES, who=" "),
}


@pytest.mark.parametrize("code", CASES)
def test_each_code_is_said_where_it_belongs(session: Session, code: str) -> None:
    if code.startswith(("texts", "answered", "session-model")):
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            CASES[code](session)
        said: list[Any] = [each.message for each in notes]
        assert [each.code for each in said if isinstance(each, InputNote)][-1] == code
        message = str(said[-1])
    else:
        with pytest.raises(TiebreakError) as found:
            CASES[code](session)
        assert found.value.code == code
        message = str(found.value)
    assert message.endswith((".", "?"))
    assert "{" not in message


def test_each_sentence_of_asking_has_a_case() -> None:
    text = Path(messages.__file__).read_text(encoding="utf-8")
    own = {code for code in errors.MESSAGES if f'"{code}"' in text}
    of_spans = {"links-of-spans", "no-span-marked", "answered-spans-overlap"}  # in test_spans.py
    assert own == CASES.keys() | of_spans
