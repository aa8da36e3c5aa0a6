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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.ask.evidence import AnsweredJob, believed, fallible, trusted
from tiebreak.ask.job import Job
from tiebreak.ask.log import Event, Log, Snapshot, Subject
from tiebreak.ask.people import SMALL_ERROR, Weighed
from tiebreak.ask.storage import FitPoint, Storage, StoredModel
from tiebreak.errors import (
    ConvergenceWarning,
    GoldError,
    InputNote,
    LinkError,
    TiebreakError,
    note,
)
from tiebreak.estimators.base import Estimator
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.kernels.layout import Floats
from tiebreak.life import model_file
from tiebreak.options import ExactLinkOptions
from tiebreak.selection.questions import Offer
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
MOST_AHEAD = 20_000  # questions looked through for some that were not answered yet

LinkRate = float | str | None  # how links are read: never wrong, a rate, or "learn"
OF_WEIGHED = ("task", "r", "is_named", "is_labelled", "for_others")  # its arrays


def new_model(link_error: LinkRate, is_final: bool) -> Estimator:
    """Return the model to fit; one that is not final only chooses questions."""
    model = VariationalBayes(
        link_options=ExactLinkOptions(error=link_error),
        gold_weight=1,  # tasks that are asked about are doubtful ones, no sample of all
    )
    return model if is_final else model.set_params(tol=BETWEEN_BATCHES)


class FittedSession(NamedTuple):
    """A fitted model, and what a session reads from it again and again."""

    model: Estimator
    known: Snapshot  # the answers it was fitted to
    given: AnsweredJob  # what the answers amounted to
    link_error: LinkRate
    is_final: bool  # fitted to the usual tolerance, not one that only suffices to choose questions
    is_soft: bool  # answers count as fallible, so that none follows for sure from others
    q: Floats  # (n_tasks, n_classes) what to believe when questions are chosen
    wrong: float  # how many labels are expected to be wrong
    n_checks: int  # links and labels that tell how far to trust the crowd


