"""Workers and classes as they are known: tables that nothing more is learnt from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tiebreak.inference.workers import Workers
from tiebreak.kernels.layout import Codes, Floats

NOTHING = np.empty(0)  # the parameters of what is not learnt


@dataclass(frozen=True, eq=False)
class KnownWorkers(Workers):
    """A `WorkerModel` that is one table, and stays so."""

    table: Floats  # (n_codes, n_states) expected logs
    n_workers: int
    labels: int

    @property
    def n_classes(self) -> int:
        """How many labels a worker may give."""
        return self.labels

    @property
    def n_states(self) -> int:
        """How many states a task may be in."""
        return int(self.table.shape[1])

    @property
    def prior(self) -> Floats:
        """Nothing: there are no parameters."""
        return NOTHING

    @property
    def prior_of_new(self) -> Floats:
        """Nothing."""
        return NOTHING

    def collect(self, counts: Floats) -> Floats:
        """Return nothing: counts add nothing."""
        return NOTHING

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the table."""
        return self.table

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return 0: workers are what they are."""
        return 0.0

    def confusion(self, parameters: Floats) -> Floats:
        """Return the confusion matrices whose logs the table holds, (worker, state, answer)."""
        by_worker = np.exp(self.table).reshape(self.n_workers, self.n_classes, self.n_states)
        return np.ascontiguousarray(by_worker.transpose(0, 2, 1))


class KnownStates(NamedTuple):
    """A `StatePrior` of which every class is one state, with shares that stay."""

    logs: Floats  # (n_classes,) of the shares

    @property
    def prior(self) -> Floats:
        """No tasks."""
        return np.zeros(len(self.logs))

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.logs)

    @property
    def class_of(self) -> Codes:
        """The class of each state."""
        return np.arange(len(self.logs), dtype=np.int32)

    def expected_log(self, parameters: Floats) -> Floats:
        """Return the logs."""
        return self.logs

    def expected_log_of_class(self, parameters: Floats) -> Floats:
        """Return the logs."""
        return self.logs

    def log_evidence(self, parameters: Floats) -> float:
        """Return 0: shares are what they are."""
        return 0.0

    def mean(self, parameters: Floats) -> Floats:
        """Return the shares."""
        return np.asarray(np.exp(self.logs))
