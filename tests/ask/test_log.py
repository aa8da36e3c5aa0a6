"""The state is the fold of the events, however and wherever they were written."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import tiebreak as tb
from tiebreak.ask.log import Event, Log
from tiebreak.ask.storage import Marks, Storage

TASKS = "abcde"
VOTES = [(task, worker, "xy"[at % 2]) for at, task in enumerate(TASKS) for worker in "uv"]
PEOPLE = ("ann", "bob")

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(PEOPLE),
        st.sampled_from(["same", "different", "unsure", "skip", "undo", "keep"]),
        st.sampled_from(TASKS),
        st.sampled_from(TASKS),
        st.integers(1, 20),
    ),
    max_size=25,
)


def fold(events: Iterable[Event]) -> Log:
    """Return what events amount to."""
    log = Log()
    for event in events:
        log.add(event)
    return log


def as_events(drawn: list[tuple[str, Any, str, str, int]]) -> list[Event]:
    """Make events of what was drawn; undo and keep speak of an earlier event, each once."""
    events: list[Event] = []
    said: set[tuple[Any, int]] = set()
    for who, kind, left, right, number in drawn:
        id = len(events) + 1
        if kind in ("undo", "keep"):
            if number < id and (kind, number) not in said:
                said.add((kind, number))
                events.append(Event(id, f"t{id}", "run", "now", who, kind, about=number))
        else:
            events.append(said_of(id, who, kind, left, right))
    return events


def said_of(id: int, who: str, kind: Any, left: str, right: str) -> Event:
    """Make the event of an answer or skip; a task's name serves as a class where one is needed."""
    event = Event(id, f"t{id}", "run", "now", who, kind, left)
    if kind == "label":
        return event._replace(question="label", label=right)
    if kind in ("yes", "no"):
        return event._replace(question="is", label=right)
    return event._replace(question="same", right=right)


@given(EVENTS, st.integers(0, 25))
def test_what_is_read_in_parts_folds_to_the_same(
    drawn: list[tuple[str, Any, str, str, int]], part: int
) -> None:
    events = as_events(drawn)
    with closing(Storage(":memory:", Marks("f", "d"))) as storage:
        log = Log()
        for event in events:
            with storage.writing():
                assert storage.append(event._replace(id=0)) == event
            if event.id % (part + 1) == 0:  # catches up now and then
                for new in storage.since(log.last):
                    log.add(new)
        for new in storage.since(log.last):
            log.add(new)
        assert storage.since(0) == events
    assert log == fold(events)


@given(EVENTS)
def test_an_answer_is_in_force_until_it_is_undone(
    drawn: list[tuple[str, Any, str, str, int]],
) -> None:
    events = as_events(drawn)
    undone = {event.about for event in events if event.kind == "undo"}
    in_force = [e for e in events if e.about is None and e.id not in undone]
    log = fold(events)
    assert list(log.answers.values()) == [e for e in in_force if e.kind != "skip"]
    assert list(log.skips.values()) == [e for e in in_force if e.kind == "skip"]
    assert log.last == len(events)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(PEOPLE),
        st.sampled_from(["same", "different", "unsure", "skip", "undo"]),
        st.sampled_from([(a, b) for a in TASKS for b in TASKS if a < b]),
    ),
    max_size=20,
)


@settings(max_examples=40)
@given(ACTIONS)
def test_a_session_does_what_a_list_would_do(
    tmp_path_factory: Any, actions: list[tuple[str, Any, tuple[str, str]]]
) -> None:
    """Two sessions on one file, and a plain list of what was said beside them."""
    path = tmp_path_factory.mktemp("log") / "session.db"
    sessions = {who: tb.ask.Session(path, VOTES, who=who) for who in PEOPLE}
    said: list[tuple[str, str, str, str]] = []
    for who, kind, (left, right) in actions:
        session, row = sessions[who], (who, kind, left, right)
        if kind == "undo":
            own = [each for each in said if each[0] == who]
            undone = session.undo()
            assert (undone is None) == (not own)
            if own:
                said.remove(own[-1])
        elif kind == "skip":
            session.skip(session.question(left, right))
            said.append(row)
        else:
            session.answer(session.question(left, right), kind)
            if row not in said:  # the same said of the same pair by the same person counts once
                said.append(row)
    expected = [row for row in said if row[1] != "skip"]
    for session in sessions.values():
        assert [(a.who, a.says, a.left, a.right) for a in session.answers()] == expected
        session.close()
