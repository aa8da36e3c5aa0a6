"""Background: one worker thread fits the model and chooses questions ahead.

Whoever asks for the next question takes it from what was chosen already, so nobody waits for a fit.
One fit is made at a time, never two. Three things happen beside each other:

    a request            holds `desk.lock`: records an answer, takes a question, calls `wake`
    the worker           holds it to look at the answers, and to hand over what it chose
    the fit, the choice  of the worker: hold nothing, and touch no record
"""

from __future__ import annotations

import threading
import time
import warnings
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from tiebreak.ask.fitting import FittedSession
from tiebreak.ask.log import Snapshot, Subject
from tiebreak.errors import ConvergenceWarning, InputNote, TiebreakError
from tiebreak.inference.variational_bayes import VariationalBayes
from tiebreak.selection.offers import Offer

if TYPE_CHECKING:
    from tiebreak.ask.desk import Desk

AHEAD = 1_000  # questions chosen ahead: fifty people use up 25 a second while a fit takes 20 s
EACH = 4  # … and for each person who answers
# How long the worker rests after a fit, in times that the fit took. So requests have the processor
# for half of the time at least, and small jobs are fitted after every answer.
REST = 1.0  # before a fit to a whole batch of answers
LONG_REST = 20.0  # before a fit to fewer
MOST_AHEAD = 20_000  # questions looked through for some that were not answered yet


class Chosen(NamedTuple):
    """A question that was chosen ahead, and what it is about, as the file has it."""

    subject: Subject
    offer: Offer


class Background:
    """The worker of a desk: start it, `wake` it after each answer, `close` it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._wish = threading.Condition(desk.lock)
        self.chosen: list[Chosen] = []  # the best first; hold `desk.lock`
        self._chosen_at = -1  # the last event that was known when questions were chosen
        self._is_short = False  # somebody found nothing: choose again
        self._people: set[str] = set()
        self._finals: list[Future[VariationalBayes]] = []
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
        """Say that there is something new; `is_short`: that no question was left for somebody."""
        with self._wish:
            if who is not None:
                self._people.add(who)
            self._is_short = self._is_short or is_short
            self._wish.notify()

    def knows_all(self) -> bool:
        """Say whether nothing new was said since questions were chosen; hold `desk.lock`."""
        return self._chosen_at == self._desk.record.log.last and not self._is_short

    def model(self) -> VariationalBayes:
        """Return the model that knows all answers; the worker fits it, the caller waits."""
        future: Future[VariationalBayes] = Future()
        with self._wish:
            self.raise_if_ended()
            if self._closes:
                raise RuntimeError("The worker that fits has ended.")
            self._finals.append(future)
            self._wish.notify()
        return future.result()

    def raise_if_ended(self) -> None:
        """Say so where the worker broke off: nobody is to wait for what never comes."""
        if self.error is not None:
            raise TiebreakError(
                f"The worker that fits has ended: {self.error!r}. Every answer is kept; start the "
                "server again to go on."
            ) from self.error

    def close(self) -> None:
        """End the worker, after the fit that it may be at."""
        with self._wish:
            self._closes = True
            self._wish.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InputNote)
                warnings.simplefilter("ignore", ConvergenceWarning)
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
            self._desk.record.catch_up()
            now = self._desk.record.log.snapshot()
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
        return self._desk.record.log.last - (fit.known.seen if fit is not None else 0)

    def _patience(self) -> float | None:
        """Return for how many seconds the worker still rests; None: nothing is new."""
        n_new = self._n_new()
        if not n_new:
            return None
        times = REST if n_new >= self._desk.batch else LONG_REST
        return max(self._ended + times * self._seconds - time.monotonic(), 0.0)

    def choose_by(self, fit: FittedSession, now: Snapshot) -> None:
        """Choose ahead, more where most of what is chosen was answered before."""
        record = self._desk.record
        n_wanted = AHEAD + EACH * len(self._people)
        with self._desk.lock:
            answered = record.log.answered()
        n = n_wanted
        while True:
            offers = self._desk.offers_by(fit, n)
            chosen = [Chosen(self._desk.subject(offer), offer) for offer in offers]
            n_new = sum(each.subject not in answered for each in chosen)
            if n_new >= n_wanted or len(offers) < n or n >= MOST_AHEAD:
                break
            n *= 4
        with self._desk.lock:
            self.chosen = chosen
            self._chosen_at = now.seen
