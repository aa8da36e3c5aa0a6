"""A session: questions, answers, undo, skip, several people, when it ends."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from refusals import noted

import tiebreak as tb
from tiebreak import selection
from tiebreak.ask import Question, Session
from tiebreak.errors import InputError, InputNote, OptionError, SessionError
from tiebreak.simulate import Crowd

Open = Callable[..., Session]
Truth = dict[Any, Any]

VOTES = [
    *(("a", "ann", "cat"), ("a", "bob", "cat"), ("b", "ann", "cat"), ("b", "bob", "dog")),
    *(("c", "ann", "dog"), ("c", "bob", "dog"), ("d", "ann", "dog"), ("d", "bob", "cat")),
]


def codes_of(notes: Any) -> list[str]:
    """Return the codes of notes that were caught."""
    return [each.message.code for each in notes]


def pair(question: Question | tb.ask.Answer) -> frozenset[Any]:
    return frozenset((question.left, question.right))


def asked(session: Session) -> Question:
    question = session.next()
    assert question is not None
    return question


def true_answer(question: Question, truth: Truth) -> Any:
    """Return what somebody says who knows the class of every task."""
    known = truth[question.left]
    if question.kind == "same":
        return "same" if known == truth[question.right] else "different"
    if question.kind == "is":
        return "yes" if known == question.label else "no"
    return known


def answer_truly(session: Session, truth: Truth, n: int = 10**9) -> list[tb.ask.Answer]:
    """Answer n questions, or all, as they are."""
    given: list[tb.ask.Answer] = []
    while len(given) < n and (question := session.next()) is not None:
        given.append(session.answer(question, true_answer(question, truth)))
    return given


def test_answers_make_links_and_labels_right(
    open_session: Open, crowd: Crowd, truth: Truth
) -> None:
    session = open_session(batch=5, strategy="adaptive")
    before = session.progress()
    wrong = tb.evaluate.accuracy(session.model().labels_, crowd.gold)
    given = answer_truly(session, truth, 30)
    after = session.progress()
    assert (before.asked, after.asked) == (0, 30)
    assert after.wrong < before.wrong
    assert after.confidence == pytest.approx(1 - after.wrong / 40)
    assert tb.evaluate.accuracy(session.model().labels_, crowd.gold) > wrong
    assert session.links().pairs() == [
        (a.left, a.right, "must" if a.says == "same" else "cannot")
        for a in given
        if a.kind == "same"
    ]
    labelled = {a.task: a.says for a in given if a.kind == "label"}
    assert labelled  # the first question: nothing is known that others could be compared with
    assert session.labels().to_dict() == labelled
    assert session.links().to_frame()["who"].to_pylist() == ["me"] * (30 - len(labelled))


def test_no_pair_is_asked_twice_nor_one_that_follows(open_session: Open, truth: Truth) -> None:
    session = open_session(batch=4)
    given = answer_truly(session, truth)
    assert len({pair(a) for a in given}) == len(given)
    # Two classes: every answer joins two parts that were apart, so forty tasks need no more.
    assert len(given) <= 39
    assert session.progress().finished == "nothing"


def test_the_question_stays_until_it_is_answered(open_session: Open) -> None:
    session = open_session()
    question = asked(session)
    assert session.next() is question
    session.answer(question, "unsure")
    assert session.next() is not question


def test_a_question_of_ones_own_does_not_lose_the_open_one(open_session: Open) -> None:
    session = open_session()
    question = asked(session)
    others = [task for task in ("t01", "t02", "t03") if task not in pair(question)]
    session.answer(session.question(*others[:2]), "unsure")
    assert pair(asked(session)) == pair(question)


def test_no_more_pairs_are_chosen_than_can_be_asked(
    open_session: Open, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers do not make the choice of the next batch dearer; only what was put off does."""
    wanted = []

    def count(model: Any, n: int, **options: Any) -> Any:
        wanted.append(n)
        return choose(model, n, **options)

    choose: Any = vars(selection)["pairs"]
    monkeypatch.setattr(selection, "pairs", count)
    session = open_session(batch=5)
    answer_truly(session, truth, 10)
    for _ in range(3):
        session.answer(asked(session), "unsure")
    session.skip(asked(session))
    answer_truly(session, truth, 6)
    assert wanted == [5, 5, 5, 5 + 4]


