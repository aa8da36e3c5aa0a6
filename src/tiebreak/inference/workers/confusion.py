"""Confusion matrices: the paper's model of workers, with subtypes, and with rows that are known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tiebreak.inference import dirichlet
from tiebreak.inference.dirichlet import POSTERIOR
from tiebreak.inference.workers.base import (
    CrowdFacts,
    Workers,
    unset,
)
from tiebreak.kernels.layout import Floats


@dataclass(frozen=True, eq=False)
class ConfusionMatrices(Workers):
    """Parameters are β, Dirichlet counts (n_workers, answer, state).

    β lies as [worker, answer, state], not [worker, truth, answer] as in results, so that a response
    looks up neighbours in memory.
    """

    prior: Floats = field(default_factory=unset)  # β₀, (n_workers or 1, answer, state)
    n_workers: int = 0
    prior_of_new: Floats = field(default_factory=unset)
    n_subtypes: int = 1
    read: str = POSTERIOR
    heeds_rules = True

    def of(self, crowd: CrowdFacts) -> ConfusionMatrices:
        prior = np.repeat(crowd.whole_prior(), self.n_subtypes, axis=2)
        of_new = np.repeat(crowd.prior_of_new(), self.n_subtypes, axis=2)
        return replace(self, n_workers=crowd.n_workers, prior=prior, prior_of_new=of_new)

    def collect(self, counts: Floats) -> Floats:
        """Return counts as (n_workers, answer, state): the sums of [eq:confusion-update]."""
        return counts.reshape(self.n_workers, self.n_classes, self.n_states)

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return E[log θ], (n_codes, n_states)."""
        logs = dirichlet.log_shares(self.read, parameters, self.prior, 1, n_threads)
        return logs.reshape(-1, self.n_states)

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return Σ_wk [log B(β_wk) − log B(β₀_wk)], a part of the bound."""
        return dirichlet.log_evidence(self.read, parameters, self.prior, 1, n_threads)

    def confusion(self, parameters: Floats) -> Floats:
        """Return E[θ], (worker, state, answer)."""
        by_answer = dirichlet.mean(parameters, axis=1)
        return np.ascontiguousarray(by_answer.transpose(0, 2, 1))
