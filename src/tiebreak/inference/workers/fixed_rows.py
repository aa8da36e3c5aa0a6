"""Rows of confusion matrices that are known and not learnt, around a model of workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiebreak.inference.dirichlet import ClassPrior, KnownShares
from tiebreak.inference.workers.base import CrowdFacts, CrowdModel, WorkerCells, Workers
from tiebreak.kernels.layout import Codes, Floats, Mask


@dataclass(frozen=True, eq=False)
class FixedRows(Workers):
    """A model of which some rows of confusion matrices are not learnt: [eq:one-class].

    A fixed row is known: it is the mean of the prior that the user gave. Counts are kept for all
    rows alike.
    """

    inner: Workers
    is_fixed: Mask  # (n_workers, n_states)
    given: Floats  # (n_workers or 1, answer, state) the prior whose mean they are

    @property
    def n_workers(self) -> int:
        """How many workers there are."""
        return self.inner.n_workers

    @property
    def prior(self) -> Floats:
        """Parameters before any response."""
        return self.inner.prior

    @property
    def prior_of_new(self) -> Floats:
        """Parameters of a worker never seen."""
        return self.inner.prior_of_new

    def collect(self, counts: Floats) -> Floats:
        """Return what counts add to the parameters."""
        return self.inner.collect(counts)

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return E[log θ], and log θ of the rows that are known."""
        learnt = self.inner.log_table(parameters, n_threads).reshape(parameters.shape)
        table = np.where(self.is_fixed[:, None, :], np.log(self._known()), learnt)
        return np.asarray(table.reshape(-1, self.n_states))

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return log B(β) − log B(β₀) of rows that are learnt, Σ n log θ of those known."""
        fixed = self.is_fixed[:, None, :]
        added = np.where(fixed, parameters - self.prior, 0.0)
        unlearnt = np.where(fixed, self.prior, parameters)  # such a row adds nothing to the sum
        of_known = float((added * np.log(self._known())).sum())
        return self.inner.log_evidence(unlearnt, n_threads) + of_known

    def confusion(self, parameters: Floats) -> Floats:
        """Return E[θ], (worker, state, answer)."""
        known = np.broadcast_to(self._known(), parameters.shape).transpose(0, 2, 1)
        return np.where(self.is_fixed[:, :, None], known, self.inner.confusion(parameters))

    def cells(self, parameters: Floats) -> WorkerCells:
        """Return the cells of the model inside, those of fixed rows marked."""
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

    def _known(self) -> Floats:
        return np.asarray(self.given / self.given.sum(axis=1, keepdims=True))


def of_rules_or_not(crowd: CrowdFacts, workers: Workers) -> CrowdModel:
    """Return the model; of a crowd of rules with what nothing tells kept at the prior."""
    fixed = crowd.rows_to_fix()
    if fixed is None:
        return CrowdModel(ClassPrior(crowd.of_class), workers)
    return CrowdModel(KnownShares(crowd.of_class), FixedRows(workers, fixed, crowd.whole_prior()))
