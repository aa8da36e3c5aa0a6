"""A desk: one job and its file, that any number of people share.

It owns what is shared: the job, the answers so far, the fits, and how questions are chosen. A
session (`desk.session(who)`) is one person at it.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np

from tiebreak import arguments, selection
from tiebreak.ask.contradictions import AnswerChains, as_answer
from tiebreak.ask.evidence import agreed_labels, answered_links, state_of
from tiebreak.ask.fitting import Background, Fits, SessionFit, new_model
from tiebreak.ask.job import Job
from tiebreak.ask.log import BY_HAND, Log
from tiebreak.ask.results import Answer, Finished, Progress, Question
from tiebreak.ask.storage import Storage
from tiebreak.data import Gold, Labels
from tiebreak.errors import OptionError, SessionError, note
from tiebreak.estimators.base import Estimator
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.links import Links
from tiebreak.options import require_word
from tiebreak.selection.questions import (
    DEFAULT_COSTS,
    DEFAULT_KINDS,
    Costs,
    Offer,
    check_costs,
    choose_questions,
)

if TYPE_CHECKING:
    from tiebreak.ask.session import Session

Method = TypeVar("Method", bound=Callable[..., Any])

LEAST_GAIN = 1e-6  # labels corrected; where no question promises more, none is worth asking
WORTH = arguments.number("0 or more, of labels corrected for one unit of cost", least=0.0)
EVIDENCE = 20  # links and labels without which nobody knows how far to trust the crowd
LEASE = 600.0  # seconds for which a question that is shown is kept from others


def in_turn(method: Method) -> Method:
    """Let one thread at a time, and the worker between them, use what a desk shares."""

    @wraps(method)
    def locked(self: Any, *given: Any, **named: Any) -> Any:
        with self.lock:
            return method(self, *given, **named)

    return cast(Method, locked)


class Desk:
    """One job and its file, shared by all who answer; see `Session` for what the options mean.

    Whatever it says is recorded is on the disk; memory never runs ahead of it.

    Parameters
    ----------
    background
        Whether a worker thread fits the model and chooses questions ahead, so that `next` and
        `progress` never wait for it: for a server. `model` alone waits for the worker.
    sequences
        Which tokens follow each other, where responses are tags of spans. Then the spans that were
        marked are asked about, each in its text: which kind it is, or none. `labels` are labels of
        tokens, for a fit with these sequences.
    constraints
        What labels must keep, as for a fit. Of a group of which at most one task, or exactly one,
        is of a class, "which of these?" is asked.
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

    @arguments.checks(
        path=arguments.PATH,
        kinds=arguments.optional(arguments.SEVERAL),
        costs=arguments.optional(
            arguments.of_type("a mapping of kind to cost, or 'time'", Mapping, str)
        ),
        wording=arguments.optional(arguments.TEXT),
        budget=arguments.optional(arguments.whole(0)),
        target=arguments.optional(
            arguments.number("a share of labels above 0, at most 1", above=0.0, most=1.0)
        ),
        stop_when_worth_less_than=arguments.optional(WORTH),
        random_state=arguments.SEED,
        batch=arguments.whole(1),
        lease=arguments.number("a number of seconds, 0 or more", least=0.0),
        background=arguments.FLAG,
        only=arguments.optional(arguments.TEXT),
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
        background: bool = False,
        only: str | None = None,
        sequences: Any = None,
        constraints: Any = None,
    ) -> None:
        if sequences is not None and kinds is None and strategy == "adaptive":
            kinds = ("label",)
        self.kinds = _kinds(kinds, strategy, has_rules=constraints is not None)
        self._is_timed = costs == "time"
        if isinstance(costs, str) and not self._is_timed:
            raise OptionError("costs-unknown-word", costs=costs)
        self._costs = check_costs(self.kinds, None if isinstance(costs, str) else costs)
        if background and only is None and ("vote" in self.kinds or self._is_timed):
            raise OptionError("votes-need-one-person")
        new_model(link_error, is_final=True)  # refuses what is no rate, before a file is made
        self.strategy = strategy
        self.budget = budget
        self.target = target
        self.least_worth = stop_when_worth_less_than
        self.batch = batch
        self.lease = lease
        self.rng = np.random.default_rng(random_state)
        self._only = only
        self.job = Job(
            responses,
            links,
            gold,
            texts=texts,
            class_texts=class_texts,
            wording=wording,
            among=among,
            links_may_err=link_error is not None,
            sequences=sequences,
            constraints=constraints,
        )
        self.lock = threading.RLock()
        self.log = Log()
        self.storage = Storage(path, self.job.marks)
        try:
            self.catch_up()
            self.fits = Fits(self.job, self.storage, link_error)
        except BaseException:
            self.storage.close()
            raise
        self.background = Background(self) if background else None

    def start(self) -> None:
        """Make the first fit and choice, and let the worker begin; for a desk with `background`."""
        fit, now = self.last_fit(), self.log.snapshot()
        if self.background is not None:
            self.background.start(fit, now)

    def wake(self, who: str | None) -> None:
        """Let the worker know that somebody said something, where there is a worker."""
        if self.background is not None:
            self.background.wake(who)

    def close(self) -> None:
        """Close the file; what was answered stays."""
        if self.background is not None:
            self.background.close()
        self.storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def session(self, who: str = "me", run: str | None = None, *, by_hand: bool = False) -> Session:
        """Return the session of one person; `run` names one that goes on.

        `by_hand`: labels are set as known, and believed whatever others say.
        """
        from tiebreak.ask.session import Session

        return Session.at(self, who, f"{BY_HAND}{secrets.token_hex(6)}" if by_hand else run)

    @in_turn
    def answers(self) -> tuple[Answer, ...]:
        """Return the answers in force, of everyone, in their order."""
        self.catch_up()
        return tuple(as_answer(self.job, event) for event in self.log.answers.values())

    @in_turn
    def links(self) -> Links:
        """Return the answers that are links, "no" among them, with the person that gave each."""
        self.catch_up()
        answers = tuple(self.log.evidence())
        return answered_links(self.job, answers, agreed_labels(self.job, answers)[0])

    @in_turn
    def labels(self) -> Gold:
        """Return the labels that were answered; tasks that were given different ones left out."""
        self.catch_up()
        label, n_differ = agreed_labels(self.job, tuple(self.log.evidence()))
        if n_differ:
            note("answered-labels-left-out", n=n_differ)
        crowd = self.job.responses
        given = set()
        if self.job.gold is not None:
            given = set(crowd.tasks.codes(self.job.gold.tasks).tolist())
        new = {task: known for task, known in label.items() if task not in given}
        gold = Gold.from_columns(
            [crowd.tasks[task] for task in new], [crowd.classes[known] for known in new.values()]
        )
        return gold if self.job.spans is None else self.job.spans.labels_of_tokens(gold)

    @in_turn
    def progress(self) -> Progress:
        """Return where the session stands, by the last fit."""
        self.catch_up()
        fit = self.last_fit()
        answers = self.log.answers.values()
        n_tasks = self.job.responses.n_tasks
        confidence = 1.0 - fit.wrong / n_tasks
        finished: Finished | None = None
        if self.budget is not None and len(answers) >= self.budget:
            finished = "budget"
        elif self.target is not None and fit.n_checks >= EVIDENCE and confidence >= self.target:
            finished = "target"
        return Progress(
            asked=len(answers),
            unsure=sum(event.kind == "unsure" for event in answers),
            budget=self.budget,
            n_tasks=n_tasks,
            wrong=fit.wrong,
            confidence=confidence,
            is_soft=fit.is_soft,
            finished=finished,
            by_kind=dict(Counter(event.question or "same" for event in answers)),
        )

    # Fits

    def model(self) -> Estimator:
        """Return the model that knows all answers; fitted anew where there are new ones."""
        if self.background is not None:
            return self.background.model()
        self.catch_up()
        return self.fits.current(self.log.snapshot(), final=True).model

    def fused(self) -> Labels:
        """Return the labels that follow from all answers: of tokens, where spans are asked about.

        These are of a fit with all tokens, to which answers are known labels.
        """
        spans = self.job.spans
        if spans is None:
            return self.model().labels_
        given = {"sequences": spans.sequences, "gold": self.labels()}
        return VariationalBayes().fit(spans.tokens, **given).labels_

    @in_turn
    def last_fit(self) -> SessionFit:
        """Return the last fit, whatever answers it knows; the first one is made."""
        return self.fits.made or self.fits.current(self.log.snapshot())

    def needs_fit(self) -> bool:
        """Return whether there are enough new answers for a fit to be worth its while."""
        self.catch_up()
        return self.fits.n_new(self.log.snapshot()) >= self.batch

    @in_turn
    def error_rates(self) -> dict[str, float]:
        """Return how often each person's answers are wrong, as the last fit found it.

        Empty where answers are trusted. Where people only compared tasks of which nothing was
        known, `model().link_errors_` has the rates of their links.
        """
        weighed = self.last_fit().weighed
        return {} if weighed is None else dict(weighed.rates)

    # What is asked

    def choose(
        self, n: int, who: str | None = None, fit: SessionFit | None = None
    ) -> list[Question]:
        """Choose n questions, the best first; none where nothing is worth asking.

        Without `who` they are for the only one who answers, or for anybody; without `fit`, by a fit
        to all answers.
        """
        if fit is None:
            fit = self.fits.current(self.log.snapshot())
        offers: Iterable[Offer] = ()
        if self.job.responses.n_classes == 1:
            return []
        if self.strategy != "adaptive":
            rows = selection.pairs(
                fit.model, n, strategy=self.strategy, among=self.job.among, random_state=self.rng
            )
            offers = (Offer("same", row.left, row.right, gain=row.gain) for row in rows)
        else:
            with self.lock:
                costs = self.costs(who or self._only)
            state = state_of(self.job, fit.model, fit.q, fit.weighed)
            found = choose_questions(fit.model, state, n, self.kinds, costs, self.rng)
            if max((offer.gain for offer in found), default=0.0) > LEAST_GAIN:
                offers = found
        return [self.job.question(offer) for offer in offers]

    def costs(self, who: str | None) -> Costs:
        """Return what each kind of question costs: as given, or as long as it takes this person.

        A kind that was not timed yet costs as much as usual beside one that was.
        """
        costs = self._costs
        if who is None:
            return costs
        seconds = self.log.median_seconds(who) if self._is_timed else {}
        if seconds:
            timed = max(seconds, key=seconds.__getitem__)
            ratio = seconds[timed] / DEFAULT_COSTS[timed]
            usual = {kind: cost * ratio for kind, cost in DEFAULT_COSTS.items()}
            costs = {kind: max(each, 1e-3) for kind, each in {**usual, **seconds}.items()}
        vote = costs["vote"]
        if "vote" not in self.kinds or isinstance(vote, Mapping):
            return costs
        return {**costs, "vote": {who: float(vote)}}  # votes are asked of this person only

    # What is recorded

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the right to write, knowing all that was written before; then take in the rest."""
        with self.storage.writing():
            self.catch_up()
            yield
        self.catch_up()

    def catch_up(self) -> None:
        """Take in what was recorded since, here or in another process.

        Refuses what the responses do not have.
        """
        for event in self.storage.since(self.log.last):
            others = event.members if event.question == "which" else (event.right,)
            for what, name, known in (
                *(("task", task, self.job.code) for task in (event.left, *others)),
                ("class", event.label, self.job.class_code),
            ):
                if name is not None and name not in known:
                    path = self.storage.path
                    raise SessionError("session-names-unknown", path=path, what=what, name=name)
            self.log.add(event)
            if event.kind == "undo":
                self.__dict__.pop("chains", None)  # a graph does not shrink: made anew when needed
            elif "chains" in self.__dict__:
                self.chains.add_answer(event)

    @cached_property
    def chains(self) -> AnswerChains:
        """What follows from links and answers."""
        chains = AnswerChains(self.job)
        for event in self.log.evidence():
            chains.add_answer(event)
        return chains


def _kinds(
    kinds: Sequence[str] | None, strategy: str, *, has_rules: bool = False
) -> tuple[str, ...]:
    """Return the kinds to ask; strategies that draw pairs ask for nothing else."""
    require_word("strategy", strategy, selection.STRATEGIES)
    if kinds is None:
        usual = (*DEFAULT_KINDS, *["which"] * has_rules)
        return usual if strategy == "adaptive" else ("same",)
    if "which" in kinds and not has_rules:
        raise OptionError("which-needs-rules")
    if strategy != "adaptive" and tuple(kinds) != ("same",):
        raise OptionError("kinds-need-adaptive", strategy=strategy)
    check_costs(kinds, None)
    return tuple(kinds)
