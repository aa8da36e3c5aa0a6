"""Worker models around another: what they have in common, and what counts as one more response.

A known class keeps a known task among the subtypes of its class. Kept evidence is what responses
said that were dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tiebreak.kernels.layout import Floats

if TYPE_CHECKING:
    from tiebreak.inference.worker_models import WorkerModel


@dataclass(frozen=True)
class ModelWrapper:
    """A `WorkerModel` that does what the one inside does, until a method says otherwise."""

    inner: WorkerModel

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
        """Parameters before any response."""
        return self.inner.prior

    def collect(self, counts: Floats) -> Floats:
        """Return what counts add to the parameters."""
        return self.inner.collect(counts)

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the expected log probability of each response, (n_codes, n_states)."""
        return self.inner.log_table(parameters, n_threads)

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return the workers' part of the bound."""
        return self.inner.log_evidence(parameters, n_threads)

    def confusion(self, parameters: Floats) -> Floats:
        """Return the expected confusion matrices, (worker, state, answer)."""
        return self.inner.confusion(parameters)


@dataclass(frozen=True)
class KnownClasses(ModelWrapper):
    """A `WorkerModel` around another, with K more codes: "the class is k", never wrong.

    Their rows of the log table are 0 for the states of class k and −∞ for all others. Nothing is
    learnt from them.
    """

    def collect(self, counts: Floats) -> Floats:
        """Return what counts add to the parameters, those of known classes left out."""
        return self.inner.collect(counts[: -self.n_classes])

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the table with one more row per class."""
        n_subtypes = self.n_states // self.n_classes
        is_own = np.repeat(np.eye(self.n_classes, dtype=bool), n_subtypes, axis=1)
        known = np.where(is_own, 0.0, -np.inf)
        return np.concatenate([self.inner.log_table(parameters, n_threads), known])


@dataclass(frozen=True)
class KeptEvidence(ModelWrapper):
    """A `WorkerModel` around another, with one more code for each row of scores.

    Nothing is learnt from these codes: what they stand for is among the counts already.
    """

    rows: Floats  # (n_rows, n_states) log scores

    def collect(self, counts: Floats) -> Floats:
        """Return what counts add to the parameters, those of kept evidence left out."""
        return self.inner.collect(counts[: len(counts) - len(self.rows)])

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the table with the rows at its end."""
        return np.concatenate([self.inner.log_table(parameters, n_threads), self.rows])
