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

from typing import Any, NamedTuple

import numpy as np

from tiebreak.inference.dirichlet import KnownShares, SubtypePrior
from tiebreak.inference.vb import Beliefs, Problem
from tiebreak.inference.worker_models.coin import Coins
from tiebreak.inference.worker_models.kinds import Kinds
from tiebreak.inference.worker_models.one_class import FixedRows
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets


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
    """Return the cells of a fitted problem.

    Kinds of workers are put into one row with the prior that is expected of them.
    """
    workers: Any = problem.workers
    is_fixed = np.zeros(0, dtype=bool)
    if isinstance(workers, FixedRows):
        shape = (workers.n_workers, workers.n_classes, workers.n_states)
        is_fixed = np.broadcast_to(workers.is_fixed[:, None, :], shape).ravel()
        workers = workers.inner
    if isinstance(workers, Coins):
        of_code, row, prior, share = _coin_cells(workers)
        between = np.zeros(len(prior))
    else:
        of_code, row = _confusion_cells(workers)
        share = np.ones(of_code.shape)
        if isinstance(workers, Kinds):
            prior, between = _expected_prior(workers, beliefs.beta)
        else:
            prior = np.broadcast_to(workers.prior, _shape(workers)).ravel()
            between = np.zeros(len(prior))
    if not len(is_fixed):
        is_fixed = np.zeros(len(prior), dtype=bool)
    return _with_states(problem, of_code, row, prior, is_fixed, share, between)


def dirichlet_cells(prior: Floats, class_prior: Floats) -> Cells:
    """Return the cells of plain confusion matrices; prior is (n_workers, answer, class)."""
    n_workers, n_labels, n_classes = prior.shape
    code, state = np.indices((n_workers * n_labels, n_classes))
    of_code = code * n_classes + state
    row = ((code // n_labels) * n_classes + state).ravel()
    n_cells = len(row)
    return Cells(
        of_code,
        (n_cells + np.arange(n_classes))[None],
        np.concatenate([row, np.full(n_classes, row.max() + 1)]),
        np.concatenate([prior.ravel(), class_prior]),
        np.zeros(n_cells + n_classes, dtype=bool),
        np.ones(of_code.shape),
        np.zeros(n_cells + n_classes),
        n_classes,
    )


def coin_cells(coins: Coins, class_prior: Floats) -> Cells:
    """Return the cells of one coin per worker."""
    of_code, row, prior, share = _coin_cells(coins)
    n_cells = len(prior)
    n_classes = coins.n_classes
    return Cells(
        of_code,
        (n_cells + np.arange(n_classes))[None],
        np.concatenate([row, np.full(n_classes, row.max() + 1)]),
        np.concatenate([prior, class_prior]),
        np.zeros(n_cells + n_classes, dtype=bool),
        share,
        np.zeros(n_cells + n_classes),
        n_classes,
    )


def _shape(workers: Any) -> tuple[int, int, int]:
    return workers.n_workers, workers.n_classes, workers.n_states


def _confusion_cells(workers: Any) -> tuple[Offsets, Offsets]:
    n_workers, n_labels, n_states = _shape(workers)
    code, state = np.indices((n_workers * n_labels, n_states))
    row = (code // n_labels) * n_states + state
    return code * n_states + state, row.ravel()


def _coin_cells(coins: Coins) -> tuple[Offsets, Offsets, Floats, Floats]:
    n_classes = coins.n_classes
    code, state = np.indices((coins.n_workers * n_classes, n_classes))
    is_wrong = code % n_classes != state
    of_code = 2 * (code // n_classes) + is_wrong
    share = np.where(is_wrong, 1.0 / max(n_classes - 1, 1), 1.0)
    prior = np.broadcast_to(coins.prior, (coins.n_workers, 2)).ravel()
    return of_code, np.repeat(np.arange(coins.n_workers), 2), prior, share


def _expected_prior(kinds: Kinds, beta: Floats) -> tuple[Floats, Floats]:
    """Return the prior expected over kinds, and the variance of confusions between kinds."""
    chance = kinds.responsibility(beta)
    trusted = 0.0 if kinds.trusted is None else kinds.trusted
    prior = np.einsum("wc,cls->wls", chance, kinds.priors) + trusted
    added = beta - kinds.prior
    mean = np.zeros_like(beta)
    square = np.zeros_like(beta)
    for kind, of_kind in enumerate(kinds.priors):
        counts = of_kind + trusted + added
        probability = counts / counts.sum(axis=1, keepdims=True)
        mean += chance[:, kind, None, None] * probability
        square += chance[:, kind, None, None] * probability**2
    return prior.ravel(), np.maximum(square - mean**2, 0.0).ravel()


def _with_states(
    problem: Problem,
    of_code: Offsets,
    row: Offsets,
    prior: Floats,
    is_fixed: Mask,
    share: Floats,
    between: Floats,
) -> Cells:
    """Append the rows of classes and, where there are any, of subtypes."""
    states = problem.states
    n_classes = states.n_classes
    n_workers_cells = len(prior)
    class_of: Codes = states.class_of
    class_prior = states.of_class if isinstance(states, SubtypePrior) else states.prior
    layers = [n_workers_cells + class_of.astype(np.int64)]
    rows = [row, np.full(n_classes, row.max() + 1)]
    priors = [prior, class_prior]
    if isinstance(states, SubtypePrior):
        layers.append(n_workers_cells + n_classes + np.arange(len(class_of)))
        rows.append(row.max() + 2 + class_of)
        priors.append(states.prior)
    all_prior = np.concatenate(priors)
    fixed = np.zeros(len(all_prior), dtype=bool)
    fixed[:n_workers_cells] = is_fixed
    fixed[n_workers_cells:] = isinstance(states, KnownShares)
    more = np.zeros(len(all_prior) - n_workers_cells)
    return Cells(
        of_code,
        np.stack(layers),
        np.concatenate(rows),
        all_prior,
        fixed,
        share,
        np.concatenate([between, more]),
        n_classes,
    )