def test_an_answer_says_who_and_when(open_session: Open) -> None:
    session = open_session(who="ann")
    began = datetime.now(UTC)
    answer = session.answer(asked(session), "same")
    assert answer.who == "ann"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", answer.at)
    assert abs((datetime.fromisoformat(answer.at) - began).total_seconds()) < 60


def test_cannot_tell_is_no_link_and_not_asked_again_of_the_same_person(open_session: Open) -> None:
    session = open_session(batch=3)
    unsure = {pair(session.answer(asked(session), "unsure")) for _ in range(50)}
    assert len(unsure) == 50
    assert len(session.links()) == 0
    assert session.progress().unsure == 50
    session.close()
    again = open_session(batch=3)
    assert not any(pair(again.answer(asked(again), "unsure")) in unsure for _ in range(50))


def test_what_one_cannot_tell_another_may_be_asked(open_session: Open) -> None:
    votes = [("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x")]
    ann, bob = open_session(votes, who="ann"), open_session(votes, who="bob")
    ann.answer(asked(ann), "unsure")
    assert ann.next() is None
    assert pair(asked(bob)) == {"a", "b"}


def test_what_is_skipped_comes_back_when_the_others_are_done(open_session: Open) -> None:
    session = open_session(VOTES)
    first = asked(session)
    session.skip(first)
    others = []
    while pair(question := asked(session)) != pair(first):
        others.append(pair(session.answer(question, "unsure")))
    assert sorted(map(sorted, others)) == sorted(
        sorted(p) for p in ("ab", "ac", "ad", "bc", "bd", "cd") if set(p) != pair(first)
    )
    session.answer(question, "unsure")
    assert session.next() is None


def test_a_new_run_does_not_know_of_skips(open_session: Open) -> None:
    votes = [("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x")]
    session = open_session(votes)
    session.skip(asked(session))
    session.close()
    assert pair(asked(open_session(votes))) == {"a", "b"}


def test_undo_takes_back_the_last_answer_and_asks_again(open_session: Open) -> None:
    session = open_session()
    kept = session.answer(asked(session), "same")
    answer = session.answer(asked(session), "different")
    following = asked(session)
    undone = session.undo()
    assert undone == answer
    assert session.answers() == (kept,)
    assert pair(asked(session)) == pair(answer)
    session.answer(asked(session), "same")
    assert pair(asked(session)) == pair(following)


def test_undo_reaches_into_earlier_runs_and_then_says_none(open_session: Open) -> None:
    session = open_session()
    answer = session.answer(asked(session), "same")
    session.close()
    session = open_session()
    assert session.undo() == answer
    assert session.undo() is None
    assert session.answers() == ()


def test_undo_takes_back_a_skip(open_session: Open) -> None:
    session = open_session()
    first = asked(session)
    session.skip(first)
    undone = session.undo()
    assert undone is not None
    assert (undone.says, pair(undone)) == ("skip", pair(first))
    assert pair(asked(session)) == pair(first)


def test_undo_leaves_the_answers_of_others_unless_they_are_named(open_session: Open) -> None:
    ann, bob = open_session(who="ann"), open_session(who="bob")
    answer = ann.answer(asked(ann), "same")
    assert bob.undo() is None
    assert bob.undo(answer) == answer
    with pytest.raises(OptionError) as found:
        ann.undo(answer)
    assert found.value.code == "answer-not-there"
    assert found.value.fields == {"id": answer.id, "what": "undo"}


def test_nothing_in_the_file_is_ever_changed(open_session: Open, tmp_path: Path) -> None:
    session = open_session()
    session.answer(asked(session), "same")
    session.undo()
    session.close()
    with sqlite3.connect(tmp_path / "session.db") as db:
        kinds = [kind for (kind,) in db.execute("SELECT kind FROM events ORDER BY id")]
        assert kinds == ["same", "undo"]
        for statement in ("UPDATE events SET kind = 'different'", "DELETE FROM events"):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(statement)
    db.close()


