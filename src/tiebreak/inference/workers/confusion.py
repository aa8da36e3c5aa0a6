"""Confusion matrices: the paper's model of workers, also with subtypes of classes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tiebreak.inference import dirichlet
from tiebreak.inference.dirichlet import POINT, POSTERIOR, SubtypePrior
from tiebreak.inference.workers.base import CrowdFacts, CrowdModel, Workers, unset
from tiebreak.inference.workers.fixed_rows import of_rules_or_not
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

    def of(self, crowd: CrowdFacts) -> ConfusionMatrices:
        """Return the model of a crowd's workers."""
        prior = np.repeat(crowd.whole_prior(), self.n_subtypes, axis=2)
        of_new = np.repeat(crowd.prior_of_new(), self.n_subtypes, axis=2)
        return replace(self, n_workers=crowd.n_workers, prior=prior, prior_of_new=of_new)

    def bind(self, crowd: CrowdFacts) -> CrowdModel:
        """Return the model for a crowd; of a crowd of rules with what nothing tells fixed."""
        workers = self.of(crowd)
        if self.n_subtypes > 1:
            return CrowdModel(SubtypePrior(crowd.of_class, self.n_subtypes), workers)
        return of_rules_or_not(crowd, workers)

    def collect(self, counts: Floats) -> Floats:
        """Return counts as (n_workers, answer, state): the sums of [eq:confusion-update]."""
        return counts.reshape(self.n_workers, self.n_classes, self.n_states)

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return E[log θ], (n_codes, n_states): [eq:expected-logs]."""
        if self.read == POINT:
            return dirichlet.log_mean(parameters, 1).reshape(-1, self.n_states)
        logs = dirichlet.expected_log(parameters, 1, n_threads, prior=self.prior)
        return logs.reshape(-1, self.n_states)

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return Σ_wk [log B(β_wk) − log B(β₀_wk)], as in [eq:bound-after-update]."""
        if self.read == POINT:
            return dirichlet.log_likelihood(parameters, 1)
        of_prior = dirichlet.log_beta(self.prior, axis=1).sum()
        if len(self.prior) == 1:
            of_prior *= self.n_workers
        of_all = dirichlet.log_beta(parameters, 1, n_threads, prior=self.prior).sum()
        return float(of_all - of_prior)

    def confusion(self, parameters: Floats) -> Floats:
        """Return E[θ], (worker, state, answer)."""
        by_answer = dirichlet.mean(parameters, axis=1)
        return np.ascontiguousarray(by_answer.transpose(0, 2, 1))
