"""A desk: one job and its file, at which any number of people may sit.

It owns what is shared: the job, the record on the disk, the fits, and how questions are chosen. A
session (`desk.session(who)`) is one person at it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tiebreak import selection
from tiebreak.arguments import (
    FLAG,
    PATH,
    SEED,
    SEVERAL,
    TEXT,
    checks,
    number,
    of_type,
    optional,
    whole,
)
from tiebreak.ask.background import Background
from tiebreak.ask.beliefs import state_of
from tiebreak.ask.contradictions import as_answer
from tiebreak.ask.evidence import agreed_labels, answered_links
from tiebreak.ask.fitting import Fits, FittedSession
from tiebreak.ask.job import Job, take_job
from tiebreak.ask.log import Subject
from tiebreak.ask.record import Record
from tiebreak.ask.results import Answer, Finished, Progress, Vote
from tiebreak.errors import OptionError, note
from tiebreak.gold import Gold
from tiebreak.inference.variational_bayes import VariationalBayes
from tiebreak.links import Links
from tiebreak.options import require_word
from tiebreak.selection.offers import Offer
from tiebreak.selection.questions import (
    DEFAULT_COSTS,
    DEFAULT_KINDS,
    Costs,
    check_costs,
    choose_questions,
)
from tiebreak.wording import counted

if TYPE_CHECKING:
    from tiebreak.ask.session import Session

LEAST_GAIN = 1e-6  # labels put right; where no question promises more, none is worth asking
WORTH = number("0 or more, of labels put right for one unit of cost", least=0.0)
EVIDENCE = 20  # links and labels without which nobody knows how far to trust the crowd
LEASE = 600.0  # seconds for which a question that is shown is kept from others


class Desk:
    """One job and its file, shared by all who answer; see `Session` for what the options mean.

    Parameters
    ----------
    fit_inside
        Whether `Session.next` fits the model when enough answers are new. Where it does not,
        whoever serves the desk calls `refit` when `needs_fit()` says so, and `next` goes by the
        last fit.
    background
        Whether a worker thread fits the model and chooses questions ahead, so that `next` and
        `progress` never wait for it: for a server. Hold `desk.lock` while a session or the desk is
        used then; `model` alone waits for the worker, and must be called without it.
    only
        The one person that all questions are for. Questions that are chosen ahead are for anybody
        without it, so that votes cannot be asked for, nor costs be as long as somebody takes.

    Examples
    --------
    >>> votes = [("a", "ann", "cat"), ("a", "bob", "cat"), ("b", "ann", "cat"), ("b", "bob", "dog")]
    >>> with Desk(":memory:", votes) as desk:
    ...     ann = desk.session("ann")
    ...     answer = ann.answer(ann.question("b"), "dog")
    ...     print(answer, desk.labels().to_dict(), desk.model().labels_.best())
    b = dog {'b': 'dog'} {'a': 'cat', 'b': 'dog'}
    """

    @checks(
        path=PATH,
        kinds=optional(SEVERAL),
        costs=optional(of_type("a mapping of kind to cost, or 'time'", Mapping, str)),
        wording=optional(TEXT),
        budget=optional(whole(0)),
        target=optional(number("a share of labels above 0, at most 1", above=0.0, most=1.0)),
        stop_when_worth_less_than=optional(WORTH),
        random_state=SEED,
        batch=whole(1),
        lease=number("a number of seconds, 0 or more", least=0.0),
        fit_inside=FLAG,
        background=FLAG,
        only=optional(TEXT),
    )
    def __init__(
        self,
        path: str | os.PathLike[str],
        responses: Any,
        *,
        links: Any = None,
        gold: Any = None,
        texts: Any = None,
        class_texts: Any = None,
        wording: str | None = None,
        among: Any = None,
        kinds: Sequence[str] | None = None,
        costs: Costs | str | None = None,
        strategy: selection.Strategy = "adaptive",
        budget: int | None = None,
        target: float | None = None,
        stop_when_worth_less_than: float | None = None,
        random_state: int | np.random.Generator | None = None,
        batch: int = 20,
        link_error: float | str | None = None,
        lease: float = LEASE,
        fit_inside: bool = True,
        background: bool = False,
        only: str | None = None,
    ) -> None:
        self.kinds = _kinds(kinds, strategy)
        self._is_timed = costs == "time"
        if isinstance(costs, str) and not self._is_timed:
            raise OptionError(f"costs must be a mapping of kind to cost, or 'time'; got {costs!r}.")
        self._costs = check_costs(self.kinds, None if isinstance(costs, str) else costs)
        self.strategy = strategy
        self.budget = budget
        self.target = target
        self.least_worth = stop_when_worth_less_than
        self.batch = batch
        self.fit_inside = fit_inside and not background
        self.rng = np.random.default_rng(random_state)
        self.job: Job = take_job(
            responses,
            links,
            gold,
            texts,
            among,
            links_may_err=link_error is not None,
            class_texts=class_texts,
            wording=wording,
        )
        self._only = only
        if background:
            self._refuse_votes_of_anybody()
        self.lock = threading.RLock()
        self.record = Record(path, self.job, lease)
        self.fits = Fits(self.job, self.record, link_error)
        self.background = Background(self) if background else None

    def start(self) -> None:
        """Make the first fit and choice, and let the worker begin; for a desk with `background`."""
        now = self.record.log.snapshot()
        fit = self.fits.last(now)
        if self.background is not None:
            self.background.start(fit, now)

    def session(self, who: str = "me", run: str | None = None) -> Session:
        """Let somebody sit down; `run` names a sitting that goes on."""
        from tiebreak.ask.session import Session

        return Session.at(self, who, run)

    def answers(self) -> tuple[Answer, ...]:
        """Return the answers in force, of everyone, in their order."""
        self.record.catch_up()
        return tuple(as_answer(self.job, event) for event in self.record.log.answers.values())

    def links(self) -> Links:
        """Return the answers that are links, "no" among them, with who gave each."""
        self.record.catch_up()
        answers = tuple(self.record.log.evidence())
        return answered_links(self.job, answers, agreed_labels(self.job, answers)[0])

    def labels(self) -> Gold:
        """Return the labels that were answered; tasks that were given different ones left out."""
        self.record.catch_up()
        job = self.job
        answers = tuple(self.record.log.evidence())
        label, n_differ = agreed_labels(job, answers)
        if n_differ:
            note(f"{counted(n_differ, 'task')} with different labels: left out.")
        if job.gold is not None:
            given = job.responses.tasks.codes(job.gold.tasks).tolist()
            label = {task: known for task, known in label.items() if task not in set(given)}
        names = job.responses.classes
        return Gold.from_columns(
            [job.responses.tasks[task] for task in label],
            [names[known] for known in label.values()],
        )

    def model(self) -> VariationalBayes:
        """Return the model that knows all answers; fitted anew where there are new ones."""
        if self.background is not None:
            return self.background.model()
        self.record.catch_up()
        return self.fits.current(self.record.log.snapshot(), final=True).model

    def error_rates(self) -> dict[str, float]:
        """Return how often each person's answers are wrong, as the last fit found it.

        Empty where answers are trusted. Where people only compared tasks of which nothing was
        known, `model().link_errors_` has the rates of their links.
        """
        weighed = self.last_fit().given.weighed
        return {} if weighed is None else dict(weighed.rates)

    def needs_fit(self) -> bool:
        """Say whether there are enough new answers for a fit to be worth its while."""
        self.record.catch_up()
        return self.fits.n_new(self.record.log.snapshot()) >= self.batch

    def refit(self) -> None:
        """Fit to all answers, from where the last fit ended."""
        self.record.catch_up()
        self.fits.current(self.record.log.snapshot())

    def replay(self) -> Iterator[tuple[int, int]]:
        """Make the fits of earlier runs again; see `Session.replay`."""
        self.record.catch_up()
        return self.fits.replay()

    def votes(self, task: Hashable) -> tuple[Vote, ...]:
        """Return who gave which label to a task."""
        return self.job.votes(task)

    def progress(self) -> Progress:
        """Return where the session stands, by the last fit."""
        self.record.catch_up()
        fit = self.last_fit()
        answers = self.record.log.answers.values()
        n_tasks = self.job.responses.n_tasks
        by_kind: dict[str, int] = {}
        for event in answers:
            by_kind[event.question or "same"] = by_kind.get(event.question or "same", 0) + 1
        return Progress(
            asked=len(answers),
            unsure=sum(event.kind == "unsure" for event in answers),
            budget=self.budget,
            n_tasks=n_tasks,
            wrong=fit.wrong,
            confidence=1.0 - fit.wrong / n_tasks,
            is_soft=fit.is_soft,
            finished=self._finished(fit),
            by_kind=by_kind,
        )

    def last_fit(self) -> FittedSession:
        """Return the last fit, whatever answers it knows; the first one is made."""
        if self.background is not None and self.fits.made is not None:
            return self.fits.made
        return self.fits.last(self.record.log.snapshot())

    def offers(self, who: str, n: int) -> list[Offer]:
        """Choose n questions for somebody, the best first; none where nothing is worth asking."""
        fit = self.last_fit()
        if self.fit_inside:
            fit = self.fits.current(self.record.log.snapshot())
        return self._offers(fit, n, self.costs(who))

    def offers_by(self, fit: FittedSession, n: int) -> list[Offer]:
        """Choose n questions by a fit, for anybody or for the only one."""
        if self._only is None:
            return self._offers(fit, n, self._costs)
        with self.lock:
            costs = self.costs(self._only)
        return self._offers(fit, n, costs)

    def subject(self, offer: Offer) -> Subject:
        """Return what an offer would ask about, as the file has it."""
        return self.job.subject(offer.kind, offer.task, offer.other, offer.label)

    def _offers(self, fit: FittedSession, n: int, costs: Costs) -> list[Offer]:
        if self.job.responses.n_classes == 1:
            return []
        if self.strategy != "adaptive":
            return self._drawn(fit.model, n)
        state = state_of(self.job, fit.model, fit.q, fit.given)
        found = list(choose_questions(fit.model, state, n, self.kinds, costs, self.rng))
        if max((offer.gain for offer in found), default=0.0) <= LEAST_GAIN:
            return []
        return found

    def costs(self, who: str) -> Costs:
        """Return what each kind of question costs: as given, or as long as it takes this person.

        A kind that was not timed yet costs as much as usual beside one that was.
        """
        if not self._is_timed:
            return self._one_vote(who)
        seconds = self.record.median_seconds(who)
        if not seconds:
            return self._one_vote(who)
        timed = max(seconds, key=seconds.__getitem__)
        usual = {
            kind: cost * seconds[timed] / DEFAULT_COSTS[timed]
            for kind, cost in DEFAULT_COSTS.items()
        }
        least = {kind: max(each, 1e-3) for kind, each in {**usual, **seconds}.items()}
        return {**least, "vote": {who: least["vote"]}} if "vote" in self.kinds else least

    def close(self) -> None:
        """Close the file; what was answered stays."""
        if self.background is not None:
            self.background.close()
        self.record.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse_votes_of_anybody(self) -> None:
        if self._only is None and ("vote" in self.kinds or self._is_timed):
            raise OptionError(
                "Questions that are chosen ahead are for anybody: kinds can be same, label and is "
                "there, and costs must be numbers. Votes, and costs by time, are for "
                "`tiebreak ask`."
            )

    def _one_vote(self, who: str) -> Costs:
        """Let votes be asked of the one who sits here only."""
        vote = self._costs["vote"]
        if "vote" not in self.kinds or isinstance(vote, Mapping):
            return self._costs
        return {**self._costs, "vote": {who: float(vote)}}

    def _drawn(self, model: VariationalBayes, n: int) -> list[Offer]:
        rows = selection.pairs(
            model, n, strategy=self.strategy, among=self.job.among, random_state=self.rng
        )
        return [Offer("same", row.left, row.right, gain=row.gain) for row in rows]

    def _finished(self, fit: FittedSession) -> Finished | None:
        if self.budget is not None and len(self.record.log.answers) >= self.budget:
            return "budget"
        confidence = 1.0 - fit.wrong / self.job.responses.n_tasks
        if self.target is not None and fit.n_checks >= EVIDENCE and confidence >= self.target:
            return "target"
        return None


def _kinds(kinds: Sequence[str] | None, strategy: str) -> tuple[str, ...]:
    """Return the kinds to ask; strategies that draw pairs ask for nothing else."""
    require_word("strategy", strategy, selection.STRATEGIES)
    if kinds is None:
        return DEFAULT_KINDS if strategy == "adaptive" else ("same",)
    if strategy != "adaptive" and tuple(kinds) != ("same",):
        raise OptionError(f"strategy={strategy!r} draws pairs, so kinds can be ('same',) only.")
    check_costs(kinds, None)
    return tuple(kinds)
