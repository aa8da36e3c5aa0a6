"""Which of these is it, or none? Questions about groups of which constraints allow one."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import tiebreak
from refusals import refused
from rich.console import Console

import tiebreak as tb
from tiebreak.ask import Desk, Session
from tiebreak.ask.console import Conversation, Keys
from tiebreak.ask.results import NONE
from tiebreak.errors import OptionError, SessionError
from tiebreak.page import app, guard, watch
from tiebreak.page import room as rooms
from tiebreak.page.guard import PageError

pytestmark = pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")

GROUPS = [("a", "g"), ("b", "g"), ("c", "g"), ("d", "h"), ("e", "h")]
VOTES = [
    *(("a", w, label) for w, label in zip("uvwx", "1100", strict=True)),
    *(("b", w, label) for w, label in zip("uvwx", "1010", strict=True)),
    *(("c", w, label) for w, label in zip("uvwx", "0100", strict=True)),
    *(("d", w, label) for w, label in zip("uvwx", "0000", strict=True)),
    *(("e", w, label) for w, label in zip("uvwx", "0010", strict=True)),
]
KINDS: Any = {"kinds": ("which",)}


def rules(words: str = "at most one", **more: Any) -> tb.Constraints:
    return tb.Constraints.groups(GROUPS, words, "1", **more)


def session_of(path: Any = ":memory:", who: str = "me", **options: Any) -> Session:
    given = {"constraints": rules(), **KINDS, **options}
    return Session(path, VOTES, who=who, **given)


def drawn(seed: int, n_groups: int = 40, size: int = 4) -> tuple[list[Any], tb.Constraints, Any]:
    """Draw groups of which a half has a task of class 1, and votes that err in 3 of 10 cases."""
    rng = np.random.default_rng(seed)
    truth = np.zeros((n_groups, size), dtype=int)
    some = rng.random(n_groups) < 0.5
    truth[some, rng.integers(0, size, n_groups)[some]] = 1
    names = [[f"{g}/{i}" for i in range(size)] for g in range(n_groups)]
    votes = [
        (names[g][i], f"w{w}", str(int(truth[g, i] ^ (rng.random() < 0.3))))
        for g in range(n_groups)
        for i in range(size)
        for w in rng.permutation(8)[:4].tolist()
    ]
    table = [(names[g][i], str(g)) for g in range(n_groups) for i in range(size)]
    known = {names[g][i]: str(truth[g, i]) for g in range(n_groups) for i in range(size)}
    return votes, tb.Constraints.groups(table, "at most one", "1"), known


# -- which questions -------------------------------------------------------------------------------


def test_the_group_in_most_doubt_is_asked_about_once() -> None:
    model = tb.VariationalBayes().fit(VOTES, constraints=rules())
    found = tb.selection.questions(model, 5, **KINDS)
    assert [(row.kind, row.label) for row in found] == [("which", "1")] * 2
    assert found[0].members == ("a", "b", "c", None)
    doubt = (1.0 - model.probabilities_.max(axis=1))[:3].sum()
    assert found[0].gain == pytest.approx(doubt)
    assert found[0].worth == pytest.approx(doubt / 1.5)
    assert found.columns()["members"][0] == "a | b | c"
    exact = tb.VariationalBayes().fit(VOTES, constraints=rules("exactly one"))
    assert tb.selection.questions(exact, 1, **KINDS)[0].members == ("a", "b", "c")


def test_other_tasks_of_a_group_that_is_asked_about_wait() -> None:
    votes, table, _ = drawn(0)
    model = tb.VariationalBayes().fit(votes, constraints=table)
    found = tb.selection.questions(model, 60, kinds=("label", "which"))
    groups = [{str(t).split("/")[0] for t in row.members or (row.task,) if t} for row in found]
    asked = [next(iter(each)) for each in groups]
    of_groups = [g for g, row in zip(asked, found, strict=True) if row.kind == "which"]
    assert of_groups
    assert all(asked.count(each) == 1 for each in of_groups)


def test_a_label_is_worth_more_by_what_yes_settles() -> None:
    model = tb.VariationalBayes().fit(VOTES, constraints=rules())
    alone = tb.VariationalBayes().fit(VOTES)
    one, other = (tb.selection.questions(m, 1, kinds=("label",))[0] for m in (model, alone))
    q = model.probabilities_[list(model.tasks_).index(one.task)]
    assert one.gain > 1.0 - q.max() > 0.0
    assert other.gain == pytest.approx((1.0 - alone.probabilities_.max(axis=1)).max())


# -- answers ---------------------------------------------------------------------------------------


def test_one_answer_settles_its_group() -> None:
    with session_of() as session:
        question = session.next()
        assert question is not None
        assert (question.kind, question.label, question.task) == ("which", "1", None)
        assert question.tasks == ("a", "b", "c")
        assert question.choices == ("a", "b", "c", NONE)
        answer = session.answer(question, "c")
        assert (answer.says, str(answer)) == ("c", "c = 1")
        assert session.labels().to_dict() == {"a": "0", "b": "0", "c": "1"}
        assert session.model().labels_.best()["c"] == "1"
        again = session.next()
        assert again is not None
        assert again.tasks == ("d", "e")
        session.answer(again, NONE)
        assert session.next() is None
        assert session.labels().to_dict() == dict(zip("abcde", "00100", strict=True))
        undone = session.undo()
        assert undone is not None
        assert undone.says == NONE
        assert session.next().subject == again.subject  # type: ignore[union-attr]


def test_three_classes_leave_the_others_open() -> None:
    votes = [*VOTES, ("f", "u", "2"), ("f", "v", "2"), ("b", "y", "2")]
    with Session(":memory:", votes, constraints=rules(), **KINDS) as session:
        session.answer(session.question("a", label="1", members=("a", "b", "c", None)), "a")
        assert session.labels().to_dict() == {"a": "1"}
        model = session.model()
        q = session.desk.last_fit().q
        at = list(model.tasks_).index("b")
        assert q[at, list(model.classes_).index("1")] == pytest.approx(0.0, abs=1e-9)


def test_a_session_goes_on_with_its_answers(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with session_of(path) as session:
        question = session.next()
        assert question is not None
        session.answer(question, "b")
        session.skip(session.next())  # type: ignore[arg-type]
    with session_of(path) as session:
        assert [each.says for each in session.answers()] == ["b"]
        assert session.model().labels_.best()["b"] == "1"
        again = session.next()
        assert again is not None
        assert again.tasks == ("d", "e")
    with pytest.raises(SessionError):
        Session(path, VOTES[:8], constraints=rules(), **KINDS)


def test_what_contradicts_an_answer_is_told() -> None:
    with session_of() as session:
        session.answer(session.question("b", label="1"), "yes")
        question = session.question("a", label="1", members=("a", "b", "c", None))
        found = session.answer(question, "a").contradiction
        assert found is not None
        assert [each.left for each in found.earlier] == ["b"]
        session.keep(found.answer)
        assert session.desk.fits.current(session.desk.log.snapshot()).is_soft
        with refused(OptionError, "answer-not-offered"):
            session.answer(question, "d")


def test_several_people_are_believed_as_far_as_they_err() -> None:
    """An answer is a constraint then, as sure as its person: two outweigh one."""
    with Desk(":memory:", VOTES, constraints=rules(), **KINDS) as desk:
        for name, says in (("ann", "c"), ("bob", "c"), ("eve", "a")):
            session = desk.session(name)
            session.answer(session.question("a", label="1", members=("a", "b", "c", None)), says)
        model = desk.model()
        assert model.labels_.best()["c"] == "1"
        assert model.labels_.best()["a"] == "0"
        found = model.constraints_
        assert found is not None
        assert sorted(each["who"] for each in found.records() if "who" in each) == [
            *("ann", "bob", "eve")
        ]
        assert model.doubtful_constraints_ is not None
        assert len(model.doubtful_constraints_.constraints) == 1


def test_rules_that_answers_contradict_may_be_wrong_then() -> None:
    with Desk(":memory:", VOTES, constraints=rules()) as desk:
        for name in ("ann", "bob", "eve"):
            session = desk.session(name)
            for task in ("a", "b"):
                session.answer(session.question(task), "1")
        labels = desk.model().labels_.best()
        assert (labels["a"], labels["b"]) == ("1", "1")


def test_groups_are_worth_asking_about() -> None:
    """At equal numbers of questions, answered truly, more labels are right than by labels."""
    right: dict[str, list[float]] = {"label": [], "which": []}
    for seed in range(4):
        votes, table, truth = drawn(seed, 30, 8)
        for kind, shares in right.items():
            with Session(":memory:", votes, constraints=table, kinds=(kind,), batch=5) as session:
                for _ in range(18):
                    question = session.next()
                    assert question is not None
                    if kind == "label":
                        session.answer(question, truth[question.task])
                        continue
                    one = [task for task in question.tasks if truth[task] == "1"]
                    session.answer(question, one[0] if one else NONE)
                labels = session.model().labels_.best()
            shares.append(float(np.mean([labels[task] == truth[task] for task in truth])))
    assert np.mean(right["which"]) > np.mean(right["label"]) + 0.005


# -- faces -----------------------------------------------------------------------------------------


def test_a_key_answers_in_the_terminal() -> None:
    said = io.StringIO()
    out = Console(file=said, width=100, markup=False)
    with session_of() as session:
        Conversation(session, Keys(io.StringIO("44q")), out).run()
        assert [each.says for each in session.answers()] == [NONE]
    with session_of() as session:
        Conversation(session, Keys(io.StringIO("2q")), out).run()
        assert [each.says for each in session.answers()] == ["b"]
    for words in ("which is 1?", NONE):
        assert words in said.getvalue()


def test_the_command_lists_groups(tmp_path: Path) -> None:
    votes, groups = tmp_path / "votes.csv", tmp_path / "groups.csv"
    rows = "".join(f"{task},{worker},{label}\n" for task, worker, label in VOTES)
    votes.write_text(f"task,worker,label\n{rows}")
    groups.write_text("task,group\n" + "".join(f"{task},{group}\n" for task, group in GROUPS))
    said = ["--set", f"groups={groups}", "--set", "rule=at most one 1", "--kinds", "which"]
    done = tiebreak("ask", votes, "--list", 5, *said)
    assert done.exit_code == 0, done.stderr
    found = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["members"] for row in found] == ["a | b | c", "d | e"]
    done = tiebreak("ask", votes, "--list", 1, *said, "--to", "label-studio")
    asked = [each["data"] for each in json.loads(done.stdout)]
    assert [(each["task"], each["class"]) for each in asked] == [(task, "1") for task in "abc"]
    done = tiebreak("ask", votes, "--session", tmp_path / "s.db", *said, stdin="3q")
    assert done.exit_code == 0, done.stderr
    with session_of(tmp_path / "s.db") as session:
        assert [each.says for each in session.answers()] == ["c"]


def test_groups_are_needed() -> None:
    with refused(OptionError, "which-needs-rules"):
        Session(":memory:", VOTES, **KINDS)
    model = tb.VariationalBayes().fit(VOTES)
    assert len(tb.selection.questions(model, 3, **KINDS)) == 0


def test_a_button_answers_on_the_page() -> None:
    with Desk(":memory:", VOTES, constraints=rules(), background=True, **KINDS) as desk:
        room = rooms.Room(desk, guard.Tokens(), rooms.Contents({}, desk.job))
        desk.start()
        visitor = room.tokens.new_visitor("ann", is_lead=False)
        screen = room.act(visitor)
        filled = app.page("question.html", room=room, visitor=visitor, is_part=False, **screen)
        shown = bytes(filled.body).decode()
        assert "Which of these is “1”?" in shown
        assert all(f'<span class="id">{task}</span>' in shown for task in "abc")
        form = {"question": room.sign(screen["question"], visitor), "says": "3"}
        done = room.act(visitor, "answer", form)
        assert done["about"].says == NONE
        assert watch.people(desk)[0]["n_answers"] == 1
        screen = room.act(visitor)
        room.act(
            visitor, "answer", {"question": room.sign(screen["question"], visitor), "says": "1"}
        )
        assert [each.says for each in desk.answers()] == [NONE, "e"]
        with pytest.raises(PageError):
            room.act(visitor, "answer", {"question": form["question"], "says": "4"})
