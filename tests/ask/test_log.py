"""The state is the fold of the events, however and wherever they were written."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import tiebreak as tb

TASKS = "abcde"
VOTES = [(task, worker, "xy"[at % 2]) for at, task in enumerate(TASKS) for worker in "uv"]
PEOPLE = ("ann", "bob")

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
    for session in (*sessions.values(), tb.ask.Session(path, VOTES)):
        assert [(a.who, a.says, a.left, a.right) for a in session.answers()] == expected
        session.close()