def test_a_session_goes_on_where_it_was_left(open_session: Open, truth: Truth) -> None:
    whole = answer_truly(open_session(), truth, 15)
    session = open_session()
    assert session.answers() == tuple(whole)
    more = answer_truly(session, truth, 5)
    assert not {pair(a) for a in whole} & {pair(a) for a in more}
    assert session.progress().asked == 20


def test_the_file_is_one_file_when_all_have_closed_it(
    open_session: Open, tmp_path: Path, truth: Truth
) -> None:
    session = open_session()
    answer_truly(session, truth, 3)
    session.close()
    session.close()  # twice does no harm
    assert [path.name for path in tmp_path.iterdir()] == ["session.db"]


def test_rows_in_another_order_and_more_votes_are_the_same_job(
    open_session: Open, crowd: Crowd, truth: Truth
) -> None:
    given = answer_truly(open_session(), truth, 5)
    table = crowd.responses
    rows = [
        (table.tasks[int(i)], table.workers[int(w)], table.classes[int(k)])
        for i, w, k in zip(
            table.task_of_each(), table.worker_of_each(), table.label_of_each(), strict=True
        )
    ]
    session = open_session([*rows[::-1], (rows[0][0], "new worker", rows[0][2])])
    assert session.answers() == tuple(given)


def test_a_session_of_another_job_is_refused(open_session: Open, crowd: Crowd) -> None:
    open_session().close()
    for other in (VOTES, [*VOTES, ("a", "eve", "bird")]):
        with pytest.raises(SessionError) as found:
            open_session(other)
        assert found.value.code == "session-of-another-job"
        assert str(found.value.fields["made_for"]).startswith("40 tasks (")
        assert str(found.value.fields["given"]).startswith("4 tasks (")


def test_numbers_stay_numbers(open_session: Open) -> None:
    table = {"task": [7, 7, 8, 8], "worker": ["u", "v", "u", "v"], "label": [0, 1, 1, 1]}
    session = open_session(table, texts={7: "seven", 8: "eight"}, among=["7", "8"])
    question = asked(session)
    assert {question.left, question.right} == {7, 8}
    assert {question.left_text, question.right_text} == {"seven", "eight"}
    session.answer(question, "same")
    assert set(session.links().tasks) == {7, 8}


def test_votes_are_shown_by_task() -> None:
    with Session(":memory:", VOTES) as session:
        assert session.votes("b") == (("ann", "cat"), ("bob", "dog"))
        with pytest.raises(OptionError) as found:
            session.votes("z")
        assert (found.value.code, found.value.fields) == ("unknown-task", {"task": "z"})


