"""A session that is opened again has the labels it was closed with."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ask.test_session import Open, Truth, answer_truly, true_answer
from hypothesis import given, settings
from hypothesis import strategies as st

import tiebreak as tb
from tiebreak.ask import Session
from tiebreak.ask.fitting import Fits
from tiebreak.errors import SessionError

CROWD = tb.simulate.crowd(30, 5, 3, accuracy=(0.45, 0.75), random_state=1)
TASKS = [str(task) for task in CROWD.responses.tasks]
Row = tuple[Any, ...]  # id, seen, start, link_error, tol

VERSION_1 = (
    "PRAGMA application_id = 1953064258",
    "PRAGMA user_version = 1",
    "PRAGMA journal_mode = WAL",
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE events (
        id INTEGER PRIMARY KEY,
        token TEXT NOT NULL UNIQUE,
        run TEXT NOT NULL,
        at TEXT NOT NULL,
        who TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (
            kind IN ('same', 'different', 'unsure', 'skip', 'undo', 'keep')
        ),
        "left" TEXT,
        "right" TEXT,
        about INTEGER REFERENCES events (id),
        CHECK ((kind IN ('undo', 'keep')) = (about IS NOT NULL)),
        CHECK ((about IS NULL) = ("left" IS NOT NULL AND "right" IS NOT NULL))
    )""",
    "CREATE UNIQUE INDEX said_once ON events (about, kind) WHERE about IS NOT NULL",
    """CREATE TRIGGER never_changed BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'events are never changed'); END""",
    """CREATE TRIGGER never_deleted BEFORE DELETE ON events
        BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END""",
    """CREATE TABLE leases (
        "left" TEXT, "right" TEXT, run TEXT NOT NULL, until REAL NOT NULL,
        PRIMARY KEY ("left", "right")
    )""",
)


def fits_in(path: Path) -> list[Row]:
    db = sqlite3.connect(path)
    rows = db.execute("SELECT id, seen, start, link_error, tol FROM fits").fetchall()
    db.close()
    return rows


def copied(path: Path) -> Path:
    """Return a copy of a session file as a kill at this moment would leave it."""
    copy = path.with_name(f"{path.stem}-copy.db")
    copy.unlink(missing_ok=True)
    one = sqlite3.connect(path)
    other = sqlite3.connect(copy)
    one.backup(other)
    one.close()
    other.close()
    return copy


def as_version_1(path: Path) -> None:
    """Write a session file again as the first version of the format had it, to the letter.

    It knew pairs only: other answers, and what was done with these, are left out.
    """
    db = sqlite3.connect(path)
    about = db.execute("SELECT * FROM about").fetchall()
    events = db.execute(
        'SELECT id, token, run, at, who, kind, "left", "right", about FROM events AS it WHERE '
        "question = 'same' OR (SELECT question FROM events WHERE id = it.about) = 'same'"
    ).fetchall()
    db.close()
    path.unlink()
    db = sqlite3.connect(path, isolation_level=None)
    for statement in VERSION_1:
        db.execute(statement)
    db.executemany("INSERT INTO about VALUES (?, ?)", about)
    db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", events)
    db.close()


def assert_same(one: tb.VariationalBayes, other: tb.VariationalBayes) -> None:
    """Compare to the last bit."""
    assert np.array_equal(one.labels_.label, other.labels_.label)
    assert np.array_equal(one.probabilities_, other.probabilities_)
    assert np.array_equal(one.confusion_, other.confusion_)
    assert (one.link_error, one.tol, one.bounds_) == (other.link_error, other.tol, other.bounds_)
    assert one.calibration_ == other.calibration_


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "same",
                "different",
                "true",
                "true",
                "label",
                "label",
                "is",
                "any",
                "wrong",
                "undo",
                "next",
                "model",
                "reopen",
            ]
        ),
        st.sampled_from(TASKS),
        st.sampled_from(TASKS),
        st.sampled_from(["ann", "ann", "ann", "bob"]),
    ).filter(lambda drawn: drawn[1] != drawn[2]),
    min_size=5,
    max_size=30,
)


