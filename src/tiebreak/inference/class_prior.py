"""The class prior: how common each class is, and what states a task of a class may be in."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import gammaln, psi

from tiebreak.inference import dirichlet
from tiebreak.kernels.layout import Codes, Floats

SPREAD = 0.1  # a, of the Dirichlet over the subtypes of a class: few of them are used


class StatePrior(Protocol):
    """What tasks are, before anyone answers. Parameters are positive: a prior plus totals."""

    @property
    def prior(self) -> Floats:
        """Parameters before any task, (n_states,)."""

    @property
    def n_classes(self) -> int:
        """How many classes there are."""

    @property
    def class_of(self) -> Codes:
        """The class of each state, (n_states,), ascending."""

    def expected_log(self, parameters: Floats) -> Floats:
        """Return the expected log probability of each state, (n_states,)."""

    def expected_log_of_class(self, parameters: Floats) -> Floats:
        """Return the expected log probability of each class, (n_classes,)."""

    def log_evidence(self, parameters: Floats) -> float:
        """Return its part of the bound, right after the parameters were updated."""

    def mean(self, parameters: Floats) -> Floats:
        """Return the expected share of each class, (n_classes,)."""


class ClassPrior(NamedTuple):
    """Every class is one state. Parameters are α of a Dirichlet, one per class."""

    prior: Floats  # α₀, (n_classes,)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.prior)

    @property
    def class_of(self) -> Codes:
        """The class of each state."""
        return np.arange(len(self.prior), dtype=np.int32)

    def expected_log(self, parameters: Floats) -> Floats:
        """Return E[log π], (n_states,): [eq:expected-logs]."""
        return dirichlet.expected_log(parameters)

    def expected_log_of_class(self, parameters: Floats) -> Floats:
        """Return E[log π], (n_classes,)."""
        return dirichlet.expected_log(parameters)

    def log_evidence(self, parameters: Floats) -> float:
        """Return log B(α) − log B(α₀), as in [eq:bound-after-update]."""
        return float(dirichlet.log_beta(parameters) - dirichlet.log_beta(self.prior))

    def mean(self, parameters: Floats) -> Floats:
        """Return E[π], (n_classes,)."""
        return dirichlet.mean(parameters)


class KnownShares(NamedTuple):
    """Every class is one state, and the share of each is known: the mean of the prior.

    For crowds whose responses do not tell how common classes are: [eq:one-class].
    """

    prior: Floats  # (n_classes,)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.prior)

    @property
    def class_of(self) -> Codes:
        """The class of each state."""
        return np.arange(len(self.prior), dtype=np.int32)

    def expected_log(self, parameters: Floats) -> Floats:
        """Return log π."""
        return np.asarray(np.log(self.prior / self.prior.sum()))

    def expected_log_of_class(self, parameters: Floats) -> Floats:
        """Return log π."""
        return self.expected_log(parameters)

    def log_evidence(self, parameters: Floats) -> float:
        """Return Σ_k N_k log π_k."""
        return float((parameters - self.prior) @ self.expected_log(parameters))

    def mean(self, parameters: Floats) -> Floats:
        """Return π, (n_classes,)."""
        return dirichlet.mean(self.prior)


class SubtypePrior(NamedTuple):
    """Every class has several subtypes: tasks on which workers err alike. Implements [eq:subtypes].

    State k · n_subtypes + m is subtype m of class k. Parameters are a/M + N_km.
    """

    of_class: Floats  # α₀, (n_classes,)
    n_subtypes: int

    @property
    def prior(self) -> Floats:
        """Parameters before any task: a / M of each state."""
        return np.full(len(self.of_class) * self.n_subtypes, SPREAD / self.n_subtypes)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.of_class)

    @property
    def class_of(self) -> Codes:
        """The class of each state."""
        return np.repeat(np.arange(self.n_classes, dtype=np.int32), self.n_subtypes)

    def expected_log(self, parameters: Floats) -> Floats:
        """Return the expected log probability of each state: that of its class, and within it."""
        by_class = parameters.reshape(self.n_classes, self.n_subtypes)
        within = psi(by_class) - psi(by_class.sum(axis=1, keepdims=True))
        of_class = self.expected_log_of_class(parameters)
        return np.asarray((of_class[:, None] + within).ravel())

    def expected_log_of_class(self, parameters: Floats) -> Floats:
        """Return E[log π], (n_classes,)."""
        by_class = parameters.reshape(self.n_classes, self.n_subtypes)
        return dirichlet.expected_log(self._of_class(by_class))

    def log_evidence(self, parameters: Floats) -> float:
        """Return the logs of normalisers, of the classes and of the subtypes within each."""
        by_class = parameters.reshape(self.n_classes, self.n_subtypes)
        after = self._of_class(by_class)
        of_classes = dirichlet.log_beta(after) - dirichlet.log_beta(self.of_class)
        of_prior = self.n_subtypes * gammaln(SPREAD / self.n_subtypes) - gammaln(SPREAD)
        within = dirichlet.log_beta(by_class).sum() - self.n_classes * of_prior
        return float(of_classes + within)

    def mean(self, parameters: Floats) -> Floats:
        """Return E[π], (n_classes,)."""
        by_class = parameters.reshape(self.n_classes, self.n_subtypes)
        return dirichlet.mean(self._of_class(by_class))

    def _of_class(self, by_class: Floats) -> Floats:
        """Return α of the classes: the prior plus the tasks of each."""
        return np.asarray(self.of_class + by_class.sum(axis=1) - SPREAD)


def to_classes(states: StatePrior, values: Floats) -> Floats:
    """Add up columns of states to columns of classes: (n, n_states) to (n, n_classes)."""
    n_classes = states.n_classes
    if values.shape[1] == n_classes:
        return values
    n_subtypes = values.shape[1] // n_classes  # -1 cannot be told of no task at all
    return np.asarray(values.reshape(len(values), n_classes, n_subtypes).sum(axis=2))


def within_classes(states: StatePrior, parameters: Floats) -> Floats:
    """Return the expected share of each state within its class, (n_states,)."""
    by_class = parameters.reshape(states.n_classes, -1)
    return np.asarray((by_class / by_class.sum(axis=1, keepdims=True)).ravel())
