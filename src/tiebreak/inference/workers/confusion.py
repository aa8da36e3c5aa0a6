"""Confusion matrices: the paper's model of workers, with subtypes, and with rows that are known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tiebreak.inference import dirichlet
from tiebreak.inference.dirichlet import FIXED, POSTERIOR, ClassPrior
from tiebreak.inference.workers.base import (
    Around,
    CrowdFacts,
    CrowdModel,
    WorkerCells,
    Workers,
    unset,
)
from tiebreak.kernels.layout import Codes, Floats, Mask


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
        prior = np.repeat(crowd.whole_prior(), self.n_subtypes, axis=2)
        of_new = np.repeat(crowd.prior_of_new(), self.n_subtypes, axis=2)
        return replace(self, n_workers=crowd.n_workers, prior=prior, prior_of_new=of_new)

    def bind(self, crowd: CrowdFacts) -> CrowdModel:
        return of_rules_or_not(crowd, self.of(crowd), self.n_subtypes)

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


@dataclass(frozen=True, eq=False)
class FixedRows(Around):
    """A model of which some rows of confusion matrices are not learnt.

    A fixed row is known: it is the mean of the prior that the user gave. Counts are kept for all
    rows alike.
    """

    is_fixed: Mask  # (n_workers, n_states)
    given: Floats  # (n_workers or 1, answer, state) the prior whose mean they are

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        learnt = self.inner.log_table(parameters, n_threads).reshape(parameters.shape)
        known = dirichlet.log_shares(FIXED, parameters, self.given, 1)
        table = np.where(self.is_fixed[:, None, :], known, learnt)
        return np.asarray(table.reshape(-1, self.n_states))

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return log B(β) − log B(β₀) of rows that are learnt, Σ n log θ of those known."""
        fixed = self.is_fixed[:, None, :]
        added = np.where(fixed, parameters - self.prior, 0.0)
        unlearnt = np.where(fixed, self.prior, parameters)  # such a row adds nothing to the sum
        of_known = float((added * dirichlet.log_shares(FIXED, added, self.given, 1)).sum())
        return self.inner.log_evidence(unlearnt, n_threads) + of_known

    def confusion(self, parameters: Floats) -> Floats:
        known = np.broadcast_to(dirichlet.mean(self.given, 1), parameters.shape).transpose(0, 2, 1)
        return np.where(self.is_fixed[:, :, None], known, self.inner.confusion(parameters))

    def cells(self, parameters: Floats) -> WorkerCells:
        fixed = np.broadcast_to(self.is_fixed[:, None, :], parameters.shape)
        return self.inner.cells(parameters)._replace(is_fixed=fixed.ravel())

    def select(self, at: Codes) -> FixedRows:
        """Return the model of some workers; a new one may say anything."""
        fixed = np.concatenate([self.is_fixed, np.zeros((1, self.n_states), dtype=bool)])
        is_shared = len(self.given) == 1
        given = self.given if is_shared else np.concatenate([self.given, self.given[:1]])[at]
        return FixedRows(self.inner.select(at), fixed[at], given)

    def with_classes(self, crowd: CrowdFacts) -> None:
        """Say that it cannot be told which rows are fixed among more classes."""
        return


def of_rules_or_not(crowd: CrowdFacts, workers: Workers, n_subtypes: int = 1) -> CrowdModel:
    """Return the model; of a crowd of rules with what nothing tells kept at the prior."""
    if n_subtypes > 1:
        return CrowdModel(ClassPrior(crowd.of_class, n_subtypes=n_subtypes), workers)
    fixed = crowd.rows_to_fix()
    if fixed is None:
        return CrowdModel(ClassPrior(crowd.of_class), workers)
    given = crowd.whole_prior()
    return CrowdModel(ClassPrior(crowd.of_class, FIXED), FixedRows(workers, fixed, given))