def act(session: Session, action: str, left: str, right: str) -> None:
    truth = CROWD.gold.to_dict()
    if action == "undo":
        session.undo()
    elif action == "next":
        session.next()
    elif action == "model":
        session.model()
    elif action == "true":
        says: Any = "same" if truth[left] == truth[right] else "different"
        session.answer(session.question(left, right), says)
    elif action in ("same", "different"):
        session.answer(session.question(left, right), action)
    elif action in ("label", "wrong"):
        label = truth[left if action == "label" else right]
        session.answer(session.question(left), label)
    elif action == "is":
        yes_no = "yes" if truth[left] == truth[right] else "no"
        session.answer(session.question(left, label=truth[right]), yes_no)
    elif action == "any" and (question := session.next()) is not None:
        session.answer(question, true_answer(question, truth))


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@pytest.mark.filterwarnings("ignore::tiebreak.errors.ConvergenceWarning")
@settings(max_examples=25)
@given(ACTIONS)
def test_closed_or_killed_at_any_point_a_session_has_its_labels_again(
    tmp_path_factory: Any, actions: list[tuple[str, str, str, str]]
) -> None:
    """Answers true and false, undone ones, one person or two: a copy is opened at every turn."""
    path = tmp_path_factory.mktemp("replay") / "session.db"
    options: dict[str, Any] = {"batch": 3, "strategy": "random", "random_state": 0}
    session = Session(path, CROWD.responses, who="ann", **options)
    for action, left, right, who in [*actions, ("reopen", *TASKS[:2], "ann")]:
        if action != "reopen":
            act(session, action, left, right)
            continue
        with Session(copied(path), CROWD.responses, **options) as killed:
            assert_same(killed.model(), session.model())
        closed_with = session.model()
        session.close()
        before = fits_in(path)
        session = Session(path, CROWD.responses, who=who, **options)
        assert_same(session.model(), closed_with)
        assert fits_in(path) == before  # made again, not anew
    session.close()
    as_version_1(path)  # other labels perhaps, but the same ones from now on
    with Session(path, CROWD.responses, **options) as old:
        labels = old.model()
    with Session(path, CROWD.responses, **options) as again:
        assert_same(again.model(), labels)


def test_a_fit_says_what_it_knew_and_how_it_began(
    open_session: Open, tmp_path: Path, truth: Truth
) -> None:
    session = open_session(batch=4)
    answer_truly(session, truth, 5)  # fitted before the first and after the fourth
    session.undo()
    session.model()
    assert fits_in(tmp_path / "session.db") == [
        (1, 0, None, "null", 1e-6),
        (2, 4, 1, "null", 1e-3),
        (3, 6, 2, "null", 1e-6),  # event 5 was not known to 2, so undoing it takes nothing back
    ]
    session.undo()
    session.model()
    assert fits_in(tmp_path / "session.db")[3:] == [(4, 7, None, "null", 1e-6)]
    session.close()
    bob = open_session(who="bob", batch=4)
    answer_truly(bob, truth, 1)
    bob.model()
    assert fits_in(tmp_path / "session.db")[4:] == [(5, 8, None, '"learn"', 1e-6)]


def test_only_fits_that_a_later_one_came_from_are_made_again(
    open_session: Open, truth: Truth
) -> None:
    session = open_session(batch=2)
    answer_truly(session, truth, 8)
    session.undo()
    session.undo()
    session.model()  # fits to 0, 2, 4, 6 answers, and one more
    session.close()
    assert list(open_session().replay()) == [(n, 5) for n in range(1, 6)]
    session = open_session()
    for answer in session.answers()[:4]:
        session.undo(answer)
    session.model()  # cold
    session.close()
    assert list(open_session().replay()) == [(1, 1)]


def test_a_replay_that_was_stopped_goes_on(
    open_session: Open, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(batch=2)
    answer_truly(session, truth, 9)
    closed_with = session.model()
    session.close()
    again = open_session()
    assert next(again.replay()) == (1, 6)
    fitted: Any = vars(Fits)["_fitted"]

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Fits, "_fitted", stop)
    with pytest.raises(KeyboardInterrupt):
        again.model()
    monkeypatch.setattr(Fits, "_fitted", fitted)
    assert_same(again.model(), closed_with)
    assert list(again.replay()) == []


def test_of_several_processes_the_last_to_fit_counts(open_session: Open, truth: Truth) -> None:
    """Each goes on from its own last fit; who opens the file next goes on from the last of all."""
    one = open_session(batch=2)
    other = open_session(batch=3)
    for _ in range(4):
        answer_truly(one, truth, 2)
        answer_truly(other, truth, 3)
    of_one = one.model()
    assert_same(open_session().model(), of_one)
    of_other = other.model()
    assert_same(open_session().model(), of_other)
    assert_same(one.model(), of_one)


