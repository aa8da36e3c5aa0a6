"""Refinement: collapsed sweeps from where a fit ended.

Variational Bayes is too sure of tasks: a response counts as evidence about its own worker, and that
worker's confusions then speak for the response. A collapsed sweep (CVB0, after Asuncion et al.,
2009) takes a task's own counts away before it is scored, [eq:collapsed]. Means of confusions move
towards those of Gibbs sampling, and intervals around them cover as they should.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.inference.worker_summary.cells import Cells
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats, Mask

N_SWEEPS = 30
TOLERANCE = 1e-3  # largest change of a probability: the sweep that moves none by more is the last


class Votes(NamedTuple):
    """Responses one by one."""

    task: Codes
    code: Codes
    weight: Floats


class Refined(NamedTuple):
    """Probabilities of states, and the counts of all cells, priors included."""

    q: Floats
    counts: Floats


def refine(
    cells: Cells, votes: Votes, q: Floats, totals: Floats, moves: Mask, n_sweeps: int = N_SWEEPS
) -> Refined:
    """Sweep until nothing moves.

    Parameters
    ----------
    q
        (n_tasks, n_states) where the fit ended.
    totals
        (n_states,) how many tasks of each state count for the class prior there.
    moves
        (n_tasks,) tasks without links and gold; all others stay as they are.
    """
    counts = count_cells(cells, votes, q, totals)
    for _ in range(n_sweeps):
        new = np.where(moves[:, None], softmax(_scores(cells, votes, q, counts)), q)
        change = float(np.abs(new - q).max(initial=0.0))
        totals = totals + (new - q).sum(axis=0)
        q = new
        counts = count_cells(cells, votes, q, totals)
        if change < TOLERANCE:
            break
    return Refined(q, counts)


def count_cells(cells: Cells, votes: Votes, q: Floats, totals: Floats) -> Floats:
    """Return prior counts plus what responses and states add."""
    n_cells = len(cells.prior)
    counts = cells.prior.copy()
    for state in range(cells.n_states):
        of_votes = cells.of_code[votes.code, state]
        counts += np.bincount(of_votes, votes.weight * q[votes.task, state], minlength=n_cells)
    for layer in cells.of_state:
        np.add.at(counts, layer, totals)
    return counts


def _scores(cells: Cells, votes: Votes, q: Floats, counts: Floats) -> Floats:
    """Return the log probability of each state of each task, its own counts taken away."""
    rows = cells.row_sums(counts)
    known = cells.means(counts)
    scores = np.zeros_like(q)
    own = q[votes.task] * votes.weight[:, None]
    for state in range(cells.n_states):
        cell = cells.of_code[votes.code, state]
        own_cell, own_row = _own(cells, votes, own, state)
        left = _log_ratio(counts[cell] - own_cell, rows[cell] - own_row, cell, cells, known)
        left += np.log(cells.share[votes.code, state])
        scores[:, state] += np.bincount(votes.task, votes.weight * left, minlength=len(q))
    for layer in cells.of_state:
        of_layer = _own_of_layer(layer, q)
        own_row = _own_of_layer(cells.row[layer], q)
        scores += _log_ratio(counts[layer] - of_layer, rows[layer] - own_row, layer, cells, known)
    return scores


def _own(cells: Cells, votes: Votes, own: Floats, state: int) -> tuple[Floats, Floats]:
    """Return what each response itself adds to the cell it has in a state, and to its row."""
    if not cells.is_tied:
        return own[:, state], own[:, state]
    mine = cells.of_code[votes.code, state]
    same_cell = cells.of_code[votes.code] == mine[:, None]
    return (own * same_cell).sum(axis=1), own.sum(axis=1)


def _own_of_layer(group: Codes, q: Floats) -> Floats:
    """Return, for each state, what a task adds to the states of the same group."""
    is_same = group[:, None] == group[None, :]
    return np.asarray(q @ is_same)


def _log_ratio(above: Floats, below: Floats, cell: Codes, cells: Cells, known: Floats) -> Floats:
    """Return the log of shares; of rows that are not learnt, the log of what is known."""
    tiny = np.finfo(float).tiny
    logs = np.log(np.maximum(above, tiny)) - np.log(np.maximum(below, tiny))
    return np.where(cells.is_fixed[cell], np.log(np.maximum(known[cell], tiny)), logs)
