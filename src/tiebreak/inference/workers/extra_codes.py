"""Codes of responses that nothing is learnt from, around a model of workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiebreak.inference.workers.base import Workers
from tiebreak.kernels.layout import Floats


@dataclass(frozen=True, eq=False)
class ExtraCodes(Workers):
    """A model with one more code for each row of scores: what is known of a task beside responses.

    Where classes have subtypes a known class is such a code: its row is 0 for the states of the
    class and −∞ for all others. So is what responses said that are not kept: they are among the
    counts already.
    """

    inner: Workers
    rows: Floats  # (n_rows, n_states) log scores

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

    @property
    def n_classes(self) -> int:
        """How many labels a worker may give."""
        return self.inner.n_classes

    @property
    def n_states(self) -> int:
        """How many states a task may be in."""
        return self.inner.n_states

    def collect(self, counts: Floats) -> Floats:
        """Return what counts add to the parameters, those of extra codes left out."""
        return self.inner.collect(counts[: len(counts) - len(self.rows)])

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the table with the rows at its end."""
        return np.concatenate([self.inner.log_table(parameters, n_threads), self.rows])

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return the workers' part of the bound."""
        return self.inner.log_evidence(parameters, n_threads)

    def confusion(self, parameters: Floats) -> Floats:
        """Return the expected confusion matrices, (worker, state, answer)."""
        return self.inner.confusion(parameters)


def known_classes(n_classes: int, n_states: int) -> Floats:
    """Return a row for each class that says "this one"."""
    of_state = np.arange(n_states) // (n_states // n_classes)
    return np.where(of_state == np.arange(n_classes)[:, None], 0.0, -np.inf)
