"""Counts that are carried along: what workers did, and what tasks were, outside of this fit.

Beliefs are a prior plus counts. Where the counts of some tasks stay as they are (their responses
were dropped, or they belong to other batches of a stream), these counts and the prior together are
the prior of the rest. Parameters are whole: prior, carried counts, and those of this fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.inference.class_prior import StatePrior
from tiebreak.inference.worker_models import WorkerModel
from tiebreak.kernels.layout import Codes, Floats


class CarriedWorkers(NamedTuple):
    """A `WorkerModel` around another, whose prior holds what workers did elsewhere."""

    inner: WorkerModel
    added: Floats  # what was counted elsewhere, as `collect` returns it: one row per worker

    @property
    def n_workers(self) -> int:
        """How many workers there are."""
        return self.inner.n_workers

    @property
    def n_classes(self) -> int:
        """How many labels a worker may give."""
        return self.inner.n_classes

    @property
    def n_states(self) -> int:
        """How many states a task may be in."""
        return self.inner.n_states

    @property
    def prior(self) -> Floats:
        """Parameters before any response of this fit."""
        return np.asarray(self.inner.prior + self.added)

    def collect(self, counts: Floats) -> Floats:
        """Return what counts add to the parameters."""
        return self.inner.collect(counts)

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the expected log probability of each response, (n_codes, n_states)."""
        return self.inner.log_table(parameters, n_threads)

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return the workers' part of the bound, with what is carried."""
        return self.inner.log_evidence(parameters, n_threads)

    def confusion(self, parameters: Floats) -> Floats:
        """Return the expected confusion matrices, (worker, state, answer)."""
        return self.inner.confusion(parameters)


class CarriedStates(NamedTuple):
    """A `StatePrior` around another, whose prior holds tasks of elsewhere."""

    inner: StatePrior
    added: Floats  # (n_states,) how many tasks were in each state

    @property
    def prior(self) -> Floats:
        """Parameters before any task of this fit."""
        return np.asarray(self.inner.prior + self.added)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return self.inner.n_classes

    @property
    def class_of(self) -> Codes:
        """The class of each state."""
        return self.inner.class_of

    def expected_log(self, parameters: Floats) -> Floats:
        """Return the expected log probability of each state, (n_states,)."""
        return self.inner.expected_log(parameters)

    def expected_log_of_class(self, parameters: Floats) -> Floats:
        """Return the expected log probability of each class, (n_classes,)."""
        return self.inner.expected_log_of_class(parameters)

    def log_evidence(self, parameters: Floats) -> float:
        """Return its part of the bound, with what is carried."""
        return self.inner.log_evidence(parameters)

    def mean(self, parameters: Floats) -> Floats:
        """Return the expected share of each class, (n_classes,)."""
        return self.inner.mean(parameters)
