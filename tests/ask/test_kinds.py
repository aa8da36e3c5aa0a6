"""Sessions that ask several kinds of questions: labels, yes or no, votes, pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ask.test_session import Open, Truth, answer_truly, asked, codes_of, true_answer
from refusals import refused

import tiebreak as tb
from tiebreak.ask import Desk, Question, Session
from tiebreak.errors import InputNote, OptionError, SessionError
from tiebreak.simulate import Crowd

KINDS = ("same", "label", "is")
VOTES = [
    *(("a", "ann", "cat"), ("a", "bob", "cat"), ("b", "ann", "cat"), ("b", "bob", "dog")),
    *(("c", "ann", "dog"), ("c", "bob", "bird"), ("d", "ann", "dog"), ("d", "bob", "cat")),
]


@pytest.fixture
def mixed(open_session: Open) -> Open:
    """Return what opens a session that asks every kind."""

    def open_it(responses: Any = None, **options: Any) -> Session:
        return open_session(responses, **{"strategy": "adaptive", "kinds": KINDS, **options})

    return open_it


def test_a_question_says_what_can_be_answered() -> None:
    with Session(":memory:", VOTES) as session:
        pair = session.question("a", "b")
        label = session.question("c")
        yes_no = session.question("c", label="dog")
        assert (pair.kind, pair.task, pair.tasks) == ("same", None, ("a", "b"))
        assert (label.kind, label.task, label.choices) == ("label", "c", ("bird", "cat", "dog"))
        assert (yes_no.kind, yes_no.label, yes_no.choices) == ("is", "dog", ("yes", "no"))
        for question, wrong in ((pair, "yes"), (label, "same"), (yes_no, "dog"), (label, "cow")):
            with pytest.raises(OptionError) as found:
                session.answer(question, wrong)
            assert (found.value.code, found.value.fields["answer"]) == ("answer-not-offered", wrong)
        with pytest.raises(OptionError) as found:
            session.answer(session.question("a", label="cow"), "yes")
        assert found.value.code == "unknown-class"
        assert found.value.fields == {"label": "cow", "classes": ["bird", "cat", "dog"]}


def test_a_label_is_known_and_counts_at_once() -> None:
    with Session(":memory:", VOTES) as session:
        answer = session.answer(session.question("c"), "bird")
        assert (str(answer), answer.says, answer.task) == ("c = bird", "bird", "c")
        assert session.labels().to_dict() == {"c": "bird"}
        assert session.model().labels_.best()["c"] == "bird"
        assert len(session.links()) == 0


def test_yes_is_a_label_and_no_takes_a_class_away() -> None:
    with Session(":memory:", VOTES) as session:
        session.answer(session.question("a", label="cat"), "yes")
        answer = session.answer(session.question("d", label="cat"), "no")
        assert str(answer) == "d ≠ cat"
        assert session.labels().to_dict() == {"a": "cat"}
        assert session.links().pairs() == [("d", "a", "cannot")]
        assert session.model().labels_.best()["d"] != "cat"
        session.answer(session.question("d", label="dog"), "no")
        assert session.labels().to_dict() == {"a": "cat", "d": "bird"}


def test_no_waits_for_an_example_and_is_not_asked_again() -> None:
    with Session(":memory:", VOTES, kinds=("is",), random_state=0) as session:
        answered = set()
        while (question := session.next()) is not None:
            assert (question.task, question.label) not in answered
            answered.add((question.task, question.label))
            session.answer(question, "no")
        assert len(session.links()) == 0 or session.labels()


def test_two_classes_no_is_the_other(open_session: Open) -> None:
    rows = [("a", "u", "x"), ("b", "u", "y"), ("b", "v", "x")]
    session = open_session(rows, strategy="adaptive")
    session.answer(session.question("b", label="x"), "no")
    assert session.labels().to_dict() == {"b": "y"}


def test_a_mixed_session_asks_what_is_worth_most(mixed: Open, crowd: Crowd, truth: Truth) -> None:
    session = mixed(batch=5, kinds=("same", "label"), costs={"label": 2.0})
    given = answer_truly(session, truth, 25)
    assert {answer.kind for answer in given} == {"same", "label"}
    assert sum(answer.kind == "label" for answer in given) == 1  # two classes: one example
    before = tb.VariationalBayes().fit(crowd.responses)
    after = session.model()
    assert tb.evaluate.accuracy(after.labels_, crowd.gold) > tb.evaluate.accuracy(
        before.labels_, crowd.gold
    )
    assert session.progress().by_kind == {"label": 1, "same": 24}


def test_undo_skip_and_unsure_hold_for_all_kinds(mixed: Open) -> None:
    session = mixed(VOTES)
    for question, says in (
        (session.question("a"), "cat"),
        (session.question("b", label="dog"), "no"),
        (session.question("a", "b"), "different"),
    ):
        answer = session.answer(question, says)
        assert session.undo() == answer
        again = asked(session)
        assert (again.kind, again.tasks, again.label) == (
            question.kind,
            question.tasks,
            question.label,
        )
        session.skip(again)
        assert session.undo() is not None
        session.answer(asked(session), "unsure")
    assert len(session.labels()) == len(session.links()) == 0
    assert session.progress().unsure == 3


def test_what_one_could_not_tell_is_not_asked_again(mixed: Open) -> None:
    session = mixed(kinds=("label",), batch=3)
    unsure = [session.answer(asked(session), "unsure").task for _ in range(10)]
    assert len(set(unsure)) == 10
    session.close()
    again = mixed(kinds=("label",), batch=3)
    assert asked(again).task not in unsure


def test_labels_and_links_contradict_by_their_chain(mixed: Open) -> None:
    session = mixed(VOTES)
    session.answer(session.question("a"), "cat")
    session.answer(session.question("a", "b"), "same")
    answer = session.answer(session.question("b"), "dog")
    assert str(answer.contradiction) == "b = a = cat ≠ dog, yet b = dog"
    assert answer.contradiction is not None
    assert [each.id for each in answer.contradiction.earlier] == [1, 2]
    assert session.contradiction() is not None
    session.keep(answer)
    assert session.contradiction() is None
    session.model()
    assert session.progress().is_soft


def test_one_label_after_another_contradicts(mixed: Open) -> None:
    session = mixed(VOTES)
    session.answer(session.question("a"), "cat")
    answer = session.answer(session.question("a"), "dog")
    assert str(answer.contradiction) == "a = cat ≠ dog, yet a = dog"
    with pytest.warns(InputNote) as notes:
        assert session.labels().to_dict() == {}
    assert codes_of(notes) == ["answered-labels-left-out"]
    assert session.model().labels_.best()["a"] in ("cat", "dog")
    session.undo(answer)
    assert session.labels().to_dict() == {"a": "cat"}


def test_what_follows_is_not_asked(mixed: Open, truth: Truth) -> None:
    session = mixed(batch=4)
    known: dict[Any, Any] = {}
    while (question := session.next()) is not None:
        assert question.kind == "same" or question.task not in known
        session.answer(question, true_answer(question, truth))
        known = session.labels().to_dict()
    assert session.progress().finished == "nothing"
    assert session.model().labels_.best() == truth


def test_several_people_are_weighed(open_session: Open, crowd: Crowd, truth: Truth) -> None:
    options = {"strategy": "adaptive", "kinds": ("label",)}
    ann = open_session(who="ann", **options)
    bob = open_session(who="bob", **options)
    other = {"c0": "c1", "c1": "c0"}
    for task in list(truth)[:20]:
        ann.answer(ann.question(task), truth[task])
    assert not ann.progress().is_soft
    for at, task in enumerate(list(truth)[:20]):
        bob.answer(bob.question(task), other[truth[task]] if at % 3 == 0 else truth[task])
    best = ann.model().labels_.best()
    assert [best[task] for task in list(truth)[:20]].count("") == 0
    rates = ann.desk.error_rates()
    assert rates["bob"] > rates["ann"]
    assert ann.progress().is_soft


def test_a_second_person_may_be_asked_the_same(open_session: Open, truth: Truth) -> None:
    """Once answers may err, a second question on the same task competes by its gain."""
    rows = [("a", "u", "x"), ("b", "u", "y"), ("b", "v", "x"), ("a", "v", "y")]
    options = {"strategy": "adaptive", "kinds": ("label",)}
    ann, bob = open_session(rows, who="ann", **options), open_session(rows, who="bob", **options)
    ann.answer(ann.question("a"), "x")
    bob.answer(bob.question("b"), "y")
    ann.model()
    bob.model()
    assert asked(ann).task == "b"
    assert asked(bob).task == "a"


def test_costs_can_be_learnt_from_the_time_that_answers_take(
    open_session: Open, monkeypatch: pytest.MonkeyPatch, truth: Truth
) -> None:
    clock = [0.0]
    monkeypatch.setattr("tiebreak.ask.session.time.monotonic", lambda: clock[0])
    session = open_session(strategy="adaptive", costs="time", batch=5)
    usual = {"same": 1.0, "label": 1.5, "is": 1.0, "vote": 1.0, "which": 1.5}
    assert session.desk.costs("me") == usual
    while len(session.answers()) < 12:
        question = asked(session)
        clock[0] += 9.0 if question.kind == "label" else 3.0
        session.answer(question, true_answer(question, truth))
    costs = session.desk.costs("me")
    assert costs["same"] == pytest.approx(3.0)
    assert costs["label"] == pytest.approx(4.5)  # timed once only: as much dearer as usual
    assert session.desk.costs("nobody") == usual


def test_it_stops_when_questions_are_worth_too_little(open_session: Open, truth: Truth) -> None:
    least = 0.2
    session = open_session(strategy="adaptive", batch=1, stop_when_worth_less_than=least)
    given = 0
    while (question := session.next()) is not None:
        assert question.gain / question.cost >= least
        session.answer(question, true_answer(question, truth))
        given += 1
    assert 0 < given < 39
    assert session.progress().finished == "worth"


def test_votes_are_asked_of_a_worker(open_session: Open, crowd: Crowd) -> None:
    table = crowd.responses
    name = str(table.workers[0])
    session = open_session(who=name, strategy="adaptive", kinds=("vote",))
    question = asked(session)
    assert question.kind == "vote"
    assert name not in [vote.worker for vote in session.votes(question.task)]
    session.answer(question, "c0")
    model = session.model()
    assert model.responses_.n_responses == table.n_responses + 1
    assert len(session.labels()) == 0  # believed as the others are
    with refused(OptionError, "vote-of-unknown-worker a stranger"):
        open_session(who="a stranger", strategy="adaptive", kinds=("vote",)).next()


def test_people_share_a_desk(crowd: Crowd, truth: Truth, tmp_path: Path) -> None:
    with Desk(tmp_path / "s.db", crowd.responses, random_state=0) as desk:
        ann, bob = desk.session("ann"), desk.session("bob")
        seen = set()
        for _ in range(15):
            for session in (ann, bob):
                question = asked(session)
                assert session.next() is question
                subject = (question.kind, frozenset(question.tasks))
                whose = "" if question.kind == "same" else session.who  # of a second opinion
                assert (*subject, whose) not in seen
                seen.add((*subject, whose))
            for session in (ann, bob):
                question = asked(session)
                session.answer(question, true_answer(question, truth))
        assert {answer.who for answer in desk.answers()} == {"ann", "bob"}
        ann.close()
        assert bob.next() is not None  # the desk stays
        labels = desk.model().labels_.best()
    with Desk(tmp_path / "s.db", crowd.responses) as again:
        assert again.model().labels_.best() == labels


def test_a_reader_of_a_job_without_the_class_is_refused(mixed: Open, tmp_path: Path) -> None:
    session = mixed(VOTES)
    session.answer(session.question("a"), "cat")
    storage = session.desk.storage
    with storage.writing():
        storage.append(storage.since(0)[-1]._replace(label="cow", token="another"))
    session.close()
    with pytest.raises(SessionError) as found:
        mixed(VOTES)
    assert found.value.code == "session-names-unknown"
    assert (found.value.fields["what"], found.value.fields["name"]) == ("class", "cow")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kinds": ("same", "label"), "strategy": "random"}, "draws pairs"),
        ({"kinds": ("best",)}, "got 'best'"),
        ({"costs": "money"}, "'time'"),
        ({"costs": {"label": -1.0}}, "above 0"),
        ({"stop_when_worth_less_than": -1.0}, "0 or more"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        Session(":memory:", VOTES, **options)


def test_classes_that_look_like_answers_are_classes() -> None:
    rows = [("a", "u", "same"), ("b", "u", "unsure"), ("b", "v", "same")]
    with Session(":memory:", rows) as session:
        session.answer(session.question("b"), "unsure")
        assert session.labels().to_dict() == {"b": "unsure"}


def test_numbers_of_classes_stay_numbers() -> None:
    rows = {"task": [7, 7, 8, 8], "worker": ["u", "v", "u", "v"], "label": [0, 1, 1, 1]}
    with Session(":memory:", rows) as session:
        session.answer(session.question(7), "0")
        assert session.labels().to_dict() == {7: 0}


def test_a_question_is_a_value() -> None:
    one = Question("a", "b", gain=float("nan"), token="t")
    assert one == Question("a", "b", gain=float("nan"), token="t")
    assert one.choices == ("same", "different")


def fused_labels(session: Session, responses: Any) -> tuple[Any, Any]:
    """Return the session's model, and one fitted at once to its links and labels."""
    links = session.links()
    gold = session.labels()
    fused = tb.VariationalBayes(gold_weight=1).fit(
        responses,
        links=links if len(links) else None,
        gold=gold if len(gold) else None,
    )
    return session.model(), fused


def assert_equal_but_for_ties(one: Any, other: Any) -> None:
    top = -np.partition(-one.probabilities_, 1, axis=1)[:, :2]
    is_tie = top[:, 0] - top[:, 1] <= 0.01
    assert (is_tie | (one.labels_.label == other.labels_.label)).all()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_fuse_with_links_and_labels_has_the_labels_of_the_session(
    n_classes: int, tmp_path: Path
) -> None:
    made = tb.simulate.crowd(
        120, 8, n_classes, responses_per_task=4, accuracy=(0.5, 0.7), random_state=n_classes
    )
    truth = made.gold.to_dict()
    path = tmp_path / "s.db"
    with Session(path, made.responses, random_state=0, costs={"label": 2.0}) as session:
        answer_truly(session, truth, 60)
        one, other = fused_labels(session, made.responses)
    assert_equal_but_for_ties(one, other)
    with Session(path, made.responses) as again:
        assert np.array_equal(again.model().labels_.label, one.labels_.label)
