"""Judges who saw pairs in two orders: two workers with one confusion matrix between them.

Classes say which of two items is better: the first, the second, or neither. A judge's parameters
are about what was shown first. Where the second item was, both truth and answer are the other way
round: of such a worker P(second | first) is what P(first | second) is of the judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tiebreak.inference.workers.base import NEW, Around, WorkerCells
from tiebreak.kernels.layout import Codes, Floats, Mask


@dataclass(frozen=True, eq=False)
class Turned(Around):
    """The model of judges, for workers who are judges in an order each."""

    judge: Codes  # (n_workers,)
    is_turned: Mask  # (n_workers,)

    @property
    def n_workers(self) -> int:
        return len(self.judge)

    def collect(self, counts: Floats) -> Floats:
        by_worker = self._mirrored(counts)
        of_judges = np.zeros((self.inner.n_workers, *by_worker.shape[1:]))
        np.add.at(of_judges, self.judge, by_worker)
        return self.inner.collect(of_judges.reshape(-1, self.n_states))

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        return np.asarray(self._spread(self.inner.log_table(parameters, n_threads)))

    def confusion(self, parameters: Floats) -> Floats:
        by_judge = self.inner.confusion(parameters)
        table = self._spread(by_judge.reshape(-1, self.n_states))
        return np.asarray(table.reshape(-1, *by_judge.shape[1:]))

    def select(self, at: Codes) -> Turned:
        """Return the model of some workers, each with parameters of its own."""
        turned = np.append(self.is_turned, False)[at]  # NEW: the last one
        own = np.arange(len(at), dtype=np.int32)
        return Turned(self.inner.select(self._judge_of(at)), own, turned)

    def select_parameters(self, parameters: Floats, at: Codes) -> Floats:
        return self.inner.select_parameters(parameters, self._judge_of(at))

    def cells(self, parameters: Floats) -> WorkerCells:
        found = self.inner.cells(parameters)
        of_code, share = self._spread(found.of_code), self._spread(found.share)
        return found._replace(of_code=of_code, share=share)

    def _judge_of(self, at: Codes) -> Codes:
        return np.append(self.judge, NEW)[at]

    def _spread(self, table: Any) -> Any:
        """Return what judges have by code and state, (n_codes, n_states), for each worker."""
        of_judges = table.reshape(self.inner.n_workers, -1, self.n_states)
        return self._mirrored(of_judges[self.judge]).reshape(-1, self.n_states)

    def _mirrored(self, table: Any) -> Any:
        """Exchange first and second of turned workers, in answers and states: (worker, ., .)."""
        made = table.reshape(self.n_workers, -1, self.n_states).copy()
        other = np.arange(self.n_states)
        other[:2] = 1, 0
        made[self.is_turned] = made[self.is_turned][:, other][:, :, other]
        return made
