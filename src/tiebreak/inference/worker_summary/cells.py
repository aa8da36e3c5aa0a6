"""Cells: the parameters of every worker model as rows of Dirichlet counts.

A response to a task in some state counts in one cell, and the cells of a row share 1 between them.
With confusion matrices a cell is (worker, answer, state) and a row (worker, state); with coins a
worker is one row of two cells, right and wrong. States are rows as well: one of all classes, and
one per class where it has subtypes. Two workers, two classes, confusion matrices:

    cell      0 … 3                    4 … 7       8, 9
    means     worker 0: [code, state]  worker 1    class 0, class 1
    row       0, 1, 0, 1               2, 3, 2, 3  4, 4
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.inference.dirichlet import KnownShares, SubtypePrior
from tiebreak.inference.vb import Beliefs, Problem
from tiebreak.inference.workers import WorkerCells
from tiebreak.kernels.layout import Floats, Mask, Offsets


class Cells(NamedTuple):
    """Where responses and states count, and what the counts are before any."""

    of_code: Offsets  # (n_codes, n_states) the cell of a response to a task in a state
    of_state: Offsets  # (n_layers, n_states) the cells of a state: its class, its subtype
    row: Offsets  # (n_cells,)
    prior: Floats  # (n_cells,)
    is_fixed: Mask  # (n_cells,) of rows that are known and not learnt
    share: Floats  # (n_codes, n_states) of its cell's probability that a response has
    between: Floats  # (n_cells,) variance of means between kinds of workers
    n_classes: int

    @property
    def n_states(self) -> int:
        """How many states a task may be in."""
        return int(self.of_code.shape[1])

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.row.max()) + 1

    @property
    def is_tied(self) -> bool:
        """Whether a response counts in one cell for several states, as with coins."""
        return self.n_states > 1 and bool((self.of_code[:1, 1:] == self.of_code[:1, :-1]).any())

    def row_sums(self, values: Floats) -> Floats:
        """Return the sum over each cell's row, (n_cells,)."""
        return np.asarray(np.bincount(self.row, weights=values)[self.row])

    def means(self, counts: Floats) -> Floats:
        """Return the expected probability of each cell."""
        learnt = counts / self.row_sums(counts)
        return np.where(self.is_fixed, self.prior / self.row_sums(self.prior), learnt)


def cells_of(problem: Problem, beliefs: Beliefs) -> Cells:
    """Return the cells of a fitted problem: those of its workers, then those of its states.

    Classes are one row and, where they have subtypes, each class is one more.
    """
    states = problem.states
    of_workers = problem.workers.cells(beliefs.beta)
    layers, priors = [states.class_of.astype(np.int64)], [states.prior]
    rows = [np.zeros(states.n_classes, dtype=np.int64)]
    if isinstance(states, SubtypePrior):
        priors = [states.of_class, states.prior]
        layers.append(states.n_classes + np.arange(len(states.class_of)))
        rows.append(1 + states.class_of.astype(np.int64))
    return _joined(
        of_workers, layers, rows, priors, states.n_classes, is_fixed=isinstance(states, KnownShares)
    )


def plain_cells(of_workers: WorkerCells, class_prior: Floats) -> Cells:
    """Return the cells of workers and of one row of classes."""
    n_classes = len(class_prior)
    row = np.zeros(n_classes, dtype=np.int64)
    return _joined(of_workers, [np.arange(n_classes)], [row], [class_prior], n_classes)


def _joined(
    of_workers: WorkerCells,
    layers: list[Offsets],
    rows: list[Offsets],
    priors: list[Floats],
    n_classes: int,
    *,
    is_fixed: bool = False,
) -> Cells:
    """Number the cells of states after those of workers; `layers` and `rows` count from 0."""
    n_cells = len(of_workers.prior)
    n_rows = int(of_workers.row.max()) + 1
    of_states = np.concatenate(priors)
    return Cells(
        of_workers.of_code,
        np.stack([n_cells + each for each in layers]),
        np.concatenate([of_workers.row, *(n_rows + each for each in rows)]),
        np.concatenate([of_workers.prior, of_states]),
        np.concatenate([of_workers.is_fixed, np.full(len(of_states), is_fixed)]),
        of_workers.share,
        np.concatenate([of_workers.between, np.zeros(len(of_states))]),
        n_classes,
    )
