"""Known classes as responses: what keeps a known task among the subtypes of its class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiebreak.inference.worker_models.around import AroundModel
from tiebreak.kernels.layout import Floats


@dataclass(frozen=True)
class KnownClasses(AroundModel):
    """A `WorkerModel` around another, with K more codes: "the class is k", never wrong.

    Their rows of the log table are 0 for the states of class k and −∞ for all others. Nothing is
    learnt from them.
    """

    def collect(self, counts: Floats) -> Floats:
        """Return what counts add to the parameters, those of known classes left out."""
        return self.inner.collect(counts[: -self.n_classes])

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the table with one more row per class."""
        n_subtypes = self.n_states // self.n_classes
        is_own = np.repeat(np.eye(self.n_classes, dtype=bool), n_subtypes, axis=1)
        known = np.where(is_own, 0.0, -np.inf)
        return np.concatenate([self.inner.log_table(parameters, n_threads), known])
