"""The record: what has been said so far, by whoever writes to the file."""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from tiebreak.ask.contradictions import contradiction, given_chains
from tiebreak.ask.job import Job
from tiebreak.ask.log import Event, FitEvent, Kind, Log, Pair, Snapshot, pair_of
from tiebreak.ask.results import Contradiction, Question
from tiebreak.ask.storage import Storage
from tiebreak.errors import OptionError, SessionError
from tiebreak.link_graph import Chains


class Record:
    """The file of a session, and what its events amount to.

    Whatever is returned as recorded is on the disk; memory never runs ahead of it.
    """

    def __init__(self, path: str | os.PathLike[str], job: Job, who: str, lease: float) -> None:
        self.who = who
        self.run = secrets.token_hex(8)
        self.lease = lease
        self._job = job
        self._storage = Storage(path, job.marks)
        self.log = Log()
        self._chains: Chains | None = None
        self.catch_up()

    @property
    def chains(self) -> Chains:
        """What follows from links and answers."""
        if self._chains is None:
            self._chains = given_chains(self._job)
            for event in self.log.links():
                self._add_link(self._chains, event)
        return self._chains

    def catch_up(self) -> None:
        """Take in what was recorded since, here or in another process."""
        for event in self._storage.since(self.log.last):
            self._take(event)

    def reserve(self, questions: Iterable[Question], *, may_follow: bool) -> Question | None:
        """Return the first question that is still open, kept from others for a while.

        `may_follow` allows those whose answer follows from others, as a check on these.
        """
        with self._writing():
            barred = self.log.linked() | self.log.unsure_to(self.who)
            barred |= self._storage.leased(self.run)
            for question in questions:
                pair = self.pair(question)
                if pair not in barred and (may_follow or self.implied(question) is None):
                    self._storage.lease(pair, self.run, self.lease)
                    return question
        return None

    def declined(self) -> set[Pair]:
        """Return pairs that links leave open, but that are not to be asked here and now.

        This person could not tell or skipped them, or others are being asked.
        """
        skipped = {event.pair for event in self.log.skipped_in(self.run)}
        return self.log.unsure_to(self.who) | self._storage.leased(self.run) | skipped

    def situation(self) -> tuple[int, set[Pair]]:
        """Return what the choice of questions depends on, to be compared with a later one."""
        self.catch_up()
        return self.log.last, self.declined()

    def answer(self, question: Question, says: Kind) -> tuple[Event, Contradiction | None]:
        """Record an answer, once; say what it contradicts."""
        event = self._event(says, question=question)
        with self._writing():
            known = self._recorded(event)
            found = None if known or not event.is_link else self._contradicted(event)
            if known is None:
                event = self._storage.append(event)
            self._storage.release(self.run)
        if known is not None:
            return known, None
        self._take(event)
        return event, found and Contradiction(event.id, found.chain, found.earlier)

    def skip(self, question: Question) -> None:
        """Record that a question was put off."""
        with self._writing():
            event = self._storage.append(self._event("skip", question=question))
            self._storage.release(self.run)
        self._take(event)

    def undo(self, id: int | None) -> Event | None:
        """Take back an answer or skip, the last own one where no id is given."""
        with self._writing():
            event = self.log.last_of(self.who, self.run) if id is None else self.log.get(id)
            if event is None:
                if id is not None:
                    raise OptionError(
                        f"There is no answer {id} to undo: it was undone, or never was."
                    )
                return None
            undo = self._storage.append(self._event("undo", about=event.id))
            self._storage.release(self.run)
        self._take(undo)
        return event

    def keep(self, id: int) -> None:
        """Record that an answer stands although it contradicts others."""
        with self._writing():
            if id not in self.log.answers:
                raise OptionError(f"There is no answer {id} to keep: it was undone, or never was.")
            if id in self.log.kept:
                return
            event = self._storage.append(self._event("keep", about=id))
        self._take(event)

    def pending(self) -> Contradiction | None:
        """Return the contradiction that this person's last link is in, unless it is kept."""
        own = [event for event in self.log.links() if event.who == self.who]
        if not own or own[-1].id in self.log.kept:
            return None
        return self._contradicted(own[-1])

    def add_fit(
        self, seen: int, *, start: int | None, link_error: float | str | None, tol: float
    ) -> FitEvent:
        """Record a fit, so that the next run can make it again."""
        fit = FitEvent(0, self.run, _now(), seen, start, link_error, tol)
        with self._storage.writing():
            return self._storage.append_fit(fit)

    def fits(self) -> list[FitEvent]:
        """Return the last fit that was made, and those it came from, the cold one first."""
        return self._storage.fits(self.log.last)

    def not_fitted(self) -> int:
        """Return the last event from before fits were recorded; 0: they always were."""
        return self._storage.not_fitted()

    def snapshots(self, seen: Iterable[int]) -> Iterator[Snapshot]:
        """Return what fits knew that had seen the events up to these, in rising order."""
        log = Log()
        events = deque(self._storage.since(0))
        for last in seen:
            while events and events[0].id <= last:
                log.add(events.popleft())
            yield Snapshot(last, tuple(log.links()))

    def implied(self, question: Question) -> bool | None:
        """Return whether links and answers settle a pair already, and how."""
        left = self._job.code_of(question.left)
        right = self._job.code_of(question.right)
        return self.chains.implied(left, right)

    def pair(self, question: Question) -> Pair:
        """Return the two tasks as the file has them, in one order."""
        return pair_of(self._key(question.left), self._key(question.right))

    def close(self) -> None:
        """Give up what was reserved, and close the file."""
        try:
            with self._writing():
                self._storage.release(self.run)
        except SessionError:
            pass  # a full disk, for instance: what was reserved falls free in a while by itself
        self._storage.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the right to write, knowing all that was written before."""
        with self._storage.writing():
            self.catch_up()
            yield

    def _recorded(self, event: Event) -> Event | None:
        """Return the same answer if it is recorded: a question sent twice, or asked twice."""
        id = self._storage.with_token(event.token)
        if id is not None:
            found = self.log.answers.get(id)
            if found is None or found.kind != event.kind:
                raise OptionError("This question was answered before. Undo that, and ask again.")
            return found
        twins = (each for each in self.log.answers.values() if each.pair == event.pair)
        return next(
            (each for each in twins if (each.who, each.kind) == (event.who, event.kind)), None
        )

    def _contradicted(self, event: Event) -> Contradiction | None:
        return contradiction(self._job, self.chains, self.log, event)

    def _event(
        self, kind: Kind, *, question: Question | None = None, about: int | None = None
    ) -> Event:
        at = _now()
        if question is None:
            return Event(0, secrets.token_hex(16), self.run, at, self.who, kind, about=about)
        # A skipped question may be answered later: only its answer bears its token.
        token = secrets.token_hex(16) if kind == "skip" else question.token
        left = self._key(question.left)
        right = self._key(question.right)
        return Event(0, token, self.run, at, self.who, kind, left, right)

    def _take(self, event: Event) -> None:
        for task in (event.left, event.right):
            if task is not None and task not in self._job.code:
                raise SessionError(
                    f"{self._storage.path} holds an answer about task {task!r}, which the "
                    "responses do not have. Pass the responses that it was made for."
                )
        self.log.add(event)
        if event.kind == "undo":
            self._chains = None  # a graph does not shrink: made anew when needed
        elif event.is_link and self._chains is not None:
            self._add_link(self._chains, event)

    def _add_link(self, chains: Chains, event: Event) -> None:
        left = self._job.code[event.left or ""]
        right = self._job.code[event.right or ""]
        chains.add(left, right, must=event.kind == "same", origin=event.id)

    def _key(self, task: Hashable) -> str:
        return self._job.key[self._job.code_of(task)]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