def test_a_fit_to_answers_of_the_future_is_left_alone(open_session: Open, truth: Truth) -> None:
    """Another process answers and fits between two steps of this one."""
    session = open_session()
    answer_truly(session, truth, 3)
    late = open_session()
    known = late._record.log.snapshot()
    answer_truly(session, truth, 3)
    session.model()
    assert late.desk.fits.last(known).known.seen == 0


def test_gold_that_came_later_counts_when_fits_are_made_again(
    open_session: Open, truth: Truth
) -> None:
    session = open_session(batch=2)
    answer_truly(session, truth, 8)
    session.model()
    session.close()
    known = dict(list(truth.items())[:10])
    labels = open_session(gold=known).model().labels_.best()
    assert {task: labels[task] for task in known} == known
    assert open_session(link_error=0.1).model().link_error == 0.1


def test_a_file_without_fits_is_fitted_in_its_order(
    open_session: Open, tmp_path: Path, truth: Truth
) -> None:
    """Files of version 1 did not record fits; sixteen parts come near to the batches of then."""
    path = tmp_path / "session.db"
    session = open_session(batch=2)
    given = answer_truly(session, truth, 32)
    session.close()
    as_version_1(path)
    killed = open_session()
    steps = killed.replay()
    assert [next(steps) for _ in range(5)] == [(n, 16) for n in range(1, 6)]
    killed.close()
    again = open_session()
    assert list(again.replay()) == [(n, 16) for n in range(1, 17)]  # 5 again, and the rest
    made = fits_in(path)
    assert [row[1] for row in made] == [answer.id for answer in given[1::2]]
    assert [row[2] for row in made] == [None, *range(1, 16)]
    model = again.model()
    assert len(again.answers()) == 32
    again.close()
    assert_same(open_session().model(), model)


def test_an_old_file_of_another_job_stays_old(tmp_path: Path, open_session: Open) -> None:
    path = tmp_path / "session.db"
    open_session().close()
    as_version_1(path)
    with pytest.raises(SessionError, match="belongs to another job"):
        Session(path, [("a", "u", "x"), ("b", "u", "y")])
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    db.close()


def test_an_old_file_without_answers_is_as_a_new_one(tmp_path: Path, open_session: Open) -> None:
    open_session().close()
    as_version_1(tmp_path / "session.db")
    session = open_session()
    assert list(session.replay()) == []
    session.model()
    assert fits_in(tmp_path / "session.db") == [(1, 0, None, "null", 1e-6)]


def test_fits_are_never_changed_or_deleted(open_session: Open, tmp_path: Path) -> None:
    open_session().model()
    db = sqlite3.connect(tmp_path / "session.db")
    for statement in ("UPDATE fits SET tol = 0", "DELETE FROM fits"):
        with pytest.raises(sqlite3.IntegrityError, match="fits are never"):
            db.execute(statement)
    db.close()


NAMES = (
    "bluebird", "dog", "music_genre", "product", "rte",
    "sentence_polarity", "trec", "web", "zencrowd_india", "zencrowd_us",
)  # fmt: skip


def reopens_with_its_labels(name: str, data_dir: Path, tmp_path: Path) -> None:
    """Ask about half as many pairs as there are known tasks, in sixteen rounds; open it again.

    So does a copy after every fourth round.
    """
    responses = tb.read_responses(data_dir / name / "responses.csv")
    truth = tb.read_gold(data_dir / name / "gold.csv").to_dict()
    options: dict[str, Any] = {"among": list(truth), "random_state": 0}
    path = tmp_path / "session.db"
    n_asked = len(truth) // 2
    batch = max(20, -(-n_asked // 16))
    with Session(path, responses, budget=n_asked, batch=batch, **options) as session:
        while answer_truly(session, truth, 4 * batch):
            with Session(copied(path), responses, **options) as killed:
                assert_same(killed.model(), session.model())
        closed_with = session.model()
    with Session(path, responses, **options) as again:
        assert_same(again.model(), closed_with)


@pytest.mark.data
@pytest.mark.parametrize("name", ["music_genre", "zencrowd_us"])
def test_real_sessions_have_their_labels_again(name: str, data_dir: Path, tmp_path: Path) -> None:
    """Where a cold fit of the same answers swapped the names of classes."""
    reopens_with_its_labels(name, data_dir, tmp_path)


@pytest.mark.data
@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_all_real_sessions_have_their_labels_again(
    name: str, data_dir: Path, tmp_path: Path
) -> None:
    reopens_with_its_labels(name, data_dir, tmp_path)
