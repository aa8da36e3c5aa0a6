"""Counts that are carried along: what workers did, and what tasks were, outside of this fit.

Beliefs are a prior plus counts. Where the counts of some tasks stay as they are (their responses
were dropped, or they belong to other batches of a stream), these counts and the prior together are
the prior of the rest. Parameters are whole: prior, carried counts, and those of this fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tiebreak.inference.dirichlet import StatePrior
from tiebreak.inference.worker_models.wrapper import ModelWrapper
from tiebreak.kernels.layout import Codes, Floats


@dataclass(frozen=True)
class CarriedWorkers(ModelWrapper):
    """A `WorkerModel` around another, whose prior holds what workers did elsewhere."""

    added: Floats  # what was counted elsewhere, as `collect` returns it: one row per worker

    @property
    def prior(self) -> Floats:
        """Parameters before any response of this fit."""
        return np.asarray(self.inner.prior + self.added)


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
