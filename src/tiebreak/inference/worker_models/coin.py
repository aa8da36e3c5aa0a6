"""One coin: a worker is right with one probability, whatever the class.

A wrong answer is any other class, all alike. With few responses per worker and many classes one
number is learnt sooner than K² are; what a worker confuses with what is not seen.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from tiebreak.inference import dirichlet
from tiebreak.kernels.layout import Floats

RIGHT = 0
WRONG = 1


class Coins(NamedTuple):
    """A `WorkerModel` whose parameters are Beta counts (n_workers, 2) of right and wrong answers.

    Implements [eq:coin]: a worker answers right with probability p, and each of the K − 1 wrong
    classes with probability (1 − p) / (K − 1).
    """

    prior: Floats  # (n_workers or 1, 2)
    n_workers: int
    n_classes: int

    @classmethod
    def from_matrices(cls, prior: Floats, n_workers: int) -> Self:
        """Pool a prior of confusion matrices: the mean row's right count, and its wrong ones."""
        n_classes = prior.shape[1]
        right = np.trace(prior, axis1=1, axis2=2) / n_classes
        wrong = prior.sum(axis=(1, 2)) / n_classes - right
        if n_classes == 1:
            wrong = right  # never used: there is no wrong answer
        return cls(np.column_stack([right, wrong]), n_workers, n_classes)

    @property
    def n_states(self) -> int:
        """How many states a task may be in: its classes."""
        return self.n_classes

    def collect(self, counts: Floats) -> Floats:
        """Return how often each worker is right and wrong, as expected."""
        by_worker = counts.reshape(self.n_workers, self.n_classes, self.n_classes)
        right = np.trace(by_worker, axis1=1, axis2=2)
        return np.column_stack([right, by_worker.sum(axis=(1, 2)) - right])

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return E[log p] on the diagonal, E[log (1 − p)] − log (K − 1) elsewhere."""
        logs = dirichlet.expected_log(parameters)
        n_classes = self.n_classes
        table = np.empty((self.n_workers, n_classes, n_classes))
        table[:] = (logs[:, WRONG] - np.log(max(n_classes - 1, 1)))[:, None, None]
        diagonal = np.arange(n_classes)
        table[:, diagonal, diagonal] = logs[:, RIGHT, None]
        return table.reshape(-1, n_classes)

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return Σ_w [log B(r_w, v_w) − log B(r₀, v₀)] − V log (K − 1), V the wrong answers."""
        of_prior = np.broadcast_to(self.prior, parameters.shape)
        n_wrong = (parameters - of_prior)[:, WRONG].sum()
        gain = dirichlet.log_beta(parameters).sum() - dirichlet.log_beta(of_prior).sum()
        return float(gain - n_wrong * np.log(max(self.n_classes - 1, 1)))

    def confusion(self, parameters: Floats) -> Floats:
        """Return E[p] on the diagonal and the rest shared by the other classes."""
        mean = dirichlet.mean(parameters)
        n_classes = self.n_classes
        table = np.empty((self.n_workers, n_classes, n_classes))
        table[:] = (mean[:, WRONG] / max(n_classes - 1, 1))[:, None, None]
        diagonal = np.arange(n_classes)
        table[:, diagonal, diagonal] = mean[:, RIGHT, None] if n_classes > 1 else 1.0
        return table

    @staticmethod
    def pool(counts: Floats) -> Floats:
        """Return counts of which confusions are shares: all right cells alike, all wrong alike."""
        n_classes = counts.shape[1]
        table = counts.reshape(-1, n_classes, n_classes)
        diagonal = np.arange(n_classes)
        right = np.trace(table, axis1=1, axis2=2) / n_classes
        wrong = (table.sum(axis=(1, 2)) / n_classes - right) / max(n_classes - 1, 1)
        pooled = np.empty_like(table)
        pooled[:] = wrong[:, None, None]
        pooled[:, diagonal, diagonal] = right[:, None]
        return pooled.reshape(counts.shape)
