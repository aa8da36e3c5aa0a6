"""The class prior: how common each class is, with a Dirichlet prior."""

from __future__ import annotations

from typing import NamedTuple

from tiebreak.inference import dirichlet
from tiebreak.kernels.layout import Floats


class ClassPrior(NamedTuple):
    """What tasks are, before anyone answers. Parameters are α, one count per state.

    Here a state is a class. A model that splits classes into subtypes has a prior of its own, with
    the same methods.
    """

    prior: Floats  # α₀, (n_states,)

    @property
    def n_states(self) -> int:
        """How many states a task may be in."""
        return len(self.prior)

    def expected_log(self, parameters: Floats) -> Floats:
        """Return E[log π], (n_states,): [eq:expected-logs]."""
        return dirichlet.expected_log(parameters)

    def log_evidence(self, parameters: Floats) -> float:
        """Return log B(α) − log B(α₀), as in [eq:bound-after-update]."""
        return float(dirichlet.log_beta(parameters) - dirichlet.log_beta(self.prior))

    def mean(self, parameters: Floats) -> Floats:
        """Return E[π] of each class, (n_classes,)."""
        return dirichlet.mean(parameters)
