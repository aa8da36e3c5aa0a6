"""Kinds of workers: good, middling and flat ones, each kind with a prior of its own.

One prior for all workers is a compromise: too weak for experts, too trusting of those who answer at
random. Here a worker has a kind, and given it confusion matrices with that kind's prior; what the
worker said tells which kind it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.inference import dirichlet
from tiebreak.inference.workers.base import CrowdFacts, WorkerCells, Workers, unset
from tiebreak.kernels.layout import Codes, Floats

GOOD = (4.5, 0.5)  # times the given prior's right and wrong counts
FLAT = 0.2  # of every answer, beside K times its share among all responses


@dataclass(frozen=True, eq=False)
class Kinds(Workers):
    """Parameters are counts (n_workers, answer, state) above a floor.

    Implements [eq:kinds]. The floor is the smallest prior count of any kind, so that parameters
    stay positive when SQUAREM extrapolates them; what is trusted is added to it.
    """

    priors: Floats = field(default_factory=unset)  # b, (n_kinds, answer, state)
    weight: Floats = field(default_factory=unset)  # p, (n_kinds,), sums to 1
    n_workers: int = 0
    trusted: Floats | None = None  # (n_workers, answer, state) right pseudo-answers, of any kind
    n_subtypes: int = 1
    heeds_rules: bool = True

    def of(self, crowd: CrowdFacts) -> Kinds:
        given = crowd.confusion_prior()
        if len(given) > 1:
            raise OptionError("kinds-share-a-prior")
        by_label = crowd.counts_of_labels().sum(axis=0)
        priors = three_kinds(given[0], by_label / (by_label.sum() or 1.0))
        priors = np.repeat(priors, self.n_subtypes, axis=2)
        weight = np.full(len(priors), 1.0 / len(priors))
        trusted = crowd.trusted()
        if trusted is not None:
            trusted = np.repeat(trusted, self.n_subtypes, axis=2)
        return replace(
            self, priors=priors, weight=weight, n_workers=crowd.n_workers, trusted=trusted
        )

    @property
    def prior(self) -> Floats:
        """Parameters before any response: the floor, and what is trusted."""
        return self.prior_of_new if self.trusted is None else self.prior_of_new + self.trusted

    @property
    def prior_of_new(self) -> Floats:
        """The floor."""
        return np.asarray(self.priors.min(axis=0, keepdims=True))

    def select(self, at: Codes) -> Kinds:
        """Return the model of some workers; nobody trusts a new one."""
        trusted = self.trusted
        if trusted is not None:
            trusted = np.concatenate([trusted, np.zeros_like(trusted[:1])])[at]
        return replace(self, n_workers=len(at), trusted=trusted)

    @property
    def can_widen(self) -> bool:  # type: ignore[override]
        """Whether the model can be told for more classes: learnt communities say nothing of one."""
        return self.heeds_rules

    def collect(self, counts: Floats) -> Floats:
        """Return counts as (n_workers, answer, state)."""
        return counts.reshape(self.n_workers, self.n_classes, self.n_states)

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the expected log of confusions, over kinds too: e of [eq:kinds]."""
        logs = (dirichlet.expected_log(each, 1, n_threads) for each in self._by_kind(parameters))
        return self._mean(self.responsibility(parameters, n_threads), logs).reshape(
            -1, self.n_states
        )

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return Σ_w ln Σ_c p_c exp A_wc."""
        return float(np.logaddexp.reduce(self._log_weights(parameters, n_threads), axis=1).sum())

    def confusion(self, parameters: Floats) -> Floats:
        """Return E[θ], (worker, state, answer), over kinds too."""
        shares = (dirichlet.mean(each, 1) for each in self._by_kind(parameters))
        mean = self._mean(self.responsibility(parameters), shares)
        return np.ascontiguousarray(mean.transpose(0, 2, 1))

    def cells(self, parameters: Floats) -> WorkerCells:
        """Return confusion matrices with the prior expected over kinds."""
        share = self.responsibility(parameters)
        trusted = 0.0 if self.trusted is None else self.trusted
        prior = np.einsum("wc,cls->wls", share, self.priors) + trusted
        shares = [dirichlet.mean(each, 1) for each in self._by_kind(parameters)]
        mean = self._mean(share, shares)
        square = self._mean(share, (each**2 for each in shares))
        return WorkerCells.of_confusions(prior, between=np.maximum(square - mean**2, 0.0))

    def responsibility(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the probability of each kind, (n_workers, n_kinds): r of [eq:kinds]."""
        logs = self._log_weights(parameters, n_threads)
        share = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(share / share.sum(axis=1, keepdims=True))

    @staticmethod
    def _mean(share: Floats, by_kind: Iterable[Floats]) -> Floats:
        """Return the mean over the kinds of each worker."""
        weighed = (share[:, kind, None, None] * each for kind, each in enumerate(by_kind))
        return np.asarray(sum(weighed))

    def _log_weights(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return ln p_c + A_wc, (n_workers, n_kinds)."""
        gains = [
            dirichlet.log_beta(counts, 1, n_threads).sum(axis=1)
            - dirichlet.log_beta(self._prior_of(kind), 1).sum(axis=1)
            for kind, counts in enumerate(self._by_kind(parameters))
        ]
        return np.asarray(np.log(self.weight) + np.column_stack(gains))

    def _by_kind(self, parameters: Floats) -> list[Floats]:
        """Return the Dirichlet counts of every worker, were it of each kind."""
        counted = parameters - self.prior
        return [self._prior_of(kind) + counted for kind in range(len(self.weight))]

    def _prior_of(self, kind: int) -> Floats:
        """Return the prior of a kind, (n_workers or 1, answer, state)."""
        prior = self.priors[kind : kind + 1]
        return prior if self.trusted is None else prior + self.trusted


def three_kinds(given: Floats, share: Floats) -> Floats:
    """Return the priors of good, middling and flat workers, (3, answer, class).

    Parameters
    ----------
    given
        (answer, class) the prior that the user gave: that of middling workers.
    share
        (n_classes,) of each answer among all responses.
    """
    n_classes = len(given)
    is_right = np.eye(n_classes, dtype=bool)
    good = given * np.where(is_right, *GOOD)
    flat = np.tile((n_classes * share + FLAT)[:, None], (1, n_classes))
    return np.stack([good, given, flat])
