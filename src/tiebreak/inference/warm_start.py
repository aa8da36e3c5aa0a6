"""Warm starts: where a fitted model ended, as the start of a later fit.

The later fit may have more links or labels, or other responses: tasks and workers that the model
has not seen start as in a cold fit, from votes and from the prior.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tiebreak.inference import vb
from tiebreak.inference.vb import Beliefs, PlainBeliefs, Problem
from tiebreak.kernels.layout import ByTask, Floats
from tiebreak.kernels.sweeper import Logs
from tiebreak.responses import Responses


class WarmStart(NamedTuple):
    """The end of a fit, and what need not be found again for the very same responses."""

    responses: Responses
    tasks: ByTask  # how they lie
    plain: Beliefs | None  # of plain VB, which has seen neither links nor labels; None: not run
    q: Floats  # (n_tasks, n_states) where the ascent ended
    added: tuple[Floats, Floats]  # what q adds to the priors of workers and classes
    worker_model: str
    has_patterns: bool  # whether equal response patterns were worth finding
    plain_logs: Logs | None = None  # what plain VB expects, where a fit has asked

    def plain_beliefs(self) -> PlainBeliefs:
        """Return what plain VB believed, with what it expects where that is kept."""
        assert self.plain is not None  # it was run
        beliefs = PlainBeliefs(*self.plain)
        beliefs.logs = self.plain_logs
        return beliefs

    @property
    def class_q(self) -> Floats:
        """Where the ascent ended, by class: (n_tasks, n_classes)."""
        n_classes = self.responses.n_classes
        if self.q.shape[1] == n_classes:
            return self.q
        return np.asarray(self.q.reshape(len(self.q), n_classes, -1).sum(axis=2))

    def is_for(self, responses: Responses) -> bool:
        """Whether these are the very same responses."""
        return self.responses is responses or _are_equal(self.responses, responses)

    def implied(self, problem: Problem, worker_model: str) -> Beliefs:
        """Return the beliefs that q implies, under priors that may be others now."""
        if worker_model == self.worker_model:
            return vb.prior_plus(problem, self.added)
        return vb.implied_beliefs(problem, self.q)


def _are_equal(one: Responses, other: Responses) -> bool:
    """Compare arrays first: ids are compared one by one only where these are equal."""
    return (
        np.array_equal(one.start, other.start)
        and np.array_equal(one.code, other.code)
        and one.classes == other.classes
        and one.workers == other.workers
        and one.tasks == other.tasks
    )


def q_of_start(
    start: Any, responses: Responses, tasks: ByTask, worker_model: str, random_state: int | None
) -> Floats:
    """Return q of these tasks, by states where a fitted model has the same ones, else by class."""
    end: WarmStart | None = getattr(start, "_warm_start", None)
    q = start.probabilities_ if end is None else end.class_q
    if end is not None and end.is_for(responses):
        return np.asarray(end.q if end.worker_model == worker_model else q)
    votes = vb.majority(tasks, responses.n_classes)
    if end is not None and end.worker_model == worker_model:
        q = end.q
        n_subtypes = q.shape[1] // end.responses.n_classes
        if n_subtypes > 1:
            votes = vb.split_into_subtypes(votes, n_subtypes, random_state)
    return q_from(start.responses_, q, responses, votes)


def q_from(former: Responses, q: Floats, responses: Responses, votes: Floats) -> Floats:
    """Return q of a model of other responses, by these tasks and classes, or by their states.

    Parameters
    ----------
    former, q
        The responses of the model, and its q.
    responses
        Those to fit now.
    votes
        (n_tasks, n_classes or n_states) where tasks that the model has not seen start.
    """
    place = former.tasks.codes(responses.tasks)
    n_subtypes = q.shape[1] // max(former.n_classes, 1)
    subtype = np.arange(n_subtypes)
    new_class = np.repeat(responses.classes.codes(former.classes), n_subtypes)
    column = np.where(
        new_class >= 0, new_class * n_subtypes + np.tile(subtype, former.n_classes), -1
    )
    seen = np.flatnonzero(place >= 0)
    kept = np.flatnonzero(column >= 0)
    moved = np.zeros((len(seen), votes.shape[1]))
    moved[:, column[kept]] = q[np.ix_(place[seen], kept)]
    total = moved.sum(axis=1)
    has_mass = total > 0.0  # not where all that was likely is no class any more
    start = votes.copy()
    start[seen[has_mass]] = moved[has_mass] / total[has_mass, None]
    return start
