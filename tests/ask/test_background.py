"""A desk whose fits run beside it: nobody waits, nobody is asked the same, hand-set labels hold."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import tiebreak as tb
from tiebreak.ask import Desk, Question, console
from tiebreak.errors import OptionError, TiebreakError
from tiebreak.simulate import Crowd

CLASSES = 3


@pytest.fixture
def three() -> Crowd:
    """Return sixty tasks of three classes, by workers who err often."""
    return tb.simulate.crowd(60, 6, CLASSES, accuracy=(0.5, 0.8), random_state=0)


@pytest.fixture
def desk(tmp_path: Path, three: Crowd) -> Iterator[Desk]:
    """Return a desk whose worker does a step when a test says so."""
    with Desk(tmp_path / "s.db", three.responses, background=True, random_state=0) as made:
        now = made.log.snapshot()
        worker = made.background
        assert worker is not None
        worker.choose_by(made.last_fit(), now)
        yield made


def work(desk: Desk) -> None:
    assert desk.background is not None
    assert desk.background.work_once()


def truly(question: Question, truth: dict[Any, Any]) -> Any:
    if question.kind == "same":
        return "same" if truth[question.left] == truth[question.right] else "different"
    return truth[question.left]


def test_next_and_progress_never_fit(
    desk: Desk, three: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a fit")

    monkeypatch.setattr(tb.VariationalBayes, "fit", refuse)
    ann = desk.session("ann")
    for _ in range(45):  # more than two batches
        question = ann.next()
        assert question is not None
        ann.answer(question, truly(question, three.gold.to_dict()))
    assert ann.progress().asked == 45
    with pytest.raises(AssertionError):
        work(desk)


def test_threads_take_turns_at_a_desk(desk: Desk) -> None:
    ann = desk.session("ann")
    question = ann.question(desk.job.responses.tasks[0])
    steps = (ann.next, ann.progress, desk.labels, lambda: ann.answer(question, "c0"), ann.undo)
    for step in steps:
        thread = threading.Thread(target=step)
        with desk.lock:
            thread.start()
            thread.join(0.05)
            assert thread.is_alive()
        thread.join(60)
        assert not thread.is_alive()
    assert desk.answers() == ()


def test_no_question_is_on_two_screens(desk: Desk) -> None:
    people = [desk.session(f"p{number}") for number in range(12)]
    shown = [session.next() for session in people]
    subjects = [each.subject for each in shown if each is not None]
    assert len(set(subjects)) == len(people)


def test_a_sitting_that_goes_on_keeps_its_question(desk: Desk) -> None:
    first = desk.session("ann", "run of ann").next()
    other = desk.session("bob", "run of bob").next()
    again = desk.session("ann", "run of ann").next()
    assert first is not None
    assert other is not None
    assert again is not None
    assert again.subject == first.subject
    assert other.subject != first.subject


def test_when_all_is_asked_it_waits_for_the_worker_and_then_ends(desk: Desk, three: Crowd) -> None:
    ann = desk.session("ann")
    truth = three.gold.to_dict()
    while (question := ann.next()) is not None:
        ann.answer(question, truly(question, truth))
    assert ann.is_waiting()
    work(desk)
    while (question := ann.next()) is not None:
        ann.answer(question, truly(question, truth))
        work(desk)
    assert not ann.is_waiting()
    assert ann.progress().finished == "nothing"
    assert desk.fits.made is not None
    labels = desk.fits.made.model.labels_.best()
    assert labels == truth


def test_in_the_terminal_questions_go_on_while_a_fit_runs(
    tmp_path: Path, three: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_fit = threading.Event()
    fit = tb.VariationalBayes.fit
    n_fits = 0

    def wait_and_fit(*arguments: Any, **options: Any) -> Any:
        nonlocal n_fits
        n_fits += 1
        if n_fits > 1:
            assert may_fit.wait(60)
        return fit(*arguments, **options)

    monkeypatch.setattr(tb.VariationalBayes, "fit", wait_and_fit)
    out = io.StringIO()
    who = str(three.responses.workers[0])
    with Desk(
        tmp_path / "s.db", three.responses, background=True, only=who, random_state=0,
        kinds=("label", "vote"), costs="time",
    ) as desk, desk.session(who) as session:  # fmt: skip
        keys = console.Keys(io.StringIO("1" * 30))
        console.Conversation(session, keys, Console(file=out, width=80)).run()
        assert session.progress().asked == 30
        may_fit.set()
        assert desk.model().labels_.best().keys() == three.gold.to_dict().keys()
    assert "Question 30" in out.getvalue()


def test_nobody_waits_for_a_worker_that_broke_off(desk: Desk) -> None:
    ann = desk.session("ann")
    while (question := ann.next()) is not None:
        ann.answer(question, question.choices[0])
    assert desk.background is not None
    desk.background.error = MemoryError("no room")
    for do in (ann.next, desk.model):
        with pytest.raises(TiebreakError) as found:
            do()
        assert found.value.code == "session-worker-ended"
        assert str(found.value.fields["error"]) == "no room"


def test_a_lease_that_is_over_shows_another_question_where_it_was_answered(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.lease = 0.0
    ann = desk.session("ann")
    bob = desk.session("bob")
    first = ann.next()
    taken = bob.next()
    assert first is not None
    assert taken is not None
    assert first.subject == taken.subject  # over at once
    bob.answer(taken, taken.choices[0])
    after = ann.next()
    assert after is not None
    assert after.subject != first.subject


def test_a_label_set_by_hand_holds_against_many_and_can_be_undone(desk: Desk, three: Crowd) -> None:
    task = next(iter(three.gold.to_dict()))
    names = list(three.responses.classes)
    for who in ("ann", "bob", "cat", "dan"):
        session = desk.session(who)
        session.answer(session.question(task), names[0])
    lead = desk.session("lead", by_hand=True)
    answer = lead.answer(lead.question(task), names[2])
    work(desk)
    fit = desk.last_fit()
    assert fit.model.labels_.best()[task] == names[2]
    assert fit.is_soft
    assert desk.labels().to_dict()[task] == names[2]
    assert "lead" not in desk.error_rates()
    lead.undo(answer)
    work(desk)
    assert desk.last_fit().model.labels_.best()[task] == names[0]


def test_one_person_stays_trusted_beside_labels_set_by_hand(desk: Desk, three: Crowd) -> None:
    first, second, *_ = three.gold.to_dict()
    ann = desk.session("ann")
    ann.answer(ann.question(first), three.gold.to_dict()[first])
    lead = desk.session("lead", by_hand=True)
    lead.answer(lead.question(second), three.gold.to_dict()[second])
    work(desk)
    assert not desk.last_fit().is_soft


def test_the_curve_has_a_point_for_every_fit(desk: Desk, three: Crowd) -> None:
    ann = desk.session("ann")
    for _ in range(3):
        question = ann.next()
        assert question is not None
        ann.answer(question, truly(question, three.gold.to_dict()))
        work(desk)
    assert [point.n_answers for point in desk.fits.history] == [0, 1, 2, 3]
    assert desk.fits.history[-1].wrong == desk.last_fit().wrong


def test_votes_and_timed_costs_are_for_one_person(tmp_path: Path, three: Crowd) -> None:
    for options in ({"kinds": ("vote",)}, {"costs": "time"}):
        with pytest.raises(OptionError) as found:
            Desk(tmp_path / "v.db", three.responses, background=True, **options)
        assert found.value.code == "votes-need-one-person"
    assert not (tmp_path / "v.db").exists()


def test_the_worker_thread_fits_and_ends(tmp_path: Path, three: Crowd) -> None:
    desk = Desk(tmp_path / "t.db", three.responses, background=True, random_state=0)
    desk.start()
    ann = desk.session("ann")
    question = ann.next()
    assert question is not None
    ann.answer(question, truly(question, three.gold.to_dict()))
    model = desk.model()  # waits for the worker
    assert desk.fits.made is not None
    assert desk.fits.made.model is model
    assert len(desk.fits.made.known.answers) == 1
    desk.close()
    assert desk.background is not None
    with pytest.raises(RuntimeError):
        desk.background.model()
