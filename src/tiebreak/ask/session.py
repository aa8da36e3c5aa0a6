"""A session: the next question, the answers so far, and what they did to the labels."""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Hashable, Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np

from tiebreak import selection
from tiebreak.ask.contradictions import as_answer
from tiebreak.ask.fitting import Fits, FittedSession
from tiebreak.ask.job import Job, take_job
from tiebreak.ask.log import ANSWERS, Event, Says
from tiebreak.ask.record import Record
from tiebreak.ask.results import Answer, Contradiction, Finished, Progress, Question, Vote
from tiebreak.errors import OptionError
from tiebreak.inference import VariationalBayes
from tiebreak.links import Links

LEAST_GAIN = 1e-6  # labels put right; where no question promises more, none is worth asking
EVIDENCE = 20  # links and known labels without which nobody knows how far to trust the crowd
LEASE = 600.0  # seconds for which a question that is shown is kept from others


class Session:
    """Ask people which tasks are of the same class, and keep every answer.

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
    texts
        What tasks look like: a mapping of task to text, or a table of task, text.
    among
        Tasks that may be asked about; all, where not given.
    strategy, random_state
        How questions are chosen: see `tiebreak.selection.pairs`.
    budget, target
        When to stop: after so many answers by all people in all runs, "unsure" among them, or
        when this share of the labels is expected to be right, but not before 20 links or known
        labels are there to check the crowd against.
    who
        Who answers. Where more than one person does, links count as fallible.
    batch
        After how many answers the model is fitted again.
    link_error
        How often links are wrong: see `VariationalBayes`. None: never, until several people answer
        or an answer that contradicts others is kept.
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
        self,
        path: str | os.PathLike[str],
        responses: Any,
        *,
        links: Any = None,
        gold: Any = None,
        texts: Any = None,
        among: Any = None,
        strategy: selection.Strategy = "adaptive",
        budget: int | None = None,
        target: float | None = None,
        who: str = "me",
        random_state: int | np.random.Generator | None = None,
        batch: int = 20,
        link_error: float | str | None = None,
        lease: float = LEASE,
    ) -> None:
        _check_options(budget, target, who, batch)
        self._strategy = strategy
        self._budget = budget
        self._target = target
        self._batch = batch
        self._rng = np.random.default_rng(random_state)
        self._job: Job = take_job(
            responses, links, gold, texts, among, links_may_err=link_error is not None
        )
        self._record = Record(path, self._job, who, lease)
        self._fits = Fits(self._job, self._record, link_error)
        self._queue: deque[Question] = deque()
        self._open: Question | None = None
        self._nothing_left = False

    def next(self) -> Question | None:
        """Return the next question, the same one until it is answered; None where it ends.

        `progress().finished` says why it ended.
        """
        if self._open is None:
            self._record.catch_up()
            self._open = self._choose()
        return self._open

    def question(self, left: Hashable, right: Hashable) -> Question:
        """Make a question of the caller's choice."""
        return self._asked(left, right, float("nan"))

    def answer(self, question: Question, says: Says) -> Answer:
        """Record "same", "different" or "unsure"; when this returns, it is on the disk.

        Where `contradiction` of the result is set, the answer cannot be true together with others:
        `undo` one of them, or `keep` all.
        """
        if says not in ANSWERS:
            raise OptionError.unknown("answer", says, ANSWERS)
        event, found = self._record.answer(question, says)
        self._put_back_unless(question)
        return as_answer(self._job, event, found)

    def skip(self, question: Question) -> None:
        """Put a question off until the others are done."""
        self._record.skip(question)
        self._put_back_unless(question)

    def undo(self, answer: Answer | int | None = None) -> Answer | None:
        """Take back an answer, the last one of this person if none is named; None without one.

        The question comes next. Undoing is recorded too: the file forgets nothing.
        """
        event = self._record.undo(answer.id if isinstance(answer, Answer) else answer)
        if event is None:
            return None
        again = self.question(*self._ends(event))
        self._put_back_unless(again)
        self._queue.appendleft(again)
        self._nothing_left = False
        return as_answer(self._job, event)

    def keep(self, answer: Answer | int) -> None:
        """Let an answer stand although it contradicts others: links count as fallible then."""
        self._record.keep(answer.id if isinstance(answer, Answer) else answer)

    def contradiction(self) -> Contradiction | None:
        """Return the contradiction that this person's last link is in, unless it is kept."""
        self._record.catch_up()
        return self._record.pending()

    def answers(self) -> tuple[Answer, ...]:
        """Return the answers in force, of everyone, in their order."""
        self._record.catch_up()
        return tuple(as_answer(self._job, event) for event in self._record.log.answers.values())

    def links(self) -> Links:
        """Return the answers as links, with who gave each."""
        self._record.catch_up()
        return self._job.links_of(tuple(self._record.log.links()))

    def model(self) -> VariationalBayes:
        """Return the model that knows all answers; fitted anew where there are new ones."""
        self._record.catch_up()
        return self._fits.current(self._record.log.snapshot(), final=True).model

    def replay(self) -> Iterator[tuple[int, int]]:
        """Make the fits of earlier runs again; yield how many are made, and how many there are.

        A session that is opened again has the labels it was closed with. What of this is not done
        when they are first needed is done then: go through it only to show how far it is.
        """
        self._record.catch_up()
        return self._fits.replay()

    def votes(self, task: Hashable) -> tuple[Vote, ...]:
        """Return who gave which label to a task."""
        return self._job.votes(task)

    def progress(self) -> Progress:
        """Return where the session stands, by the last fit.

        The first call of a session fits the model, as earlier runs did, which takes a while; later
        ones are quick.
        """
        self._record.catch_up()
        fit = self._fits.last(self._record.log.snapshot())
        answers = self._record.log.answers.values()
        n_tasks = self._job.responses.n_tasks
        return Progress(
            asked=len(answers),
            unsure=sum(event.kind == "unsure" for event in answers),
            budget=self._budget,
            n_tasks=n_tasks,
            wrong=fit.wrong,
            confidence=1.0 - fit.wrong / n_tasks,
            is_soft=fit.is_soft,
            finished=self._finished(fit),
        )

    def close(self) -> None:
        """Close the file; what was answered stays."""
        self._record.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _put_back_unless(self, done: Question) -> None:
        """Let the question that was open, unless it is done with, be the next."""
        if self._open is not None and self._open.token != done.token:
            self._queue.appendleft(self._open)
        self._open = None

    def _choose(self) -> Question | None:
        self._nothing_left = False
        if self.progress().finished is not None:
            return None
        if self._fits.n_new(self._record.log.snapshot()) >= self._batch:
            self._queue.clear()  # enough is known to choose better ones
        question = self._first_open() or self._first_of_new_batches()
        if question is None:
            self._bring_skipped()
            question = self._first_open()
        self._nothing_left = question is None and self.progress().finished is None
        return question

    def _first_of_new_batches(self) -> Question | None:
        """Choose anew as long as others, in the meantime, take all that was chosen."""
        question = None
        chosen_for = None
        while question is None and chosen_for != (now := self._record.situation()):
            chosen_for = now
            self._choose_batch()
            question = self._first_open()
        return question

    def _first_open(self) -> Question | None:
        """Reserve the first question of the queue that is still worth asking."""
        progress = self.progress()
        if progress.finished is not None:
            return None
        return self._record.reserve(self._queued(), may_follow=progress.is_soft)

    def _queued(self) -> Iterator[Question]:
        while self._queue:
            yield self._queue.popleft()

    def _choose_batch(self) -> None:
        """Fit to all answers and queue a new batch; none where nothing is worth asking."""
        self._record.catch_up()
        model = self._fits.current(self._record.log.snapshot()).model
        if self._job.responses.n_classes == 1 or self.progress().finished is not None:
            return
        declined = self._record.declined()
        rows = selection.pairs(
            model,
            self._batch + len(declined),
            strategy=self._strategy,
            among=self._job.among,
            random_state=self._rng,
        )
        if self._strategy == "adaptive" and rows.gain.max(initial=0.0) <= LEAST_GAIN:
            return
        questions = (self._asked(*row) for row in rows)
        free = [each for each in questions if self._record.pair(each) not in declined]
        self._queue.extend(free[: self._batch])

    def _bring_skipped(self) -> None:
        for event in self._record.log.skipped_in(self._record.run):
            self._queue.append(self.question(*self._ends(event)))

    def _ends(self, event: Event) -> tuple[Hashable, Hashable]:
        return self._job.name(event.left), self._job.name(event.right)

    def _asked(self, left: Hashable, right: Hashable, gain: float) -> Question:
        return Question(
            left,
            right,
            float(gain),
            self._job.text(left),
            self._job.text(right),
            token=secrets.token_hex(16),
        )

    def _finished(self, fit: FittedSession) -> Finished | None:
        if self._budget is not None and len(self._record.log.answers) >= self._budget:
            return "budget"
        confidence = 1.0 - fit.wrong / self._job.responses.n_tasks
        if self._target is not None and fit.n_checks >= EVIDENCE and confidence >= self._target:
            return "target"
        return "nothing" if self._nothing_left else None


def _check_options(budget: int | None, target: float | None, who: str, batch: int) -> None:
    if budget is not None and budget < 0:
        raise OptionError(f"budget, the number of answers, must be 0 or more; got {budget!r}.")
    if target is not None and not 0.0 < target <= 1.0:
        raise OptionError(f"target must be a share of labels above 0, at most 1; got {target!r}.")
    if not who.strip():
        raise OptionError("who must name the person who answers; got nothing.")
    if batch < 1:
        raise OptionError(f"batch must be 1 or more; got {batch!r}.")
