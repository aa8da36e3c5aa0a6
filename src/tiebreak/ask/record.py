"""The record: what has been said so far, by whoever writes to the file."""

from __future__ import annotations

import os
import secrets
import statistics
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from tiebreak.ask.contradictions import AnswerChains, contradiction
from tiebreak.ask.job import Job
from tiebreak.ask.log import Event, FitEvent, Kind, Log, Snapshot, Subject
from tiebreak.ask.results import Contradiction, Question
from tiebreak.ask.storage import Storage
from tiebreak.errors import OptionError, SessionError

LEAST_TIMED = 5  # answers of a kind before their median is trusted


class Person(NamedTuple):
    """Who answers, and in which sitting: `run` tells apart windows of one person."""

    who: str
    run: str

    @classmethod
    def with_new_run(cls, who: str) -> Person:
        """Begin a sitting."""
        return cls(who, secrets.token_hex(8))


class Said(NamedTuple):
    """What is to be recorded of a question: how it was answered."""

    kind: Kind
    label: str | None = None  # the class that was given, as the file has it
    seconds: float | None = None


class Record:
    """The file of a session, and what its events amount to.

    Whatever is returned as recorded is on the disk; memory never runs ahead of it. One record
    serves all who sit at it.
    """

    def __init__(self, path: str | os.PathLike[str], job: Job, lease: float) -> None:
        self.run = secrets.token_hex(8)  # whose fits are recorded
        self.lease = lease
        self._job = job
        self.storage = Storage(path, job.marks)
        self.log = Log()
        self._chains: AnswerChains | None = None
        try:
            self.catch_up()
        except BaseException:
            self.close()
            raise

    @property
    def chains(self) -> AnswerChains:
        """What follows from links and answers."""
        if self._chains is None:
            self._chains = AnswerChains(self._job)
            for event in self.log.evidence():
                if not event.is_vote:
                    self._chains.add_answer(event)
        return self._chains

    def catch_up(self) -> None:
        """Take in what was recorded since, here or in another process."""
        for event in self.storage.since(self.log.last):
            self._take(event)

    def reserve(
        self, questions: Iterable[Question], by: Person, *, may_follow: bool
    ) -> Question | None:
        """Return the first question that is still open, kept from others for a while.

        `may_follow` allows those whose answer follows from others, or was given by somebody else,
        as a check on these; two tasks are never asked about twice.
        """
        with self.storage.leasing():
            self.catch_up()
            barred = self.log.answered(by.who if may_follow else None) | self.log.unsure_to(by.who)
            barred |= {subject for subject in self.log.answered() if subject[0] == "same"}
            barred |= self.storage.leased(by.run)
            for question in questions:
                subject = self.subject(question)
                if subject not in barred and (may_follow or not self.follows(question)):
                    self.storage.lease(subject, by.run, self.lease)
                    return question
        return None

    def declined(self, by: Person) -> set[Subject]:
        """Return what is open, but not to be asked here and now.

        This person could not tell or skipped it, or others are being asked.
        """
        skipped = {event.subject for event in self.log.skipped_in(by.run)}
        return self.log.unsure_to(by.who) | self.storage.leased(by.run) | skipped

    def situation(self, by: Person) -> tuple[int, set[Subject]]:
        """Return what the choice of questions depends on, to be compared with a later one."""
        self.catch_up()
        return self.log.last, self.declined(by)

    def answer(
        self, question: Question, said: Said, by: Person
    ) -> tuple[Event, Contradiction | None]:
        """Record an answer, once; say what it contradicts."""
        event = self._event(said.kind, by, question=question, said=said)
        with self._writing():
            known = self._recorded(event)
            found = None if known or not event.is_evidence else self._contradicted(event)
            if known is None:
                event = self.storage.append(event)
            self.storage.release(by.run)
        if known is not None:
            return known, None
        self._take(event)
        return event, found and Contradiction(event.id, found.chain, found.earlier)

    def skip(self, question: Question, by: Person) -> None:
        """Record that a question was put off."""
        with self._writing():
            event = self.storage.append(self._event("skip", by, question=question))
            self.storage.release(by.run)
        self._take(event)

    def undo(self, id: int | None, by: Person) -> Event | None:
        """Take back an answer or skip, the last own one where no id is given."""
        with self._writing():
            event = self.log.last_of(*by) if id is None else self.log.get(id)
            if event is None:
                if id is not None:
                    raise OptionError(
                        f"There is no answer {id} to undo: it was undone, or never was."
                    )
                return None
            undo = self.storage.append(self._event("undo", by, about=event.id))
            self.storage.release(by.run)
        self._take(undo)
        return event

    def keep(self, id: int, by: Person) -> None:
        """Record that an answer stands although it contradicts others."""
        with self._writing():
            if id not in self.log.answers:
                raise OptionError(f"There is no answer {id} to keep: it was undone, or never was.")
            if id in self.log.kept:
                return
            event = self.storage.append(self._event("keep", by, about=id))
        self._take(event)

    def pending(self, by: Person) -> Contradiction | None:
        """Return the contradiction that this person's last answer is in, unless it is kept."""
        own = [event for event in self.log.evidence() if event.who == by.who]
        if not own or own[-1].id in self.log.kept:
            return None
        return self._contradicted(own[-1])

    def median_seconds(self, who: str) -> dict[str, float]:
        """Return how long this person looks at questions of each kind, where that is known."""
        times: dict[str, list[float]] = {}
        for event in self.log.answers.values():
            if event.who == who and event.seconds is not None:
                times.setdefault(event.question or "same", []).append(event.seconds)
        enough = {kind: each for kind, each in times.items() if len(each) >= LEAST_TIMED}
        return {kind: statistics.median(each) for kind, each in enough.items()}

    def add_fit(
        self, seen: int, *, start: int | None, link_error: float | str | None, tol: float
    ) -> FitEvent:
        """Record a fit, so that the next run can make it again."""
        fit = FitEvent(0, self.run, _now(), seen, start, link_error, tol)
        with self.storage.writing():
            return self.storage.append_fit(fit)

    def fits(self) -> list[FitEvent]:
        """Return the last fit that was made, and those it came from, the cold one first."""
        return self.storage.fits(self.log.last)

    def snapshots(self, seen: Iterable[int]) -> Iterator[Snapshot]:
        """Return what fits knew that had seen the events up to these, in rising order."""
        log = Log()
        events = deque(self.storage.since(0))
        for last in seen:
            while events and events[0].id <= last:
                log.add(events.popleft())
            yield Snapshot(last, tuple(log.evidence()))

    def follows(self, question: Question) -> bool:
        """Say whether links and answers settle a question already."""
        left = self._job.code_of(question.left)
        if question.kind == "same":
            return self.chains.implied(left, self._job.code_of(question.right)) is not None
        if question.kind == "is":
            label = self._job.code_of_class(question.label)
            return self.chains.implied_is(left, label) is not None
        return self.chains.implies_label(left)

    def subject(self, question: Question) -> Subject:
        """Return what a question is about, as the file has it."""
        return self._job.subject(question.kind, question.left, question.right, question.label)

    def release(self, by: Person) -> None:
        """Give up what was reserved."""
        try:
            with self.storage.leasing():
                self.storage.release(by.run)
        except SessionError:
            pass  # a full disk, for instance: what was reserved falls free in a while by itself

    def close(self) -> None:
        """Close the file."""
        self.storage.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the right to write, knowing all that was written before."""
        with self.storage.writing():
            self.catch_up()
            yield

    def _recorded(self, event: Event) -> Event | None:
        """Return the same answer if it is recorded: a question sent twice, or asked twice."""
        said = (event.kind, event.label)
        id = self.storage.with_token(event.token)
        if id is not None:
            found = self.log.answers.get(id)
            if found is None or (found.kind, found.label) != said:
                raise OptionError("This question was answered before. Undo that, and ask again.")
            return found
        if event.is_evidence and not self.log.has_answered(event.subject, event.who):
            return None
        twins = (
            each
            for each in self.log.answers.values()
            if each.subject == event.subject and each.is_by_hand == event.is_by_hand
        )
        return next(
            (each for each in twins if (each.who, each.kind, each.label) == (event.who, *said)),
            None,
        )

    def _contradicted(self, event: Event) -> Contradiction | None:
        return contradiction(self._job, self.chains, self.log, event)

    def _event(
        self,
        kind: Kind,
        by: Person,
        *,
        question: Question | None = None,
        said: Said | None = None,
        about: int | None = None,
    ) -> Event:
        at = _now()
        if question is None:
            return Event(0, secrets.token_hex(16), by.run, at, by.who, kind, about=about)
        # A skipped question may be answered later: only its answer bears its token.
        token = secrets.token_hex(16) if kind == "skip" else question.token
        label = said.label if said is not None else None
        if question.kind == "is":
            label = self._job.class_key[self._job.code_of_class(question.label)]
        return Event(
            0,
            token,
            by.run,
            at,
            by.who,
            kind,
            self._job.key_of(question.left),
            None if question.right is None else self._job.key_of(question.right),
            question=question.kind,
            label=label,
            seconds=None if said is None else said.seconds,
        )

    def _take(self, event: Event) -> None:
        self._refuse_unknown(event)
        self.log.add(event)
        if event.kind == "undo":
            self._chains = None  # a graph does not shrink: made anew when needed
        elif event.is_evidence and not event.is_vote and self._chains is not None:
            self._chains.add_answer(event)

    def _refuse_unknown(self, event: Event) -> None:
        """Refuse an answer about what the responses do not have: the file is of another job."""
        for task in (event.left, event.right):
            if task is not None and task not in self._job.code:
                raise SessionError(
                    f"{self.storage.path} holds an answer about task {task!r}, which the "
                    "responses do not have. Pass the responses that it was made for."
                )
        if event.label is not None and event.label not in self._job.class_code:
            raise SessionError(
                f"{self.storage.path} holds an answer that names class {event.label!r}, which the "
                "responses do not have. Pass the responses that it was made for."
            )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