class Fits:
    """The last fit, and when it is out of date.

    One person is trusted: their answers are hard links and known labels. Where several people
    answer, where answers contradict each other, or where the caller says so, answers may err, and
    how often is learnt, for links and for labels of each person.

    A fit goes on from the last one where answers were added to it. Where one was undone, or links
    begin to err, it starts from the votes: what was believed before may be wrong now.
    """

    def __init__(
        self,
        job: Job,
        storage: Storage,
        link_error: LinkRate,
        new_model: Callable[[LinkRate, bool], Estimator] = new_model,
    ) -> None:
        self._job = job
        self._storage = storage
        self._link_error = link_error
        self._new_model = new_model
        self._inputs = f"{job.inputs()} {link_error!r}"
        self.made: FittedSession | None = None  # the last fit to what is here now
        # Where the next fit may go on from: a model, the answers it knew, how it read links.
        self._start: tuple[Estimator, frozenset[int], LinkRate] | None = None
        self.history, stored = storage.fits()
        if stored is not None:
            self._restore(stored)

    def n_new(self, now: Snapshot) -> int:
        """Count the answers that the last fit does not know, and those that were undone since."""
        known = frozenset() if self.made is None else self.made.known.ids
        return len(known ^ now.ids)

    def current(self, now: Snapshot, *, final: bool = False) -> FittedSession:
        """Return the fit to these answers, made anew where the last one knows others.

        `final` asks for the usual tolerance; a fit before it is where that one starts.
        """
        fit = self.made
        if fit is not None and fit.known.answers == now.answers and (fit.is_final or not final):
            return fit
        return self._make(now, is_final=final or fit is None)

    def _make(self, known: Snapshot, *, is_final: bool) -> FittedSession:
        """Fit, and keep the fit in the file; memory never runs ahead of it."""
        model, given, link_error, is_soft = self._fitted(known.answers, is_final=is_final)
        fit = self._as_made(model, known, given, link_error, is_final=is_final, is_soft=is_soft)
        label = model.labels_.label
        former = label if self.made is None else self.made.model.labels_.label
        point = FitPoint(len(known.answers), fit.wrong, int((former != label).sum()))
        self._storage.set_fit(point, StoredModel(known.seen, self._inputs, _packed(fit)))
        self.history.append(point)
        self.made = fit
        self._start = model, known.ids, link_error
        return fit

    def _as_made(
        self,
        model: Estimator,
        known: Snapshot,
        given: AnsweredJob,
        link_error: LinkRate,
        *,
        is_final: bool,
        is_soft: bool,
    ) -> FittedSession:
        """Add what a session reads from a fit again and again."""
        q = believed(self._job, model, given, known.answers)
        label = model.labels_.label
        wrong = float((1.0 - q[np.arange(len(label)), label]).sum())
        is_soft = is_soft or (model.links_ is not None and model.links_.weight is not None)
        n_checks = len(model.links_ or ()) + len(model.gold_ or ())
        return FittedSession(model, known, given, link_error, is_final, is_soft, q, wrong, n_checks)

    def _restore(self, stored: StoredModel) -> None:
        """Take up the last fit. Where responses, links or gold are others, only go on from it."""
        log = Log()
        for event in self._storage.since(0):
            if event.id <= stored.seen:
                log.add(event)
        known = Snapshot(stored.seen, tuple(log.evidence()))
        try:
            model, about, weighed = _unpacked(stored.data)
        except ValueError as error:
            note("session-model-unreadable", path=self._storage.path, reason=error)
            return
        self._start = model, known.ids, about["link_error"]
        if stored.inputs == self._inputs:
            n_loose = about.pop("n_loose")
            given = AnsweredJob(model.responses_, model.links_, model.gold_, weighed, n_loose)
            self.made = self._as_made(model, known, given, **about)

    def _fitted(
        self, answers: Sequence[Event], *, is_final: bool
    ) -> tuple[Estimator, AnsweredJob, LinkRate, bool]:
        """Fit; return also what it was given, how links are read, whether answers are fallible."""
        people = {event.who for event in answers if not (event.is_vote or event.is_by_hand)}
        if self._link_error is None and len(people) <= 1:
            try:
                given = trusted(self._job, answers)
                start = self._start_for(None, answers)
                return self._fit(None, given, start, is_final), given, None, False
            except (LinkError, GoldError):  # all else was checked at the door: answers contradict
                pass
        given, link_error, start = self._weighed(answers)
        return self._fit(link_error, given, start, is_final), given, link_error, True

    def _fit(
        self, link_error: LinkRate, given: AnsweredJob, start: Estimator | None, is_final: bool
    ) -> Estimator:
        model = self._new_model(link_error, is_final)
        return model.fit(given.responses, links=given.links, gold=given.gold, start=start)

    def _weighed(self, answers: Sequence[Event]) -> tuple[AnsweredJob, LinkRate, Estimator | None]:
        """Weigh answers against what the crowd says; return also how links are read, and the start.

        What the responses of a task say is read as the last fit reads them: what answers tell of
        the workers counts for every task. A fit that starts from the votes goes by plain VB.
        """
        rate = self._link_error if isinstance(self._link_error, int | float) else None
        made = self.made
        own = self._by_responses if made is None else own_probabilities(made.model)
        given = fallible(self._job, answers, own, rate)
        link_error = self._reading(given)
        start = self._start_for(link_error, answers)
        if start is None and made is not None:
            given = fallible(self._job, answers, self._by_responses, rate)
            link_error = self._reading(given)
        return given, link_error, start

    @cached_property
    def _by_responses(self) -> Floats:
        """What the responses of each task alone say, by plain VB."""
        with _without_notes():
            return own_probabilities(VariationalBayes().fit(self._job.responses))

    def _reading(self, given: AnsweredJob) -> LinkRate:
        """Return how links are read where answers may err: as the caller says, or by what there is.

        Links that say what was denied hold: they were weighed. Others may be wrong. Weights rule
        out that rates are estimated, and so does much that was weighed: links are then asked about
        tasks in doubt, of which the crowd would deny true ones.
        """
        if self._link_error is not None:
            return self._link_error
        links = self._job.links
        if links is not None and links.weight is not None:
            return SMALL_ERROR
        if given.weighed is None:
            return "learn"
        return SMALL_ERROR if given.n_loose or links is not None else None

    def _start_for(self, link_error: LinkRate, answers: Sequence[Event]) -> Estimator | None:
        """Return the fit to go on from; None: start from the votes."""
        if self._start is None:
            return None
        model, ids, read = self._start
        is_beyond = read == link_error and ids <= {event.id for event in answers}
        return model if is_beyond else None


