"""The log: every answer, skip and undo is an event, and the state is the fold of all events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Says = Literal["same", "different", "unsure"]
Kind = Literal["same", "different", "unsure", "skip", "undo", "keep"]
Pair = tuple[str, str]  # ids of two tasks as text, the smaller first

ANSWERS: tuple[Says, ...] = ("same", "different", "unsure")
KINDS: tuple[Kind, ...] = (*ANSWERS, "skip", "undo", "keep")


class Event(NamedTuple):
    """One thing that somebody did; nothing that is recorded ever changes.

    `left` and `right` name the tasks of an answer or a skip. `about` is the id of the event that
    is undone, or of the answer that is kept although it contradicts others. `run` tells apart
    the processes that ask. An id of 0 means: not recorded yet.
    """

    id: int
    token: str
    run: str
    at: str
    who: str
    kind: Kind
    left: str | None = None
    right: str | None = None
    about: int | None = None

    @property
    def is_link(self) -> bool:
        """Whether this says that two tasks are, or are not, of the same class."""
        return self.kind in ("same", "different")

    @property
    def pair(self) -> Pair:
        """The two tasks, in one order."""
        return pair_of(self.left or "", self.right or "")


class FitEvent(NamedTuple):
    """One fit that was made: enough to make it again, from the events up to `seen`.

    `start` is the id of the fit that it went on from (a warm start), None where it was cold.
    `link_error` is how links were read, `tol` the tolerance.
    """

    id: int
    run: str
    at: str
    seen: int
    start: int | None
    link_error: float | str | None
    tol: float


class Snapshot(NamedTuple):
    """The links that the events up to `seen` amount to: what one fit knows."""

    seen: int
    links: tuple[Event, ...]

    @property
    def ids(self) -> frozenset[int]:
        """The ids of the links."""
        return frozenset(event.id for event in self.links)


def pair_of(left: str, right: str) -> Pair:
    """Return two tasks in one order, whichever was shown first.

    >>> pair_of("b", "a")
    ('a', 'b')
    """
    return (left, right) if left <= right else (right, left)


@dataclass
class Log:
    """What the events up to `last` amount to.

    >>> log = Log()
    >>> log.add(Event(1, "t", "r", "2026-11-15", "ann", "same", "a", "b"))
    >>> log.add(Event(2, "u", "r", "2026-11-15", "ann", "undo", about=1))
    >>> log.last, log.answers
    (2, {})
    """

    last: int = 0
    answers: dict[int, Event] = field(default_factory=dict)  # in force, by id, in their order
    skips: dict[int, Event] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)  # answers that stand although they contradict

    def add(self, event: Event) -> None:
        """Take in the next event."""
        self.last = event.id
        if event.kind == "skip":
            self.skips[event.id] = event
        elif event.kind == "undo" and event.about is not None:
            self.answers.pop(event.about, None)
            self.skips.pop(event.about, None)
        elif event.kind == "keep" and event.about is not None:
            self.kept.add(event.about)
        else:
            self.answers[event.id] = event

    def links(self) -> Iterator[Event]:
        """Return the answers that are links, in their order."""
        return (event for event in self.answers.values() if event.is_link)

    def snapshot(self) -> Snapshot:
        """Return what a fit made now knows."""
        return Snapshot(self.last, tuple(self.links()))

    def linked(self) -> set[Pair]:
        """Return the pairs that are links, whoever gave them."""
        return {event.pair for event in self.links()}

    def unsure_to(self, who: str) -> set[Pair]:
        """Return the pairs of which this person could not tell."""
        own = (event for event in self.answers.values() if event.who == who)
        return {event.pair for event in own if event.kind == "unsure"}

    def skipped_in(self, run: str) -> list[Event]:
        """Return the last skip of each pair that a run skipped, longest ago first."""
        last = {event.pair: event for event in self.skips.values() if event.run == run}
        return sorted(last.values())

    def last_of(self, who: str, run: str) -> Event | None:
        """Return what this person would undo next: their last answer, or skip in this run."""
        own = [event.id for event in self.answers.values() if event.who == who]
        own += [event.id for event in self.skips.values() if (event.who, event.run) == (who, run)]
        return self.get(max(own)) if own else None

    def get(self, id: int) -> Event | None:
        """Return an answer or skip that is in force."""
        return self.answers.get(id) or self.skips.get(id)
