"""An answer that cannot be true beside earlier ones: the chain, and what can be done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tiebreak as tb
from tiebreak.ask import Answer, Session
from tiebreak.errors import LinkError, OptionError

TASKS = "abcdefghijklm"
TWO = [(task, worker, "xy"[at % 2]) for at, task in enumerate(TASKS) for worker in "uvw"]
THREE = [(task, worker, "xyz"[at % 3]) for at, task in enumerate(TASKS) for worker in "uvw"]

Open = Callable[..., Session]


@pytest.fixture
def open_it(tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens one session with these votes."""
    opened: list[Session] = []

    def open_one(votes: Any, **options: Any) -> Session:
        opened.append(Session(tmp_path / "s.db", votes, **options))
        return opened[-1]

    yield open_one
    for session in opened:
        session.close()


def say(session: Session, *links: str) -> list[Answer]:
    """Answer links written as a=b or a≠b."""
    return [
        session.answer(
            session.question(link[0], link[2]), "same" if link[1] == "=" else "different"
        )
        for link in links
    ]


CHAINS = {
    "same, then different": (THREE, "a=b b=c c≠a", "c = b = a, yet c ≠ a"),
    "different, then same": (THREE, "a=b b≠c c=d d=a", "d = c ≠ b = a, yet d = a"),
    "the pair itself": (THREE, "a=b b≠a", "b = a, yet b ≠ a"),
    "two classes: twice different is same": (TWO, "a≠b b≠c a≠c", "a ≠ b ≠ c, yet a ≠ c"),
    "two classes: three times different": (TWO, "a≠b b≠c c≠d d=a", "d ≠ c ≠ b ≠ a, yet d = a"),
    "a long one": (
        TWO,
        "a=b b=c c=d d=e e=f f=g g=h h=i i=j j=k k≠a",
        "k = j = i = h … 3 more … = d = c = b = a, yet k ≠ a",
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_the_chain_is_shown_at_once(open_it: Open, name: str) -> None:
    votes, links, chain = CHAINS[name]
    *earlier, last = say(open_it(votes), *links.split())
    assert [answer.contradiction for answer in earlier] == [None] * len(earlier)
    assert last.contradiction is not None
    assert str(last.contradiction) == chain
    assert last.contradiction.answer == last.id
    assert sorted(a.id for a in last.contradiction.earlier) == [a.id for a in earlier]


def test_with_three_classes_twice_different_says_nothing(open_it: Open) -> None:
    answers = say(open_it(THREE), "a≠b", "b≠c", "a≠c", "c=d")
    assert not any(answer.contradiction for answer in answers)


def test_more_that_differ_than_there_are_classes(open_it: Open) -> None:
    session = open_it(THREE)
    *_, last = say(session, "h=i", "a≠b", "b≠c", "a≠c", "a≠d", "b≠d", "d≠c")
    assert last.contradiction is not None
    assert "a, b, c and d must all differ, but there is a choice of 3 classes only" in str(
        last.contradiction
    )
    assert sorted(map(str, last.contradiction.earlier)) == [
        "a ≠ b", "a ≠ c", "a ≠ d", "b ≠ c", "b ≠ d"
    ]  # fmt: skip
    session.undo()
    assert session.contradiction() is None


def test_a_contradiction_left_open_elsewhere_hides_none(open_it: Open) -> None:
    session = open_it(THREE)
    *_, first = say(session, "k=l", "k≠l")
    session.keep(first)
    *_, last = say(session, "a≠b", "b≠c", "a≠c", "a≠d", "b≠d", "d≠c")
    assert last.contradiction is not None
    assert len(last.contradiction.earlier) == 5


def test_known_labels_take_part(open_it: Open) -> None:
    gold = {"a": "x", "b": "y", "c": "z", "d": "x"}
    session = open_it(THREE, gold=gold)
    one, two, three = say(session, "e≠a", "e≠b", "e≠c")
    assert (one.contradiction, two.contradiction) == (None, None)
    assert three.contradiction is not None
    assert "no class for e" in str(three.contradiction)
    assert [a.id for a in three.contradiction.earlier] == [one.id, two.id]
    (joined,) = say(session, "f=a")
    assert joined.contradiction is None
    (wrong,) = say(session, "f≠d")
    assert str(wrong.contradiction) == "f = a = x = d, yet f ≠ d"


def test_given_links_take_part_but_cannot_be_undone(open_it: Open) -> None:
    links = tb.Links.from_pairs(must=[("a", "b")])
    first, second = say(open_it(TWO, links=links), "b=c", "a≠c")
    assert first.contradiction is None
    assert str(second.contradiction) == "a = b = c, yet a ≠ c"
    assert second.contradiction is not None
    assert [a.id for a in second.contradiction.earlier] == [first.id]


def test_links_with_weights_do_not_contradict(open_it: Open) -> None:
    table = {"left": ["a"], "right": ["b"], "link": ["must"], "weight": [2.0]}
    (answer,) = say(open_it(TWO, links=table), "a≠b")
    assert answer.contradiction is None


def test_undoing_this_one_or_an_earlier_one_settles_it(open_it: Open) -> None:
    session = open_it(TWO)
    for undone in (2, 1):
        answers = say(session, "a=b", "b=c", "a≠c")
        assert session.contradiction() == answers[2].contradiction
        session.undo(answers[undone])
        assert session.contradiction() is None
        assert session.model().link_error is None  # trusted again
        while session.undo():
            pass


def test_keeping_both_makes_links_fallible(open_it: Open) -> None:
    session = open_it(TWO)
    *_, last = say(session, "a=b", "b=c", "a≠c")
    session.keep(last)
    session.keep(last)  # once is enough, twice does no harm
    assert session.contradiction() is None
    assert session.model().link_error == "learn"
    assert session.progress().is_soft
    assert len(session.links()) == 3


def test_a_contradiction_left_open_is_shown_again_and_does_no_harm(open_it: Open) -> None:
    session = open_it(TWO)
    *_, last = say(session, "a=b", "b=c", "a≠c")
    session.close()  # or killed before a choice was made
    again = open_it(TWO)
    assert again.contradiction() == last.contradiction
    assert again.model().link_error == "learn"
    assert again.next() is not None


def test_what_another_says_meanwhile_can_contradict(open_it: Open) -> None:
    ann, bob = open_it(TWO, who="ann"), open_it(TWO, who="bob")
    question = bob.question("a", "c")
    say(ann, "a=b", "b=c")
    answer = bob.answer(question, "different")
    assert answer.contradiction is not None
    assert [a.who for a in answer.contradiction.earlier] == ["ann", "ann"]


def test_nothing_can_be_kept_that_is_not_there(open_it: Open) -> None:
    with pytest.raises(OptionError) as found:
        open_it(TWO).keep(3)
    assert (found.value.code, found.value.fields) == ("answer-not-there", {"id": 3, "what": "keep"})


def test_given_links_that_contradict_each_other_are_refused(open_it: Open, tmp_path: Path) -> None:
    links = tb.Links.from_pairs(must=[("a", "b")], cannot=[("a", "b")])
    with pytest.raises(LinkError):
        open_it(TWO, links=links)
    assert list(tmp_path.iterdir()) == []
    assert open_it(TWO, links=links, link_error=0.05).next() is not None


def test_links_that_contradict_name_the_options_of_a_session(open_it: Open) -> None:
    apart = tb.Links.from_rows([("a", "b", "must"), ("b", "c", "must"), ("a", "c", "cannot")])
    for gold in (None, {"a": "x", "b": "y"}):
        with pytest.raises(LinkError) as found:
            open_it(TWO, links=apart, gold=gold)
        assert "link_error=0.02" in str(found.value)
        assert "ExactLinkOptions" not in str(found.value)
        assert "on_contradiction" not in str(found.value)  # a session has no such option
    assert open_it(TWO, links=apart, link_error=0.02).next() is not None
