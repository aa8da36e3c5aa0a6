"""Fitting: the model after the answers so far, from where the last fit ended.

A fit that starts at another (a warm start) can end in another mode than one from the votes, so a
session that is opened again must not fit from the votes alone. The last fit is therefore kept in
the file, whole: a session that is opened again has its labels at once, and goes on from there.

A server fits in a thread of its own (`Background`). One fit is made at a time, never two:

    a request            holds `desk.lock`: records an answer, takes a question, calls `wake`
    the worker           holds it to look at the answers, and to hand over what it chose
    the fit, the choice  of the worker: hold nothing, and touch no record
"""

from __future__ import annotations

import io
import json
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tiebreak import errors
from tiebreak.ask.evidence import FitInputs, LinkRate, believed, fallible, trusted
from tiebreak.ask.job import Job
from tiebreak.ask.log import Event, Log, Snapshot
from tiebreak.ask.results import Question
from tiebreak.ask.storage import FitPoint, Storage
from tiebreak.estimators.base import Estimator
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.inference.people import Weighed
from tiebreak.kernels.layout import Floats
from tiebreak.life import model_file
from tiebreak.options import ExactLinkOptions
from tiebreak.selection.state import own_probabilities

if TYPE_CHECKING:
    from tiebreak.ask.desk import Desk

BETWEEN_BATCHES = 1e-3  # tolerance of fits that only choose questions: an answer moves far more
AHEAD = 1_000  # questions chosen ahead: fifty people use up 25 a second while a fit takes 20 s
EACH = 4  # … and for each person who answers
# How long the worker rests after a fit, in times that the fit took. So requests have the processor
# for half of the time at least, and small jobs are fitted after every answer.
REST = 1.0  # before a fit to a whole batch of answers
LONG_REST = 20.0  # before a fit to fewer
RULE_WEIGHT = 4.0  # log-odds of rules that answers contradict: wrong in 2 of 100
MOST_AHEAD = 20_000  # questions looked through for some that were not answered yet


def new_model(link_error: LinkRate, *, is_final: bool) -> VariationalBayes:
    """Return the model to fit; one that is not final only chooses questions."""
    model = VariationalBayes(
        link_options=ExactLinkOptions(error=link_error),
        gold_weight=1,  # tasks that are asked about are doubtful ones, no sample of all
    )
    return model if is_final else model.set_params(tol=BETWEEN_BATCHES)


@dataclass(frozen=True, eq=False)
class SessionFit:
    """A fitted model, the answers it was fitted to, and how these were read."""

    model: Estimator
    known: Snapshot
    link_error: LinkRate
    is_final: bool  # fitted to the usual tolerance, not one that only suffices to choose questions
    is_soft: bool  # answers count as fallible, so that none follows for sure from others
    weighed: Weighed | None
    q: Floats  # (n_tasks, n_classes) what to believe when questions are chosen

    @cached_property
    def wrong(self) -> float:
        label = self.model.labels_.label
        return float((1.0 - self.q[np.arange(len(label)), label]).sum())

    @property
    def n_checks(self) -> int:
        return len(self.model.links_ or ()) + len(self.model.gold_ or ())

    def to_bytes(self, inputs: str) -> bytes:
        """Return a fit as the file of a session keeps it, with the fingerprint of its inputs."""
        about: dict[str, Any] = {"inputs": inputs, "link_error": self.link_error}
        about |= {"is_final": self.is_final, "is_soft": self.is_soft}
        weighed = {} if self.weighed is None else vars(self.weighed)
        arrays = {name: each for name, each in weighed.items() if isinstance(each, np.ndarray)}
        about["weighed"] = {name: each for name, each in weighed.items() if name not in arrays}
        for name, data in (
            ("about", json.dumps(about).encode()),
            ("model", model_file.to_bytes(self.model)),
        ):
            arrays[name] = np.frombuffer(data, np.uint8)
        sink = io.BytesIO()
        np.savez(sink, **arrays)  # type: ignore[arg-type]
        return sink.getvalue()

    @classmethod
    def from_bytes(
        cls, data: bytes, known: Snapshot, job: Job, inputs: str
    ) -> tuple[SessionFit, bool]:
        """Return a fit, and whether it was fitted to the inputs that there are now."""
        with np.load(io.BytesIO(data), allow_pickle=False) as pieces:
            arrays = dict(pieces.items())
        about = json.loads(arrays.pop("about").tobytes())
        model = model_file.from_bytes(arrays.pop("model").tobytes())
        plain = about.pop("weighed")
        weighed = Weighed(**plain, **arrays) if arrays else None
        is_of_these = about.pop("inputs") == inputs
        q = model.probabilities_
        if is_of_these:
            q = believed(job, model, weighed, known.answers)
        return cls(model, known, **about, weighed=weighed, q=q), is_of_these


