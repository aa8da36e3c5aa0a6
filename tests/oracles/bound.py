"""The bound of [eq:bound], term by term, for any q and parameters: nothing is dropped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.inference import Parameters, Problem, Sweeps, dirichlet
from tiebreak.kernels import Floats


class BoundTerms(NamedTuple):
    """The terms of the bound, with confusion matrices as the worker model."""

    tasks: float  # E log p(y)
    responses: float  # E log p(responses)
    class_prior: float  # E log p(π)
    confusion: float  # E log p(θ)
    entropy_tasks: float  # H(y); with links, plus the expected link term
    entropy_class_prior: float  # H(π)
    entropy_confusion: float  # H(θ)

    @property
    def total(self) -> float:
        """The bound."""
        return float(sum(self))


def bound_terms(problem: Problem, q: Floats, parameters: Parameters) -> BoundTerms:
    """Return every term of [eq:bound]."""
    alpha, beta = parameters
    log_prior, log_table = problem.logs(parameters)
    sweeps = Sweeps(problem, q.copy())
    codes, (totals,) = sweeps.tally()[:2]
    log_confusion = log_table.reshape(beta.shape)
    prior = np.broadcast_to(problem.workers.prior, beta.shape)
    value = sweeps.value()
    of_classes = problem.tasks.shares.prior
    return BoundTerms(
        tasks=float(totals @ log_prior),
        responses=float((codes * log_table).sum()),
        class_prior=float((of_classes - 1) @ log_prior - dirichlet.log_beta(of_classes)),
        confusion=float(
            ((prior - 1) * log_confusion).sum() - dirichlet.log_beta(prior, axis=1).sum()
        ),
        entropy_tasks=-np.inf if value is None else value,
        entropy_class_prior=float(dirichlet.log_beta(alpha) - (alpha - 1) @ log_prior),
        entropy_confusion=float(
            dirichlet.log_beta(beta, axis=1).sum() - ((beta - 1) * log_confusion).sum()
        ),
    )
