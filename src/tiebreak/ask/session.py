"""A session: the next question, the answers so far, and what they did to the labels."""

from __future__ import annotations

import os
import secrets
import time
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self, cast

from tiebreak.arguments import NAME, checks, of_type, optional
from tiebreak.ask.contradictions import as_answer, contradiction
from tiebreak.ask.desk import Desk, in_turn
from tiebreak.ask.log import UNSURE, Event, Kind, Subject, timestamp
from tiebreak.ask.results import NONE, Answer, Contradiction, Progress, Question, Vote
from tiebreak.data.gold import Gold
from tiebreak.errors import OptionError, SessionError
from tiebreak.estimators.base import Estimator
from tiebreak.links import Links
from tiebreak.selection.questions import Offer

AN_ANSWER = of_type("an Answer, or the number of one", Answer, int)
LONGEST_LOOK = 600.0  # seconds; who takes longer was away


class Session:
    """Ask people which tasks are of the same class, or which class it is, and keep every answer.

    Answers go into one SQLite file; each is on the disk before `answer` returns. A session that
    was left, or killed, goes on when it is opened again with the same responses, with the labels
    that it had. Several people, threads and processes may work on one file.

    Parameters
    ----------
    path
        The file of the session; made where there is none.
    responses, links, gold
        What `VariationalBayes.fit` takes. Tasks and classes must be those the file was made for;
        there may be more responses, links and known labels than last time.
    who
        The name of the person who answers. Where more than one person does, answers count as
        fallible.
    texts, class_texts
        What tasks look like, and what classes mean: a mapping of task (class) to text, or a table.
    sequences
        Which tokens follow each other, where responses are tags of spans: see `Desk`.
    constraints
        What labels must keep: see `Desk`.
    wording
        In what sense two tasks are the same, such as "the same intent".
    among
        Tasks that may be asked about; all, where not given.
    kinds, costs
        Which kinds of questions may be asked, and what each costs: see `selection.questions`.
        ("same", "label") where not given. costs="time": as long as each kind takes this person.
    strategy, random_state
        "adaptive", or how pairs are drawn: see `tiebreak.selection.pairs`.
    budget, target
        When to stop: after so many answers by all people in all runs, "unsure" among them, or
        when this share of the labels is expected to be right, but not before 20 links or known
        labels are there to check the crowd against.
    stop_when_worth_less_than
        Stop when no question is expected to correct so many labels for one unit of cost.
    batch
        After how many answers the model is fitted again.
    link_error
        How often answers are wrong: see `VariationalBayes`. None: never, until several people
        answer or an answer that contradicts others is kept.
    lease
        For how many seconds a question that is shown is kept from others.

    Examples
    --------
    >>> votes = [("a", "ann", "cat"), ("a", "bob", "cat"), ("b", "ann", "cat"), ("b", "bob", "dog")]
    >>> with Session(":memory:", votes) as session:
    ...     answer = session.answer(session.question("a", "b"), "same")
    ...     print(answer, session.links(), session.model().labels_.best())
    a = b Links(1 must, 0 cannot, 2 tasks) {'a': 'cat', 'b': 'cat'}
    """

    def __init__(
        self, path: str | os.PathLike[str], responses: Any, *, who: str = "me", **options: Any
    ) -> None:
        _require_name(who)
        self._sit(Desk(path, responses, **options), who, None, owns_desk=True)

    @classmethod
    def at(cls, desk: Desk, who: str, run: str | None = None) -> Self:
        """Return a session at a desk that others share; closing it leaves the desk open.

        `run` names a session that goes on.
        """
        _require_name(who)
        session = cls.__new__(cls)
        session._sit(desk, who, run, owns_desk=False)
        return session

    def _sit(self, desk: Desk, who: str, run: str | None, *, owns_desk: bool) -> None:
        self.desk = desk  # what is shared with others: the job, the file, the fits
        self.who = who
        self.lock = desk.lock
        self._job = desk.job
        self._run = secrets.token_hex(8) if run is None else run
        self._owns_desk = owns_desk
        self._queue: deque[Question] = deque()  # put back, or to be asked again
        self._batch: list[Question] = []  # chosen without a worker
        self._open: Question | None = None
        self._shown_at = time.monotonic()
        self._nothing_left = False
        self._is_worth_too_little = False

    @in_turn
    def next(self) -> Question | None:
        """Return the next question, the same one until it is answered; None where it ends.

        `progress().finished` says why it ended.
        """
        looked = time.monotonic() - self._shown_at
        if self._open is not None and self.desk.background and looked > self.desk.lease:
            self._queue.appendleft(self._open)  # it is not kept from others any more
            self._open = None
        if self._open is None:
            self.desk.catch_up()
            self._open = self._choose()
            self._shown_at = time.monotonic()
        return self._open

    @in_turn
    def is_waiting(self) -> bool:
        """Return whether there may be a next question once the worker has looked again."""
        background = self.desk.background
        is_out = self._open is None and self._nothing_left
        return is_out and background is not None and not background.knows_all()

    def question(
        self,
        task: Hashable,
        other: Hashable | None = None,
        *,
        label: Hashable | None = None,
        members: Sequence[Hashable | None] = (),
    ) -> Question:
        """Make a question of the caller's choice.

        `question("a", "b")`: are they the same? `question("a")`: which class is it?
        `question("a", label="cat")`: is it a cat? With `members=("a", "b", None)`: which of these
        is a cat, or none?
        """
        if members:
            return self._asked(Offer("which", task, label=label, members=tuple(members)))
        if other is not None and label is not None:
            raise OptionError("question-about-two-things")
        if other is not None:
            return self._asked(Offer("same", task, other))
        return self._asked(Offer("label" if label is None else "is", task, label=label))

    @checks(question=Question, says=NAME)
    @in_turn
    def answer(self, question: Question, says: Hashable) -> Answer:
        """Record one of the choices of a question, or "unsure"; when this returns, it is kept.

        Where `contradiction` of the result is set, the answer cannot be true together with others:
        `undo` one of them, or `keep` all.
        """
        is_open = self._open is not None and self._open.token == question.token
        looked = time.monotonic() - self._shown_at
        seconds = round(looked, 3) if is_open and looked <= LONGEST_LOOK else None
        kind, label = self._as_recorded(question, says)
        event = self._event(kind, question, label)._replace(token=question.token, seconds=seconds)
        if kind == "which":
            event = event._replace(left=self._job.key[self._job.code_of(says)])
        found = None
        with self.desk.writing():
            known = self._recorded(event)
            if known is None:
                found = contradiction(self._job, self.desk.chains, self.desk.log, event)
                event = self._append(event)
            else:
                self.desk.storage.release(self._run)
        self._put_back_unless(question)
        self.desk.wake(self.who)
        found = found and replace(found, answer=event.id)
        return as_answer(self._job, known or event, found)

    @checks(question=Question)
    @in_turn
    def skip(self, question: Question) -> None:
        """Put a question off until the others are done."""
        with self.desk.writing():
            self._append(self._event("skip", question, question.label))
        self._put_back_unless(question)

    @checks(answer=optional(AN_ANSWER))
    @in_turn
    def undo(self, answer: Answer | int | None = None) -> Answer | None:
        """Take back an answer, the last one of this person if none is named; None without one.

        The question comes next. Undoing is recorded too: the file forgets nothing.
        """
        id = answer.id if isinstance(answer, Answer) else answer
        log = self.desk.log
        with self.desk.writing():
            event = log.last_of(self.who, self._run) if id is None else log.get(id)
            if event is None and id is None:
                return None
            if event is None:
                raise OptionError("answer-not-there", id=id, what="undo")
            self._append(self._event("undo")._replace(about=event.id))
        again = self._again(event)
        self._put_back_unless(again)
        self._queue.appendleft(again)
        self._nothing_left = self._is_worth_too_little = False
        self.desk.wake(self.who)
        return as_answer(self._job, event)

    @checks(answer=AN_ANSWER)
    @in_turn
    def keep(self, answer: Answer | int) -> None:
        """Let an answer stand although it contradicts others: answers count as fallible then."""
        id = answer.id if isinstance(answer, Answer) else answer
        with self.desk.writing():
            if id not in self.desk.log.answers:
                raise OptionError("answer-not-there", id=id, what="keep")
            if id not in self.desk.log.kept:
                self.desk.storage.append(self._event("keep")._replace(about=id))
        self.desk.wake(self.who)

    @in_turn
    def contradiction(self) -> Contradiction | None:
        """Return the contradiction that this person's last answer is in, unless it is kept."""
        self.desk.catch_up()
        log = self.desk.log
        own = [event for event in log.evidence() if event.who == self.who]
        if not own or own[-1].id in log.kept:
            return None
        return contradiction(self._job, self.desk.chains, log, own[-1])

    def answers(self) -> tuple[Answer, ...]:
        """Return the answers in force, of everyone, in their order."""
        return self.desk.answers()

    def links(self) -> Links:
        """Return the answers that are links, "no" among them, with the person that gave each."""
        return self.desk.links()

    def labels(self) -> Gold:
        """Return the labels that were answered; tasks that were given different ones left out."""
        return self.desk.labels()

    def model(self) -> Estimator:
        """Return the model that knows all answers; fitted anew where there are new ones."""
        return self.desk.model()

    def votes(self, task: Hashable) -> tuple[Vote, ...]:
        """Return the workers who answered a task, with the label that each gave."""
        return self._job.votes(task)

    @in_turn
    def progress(self) -> Progress:
        """Return where the session stands, by the last fit.

        The first call for a new file fits the model, which takes a while; later ones are quick.
        """
        progress = self.desk.progress()
        if progress.finished is None and self._nothing_left:
            return replace(progress, finished="worth" if self._is_worth_too_little else "nothing")
        return progress

    def close(self) -> None:
        """Close the session, and its file unless others share it; what was answered stays."""
        storage = self.desk.storage
        with suppress(SessionError), storage.writing(waits=False):  # else it falls free in a while
            storage.release(self._run)
        if self._owns_desk:
            self.desk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What is recorded

    def _as_recorded(self, question: Question, says: Hashable) -> tuple[Kind, Hashable | None]:
        """Return kind and class of an answer; refuse one that is not among the choices."""
        if question.kind in ("label", "vote"):
            if str(says) in self._job.class_code:
                return "label", says
        elif question.kind == "which" and says in question.choices:
            return ("none" if says == NONE else "which"), question.label
        elif says in question.choices:
            return cast(Kind, says), question.label
        if says == UNSURE:
            return UNSURE, question.label
        allowed = ", ".join(repr(str(each)) for each in (*question.choices, UNSURE))
        raise OptionError("answer-not-offered", allowed=allowed, answer=says)

    def _event(
        self, kind: Kind, question: Question | None = None, label: Hashable | None = None
    ) -> Event:
        """Return what this person does now, to be recorded; `label` was given, or asked about."""
        event = Event(0, secrets.token_hex(16), self._run, timestamp(), self.who, kind)
        if question is None:
            return event
        left, right, key = self._job.keys(question.left, question.right, label)
        if question.members:
            right = self._job.members_key(question.members)
        return event._replace(left=left, right=right, question=question.kind, label=key)

    def _append(self, event: Event) -> Event:
        self.desk.storage.release(self._run)
        return self.desk.storage.append(event)

    def _recorded(self, event: Event) -> Event | None:
        """Return the same answer if it is recorded: a question sent twice, or asked twice."""
        log, said = self.desk.log, (event.kind, event.label)
        id = log.ids.get(event.token)
        if id is not None:
            found = log.answers.get(id)
            if found is None or (found.kind, found.label) != said:
                raise OptionError("answer-given-before")
            return found
        if event.is_evidence and not log.has_answered(event.subject, event.who):
            return None
        for each in log.answers.values():
            is_twin = each.subject == event.subject and each.is_by_hand == event.is_by_hand
            if is_twin and (each.who, each.kind, each.label) == (event.who, *said):
                return each
        return None

    # What is asked

    def _put_back_unless(self, done: Question) -> None:
        """Let the question that was open, unless it is done with, be the next."""
        if self._open is not None and self._open.token != done.token:
            self._queue.appendleft(self._open)
        self._open = None

    def _choose(self) -> Question | None:
        """Return the next question, kept from others: put back, chosen, chosen anew or skipped.

        With a worker nothing is fitted or chosen here.
        """
        self._nothing_left = self._is_worth_too_little = False
        if self.progress().finished is not None:
            return None
        desk, log, background = self.desk, self.desk.log, self.desk.background
        if background is None and desk.needs_fit():
            self._batch = []  # enough is known to choose better ones
        put_back = (self._queue.popleft() for _ in range(len(self._queue)))
        question = self._first(put_back) or self._first(self._chosen())
        chosen_for = None
        while question is None and background is None:  # others may have taken all of a batch
            declined = self._declined()
            if chosen_for == (log.last, declined):
                break
            chosen_for = log.last, declined
            n = desk.batch + len(declined)
            if desk.last_fit().is_soft:  # what this person said already may come up again
                n += len(log.answered(self.who))
            self._batch = desk.choose(n, self.who)
            question = self._first(self._chosen())
        if question is None and (background is None or background.knows_all()):
            question = self._first(map(self._again, log.skipped_in(self._run)))
        if question is None and background is not None:
            background.raise_if_ended()
            background.wake(self.who, is_short=not background.knows_all())
        self._nothing_left = question is None and self.progress().finished is None
        return question

    def _declined(self) -> set[Subject]:
        """Return what is open, but not to be asked here and now: put off, or asked elsewhere."""
        log = self.desk.log
        skipped = {event.subject for event in log.skipped_in(self._run)}
        return log.unsure_to(self.who) | self.desk.storage.leased(self._run) | skipped

    def _chosen(self) -> Iterator[Question]:
        """Yield the questions that were chosen, here or by the worker, and may be asked now.

        Questions that promise less than the caller asked for are left out.
        """
        background, least = self.desk.background, self.desk.least_worth
        barred = self._declined()
        barred |= self.desk.log.answered(self.who if self.progress().is_soft else None)
        for question in self._batch if background is None else background.chosen:
            if question.subject in barred:
                continue
            if least is not None and question.worth < least:
                self._is_worth_too_little = True
            else:
                yield replace(question, token=secrets.token_hex(16))

    def _first(self, questions: Iterable[Question]) -> Question | None:
        """Return the first question that is still open, kept from others for a while.

        Where answers are fallible, one that follows from others, or that somebody else answered,
        may be asked as a check on these; two tasks are never asked about twice.
        """
        desk, log = self.desk, self.desk.log
        progress = self.progress()
        if progress.finished is not None:
            return None
        with desk.storage.writing(waits=False):
            desk.catch_up()
            barred = log.answered(self.who if progress.is_soft else None)
            barred |= {subject for subject in log.answered() if subject[0] == "same"}
            barred |= log.unsure_to(self.who) | desk.storage.leased(self._run)
            for question in questions:
                is_open = progress.is_soft or not desk.chains.settle(question)
                if question.subject not in barred and is_open:
                    desk.storage.lease(question.subject, self._run, desk.lease)
                    return question
        return None

    def _again(self, event: Event) -> Question:
        job = self._job
        label = job.class_name(event.label) if event.question in ("is", "which") else None
        if event.question == "which":
            members = tuple(None if each is None else job.name(each) for each in event.members)
            return self._asked(Offer("which", members[0], label=label, members=members))
        other = None if event.right is None else job.name(event.right)
        return self._asked(Offer(event.question or "same", job.name(event.left), other, label))

    def _asked(self, offer: Offer) -> Question:
        return replace(self._job.question(offer), token=secrets.token_hex(16))


def _require_name(who: str) -> None:
    if not isinstance(who, str) or not who.strip():
        raise OptionError("who-empty", who=who)