def test_texts_come_from_tables_too(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("task,text\na,A dog.\na,A cat.\nzz,Nobody.\n")
    with pytest.warns(InputNote) as notes:
        session = Session(":memory:", VOTES, texts=tmp_path / "texts.csv")
    assert codes_of(notes)[-2:] == ["texts-unused", "texts-missing"]  # after those of the table
    assert [vars(each.message)["fields"] for each in notes][-2:] == [
        {"names": ["zz"], "of": "tasks without responses"},
        {"n": 3, "n_tasks": 4},
    ]
    with session:
        question = session.question("a", "b")
        assert (question.left_text, question.right_text) == ("A cat.", None)


def test_only_some_tasks_are_asked_about(open_session: Open, truth: Truth) -> None:
    some = list(truth)[:6]
    given = answer_truly(open_session(among=some), truth)
    assert given
    assert all(pair(a) <= set(some) for a in given)
    with pytest.raises(InputError) as found:
        open_session(among=["zz"])
    assert (found.value.code, found.value.fields) == ("among-unknown", {"tasks": ["zz"]})


def test_links_and_gold_are_not_asked_about(open_session: Open) -> None:
    links = tb.Links.from_pairs(must=[("a", "b")])
    session = open_session(VOTES, links=links, gold={"c": "dog", "d": "cat"})
    offered = []
    while (question := session.next()) is not None:
        offered.append(pair(question))
        session.answer(question, "unsure")
    assert len(offered) == 4
    assert not {frozenset("ab"), frozenset("cd")} & set(offered)


def test_the_budget_counts_all_runs_and_all_people(open_session: Open, truth: Truth) -> None:
    assert len(answer_truly(open_session(budget=7, who="ann"), truth)) == 7
    session = open_session(budget=9, who="bob")
    assert len(answer_truly(session, truth)) == 2
    assert session.progress().finished == "budget"
    session.undo()
    assert session.progress().finished is None


def test_the_target_ends_it(open_session: Open, truth: Truth) -> None:
    session = open_session(target=0.9, batch=1, strategy="adaptive")
    given = answer_truly(session, truth)
    assert 20 <= len(given) < 39
    assert session.progress().finished == "target"
    assert session.progress().confidence >= 0.9


def test_no_target_is_reached_before_the_crowd_was_checked(
    open_session: Open, truth: Truth
) -> None:
    """Votes alone are too sure of themselves; they must not end it."""
    session = open_session(target=0.01, batch=1)
    assert session.progress().confidence > 0.01
    assert len(answer_truly(session, truth)) == 20
    known = dict(list(truth.items())[:20])
    assert open_session(target=0.01, gold=known).next() is None


def test_one_class_leaves_nothing_to_ask(open_session: Open) -> None:
    with noted("one-class"):
        session = open_session([("a", "u", "x"), ("b", "u", "x")])
    with noted("one-class"):
        assert session.next() is None
    assert session.progress().finished == "nothing"


def test_questions_come_with_their_gain(open_session: Open) -> None:
    assert asked(open_session(strategy="adaptive")).gain > 0


def test_where_links_may_err_a_pair_that_follows_can_be_asked(open_session: Open) -> None:
    """As a check on the others; what was asked is not asked again."""
    classes = {"a": "x", "b": "y", "c": "x"}
    votes = [(task, worker, label) for task, label in classes.items() for worker in "uv"]
    for link_error, n_asked in ((None, 2), (0.1, 3)):
        session = open_session(votes, link_error=link_error)
        assert len(answer_truly(session, classes)) == n_asked
        while session.undo():
            pass
        session.close()


# Several people, several processes


def test_two_who_ask_at_once_get_different_questions(open_session: Open) -> None:
    ann, bob = open_session(who="ann"), open_session(who="bob")
    for _ in range(10):
        one, other = asked(ann), asked(bob)
        assert pair(one) != pair(other)
        ann.answer(one, "unsure")
        bob.answer(other, "unsure")


def test_a_question_that_nobody_answers_falls_free_after_a_while(open_session: Open) -> None:
    votes = [("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x")]
    first, second = open_session(votes, lease=0.0), open_session(votes)
    assert asked(first)
    assert asked(second)
    assert open_session(votes).next() is None  # this one is kept from others


def test_closing_frees_the_question(open_session: Open) -> None:
    votes = [("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x")]
    first = open_session(votes)
    asked(first)
    first.close()
    assert asked(open_session(votes))


def test_what_another_answers_is_not_asked_again(open_session: Open, truth: Truth) -> None:
    ann, bob = open_session(who="ann"), open_session(who="bob")
    asked(bob)  # has chosen a batch by now
    of_ann = {pair(a) for a in answer_truly(ann, truth, 10)}
    of_bob = {pair(a) for a in answer_truly(bob, truth, 20)}
    assert not of_ann & of_bob


def test_one_question_is_answered_once(open_session: Open) -> None:
    session = open_session()
    question = asked(session)
    first = session.answer(question, "same")
    assert session.answer(question, "same") == first  # sent twice: one answer
    with pytest.raises(OptionError) as found:
        session.answer(question, "different")
    assert found.value.code == "answer-given-before"
    assert session.answers() == (first,)


def test_the_same_person_says_the_same_of_a_pair_once(open_session: Open) -> None:
    """Two windows of one person, one of them forgotten for longer than its question was kept."""
    one, other = open_session(), open_session()
    question = asked(one)
    mirrored = other.question(question.right, question.left)
    first = one.answer(question, "same")
    assert other.answer(mirrored, "same") == first
    assert len(one.links()) == 1


def test_a_second_opinion_is_recorded(open_session: Open) -> None:
    ann, bob = open_session(who="ann"), open_session(who="bob")
    question = asked(ann)
    ann.answer(question, "same")
    bob.answer(bob.question(question.left, question.right), "same")
    assert ann.links().to_frame()["who"].to_pylist() == ["ann", "bob"]


def test_one_person_is_trusted_and_several_are_not(open_session: Open, truth: Truth) -> None:
    ann = open_session(who="ann")
    answer_truly(ann, truth, 5)
    assert ann.model().link_error is None
    assert not ann.progress().is_soft
    answer_truly(open_session(who="bob"), truth, 5)
    model = ann.model()
    assert model.link_error == "learn"
    assert set(model.link_errors_ or ()) == {"ann", "bob"}
    assert ann.progress().is_soft


def test_weights_rule_out_that_rates_are_learnt(open_session: Open, truth: Truth) -> None:
    names = list(truth)
    links = {"left": names[:1], "right": names[1:2], "link": ["must"], "weight": [2.0]}
    answer_truly(open_session(links=links, who="ann"), truth, 3)
    bob = open_session(links=links, who="bob")
    answer_truly(bob, truth, 3)
    assert bob.model().link_error == 0.02


def test_the_caller_says_how_often_links_err(open_session: Open, truth: Truth) -> None:
    session = open_session(link_error=0.1)
    answer_truly(session, truth, 3)
    assert session.model().link_error == 0.1


@pytest.mark.parametrize("people", [("ann",), ("ann", "bob")])
def test_a_fit_between_batches_is_a_fit_from_scratch(
    open_session: Open, crowd: Crowd, truth: Truth, people: tuple[str, ...]
) -> None:
    """Begun where the last fit ended, votes would know the answers: too sure, and trusted more."""
    for who in people * 3:
        session = open_session(who=who, batch=2)
        answer_truly(session, truth, 4)
        model = session.model()
    assert session.model() is model
    assert model.init == "majority"  # holds on to no earlier model
    scratch = tb.VariationalBayes(link_options=tb.ExactLinkOptions(error=model.link_error))
    scratch.fit(crowd.responses, links=session.links())
    assert model.probabilities_ == pytest.approx(scratch.probabilities_, abs=1e-4)
    assert model.calibration_ == pytest.approx(scratch.calibration_, abs=1e-3)
    assert len(session.answers()) == 12 * len(people)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": -1}, "budget"),
        ({"target": 0.0}, "target"),
        ({"target": 1.5}, "target"),
        ({"who": " "}, "who"),
        ({"batch": 0}, "batch"),
        ({"link_error": "much"}, "error"),
    ],
)
def test_wrong_options_are_refused_before_a_file_is_made(
    open_session: Open, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        open_session(**options)
    assert list(tmp_path.iterdir()) == []


def test_an_answer_must_be_one_of_three(open_session: Open) -> None:
    session = open_session()
    with pytest.raises(OptionError) as found:
        session.answer(asked(session), "maybe")
    assert found.value.code == "answer-not-offered"
    assert found.value.fields["allowed"] == "'same', 'different', 'unsure'"


@pytest.mark.parametrize("options", [{}, {"stop_when_worth_less_than": 1e-4}])
def test_a_check_of_what_seems_sure_does_not_end_a_session(options: Any) -> None:
    """The first question of a small batch may be about two sure tasks; doubtful ones wait."""
    for seed in range(8):
        crowd = tb.simulate.crowd(100, 5, 2, accuracy=(0.9, 0.99), random_state=seed)
        with Session(
            ":memory:", crowd.responses, kinds=("same",), batch=1, random_state=seed, **options
        ) as session:
            question = session.next()
            assert question is not None
            assert question.gain > 1e-4
