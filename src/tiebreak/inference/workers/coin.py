"""One coin: a worker is right with one probability, whatever the class.

A wrong answer is any other class, all alike. With few responses per worker and many classes one
number is learnt sooner than K² are; what a worker confuses with what is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tiebreak.inference import dirichlet
from tiebreak.inference.dirichlet import POINT, POSTERIOR
from tiebreak.inference.workers.base import CrowdFacts, WorkerCells, Workers, unset
from tiebreak.kernels.layout import Floats

RIGHT = 0
WRONG = 1


@dataclass(frozen=True, eq=False)
class Coins(Workers):
    """Parameters are Beta counts (n_workers, 2) of right and wrong answers.

    Implements [eq:coin]: a worker answers right with probability p, and each of the K − 1 wrong
    classes with probability (1 − p) / (K − 1).
    """

    prior: Floats = field(default_factory=unset)  # (n_workers or 1, 2)
    n_workers: int = 0
    prior_of_new: Floats = field(default_factory=unset)
    labels: int = 0  # K
    read: str = POSTERIOR

    @property
    def n_classes(self) -> int:
        return self.labels

    @property
    def n_states(self) -> int:
        return self.labels

    def of(self, crowd: CrowdFacts) -> Coins:
        prior, of_new = pooled_prior(crowd.whole_prior()), pooled_prior(crowd.prior_of_new())
        return Coins(prior, crowd.n_workers, of_new, crowd.n_classes, self.read)

    def collect(self, counts: Floats) -> Floats:
        """Return how often each worker is right and wrong, as expected."""
        by_worker = counts.reshape(self.n_workers, self.labels, self.labels)
        right = np.trace(by_worker, axis1=1, axis2=2)
        return np.column_stack([right, by_worker.sum(axis=(1, 2)) - right])

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return E[log p] on the diagonal, E[log (1 − p)] − log (K − 1) elsewhere."""
        logs = dirichlet.log_shares(self.read, parameters, self.prior)
        table = self._table(logs[:, RIGHT], logs[:, WRONG] - np.log(max(self.labels - 1, 1)))
        return table.reshape(-1, self.labels)

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return Σ_w [log B(r_w, v_w) − log B(r₀, v₀)] − V log (K − 1), V the wrong answers."""
        counted = parameters if self.read == POINT else parameters - self.prior
        gain = dirichlet.log_evidence(self.read, parameters, self.prior)
        return float(gain - counted[:, WRONG].sum() * np.log(max(self.labels - 1, 1)))

    def confusion(self, parameters: Floats) -> Floats:
        """Return E[p] on the diagonal and the rest shared by the other classes."""
        mean = dirichlet.mean(parameters)
        right = mean[:, RIGHT] if self.labels > 1 else np.ones(self.n_workers)
        return self._table(right, mean[:, WRONG] / max(self.labels - 1, 1))

    def cells(self, parameters: Floats) -> WorkerCells:
        """Return two cells a worker."""
        code, state = np.indices((self.n_workers * self.labels, self.labels))
        is_wrong = code % self.labels != state
        both = self.prior if self.labels > 1 else self.prior[:, [RIGHT, RIGHT]]  # none is wrong
        prior = np.broadcast_to(both, (self.n_workers, 2)).ravel()
        return WorkerCells(
            of_code=2 * (code // self.labels) + is_wrong,
            row=np.repeat(np.arange(self.n_workers), 2),
            prior=prior,
            is_fixed=np.zeros(len(prior), dtype=bool),
            share=np.where(is_wrong, 1.0 / max(self.labels - 1, 1), 1.0),
            between=np.zeros(len(prior)),
        )

    def _table(self, right: Floats, wrong: Floats) -> Floats:
        is_right = np.eye(self.labels, dtype=bool)
        return np.where(is_right, right[:, None, None], wrong[:, None, None])


def pooled_prior(prior: Floats) -> Floats:
    """Pool a prior of confusion matrices: the mean row's right count, and its wrong ones.

    >>> pooled_prior(np.array([[[4.0, 1.0], [1.0, 2.0]]])).tolist()
    [[3.0, 1.0]]
    """
    n_classes = prior.shape[1]
    right = np.trace(prior, axis1=1, axis2=2) / n_classes
    wrong = prior.sum(axis=(1, 2)) / n_classes - right
    if n_classes == 1:
        wrong = right  # never used: there is no wrong answer
    return np.column_stack([right, wrong])
