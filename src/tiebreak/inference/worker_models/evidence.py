"""Evidence as responses: what responses said that were dropped, as one more response per task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiebreak.inference.worker_models.wrapper import ModelWrapper
from tiebreak.kernels.layout import Floats


@dataclass(frozen=True)
class KeptEvidence(ModelWrapper):
    """A `WorkerModel` around another, with one more code for each row of scores.

    Nothing is learnt from these codes: what they stand for is among the counts already.
    """

    rows: Floats  # (n_rows, n_states) log scores

    def collect(self, counts: Floats) -> Floats:
        """Return what counts add to the parameters, those of kept evidence left out."""
        return self.inner.collect(counts[: len(counts) - len(self.rows)])

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the table with the rows at its end."""
        return np.concatenate([self.inner.log_table(parameters, n_threads), self.rows])
