"""Linear response: how far parameters may be off, with what tasks leave open.

Given the classes, counts are Dirichlet and their variance is known. Classes are not given: a change
of one cell moves tasks, these move the cells of others, and so on. With M the response of log means
to counts and C the covariance of counts given the means (summed over tasks), all of it adds up to
R = C (I − M C)⁻¹, and the variance of a mean is that of the Dirichlet plus g' R g, g its slope:
[eq:linear-response]. For maximum likelihood this is Louis's missing information.

The cells that tasks leave open most are solved together; each of the others for itself alone: among
many workers one is moved by itself, hardly by any other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tiebreak.inference.worker_summary.cells import Cells
from tiebreak.inference.worker_summary.refine import Votes
from tiebreak.kernels.layout import Codes, Floats, Offsets

TOGETHER = 200  # cells solved together: 100 to 400 cover alike among 300 workers, 400 take longer
LEAST_PULL = 0.01  # of M C on its diagonal: below, a cell is moved by itself alone
OPEN_TASKS = 20_000  # tasks whose covariance is added up: the least certain
DENSE = 1_000_000  # products up to which matrices are plain arrays
POWER_STEPS = 20  # to the largest eigenvalue
LARGEST = 0.97  # eigenvalue of M C; 1 is where nothing holds a parameter in place


class Spread(NamedTuple):
    """Means of cells, and what is needed for the variance of anything made of them."""

    mean: Floats  # (n_cells,)
    own: Floats  # (n_cells,) variance given the classes
    chosen: Offsets  # cells solved together
    joint: Floats  # R among these
    alone: Floats  # (n_cells,) R of the others; 0 for those chosen
    row_total: Floats  # (n_cells,) counts of each cell's row
    row: Offsets
    between: Floats  # (n_cells,) variance between kinds of workers

    def variance(self) -> Floats:
        """Return the variance of each cell's mean."""
        n_rows = int(self.row.max()) + 1
        row = self.row[self.chosen]
        is_same = row[:, None] == row[None, :]
        within = self.joint * is_same
        diagonal = self.alone.copy()
        diagonal[self.chosen] = np.diagonal(self.joint)
        with_row = self.alone.copy()
        with_row[self.chosen] = within.sum(axis=1)
        total = np.bincount(self.row, with_row, minlength=n_rows)[self.row]
        added = diagonal - 2.0 * self.mean * with_row + self.mean**2 * total
        return np.asarray(self.own + self.between + np.maximum(added, 0.0) / self.row_total**2)

    def variance_of(self, weight: sparse.csr_array) -> Floats:
        """Return the variance of weighted sums of means; weight is (n_sums, n_cells)."""
        n_cells = len(self.mean)
        member = sparse.csr_array((np.ones(n_cells), (np.arange(n_cells), self.row)))
        each: Any = weight
        if weight.shape[0] * n_cells * member.shape[1] <= DENSE:  # plain arrays: nothing but speed
            member = member.toarray()
            each = weight.toarray()
        of_rows = each * (self.mean / self.row_total)[None, :] @ member
        gradient = each * (1.0 / self.row_total)[None, :] - of_rows @ member.T
        chosen = gradient[:, self.chosen]
        if sparse.issparse(chosen):
            chosen = chosen.toarray()
        joint = ((chosen @ self.joint) * chosen).sum(axis=1)
        alone = (gradient * gradient) @ self.alone
        # Given the classes, cells of a row share 1: Var = Σ_rows (Σ w² m − (Σ w m)²) / (B + 1).
        first = each * self.mean[None, :] @ member
        square = (each * each) * self.mean[None, :] @ member
        per_row = np.bincount(self.row, self.row_total) / np.bincount(self.row)
        is_learnt = np.bincount(self.row, self.own) > 0.0
        own = (square - first * first) @ (is_learnt / (per_row + 1.0))
        return np.asarray(own + joint + alone + (each * each) @ self.between)


class TaskUnits(NamedTuple):
    """Tasks that hard links make one are one unit, with one class."""

    unit: Codes  # (n_tasks,)
    flip: Codes  # (n_tasks,) 1: of the other one of two classes


def respond(cells: Cells, votes: Votes, units: TaskUnits, q: Floats, counts: Floats) -> Spread:
    """Return how far the means of all cells may be off.

    Parameters
    ----------
    q, counts
        Probabilities of states, and the counts of cells that they imply, priors included.
    """
    total = cells.row_sums(counts)
    mean = cells.means(counts)
    learnt = np.where(cells.is_fixed, 0.0, 1.0)
    own = learnt * mean * (1.0 - mean) / (total + 1.0)
    entries = _entries(cells, votes, units, q)
    open_of_cell = _diagonal(entries, len(counts))
    response = learnt * (1.0 / counts - 1.0 / total)
    pull = response * open_of_cell
    states = np.unique(cells.of_state)
    pull[states] = np.inf  # classes move together with all workers
    chosen = np.argsort(-pull, kind="stable")[:TOGETHER]
    chosen = np.sort(chosen[pull[chosen] > LEAST_PULL])
    alone = open_of_cell / (1.0 - np.minimum(response * open_of_cell, LARGEST))
    alone[chosen] = 0.0
    joint = _joint(entries, chosen, cells, counts, total, open_of_cell)
    return Spread(mean, own, chosen, joint, learnt * alone, total, cells.row, cells.between)


