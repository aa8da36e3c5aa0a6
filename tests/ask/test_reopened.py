"""A session that is opened again has the labels it was closed with, and goes on from there."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ask.test_session import Open, Truth, answer_truly, codes_of, true_answer
from hypothesis import given, settings
from hypothesis import strategies as st

import tiebreak as tb
from tiebreak.ask import Session, storage
from tiebreak.errors import InputNote

CROWD = tb.simulate.crowd(30, 5, 3, accuracy=(0.45, 0.75), random_state=1)
TASKS = [str(task) for task in CROWD.responses.tasks]


def copied(path: Path) -> Path:
    """Return a copy of a session file as a kill at this moment would leave it."""
    copy = path.with_name(f"{path.stem}-copy.db")
    copy.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as one, closing(sqlite3.connect(copy)) as other:
        one.backup(other)
    return copy


def assert_same(one: Any, other: Any) -> None:
    assert np.array_equal(one.labels_.label, other.labels_.label)
    assert one.probabilities_ == pytest.approx(other.probabilities_, abs=1e-9)
    assert one.confusion_ == pytest.approx(other.confusion_, abs=1e-9)
    assert one.calibration_ == other.calibration_
    assert one.get_params() == other.get_params()


@contextmanager
def no_fits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail where a model is fitted."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a fit")

    with monkeypatch.context() as patched:
        patched.setattr(tb.VariationalBayes, "fit", refuse)
        yield


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("same", "different", "true", "true", "label", "label", "is", "any", "wrong"),
                *("undo", "next", "model", "reopen"),
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
    path = tmp_path_factory.mktemp("reopened") / "session.db"
    options: dict[str, Any] = {"batch": 3, "strategy": "random", "random_state": 0}
    session = Session(path, CROWD.responses, who="ann", **options)
    for action, left, right, who in [*actions, ("reopen", *TASKS[:2], "ann")]:
        if action != "reopen":
            act(session, action, left, right)
            continue
        with Session(copied(path), CROWD.responses, **options) as killed:
            assert_same(killed.model(), session.model())
            assert killed.progress() == session.progress()
        closed_with = session.model()
        session.close()
        session = Session(path, CROWD.responses, who=who, **options)
        assert_same(session.model(), closed_with)
    session.close()


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_a_kill_between_any_two_writes_changes_no_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy is made after each transaction; opened, each ends where the session does from there.

    Where the copy holds all answers, and no later fit, its model is that of the session.
    """
    path = tmp_path / "s.db"
    copies: list[Path] = []
    writing: Any = vars(storage.Storage)["writing"]

    @contextmanager
    def write_and_copy(file: storage.Storage, **options: bool) -> Iterator[None]:
        with writing(file, **options):
            yield
        if file.path == path:
            copies.append(copied(path).rename(tmp_path / f"{len(copies)}.db"))

    truth = CROWD.gold.to_dict()
    options: dict[str, Any] = {"batch": 4, "random_state": 0, "costs": {"label": 2.0}}
    with monkeypatch.context() as patched:
        patched.setattr(storage.Storage, "writing", write_and_copy)
        with Session(path, CROWD.responses, **options) as session:
            answer_truly(session, truth, 10)
            session.undo()
            answer_truly(session, truth, 4)
            n_before = len(copies)
            model = session.model()
            answers = session.answers()
    assert len(copies) > 30
    for copy in copies[::3]:
        with Session(copy, CROWD.responses, **options) as killed:
            said = killed.answers()
            first = killed.model()
            if said == answers:
                assert_same(first, model)
        with Session(copy, CROWD.responses, **options) as again:
            assert_same(again.model(), first)
    with Session(copies[n_before - 1], CROWD.responses, **options) as killed:
        assert_same(killed.model(), model)


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_opening_a_session_again_fits_nothing(
    open_session: Open, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in ("ann", "bob"):  # trusted alone, fallible together
        session = open_session(who=who, batch=3, strategy="adaptive")
        answer_truly(session, truth, 10)
        closed_with, progress = session.model(), session.progress()
        rates, history = session.desk.error_rates(), list(session.desk.fits.history)
        session.close()
        with no_fits(monkeypatch):
            again = open_session(who=who, batch=3, strategy="adaptive")
            assert_same(again.model(), closed_with)
            assert again.progress() == progress
            assert again.next() is not None
            assert again.desk.error_rates() == rates
            assert again.desk.fits.history == history
        again.close()


def test_a_fit_starts_at_the_last_one_where_answers_were_added_to_it(
    open_session: Open, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[bool] = []
    fit: Any = vars(tb.VariationalBayes)["fit"]

    def note_start(model: Any, *given: Any, start: Any = None, **options: Any) -> Any:
        starts.append(start is not None)
        return fit(model, *given, start=start, **options)

    monkeypatch.setattr(tb.VariationalBayes, "fit", note_start)
    session = open_session(batch=4)
    answer_truly(session, truth, 5)  # fitted before the first and after the fourth
    session.undo()
    session.model()  # the fifth was not known to the last fit, so undoing it takes nothing back
    assert starts == [False, True, True]
    session.close()
    session = open_session(batch=4)
    session.undo()
    session.model()
    assert starts[3:] == [False]
    session.close()
    bob = open_session(who="bob", batch=4)
    answer_truly(bob, truth, 1)
    assert bob.model().link_error == "learn"
    assert not any(starts[4:])


def test_of_several_processes_the_last_to_fit_counts(open_session: Open, truth: Truth) -> None:
    """Each goes on from its own last fit; a new process goes on from the last of all."""
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


def test_responses_gold_and_links_that_came_later_count(
    open_session: Open, crowd: Any, truth: Truth
) -> None:
    session = open_session(batch=2)
    answer_truly(session, truth, 8)
    before = session.model()
    session.close()
    known = dict(list(truth.items())[:10])
    labels = open_session(gold=known).model().labels_.best()
    assert {task: labels[task] for task in known} == known
    assert open_session(link_error=0.1).model().link_error == 0.1
    rows = [(task, "a new worker", label) for task, label in truth.items()]
    table = crowd.responses
    rows += [
        (table.tasks[int(i)], table.workers[int(w)], table.classes[int(k)])
        for i, w, k in zip(
            table.task_of_each(), table.worker_of_each(), table.label_of_each(), strict=True
        )
    ]
    more = open_session(rows)
    assert more.progress().is_soft is False
    assert more.model().responses_.n_responses == len(rows)
    assert tb.evaluate.accuracy(more.model().labels_, truth) >= tb.evaluate.accuracy(
        before.labels_, truth
    )


def test_a_model_of_another_version_is_fitted_anew_with_a_note(
    open_session: Open, truth: Truth, tmp_path: Path
) -> None:
    session = open_session()
    answer_truly(session, truth, 5)
    model = session.model()
    file = session.desk.storage
    file.set_fit(file.fits()[0][-1], 5, b"written by a tiebreak yet to come")
    session.close()
    with pytest.warns(InputNote) as notes:
        again = open_session()
    assert codes_of(notes) == ["session-model-unreadable"]
    assert len(again.answers()) == 5
    assert np.array_equal(again.model().labels_.label, model.labels_.label)


def test_a_model_too_large_for_a_row_is_left_out(
    open_session: Open, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiebreak.ask.storage.MOST_BYTES", 1_000)
    session = open_session()
    answer_truly(session, truth, 5)
    model = session.model()
    session.close()
    again = open_session()
    assert len(again.answers()) == 5
    assert np.array_equal(again.model().labels_.label, model.labels_.label)


def test_fits_are_never_changed_or_deleted(open_session: Open, tmp_path: Path) -> None:
    open_session().model()
    with closing(sqlite3.connect(tmp_path / "session.db")) as db:
        for statement in ("UPDATE fits SET wrong = 0", "DELETE FROM fits"):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(statement)


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
