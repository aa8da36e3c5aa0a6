"""Fitting: the model after the answers so far, from where the last fit ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tiebreak.ask.job import Job
from tiebreak.ask.log import Event
from tiebreak.errors import LinkError
from tiebreak.inference import VariationalBayes
from tiebreak.options import ExactLinkOptions
from tiebreak.selection.asking import tempered

BETWEEN_BATCHES = 1e-3  # tolerance of fits that only choose questions: an answer moves far more
SMALL_ERROR = 0.02  # of links without weight, where weights say how sure the others are


class FittedSession(NamedTuple):
    """A fitted model, and what a session reads from it again and again."""

    model: VariationalBayes
    wrong: float  # how many labels are expected to be wrong
    is_soft: bool  # links count as fallible, so that none follows for sure from others
    is_final: bool  # fitted to the usual tolerance, not only well enough to choose questions
    n_checks: int  # links and known labels that tell how far to trust the crowd


class Fits:
    """The last fit, and when it is out of date.

    One person is trusted: their answers are hard links. Where several people answer, where answers
    contradict each other, or where the caller says so, links may err, and how often is learnt.

    A fit goes on from the last one where answers were added to it. Where one was undone, or links
    begin to err, it starts from the votes: what was believed before is not to be believed now.
    """

    def __init__(self, job: Job, link_error: float | str | None) -> None:
        self._job = job
        self._link_error = link_error
        self._fit: FittedSession | None = None
        self._known: tuple[int, ...] = ()
        self._final = True  # whether the fit under way is to the usual tolerance

    def is_current(self, answers: Sequence[Event]) -> bool:
        """Tell whether the last fit knows just these answers."""
        return self._fit is not None and self._known == _ids(answers)

    def n_new(self, answers: Sequence[Event]) -> int:
        """Count the answers that the last fit does not know, and those that were undone since."""
        return len(set(self._known) ^ set(_ids(answers)))

    def current(self, answers: Sequence[Event], *, final: bool = False) -> FittedSession:
        """Return the fit to these answers, made anew where the last one knows others.

        `final` asks for the usual tolerance; a fit before it is where that one starts.
        """
        fit = self._fit
        if fit is None or not self.is_current(answers) or (final and not fit.is_final):
            self._final = final or fit is None
            fit = self._fit = _read(self._fitted(answers), is_final=self._final)
            self._known = _ids(answers)
        return fit

    def last(self, answers: Sequence[Event]) -> FittedSession:
        """Return the last fit, whatever answers it knows; the first one is made."""
        return self._fit or self.current(answers)

    def _fitted(self, answers: Sequence[Event]) -> VariationalBayes:
        if self._link_error is not None:
            return self._fit_with(self._link_error, answers)
        several = len({event.who for event in answers}) > 1
        if several:
            return self._fit_with(self._soft(several=True), answers)
        try:
            return self._fit_with(None, answers)
        except LinkError:  # links as given were checked at the door: the answers contradict
            return self._fit_with(self._soft(several=False), answers)

    def _soft(self, *, several: bool) -> float | str:
        """Choose how links that may err are read; weights rule out that rates are estimated."""
        given = self._job.links
        if given is not None and given.weight is not None:
            return SMALL_ERROR
        return "learn"

    def _fit_with(
        self, link_error: float | str | None, answers: Sequence[Event]
    ) -> VariationalBayes:
        links = self._job.links
        if answers:
            said = self._job.links_of(answers)
            links = said if links is None else links + said
        estimator = VariationalBayes(link_options=ExactLinkOptions(error=link_error))
        if not self._final:
            estimator.set_params(tol=BETWEEN_BATCHES)
        start = self._start(link_error, answers)
        return estimator.fit(self._job.responses, links=links, gold=self._job.gold, start=start)

    def _start(
        self, link_error: float | str | None, answers: Sequence[Event]
    ) -> VariationalBayes | None:
        last = None if self._fit is None else self._fit.model
        grew = set(self._known) <= set(_ids(answers))
        return last if last is not None and grew and last.link_error == link_error else None


def _read(model: VariationalBayes, *, is_final: bool) -> FittedSession:
    probability = tempered(model)[np.arange(len(model.tasks_)), model.labels_.label]
    weights = None if model.links_ is None else model.links_.weight
    return FittedSession(
        model,
        wrong=float((1.0 - probability).sum()),
        is_soft=model.links_may_err or weights is not None,
        is_final=is_final,
        n_checks=len(model.links_ or ()) + len(model.gold_ or ()),
    )


def _ids(answers: Sequence[Event]) -> tuple[int, ...]:
    return tuple(event.id for event in answers)