@contextmanager
def _without_notes() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _packed(fit: FittedSession) -> bytes:
    """Return a fit as the file of a session keeps it."""
    weighed = fit.given.weighed
    about: dict[str, Any] = {
        "link_error": fit.link_error,
        "is_final": fit.is_final,
        "is_soft": fit.is_soft,
        "n_loose": fit.given.n_loose,
    }
    arrays = {}
    if weighed is not None:
        plain = weighed._asdict()
        arrays = {name: plain.pop(name) for name in OF_WEIGHED}
        about["weighed"] = plain
    for name, data in (
        ("about", json.dumps(about).encode()),
        ("model", model_file.to_bytes(fit.model)),
    ):
        arrays[name] = np.frombuffer(data, np.uint8)
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def _unpacked(data: bytes) -> tuple[Estimator, dict[str, Any], Weighed | None]:
    """Return the model of a fit, what is said of it, and what answers amounted to."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        about = json.loads(arrays["about"].tobytes())
        model = model_file.from_bytes(arrays["model"].tobytes())
        plain = about.pop("weighed", None)
        if plain is None:
            return model, about, None
        return model, about, Weighed(**plain, **{name: arrays[name] for name in OF_WEIGHED})


class Background:
    """A thread that fits for a desk: start it, `wake` it after each answer, `close` it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._wish = threading.Condition(desk.lock)
        self.chosen: list[tuple[Subject, Offer]] = []  # the best first; hold `desk.lock`
        self._chosen_at = -1  # the last event that was known when questions were chosen
        self._is_short = False  # somebody found nothing: choose again
        self._people: set[str] = set()
        self._finals: list[Future[Estimator]] = []
        self._closes = False
        self._seconds = 0.0  # that the last fit took
        self._ended = time.monotonic()  # when it was done
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="tiebreak-fits", daemon=True)

    def start(self, fit: FittedSession, now: Snapshot) -> None:
        """Choose by the first fit, and begin to work."""
        self.choose_by(fit, now)
        self._thread.start()

    def wake(self, who: str | None = None, *, is_short: bool = False) -> None:
        """Say that there is something new; `is_short`: somebody found no question left."""
        with self._wish:
            if who is not None:
                self._people.add(who)
            self._is_short = self._is_short or is_short
            self._wish.notify()

    def knows_all(self) -> bool:
        """Say whether nothing new was said since questions were chosen; hold `desk.lock`."""
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
            raise TiebreakError("session-worker-ended", error=self.error) from self.error

    def close(self) -> None:
        """End the worker, after the fit that it may be at."""
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
            while not self._has_work():
                self._wish.wait(self._patience())
            if self._closes:
                return False
            finals = self._finals
            self._finals = []
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

    def _has_work(self) -> bool:
        if self._closes or self._finals or self._is_short:
            return True
        return self._n_new() > 0 and self._patience() == 0.0

    def _n_new(self) -> int:
        fit = self._desk.fits.made
        return self._desk.log.last - (fit.known.seen if fit is not None else 0)

    def _patience(self) -> float | None:
        """Return for how many seconds the worker still rests; None: nothing is new."""
        n_new = self._n_new()
        if not n_new:
            return None
        times = REST if n_new >= self._desk.batch else LONG_REST
        return max(self._ended + times * self._seconds - time.monotonic(), 0.0)

    def choose_by(self, fit: FittedSession, now: Snapshot) -> None:
        """Choose ahead, more where most of what is chosen was answered before."""
        n = n_wanted = AHEAD + EACH * len(self._people)
        with self._desk.lock:
            answered = self._desk.log.answered()
        while True:
            chosen = self._desk.choose(n, fit=fit)
            n_new = sum(subject not in answered for subject, _ in chosen)
            if n_new >= n_wanted or len(chosen) < n or n >= MOST_AHEAD:
                break
            n *= 4
        with self._desk.lock:
            self.chosen = chosen
            self._chosen_at = now.seen
