"""Fitting: the model after the answers so far, from where the last fit ended.

A fit that starts at another (a warm start) can end in another mode than one from the votes, so a
session that is opened again must not fit from the votes alone. Each fit is recorded: the last
event it had seen, the fit it started at, its options. For example, with 20 answers a batch:

    id  seen  start  link_error  tol
    1   0     -      null        1e-6     before the first question
    2   20    1      null        1e-3     after the first batch
    3   41    -      null        1e-3     event 41 undid an answer: cold
    4   61    3      null        1e-3
    5   61    4      null        1e-6     the labels that were written at the end

The next run makes 3, 4 and 5 again; nothing depends on 1 and 2 any more.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tiebreak.ask.beliefs import believed
from tiebreak.ask.evidence import AnsweredJob, fallible, trusted
from tiebreak.ask.job import Job
from tiebreak.ask.log import Event, Snapshot
from tiebreak.ask.people import SMALL_ERROR
from tiebreak.ask.record import Record
from tiebreak.errors import ConvergenceWarning, GoldError, InputNote, LinkError
from tiebreak.inference.variational_bayes import VariationalBayes
from tiebreak.kernels.layout import Floats
from tiebreak.options import ExactLinkOptions
from tiebreak.selection.asking import own_probabilities

BETWEEN_BATCHES = 1e-3  # tolerance of fits that only choose questions: an answer moves far more
PARTS = 16  # in which answers from before fits were recorded are added; 8 were too few on "web"


class FittedSession(NamedTuple):
    """A fitted model, and what a session reads from it again and again."""

    model: VariationalBayes
    known: Snapshot  # the answers it was fitted to
    id: int  # as it is recorded
    given: AnsweredJob  # what the answers amounted to
    q: Floats  # (n_tasks, n_classes) what to believe when questions are chosen
    wrong: float  # how many labels are expected to be wrong
    is_soft: bool  # answers count as fallible, so that none follows for sure from others
    n_checks: int  # links and labels that tell how far to trust the crowd

    @property
    def is_final(self) -> bool:
        """Whether it has the usual tolerance, not one that only suffices to choose questions."""
        return self.model.tol < BETWEEN_BATCHES


class FitPoint(NamedTuple):
    """How far a session was at one fit: a point of the curve that people watch."""

    n_answers: int  # that say something about classes
    wrong: float
    n_changed: int  # labels that are others than after the fit before


class Step(NamedTuple):
    """A fit to make when the session is opened; one without id is yet to be recorded."""

    known: Snapshot
    tol: float
    id: int | None


class Fits:
    """The last fit, and when it is out of date.

    One person is trusted: their answers are hard links and known labels. Where several people
    answer, where answers contradict each other, or where the caller says so, answers may err, and
    how often is learnt, for links and for labels of each person.

    A fit goes on from the last one where answers were added to it. Where one was undone, or links
    begin to err, it starts from the votes: what was believed before is not to be believed now.
    The same rules hold when recorded fits are made again, so that with the same input they decide
    the same; with more responses, links or gold they decide what suits these.
    """

    def __init__(self, job: Job, record: Record, link_error: float | str | None) -> None:
        self._job = job
        self._record = record
        self._link_error = link_error
        self.made: FittedSession | None = None  # the last fit; nothing is fitted to find it
        self._steps: deque[Step] | None = None  # still to be made again
        self._own: Floats | None = None
        self.history: list[FitPoint] = []  # of this run, fits that were made again among them

    def n_new(self, now: Snapshot) -> int:
        """Count the answers that the last fit does not know, and those that were undone since."""
        known = frozenset() if self.made is None else self.made.known.ids
        return len(known ^ now.ids)

    def current(self, now: Snapshot, *, final: bool = False) -> FittedSession:
        """Return the fit to these answers, made anew where the last one knows others.

        `final` asks for the usual tolerance; a fit before it is where that one starts.
        """
        fit = self._replayed()
        if fit is not None and fit.known.answers == now.answers and (fit.is_final or not final):
            return fit
        is_rough = fit is not None and not final
        return self._make(now, BETWEEN_BATCHES if is_rough else VariationalBayes().tol)

    def last(self, now: Snapshot) -> FittedSession:
        """Return the last fit, whatever answers it knows; the first one is made."""
        return self._replayed() or self.current(now)

    def replay(self) -> Iterator[tuple[int, int]]:
        """Make the fits of earlier runs again; yield how many are made, and how many there are.

        Whoever stops in the middle can go on: `current` and `last` do.
        """
        if self._steps is None:
            self._steps = deque(self._to_replay())
        total = len(self._steps)
        while self._steps:
            with warnings.catch_warnings():
                if len(self._steps) > 1:  # what the last fit reports is what holds now
                    warnings.simplefilter("ignore", InputNote)
                    warnings.simplefilter("ignore", ConvergenceWarning)
                self._make(*self._steps[0])
            self._steps.popleft()
            yield total - len(self._steps), total

    def _replayed(self) -> FittedSession | None:
        for _ in self.replay():
            pass
        return self.made

    def _to_replay(self) -> list[Step]:
        """Return the steps to the last fit that is recorded, from the last cold one on.

        Parts of a file of version 1 that are not fitted yet come after it.
        """
        fits = self._record.fits()
        seen = [fit.seen for fit in fits]
        parts = [each for each in self._parts() if not seen or each > seen[-1]]
        made: list[tuple[float, int | None]] = [(fit.tol, fit.id) for fit in fits]
        made += [(BETWEEN_BATCHES, None)] * len(parts)
        snapshots = self._record.snapshots([*seen, *parts])
        return [Step(known, *how) for known, how in zip(snapshots, made, strict=True)]

    def _parts(self) -> list[int]:
        """Return the last event of each part of a file of version 1, which recorded no fits.

        Answers are added in the order they were given, as they were when that version asked.
        """
        (whole,) = self._record.snapshots([self._record.storage.not_fitted()])
        ends = np.linspace(0, len(whole.answers), PARTS + 1).astype(int)[1:]
        return sorted({whole.answers[end - 1].id for end in ends if end})

    def _make(self, known: Snapshot, tol: float, id: int | None = None) -> FittedSession:
        """Fit, and record it unless it is; memory never runs ahead of the file."""
        model, given, start, is_soft = self._fitted(known.answers, tol)
        if id is None:
            id = self._record.add_fit(
                known.seen,
                start=None if start is None else start.id,
                link_error=model.link_error,
                tol=tol,
            ).id
        label = model.labels_.label
        n_changed = 0
        if self.made is not None:
            n_changed = int((self.made.model.labels_.label != label).sum())
        q = believed(self._job, model, given, known.answers)
        wrong = float((1.0 - q[np.arange(len(label)), label]).sum())
        self.history.append(FitPoint(len(known.answers), wrong, n_changed))
        has_weights = model.links_ is not None and model.links_.weight is not None
        n_checks = len(model.links_ or ()) + len(model.gold_ or ())
        self.made = FittedSession(
            model, known, id, given, q, wrong, is_soft or has_weights, n_checks
        )
        return self.made

    def _fitted(
        self, answers: Sequence[Event], tol: float
    ) -> tuple[VariationalBayes, AnsweredJob, FittedSession | None, bool]:
        """Fit; return also what it was given, where it started, whether answers are fallible."""
        people = {event.who for event in answers if not (event.is_vote or event.is_by_hand)}
        if self._link_error is None and len(people) <= 1:
            try:
                given = trusted(self._job, answers)
                start = self._start(None, answers)
                return self._fit_with(None, given, start, tol), given, start, False
            except (LinkError, GoldError):  # all else was checked at the door: answers contradict
                pass
        given, link_error, start = self._weighed(answers)
        return self._fit_with(link_error, given, start, tol), given, start, True

    def _weighed(
        self, answers: Sequence[Event]
    ) -> tuple[AnsweredJob, float | str | None, FittedSession | None]:
        """Weigh answers against what the crowd says; return also how links are read, and the start.

        What the responses of a task say is read as the last fit reads them: what answers tell of
        the workers counts for every task. A fit that starts from the votes goes by plain VB, so
        that it can be made again without those before it.
        """
        rate = self._link_error if isinstance(self._link_error, int | float) else None
        last = self.made
        if last is not None:
            given = fallible(self._job, answers, own_probabilities(last.model), rate)
            link_error = self._reading(given)
            if self._start(link_error, answers) is last:
                return given, link_error, last
        given = fallible(self._job, answers, self._own_by_votes(), rate)
        return given, self._reading(given), None

    def _own_by_votes(self) -> Floats:
        """Return what the responses of each task alone say by plain VB, which is fitted once."""
        if self._own is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InputNote)
                warnings.simplefilter("ignore", ConvergenceWarning)
                self._own = own_probabilities(VariationalBayes().fit(self._job.responses))
        return self._own

    def _reading(self, given: AnsweredJob) -> float | str | None:
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

    def _fit_with(
        self,
        link_error: float | str | None,
        given: AnsweredJob,
        start: FittedSession | None,
        tol: float,
    ) -> VariationalBayes:
        model = VariationalBayes(
            link_options=ExactLinkOptions(error=link_error),
            gold_weight=1,  # tasks that are asked about are doubtful ones, no sample of all
            tol=tol,
        )
        return model.fit(
            given.responses,
            links=given.links,
            gold=given.gold,
            start=None if start is None else start.model,
        )

    def _start(
        self, link_error: float | str | None, answers: Sequence[Event]
    ) -> FittedSession | None:
        """Return the fit to go on from; None: start from the votes."""
        last = self.made
        if last is None or last.model.link_error != link_error:
            return None
        return last if last.known.ids <= {event.id for event in answers} else None