class Fits:
    """The last fit, and when it is out of date.

    One person is trusted: their answers are hard links and known labels. Where several people
    answer, where answers contradict each other, or where the caller says so, answers may err, and
    how often is learnt, for links and for labels of each person.

    A fit goes on from the last one where answers were added to it. Where one was undone, or links
    begin to err, it starts from the votes: what was believed before may be wrong now.
    """

    def __init__(self, job: Job, storage: Storage, link_error: LinkRate) -> None:
        self._job = job
        self._storage = storage
        self._link_error = link_error
        self._inputs = f"{job.inputs()} {link_error!r}"
        self.made: SessionFit | None = None  # the last fit to what is here now
        self._start: SessionFit | None = None  # where the next one may go on from
        self.history, seen, data = storage.fits()
        if data:
            self._restore(seen, data)

    def _restore(self, seen: int, data: bytes) -> None:
        """Take up the last fit. Where responses, links or gold are others, only go on from it."""
        log = Log()
        for event in self._storage.since(0):
            if event.id <= seen:
                log.add(event)
        known = Snapshot(seen, tuple(log.evidence()))
        try:
            self._start, is_of_these = SessionFit.from_bytes(data, known, self._job, self._inputs)
        except ValueError as error:
            errors.note("session-model-unreadable", path=self._storage.path, reason=error)
        else:
            self.made = self._start if is_of_these else None

    def n_new(self, now: Snapshot) -> int:
        """Count the answers that the last fit does not know, and those that were undone since."""
        known = frozenset() if self.made is None else self.made.known.ids
        return len(known ^ now.ids)

    def current(self, now: Snapshot, *, final: bool = False) -> SessionFit:
        """Return the fit to these answers, made anew where the last one knows others.

        `final` asks for the usual tolerance; a fit before it is where that one starts.
        """
        last = self.made
        if last is not None and last.known.answers == now.answers and (last.is_final or not final):
            return last
        fit = self._fitted(now, is_final=final or last is None)
        label = fit.model.labels_.label
        former = label if last is None else last.model.labels_.label
        point = FitPoint(len(now.answers), fit.wrong, int((former != label).sum()))
        # Memory never runs ahead of the file.
        self._storage.set_fit(point, now.seen, fit.to_bytes(self._inputs))
        self.history.append(point)
        self.made = self._start = fit
        return fit

    def _fitted(self, known: Snapshot, *, is_final: bool) -> SessionFit:
        """Fit to answers: taken as true where one person gave them and they can all be."""
        answers = known.answers
        people = {event.who for event in answers if not (event.is_vote or event.is_by_hand)}
        is_one = self._link_error is None and len(people) <= 1
        if is_one and (given := trusted(self._job, answers)) is not None:
            with suppress(errors.LinkError, errors.GoldError, errors.ConstraintError):
                # all else was checked: answers contradict
                return self._fit(given, known, is_final=is_final)
        # What the responses of a task say is read as the last fit reads them: what answers tell
        # of the workers counts for every task. A fit that starts from the votes goes by plain VB.
        own = self._by_votes if self.made is None else own_probabilities(self.made.model)
        given = fallible(self._job, answers, own, self._link_error)
        if self.made is not None and self._start_for(given, answers) is None:
            given = fallible(self._job, answers, self._by_votes, self._link_error)
        return self._fit(given, known, is_final=is_final)

    def _fit(self, given: FitInputs, known: Snapshot, *, is_final: bool) -> SessionFit:
        model = new_model(given.link_error, is_final=is_final)
        start = self._start_for(given, known.answers)
        rules = given.constraints
        try:
            given_all = {"links": given.links, "gold": given.gold, "start": start}
            model.fit(given.responses, **given_all, constraints=rules)
        except (
            errors.ConstraintError
        ):  # what is believed contradicts rules: then these may be wrong, too
            if not given.is_soft or rules is None:
                raise
            weight = np.where(np.isnan(rules.weights()), RULE_WEIGHT, rules.weights())
            model.fit(given.responses, **given_all, constraints=replace(rules, weight=weight))
        q = believed(self._job, model, given.weighed, known.answers)
        is_soft = given.is_soft or (model.links_ is not None and model.links_.weight is not None)
        return SessionFit(model, known, given.link_error, is_final, is_soft, given.weighed, q)

    def _start_for(self, given: FitInputs, answers: Sequence[Event]) -> Estimator | None:
        """Return the model to go on from; None: start from the votes."""
        last = self._start
        if last is None or last.link_error != given.link_error:
            return None
        return last.model if last.known.ids <= {event.id for event in answers} else None

    @cached_property
    def _by_votes(self) -> Floats:
        with _without_notes():
            return own_probabilities(VariationalBayes().fit(self._job.responses))


