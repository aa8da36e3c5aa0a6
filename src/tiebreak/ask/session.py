"""A session: the next question, the answers so far, and what they did to the labels."""

from __future__ import annotations

import os
import secrets
import time
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any, Self, cast

from tiebreak.arguments import NAME, checks, of_type, optional
from tiebreak.ask.contradictions import as_answer
from tiebreak.ask.desk import Desk, Person
from tiebreak.ask.job import Job
from tiebreak.ask.log import UNSURE, Event, Kind, QuestionName, Subject
from tiebreak.ask.results import Answer, Contradiction, Progress, Question, Vote, choices_for
from tiebreak.data.gold import Gold
from tiebreak.data.ids import MISSING
from tiebreak.errors import OptionError
from tiebreak.estimators.base import Estimator
from tiebreak.links import Links
from tiebreak.selection.offers import Offer

AN_ANSWER = of_type("an Answer, or the number of one", Answer, int)
LONGEST_LOOK = 600.0  # seconds; who takes longer was away


class Session:
    """Ask people which tasks are of the same class, or which class it is, and keep every answer.

    Answers go into one SQLite file; each is on the disk before `answer` returns. A session that
    was left, or killed, goes on when it is opened again with the same responses, with the labels
    that it had. Several people and processes may work on one file. Use one Session in one thread.

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
        Stop when no question is expected to put so many labels right for one unit of cost.
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
        """Sit down at a desk that others may share; closing the session leaves it open.

        `run` names a sitting that goes on.
        """
        _require_name(who)
        session = cls.__new__(cls)
        session._sit(desk, who, run, owns_desk=False)
        return session

    def _sit(self, desk: Desk, who: str, run: str | None, *, owns_desk: bool) -> None:
        self._desk = desk
        self._job: Job = desk.job
        self._by = Person(who, secrets.token_hex(8) if run is None else run)
        self._owns_desk = owns_desk
        self._queue: deque[Question] = deque()  # put back, or to be asked again
        self._batch: list[tuple[Subject, Offer]] = []  # chosen without a worker
        self._open: Question | None = None
        self._shown_at = time.monotonic()
        self._nothing_left = False
        self._is_worth_too_little = False

    @property
    def desk(self) -> Desk:
        """What is shared with others: the job, the file, the fits."""
        return self._desk

    @property
    def who(self) -> str:
        """The name of the person who answers."""
        return self._by.who

    def next(self) -> Question | None:
        """Return the next question, the same one until it is answered; None where it ends.

        `progress().finished` says why it ended.
        """
        looked = time.monotonic() - self._shown_at
        if self._open is not None and self._desk.background and looked > self._desk.lease:
            self._queue.appendleft(self._open)  # it is not kept from others any more
            self._open = None
        if self._open is None:
            self._desk.catch_up()
            self._open = self._choose()
            self._shown_at = time.monotonic()
        return self._open

    def is_waiting(self) -> bool:
        """Say whether there may be a next question once the worker has looked again."""
        background = self._desk.background
        is_out = self._open is None and self._nothing_left
        return is_out and background is not None and not background.knows_all()

    def question(
        self, task: Hashable, other: Hashable | None = None, *, label: Hashable | None = None
    ) -> Question:
        """Make a question of the caller's choice.

        `question("a", "b")`: are they the same? `question("a")`: which class is it?
        `question("a", label="cat")`: is it a cat?
        """
        if other is not None and label is not None:
            raise OptionError("question-about-two-things")
        if other is not None:
            return self._asked(Offer("same", task, other))
        return self._asked(Offer("label" if label is None else "is", task, label=label))

    @checks(question=Question, says=NAME)
    def answer(self, question: Question, says: Hashable) -> Answer:
        """Record one of the choices of a question, or "unsure"; when this returns, it is kept.

        Where `contradiction` of the result is set, the answer cannot be true together with others:
        `undo` one of them, or `keep` all.
        """
        is_open = self._open is not None and self._open.token == question.token
        looked = time.monotonic() - self._shown_at
        seconds = round(looked, 3) if is_open and looked <= LONGEST_LOOK else None
        kind, label = self._as_recorded(question, says)
        event, found = self._desk.answer(question, kind, label, seconds, self._by)
        self._put_back_unless(question)
        return as_answer(self._job, event, found)

    @checks(question=Question)
    def skip(self, question: Question) -> None:
        """Put a question off until the others are done."""
        self._desk.skip(question, self._by)
        self._put_back_unless(question)

    @checks(answer=optional(AN_ANSWER))
    def undo(self, answer: Answer | int | None = None) -> Answer | None:
        """Take back an answer, the last one of this person if none is named; None without one.

        The question comes next. Undoing is recorded too: the file forgets nothing.
        """
        event = self._desk.undo(answer.id if isinstance(answer, Answer) else answer, self._by)
        if event is None:
            return None
        again = self._again(event)
        self._put_back_unless(again)
        self._queue.appendleft(again)
        self._nothing_left = self._is_worth_too_little = False
        return as_answer(self._job, event)

    @checks(answer=AN_ANSWER)
    def keep(self, answer: Answer | int) -> None:
        """Let an answer stand although it contradicts others: answers count as fallible then."""
        self._desk.keep(answer.id if isinstance(answer, Answer) else answer, self._by)

    def contradiction(self) -> Contradiction | None:
        """Return the contradiction that this person's last answer is in, unless it is kept."""
        return self._desk.pending(self._by)

    def answers(self) -> tuple[Answer, ...]:
        """Return the answers in force, of everyone, in their order."""
        return self._desk.answers()

    def links(self) -> Links:
        """Return the answers that are links, "no" among them, with the person that gave each."""
        return self._desk.links()

    def labels(self) -> Gold:
        """Return the labels that were answered; tasks that were given different ones left out."""
        return self._desk.labels()

    def model(self) -> Estimator:
        """Return the model that knows all answers; fitted anew where there are new ones."""
        return self._desk.model()

    def votes(self, task: Hashable) -> tuple[Vote, ...]:
        """Return the workers who answered a task, with the label that each gave."""
        return self._desk.votes(task)

    def progress(self) -> Progress:
        """Return where the session stands, by the last fit.

        The first call for a new file fits the model, which takes a while; later ones are quick.
        """
        progress = self._desk.progress()
        if progress.finished is None and self._nothing_left:
            return replace(progress, finished="worth" if self._is_worth_too_little else "nothing")
        return progress

    def close(self) -> None:
        """Close the session, and its file unless others share it; what was answered stays."""
        self._desk.release(self._by)
        if self._owns_desk:
            self._desk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _as_recorded(self, question: Question, says: Hashable) -> tuple[Kind, str | None]:
        """Return kind and class of an answer; refuse one that is not among the choices."""
        if question.kind in ("label", "vote"):
            code = int(self._job.responses.classes.codes([says])[0])
            if code != MISSING:
                return "label", self._job.class_key[code]
        elif says in question.choices:
            return cast(Kind, says), None
        if says == UNSURE:
            return UNSURE, None
        allowed = ", ".join(repr(str(each)) for each in (*question.choices, UNSURE))
        raise OptionError("answer-not-offered", allowed=allowed, answer=says)

    def _put_back_unless(self, done: Question) -> None:
        """Let the question that was open, unless it is done with, be the next."""
        if self._open is not None and self._open.token != done.token:
            self._queue.appendleft(self._open)
        self._open = None

    def _choose(self) -> Question | None:
        """Return the next question, kept from others. With a worker nothing is fitted here."""
        self._nothing_left = self._is_worth_too_little = False
        if self.progress().finished is not None:
            return None
        background = self._desk.background
        if background is None and self._desk.needs_fit():
            self._batch = []  # enough is known to choose better ones
        put_back = (self._queue.popleft() for _ in range(len(self._queue)))
        question = self._first(put_back) or self._first_chosen()
        if background is None:
            question = question or self._first_of_new_batches()
        if question is None and (background is None or background.knows_all()):
            skipped = self._desk.log.skipped_in(self._by.run)
            question = self._first(map(self._again, skipped))
        if question is None and background is not None:
            background.raise_if_ended()
            background.wake(self.who, is_short=not background.knows_all())
        self._nothing_left = question is None and self.progress().finished is None
        return question

    def _first(self, questions: Iterable[Question]) -> Question | None:
        """Reserve the first question that is still open."""
        progress = self.progress()
        if progress.finished is not None:
            return None
        return self._desk.reserve(questions, self._by, may_follow=progress.is_soft)

    def _first_chosen(self) -> Question | None:
        """Reserve the best question that was chosen, here or by the worker."""
        background = self._desk.background
        chosen = self._batch if background is None else background.chosen
        barred = self._desk.declined(self._by)
        barred |= self._desk.log.answered(self.who if self.progress().is_soft else None)
        free = [offer for subject, offer in chosen if subject not in barred]
        return self._first(map(self._asked, self._worth_asking(free)))

    def _first_of_new_batches(self) -> Question | None:
        """Choose anew as long as others, in the meantime, take all that was chosen."""
        question = chosen_for = None
        while question is None:
            self._desk.catch_up()
            declined = self._desk.declined(self._by)
            now = self._desk.log.last, declined
            if now == chosen_for:
                break
            chosen_for = now
            n = self._desk.batch + len(declined)
            if self._desk.last_fit().is_soft:  # what this person said already may come up again
                n += len(self._desk.log.answered(self.who))
            self._batch = self._desk.choose(n, self.who)
            question = self._first_chosen()
        return question

    def _worth_asking(self, offers: list[Offer]) -> list[Offer]:
        """Leave out questions that promise less than the caller asked for."""
        least = self._desk.least_worth
        worth = [offer for offer in offers if least is None or not offer.worth < least]
        self._is_worth_too_little = len(worth) < len(offers)
        return worth

    def _again(self, event: Event) -> Question:
        """Return the question that an event is about."""
        label = self._job.class_name(event.label) if event.question == "is" else None
        other = None if event.right is None else self._job.name(event.right)
        return self._asked(
            Offer(event.question or "same", self._job.name(event.left), other, label)
        )

    def _asked(self, offer: Offer) -> Question:
        kind = cast(QuestionName, offer.kind)
        return Question(
            offer.task,
            offer.other,
            float(offer.gain),
            self._job.text(offer.task),
            None if offer.other is None else self._job.text(offer.other),
            kind,
            offer.label if kind == "is" else None,
            choices_for(kind, self._job.responses.classes),
            offer.cost,
            token=secrets.token_hex(16),
        )


def _require_name(who: str) -> None:
    if not isinstance(who, str) or not who.strip():
        raise OptionError("who-empty", who=who)
