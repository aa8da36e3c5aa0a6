"""Evidence as responses: what responses said that were dropped, as one more response per task."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.inference.worker_models import WorkerModel
from tiebreak.kernels.layout import Floats


class KeptEvidence(NamedTuple):
    """A `WorkerModel` around another, with one more code for each row of scores.

    Nothing is learnt from these codes: what they stand for is among the counts already.
    """

    inner: WorkerModel
    rows: Floats  # (n_rows, n_states) log scores

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
        """Return what counts add to the parameters, those of kept evidence left out."""
        return self.inner.collect(counts[: len(counts) - len(self.rows)])

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the table with the rows at its end."""
        return np.concatenate([self.inner.log_table(parameters, n_threads), self.rows])

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return the workers' part of the bound."""
        return self.inner.log_evidence(parameters, n_threads)

    def confusion(self, parameters: Floats) -> Floats:
        """Return the expected confusion matrices, (worker, state, answer)."""
        return self.inner.confusion(parameters)