@contextmanager
def _without_notes() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.InputNote)
        warnings.simplefilter("ignore", errors.ConvergenceWarning)
        yield


class Background:
    """A thread that fits for a desk: start it, `wake` it after each answer, `close` it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._wish = threading.Condition(desk.lock)
        self.chosen: list[Question] = []  # the best first; hold `desk.lock`
        self._chosen_at = -1  # the last event that was known when questions were chosen
        self._is_short = False  # somebody found nothing: choose again
        self._people: set[str] = set()
        self._finals: list[Future[Estimator]] = []
        self._closes = False
        self._seconds = 0.0  # that the last fit took
        self._ended = time.monotonic()  # when it was done
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="tiebreak-fits", daemon=True)

    def start(self, fit: SessionFit, now: Snapshot) -> None:
        self.choose_by(fit, now)
        self._thread.start()

    def wake(self, who: str | None = None, *, is_short: bool = False) -> None:
        """Report that something is new; `is_short`: somebody found no question left."""
        with self._wish:
            if who is not None:
                self._people.add(who)
            self._is_short = self._is_short or is_short
            self._wish.notify()

    def knows_all(self) -> bool:
        """Return whether nothing new was said since questions were chosen; hold `desk.lock`."""
        return self._chosen_at == self._desk.log.last and not self._is_short

    def model(self) -> Estimator:
        """Return the model that knows all answers; the worker fits it, the caller waits."""
        future: Future[Estimator] = Future()
        with self._wish:
            self.raise_if_ended()
            if self._closes:
                raise RuntimeError("The worker that fits has ended.")
            self._finals.append(future)
            self._wish.notify()
        return future.result()

    def raise_if_ended(self) -> None:
        """Raise what ended the worker, if it has ended: there is nothing to wait for then."""
        if self.error is not None:
            raise errors.TiebreakError("session-worker-ended", error=self.error) from self.error

    def close(self) -> None:
        with self._wish:
            self._closes = True
            self._wish.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            with _without_notes():
                while self.work_once():
                    pass
        except BaseException as error:
            self.error = error
            for future in self._finals:
                future.set_exception(error)
            raise

    def work_once(self) -> bool:
        """Wait for something to do, and do it; False: it is over."""
        with self._wish:
            while (rest := self._rest()) != 0.0:
                self._wish.wait(rest)
            if self._closes:
                return False
            finals, self._finals = self._finals, []
            self._is_short = False
            self._desk.catch_up()
            now = self._desk.log.snapshot()
        began = time.monotonic()
        fit = self._desk.fits.current(now, final=bool(finals))
        self._ended = time.monotonic()
        self._seconds = self._ended - began
        for future in finals:
            future.set_result(fit.model)
        self.choose_by(fit, now)
        return True

    def _rest(self) -> float | None:
        """Return for how many seconds the worker still rests; None: nothing is new."""
        if self._closes or self._finals or self._is_short:
            return 0.0
        fit = self._desk.fits.made
        n_new = self._desk.log.last - (fit.known.seen if fit is not None else 0)
        if not n_new:
            return None
        times = REST if n_new >= self._desk.batch else LONG_REST
        return max(self._ended + times * self._seconds - time.monotonic(), 0.0)

    def choose_by(self, fit: SessionFit, now: Snapshot) -> None:
        """Choose ahead, more where most of what is chosen was answered before."""
        n = n_wanted = AHEAD + EACH * len(self._people)
        with self._desk.lock:
            answered = self._desk.log.answered()
        while True:
            chosen = self._desk.choose(n, fit=fit)
            n_new = sum(question.subject not in answered for question in chosen)
            if n_new >= n_wanted or len(chosen) < n or n >= MOST_AHEAD:
                break
            n *= 4
        with self._desk.lock:
            self.chosen = chosen
            self._chosen_at = now.seen
