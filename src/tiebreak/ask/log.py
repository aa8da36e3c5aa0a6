"""The log: every answer, skip and undo is an event; what holds now is the fold of all events."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

QuestionName = Literal["same", "label", "is", "vote", "which"]
OfEvidence = Literal["same", "different", "label", "yes", "no", "which", "none"]
Kind = OfEvidence | Literal["unsure", "skip", "undo", "keep"]
Subject = tuple[str, str, str]  # what a question is about: its kind, a task, and a task or class

QUESTIONS: tuple[QuestionName, ...] = ("same", "label", "is", "vote", "which")
LINKS: tuple[Kind, ...] = ("same", "different")
EVIDENCE: tuple[Kind, ...] = (*LINKS, "label", "yes", "no", "which", "none")  # about classes
UNSURE: Literal["unsure"] = "unsure"
KINDS: tuple[Kind, ...] = (*EVIDENCE, UNSURE, "skip", "undo", "keep")
BY_HAND = "hand-"  # begins the run of somebody who sets labels as known
LEAST_TIMED = 5  # answers of a kind before their median time is trusted


class Event(NamedTuple):
    """One thing that somebody did; nothing that is recorded ever changes.

    `left` and `right` name the tasks of an answer or a skip, `question` its kind, `label` the class
    that was given, or asked about by "is" or "which". Of "which" `left` is the task that was named
    ("none": the first one), and `right` has all that were shown, as JSON. `about` is the id of the
    event that is undone, or of the answer that is kept although it contradicts others. `run` tells
    apart the sessions that ask. `seconds` says how long the question was looked at. An id of 0
    means: not recorded yet.
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
    question: QuestionName | None = None
    label: str | None = None
    seconds: float | None = None

    @property
    def is_link(self) -> bool:
        """Whether this says that two tasks are, or are not, of the same class."""
        return self.kind in LINKS

    @property
    def is_evidence(self) -> bool:
        """Whether this says something about classes: a link, a label, a yes or no."""
        return self.kind in EVIDENCE

    @property
    def is_vote(self) -> bool:
        """Whether this is one more response of a worker: it is believed as the others are."""
        return self.question == "vote"

    @property
    def is_by_hand(self) -> bool:
        """Whether somebody set this label as known: it is believed whatever others say."""
        return self.run.startswith(BY_HAND)

    @property
    def members(self) -> tuple[str | None, ...]:
        """The tasks that "which" showed; None at the end: it may be none of them."""
        return tuple(json.loads(self.right or "[]")) if self.question == "which" else ()

    @property
    def subject(self) -> Subject:
        """What was asked: two tasks in one order, a task, or a task and a class."""
        return subject_of(self.question or "same", self.left or "", self.right, self.label)


class Snapshot(NamedTuple):
    """The answers that the events up to `seen` amount to: what one fit knows."""

    seen: int
    answers: tuple[Event, ...]

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(event.id for event in self.answers)


def subject_of(question: str, left: str, right: str | None, label: str | None) -> Subject:
    """Return what a question is about, two tasks in one order whichever was shown first.

    >>> subject_of("same", "b", "a", None), subject_of("is", "b", None, "cat")
    (('same', 'a', 'b'), ('is', 'b', 'cat'))
    """
    if question == "same":
        first, second = sorted((left, right or ""))
        return (question, first, second)
    if question == "which":
        return (question, right or "", label or "")
    return (question, left, (label or "") if question == "is" else "")


def spelled_out(events: Iterable[Event]) -> Iterator[Event]:
    """Yield what answers to "which" say of each task: one is of the class, the others are not."""
    for event in events:
        if event.question != "which" or not event.is_evidence:
            yield event
            continue
        for task in event.members:
            kind: Kind = "yes" if event.kind == "which" and task == event.left else "no"
            if task is not None:
                yield event._replace(kind=kind, left=task, right=None, question="is")


def timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
    ids: dict[str, int] = field(default_factory=dict, repr=False)  # of all events, by token
    answers: dict[int, Event] = field(default_factory=dict)  # in force, by id, in their order
    skips: dict[int, Event] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)  # answers that stand although they contradict
    # Who answered each subject, once for each answer: many people look there often.
    _people: dict[Subject, list[str]] = field(
        default_factory=lambda: defaultdict(list), repr=False, compare=False
    )

    def add(self, event: Event) -> None:
        self.last = self.ids[event.token] = event.id
        if event.kind == "skip":
            self.skips[event.id] = event
        elif event.kind == "keep" and event.about is not None:
            self.kept.add(event.about)
        elif event.kind == "undo" and event.about is not None:
            self.skips.pop(event.about, None)
            undone = self.answers.pop(event.about, None)
            if undone is not None and undone.is_evidence:
                self._people[undone.subject].remove(undone.who)
        else:
            self.answers[event.id] = event
            if event.is_evidence:
                self._people[event.subject].append(event.who)

    def get(self, id: int) -> Event | None:
        return self.answers.get(id) or self.skips.get(id)

    def evidence(self) -> Iterator[Event]:
        """Return the answers that say something about classes, in their order."""
        return (event for event in self.answers.values() if event.is_evidence)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.last, tuple(self.evidence()))

    def answered(self, who: str | None = None) -> set[Subject]:
        """Return what was answered by this person, or by anyone."""
        return {
            subject for subject, by in self._people.items() if (who in by if who else len(by) > 0)
        }

    def has_answered(self, subject: Subject, who: str) -> bool:
        return subject in self._people and who in self._people[subject]

    def unsure_to(self, who: str) -> set[Subject]:
        own = (event for event in self.answers.values() if event.who == who)
        return {event.subject for event in own if event.kind == UNSURE}

    def skipped_in(self, run: str) -> list[Event]:
        """Return the last skip of each question that a run skipped, longest ago first."""
        last = {event.subject: event for event in self.skips.values() if event.run == run}
        return sorted(last.values(), key=lambda event: event.id)

    def last_of(self, who: str, run: str) -> Event | None:
        """Return what this person would undo next: their last answer, or skip in this run."""
        own = [event.id for event in self.answers.values() if event.who == who]
        own += [event.id for event in self.skips.values() if (event.who, event.run) == (who, run)]
        return self.get(max(own)) if own else None

    def median_seconds(self, who: str) -> dict[str, float]:
        """Return how long this person looks at questions of each kind, where that is known."""
        times: dict[str, list[float]] = defaultdict(list)
        for event in self.answers.values():
            if event.who == who and event.seconds is not None:
                times[event.question or "same"].append(event.seconds)
        return {k: statistics.median(each) for k, each in times.items() if len(each) >= LEAST_TIMED}
