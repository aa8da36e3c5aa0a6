"""Confusion matrices: how often a worker gives each label to tasks of each class.

Every row of a matrix has a Dirichlet prior. This is the model of the paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.inference import dirichlet
from tiebreak.kernels.layout import Floats


class ConfusionMatrices(NamedTuple):
    """A `WorkerModel` whose parameters are β, Dirichlet counts (n_workers, answer, state).

    β lies as [worker, answer, state], not [worker, truth, answer] as in results, so that a response
    looks up neighbours in memory.
    """

    prior: Floats  # β₀, (n_workers or 1, answer, state)
    n_workers: int

    @property
    def n_classes(self) -> int:
        """How many labels a worker may give."""
        return int(self.prior.shape[1])

    @property
    def n_states(self) -> int:
        """How many states a task may be in."""
        return int(self.prior.shape[2])

    def collect(self, counts: Floats) -> Floats:
        """Return counts as (n_workers, answer, state): the sums of [eq:confusion-update]."""
        return counts.reshape(self.n_workers, self.n_classes, self.n_states)

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return E[log θ], (n_codes, n_states): [eq:expected-logs]."""
        logs = dirichlet.expected_log(parameters, 1, n_threads, prior=self.prior)
        return logs.reshape(-1, self.n_states)

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return Σ_wk [log B(β_wk) − log B(β₀_wk)], as in [eq:bound-after-update]."""
        of_prior = dirichlet.log_beta(self.prior, axis=1).sum()
        if len(self.prior) == 1:
            of_prior *= self.n_workers
        of_all = dirichlet.log_beta(parameters, 1, n_threads, prior=self.prior).sum()
        return float(of_all - of_prior)

    def confusion(self, parameters: Floats) -> Floats:
        """Return E[θ], (worker, state, answer)."""
        by_answer = dirichlet.mean(parameters, axis=1)
        return np.ascontiguousarray(by_answer.transpose(0, 2, 1))

    @staticmethod
    def pool(counts: Floats) -> Floats:
        """Return counts of which confusions are shares: each cell is a parameter of its own."""
        return counts