class _Entries(NamedTuple):
    """What a unit in a state adds to cells: one entry per response, or prior, and state."""

    cell: Offsets
    column: Offsets  # unit · n_states + state
    weight: Floats
    q: Floats  # (n_units, n_states)


def _entries(cells: Cells, votes: Votes, units: TaskUnits, q: Floats) -> _Entries:
    n_states = q.shape[1]
    unit = units.unit
    n_units = int(unit.max(initial=-1)) + 1
    first = np.zeros(n_units, dtype=np.int64)
    first[unit[::-1]] = np.arange(len(unit))[::-1]
    of_unit = unit[votes.task].astype(np.int64)
    states = np.broadcast_to(np.arange(n_states), (len(of_unit), n_states))
    is_flipped = units.flip[votes.task] != units.flip[first[of_unit]]
    states = np.where(is_flipped[:, None], states[:, ::-1], states)
    cell = [cells.of_code[votes.code].ravel()]
    column = [(of_unit[:, None] * n_states + states).ravel()]
    weight = [np.repeat(votes.weight, n_states)]
    for layer in cells.of_state:
        cell.append(np.tile(layer, n_units))
        column.append(np.arange(n_units * n_states))
        weight.append(np.ones(n_units * n_states))
    return _Entries(np.concatenate(cell), np.concatenate(column), np.concatenate(weight), q[first])


def _diagonal(entries: _Entries, n_cells: int) -> Floats:
    """Return the variance of the counts of each cell, entries of a unit taken one by one."""
    q = entries.q.ravel()[entries.column]
    variance = entries.weight**2 * q * (1.0 - q)
    return np.bincount(entries.cell, variance, minlength=n_cells).astype(np.float64)


def _joint(
    entries: _Entries,
    chosen: Offsets,
    cells: Cells,
    counts: Floats,
    total: Floats,
    open_of_cell: Floats,
) -> Floats:
    """Return R among the chosen cells."""
    covariance = _covariance(entries, chosen, open_of_cell)
    of_row = cells.row[chosen]
    is_same = of_row[:, None] == of_row[None, :]
    response = np.diag(1.0 / counts[chosen]) - is_same / total[chosen][:, None]
    fixed = cells.is_fixed[chosen]
    response[fixed] = 0.0
    response[:, fixed] = 0.0
    feedback = covariance @ response
    largest = _largest_eigenvalue(feedback, response)
    if largest > LARGEST:
        feedback *= LARGEST / largest
    found = np.linalg.solve(np.eye(len(chosen)) - feedback, covariance)
    return np.asarray((found + found.T) / 2.0)


def _covariance(entries: _Entries, chosen: Offsets, open_of_cell: Floats) -> Floats:
    """Return C among the chosen cells: Σ over units of A (diag q − q q') A'."""
    n_units, n_states = entries.q.shape
    place = np.full(int(entries.cell.max(initial=0)) + 1, -1)
    place[chosen] = np.arange(len(chosen))
    doubt = 1.0 - entries.q.max(axis=1)
    is_open = np.zeros(n_units, dtype=bool)
    is_open[np.argsort(-doubt, kind="stable")[:OPEN_TASKS]] = True
    is_open &= doubt > 1e-9
    kept = (place[entries.cell] >= 0) & is_open[entries.column // n_states]
    at = place[entries.cell[kept]]
    column = entries.column[kept]
    weight = entries.weight[kept]
    q = entries.q.ravel()
    shape = (len(chosen), n_units * n_states)
    added = sparse.csr_array((weight, (at, column)), shape=shape)
    weighed = sparse.csr_array((weight * q[column], (at, column)), shape=shape)
    expected = sparse.csr_array(
        (weight * q[column], (at, column // n_states)), shape=(len(chosen), n_units)
    )
    covariance = (weighed @ added.T).toarray() - (expected @ expected.T).toarray()
    if n_units <= OPEN_TASKS:
        return np.asarray(covariance)
    # Some tasks stand for all: scaled so that each cell has the variance that all tasks give it.
    found = _diagonal(_Entries(at, column, weight, entries.q), len(chosen))
    scale = np.sqrt(np.where(found > 0.0, open_of_cell[chosen] / np.maximum(found, 1e-300), 1.0))
    return np.asarray(covariance * scale[:, None] * scale[None, :])


def _largest_eigenvalue(feedback: Floats, response: Floats) -> float:
    """Return the largest eigenvalue of C M, by power steps and Rayleigh's quotient under M."""
    vector = np.ones(len(feedback)) + np.arange(len(feedback)) % 7 / 10.0
    found = 0.0
    for _ in range(POWER_STEPS):
        moved = feedback @ vector
        pulled = response @ vector
        below = float(vector @ pulled)
        if below <= 0.0:
            return found
        found = float(moved @ pulled) / below
        size = float(np.abs(moved).max())
        if size == 0.0:
            return 0.0
        vector = moved / size
    return found
