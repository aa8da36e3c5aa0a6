"""How far parameters of workers may be off: counts of cells, refined, and their linear response.

Variational Bayes is too sure of tasks: a response counts as evidence about its own worker, and that
worker's confusions then speak for the response. A collapsed sweep (CVB0, after Asuncion et al.,
2009) takes a task's own counts away before it is scored, [eq:collapsed].

Given the classes, counts are Dirichlet and their variance is known. Classes are not given: a change
of one cell moves tasks, these move the cells of others, and so on. With M the response of log means
to counts and C the covariance of counts given the means (summed over tasks), all of it adds up to
R = C (I − M C)⁻¹, and the variance of a mean is that of the Dirichlet plus g' R g, g its slope:
[eq:linear-response]. For maximum likelihood this is Louis's missing information. The cells that
tasks leave open most are solved together; each of the others for itself alone: among many workers
one is moved by itself, hardly by any other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tiebreak.inference.workers import WorkerCells
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets

N_SWEEPS = 30
TOLERANCE = 1e-3  # largest change of a probability: the sweep that moves none by more is the last
TOGETHER = 200  # cells solved together: 100 to 400 cover alike among 300 workers, 400 take longer
LEAST_PULL = 0.01  # of M C on its diagonal: below, a cell is moved by itself alone
OPEN_TASKS = 20_000  # tasks whose covariance is added up: the least certain
DENSE = 1_000_000  # products up to which matrices are plain arrays
POWER_STEPS = 20  # to the largest eigenvalue
LARGEST = 0.97  # eigenvalue of M C; 1 is where nothing holds a parameter in place


class Votes(NamedTuple):
    """Responses one by one, and which tasks are one: hard links make them a unit, one class."""

    task: Codes
    code: Codes
    weight: Floats
    unit: Codes  # (n_tasks,)
    flip: Codes  # (n_tasks,) 1: of the other one of two classes


def tally(cells: WorkerCells, votes: Votes, q: Floats, totals: Floats) -> Floats:
    """Return prior counts plus what responses and states add, (n_cells,)."""
    counts = cells.prior.copy()
    for state, of_task in enumerate(q.T):
        cell = cells.of_code[votes.code, state]
        counts += np.bincount(cell, votes.weight * of_task[votes.task], minlength=len(counts))
    for layer in cells.of_state:
        np.add.at(counts, layer, totals)
    return counts


# Refinement


def refine(
    cells: WorkerCells,
    votes: Votes,
    q: Floats,
    totals: Floats,
    moves: Mask,
    n_sweeps: int = N_SWEEPS,
) -> tuple[Floats, Floats]:
    """Sweep until nothing moves; return q and the counts of all cells, priors included.

    Parameters
    ----------
    q
        (n_tasks, n_states) where the fit ended.
    totals
        (n_states,) how many tasks of each state count for the class prior there.
    moves
        (n_tasks,) tasks without links and gold; all others stay as they are.
    """
    counts = tally(cells, votes, q, totals)
    for _ in range(n_sweeps):
        new = np.where(moves[:, None], softmax(_scores(cells, votes, q, counts)), q)
        change = float(np.abs(new - q).max(initial=0.0))
        totals = totals + (new - q).sum(axis=0)
        q = new
        counts = tally(cells, votes, q, totals)
        if change < TOLERANCE:
            break
    return q, counts


def _scores(cells: WorkerCells, votes: Votes, q: Floats, counts: Floats) -> Floats:
    """Return the log probability of each state of each task, its own counts taken away."""
    tiny = np.finfo(float).tiny
    rows = cells.row_sums(counts)
    known = np.log(np.maximum(cells.means(counts), tiny))

    def log_share(cell: Offsets, own_cell: Floats, own_row: Floats) -> Floats:
        above = np.log(np.maximum(counts[cell] - own_cell, tiny))
        below = np.log(np.maximum(rows[cell] - own_row, tiny))
        return np.where(cells.is_fixed[cell], known[cell], above - below)

    scores = np.zeros_like(q)
    own = q[votes.task] * votes.weight[:, None]
    cell = cells.of_code[votes.code]
    is_tied = bool((cells.of_code[:1, 1:] == cells.of_code[:1, :-1]).any())
    for state in range(q.shape[1]):
        mine = cell[:, state]
        own_cell = own_row = own[:, state]
        if is_tied:  # a response counts in one cell for several states, as with coins
            own_cell = (own * (cell == mine[:, None])).sum(axis=1)
            own_row = own.sum(axis=1)
        left = log_share(mine, own_cell, own_row) + np.log(cells.share[votes.code, state])
        scores[:, state] += np.bincount(votes.task, votes.weight * left, minlength=len(q))
    for layer in cells.of_state:
        own_cell, own_row = (q @ (at[:, None] == at) for at in (layer, cells.row[layer]))
        scores += log_share(layer, own_cell, own_row)
    return scores


# Linear response


class Spread(NamedTuple):
    """Means of cells, and what is needed for the variance of anything made of them."""

    cells: WorkerCells
    mean: Floats  # (n_cells,)
    own: Floats  # (n_cells,) variance given the classes
    chosen: Offsets  # cells solved together
    joint: Floats  # R among these
    alone: Floats  # (n_cells,) R of the others; 0 for those chosen
    row_total: Floats  # (n_cells,) counts of each cell's row

    def variance(self) -> Floats:
        """Return the variance of each cell's mean."""
        row = self.cells.row[self.chosen]
        diagonal = self.alone.copy()
        diagonal[self.chosen] = np.diagonal(self.joint)
        with_row = self.alone.copy()
        with_row[self.chosen] = (self.joint * (row[:, None] == row)).sum(axis=1)
        total = self.cells.row_sums(with_row)
        added = diagonal - 2.0 * self.mean * with_row + self.mean**2 * total
        return np.asarray(
            self.own + self.cells.between + np.maximum(added, 0.0) / self.row_total**2
        )

    def variance_of(self, weight: sparse.csr_array) -> Floats:
        """Return the variance of weighted sums of means; weight is (n_sums, n_cells)."""
        n_cells = len(self.mean)
        row = self.cells.row
        member = sparse.csr_array((np.ones(n_cells), (np.arange(n_cells), row)))
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
        per_row = np.bincount(row, self.row_total) / np.bincount(row)
        is_learnt = np.bincount(row, self.own) > 0.0
        own = (square - first * first) @ (is_learnt / (per_row + 1.0))
        return np.asarray(own + joint + alone + (each * each) @ self.cells.between)


def respond(cells: WorkerCells, votes: Votes, q: Floats, counts: Floats) -> Spread:
    """Return how far the means of all cells may be off.

    Parameters
    ----------
    q, counts
        Probabilities of states, and the counts of cells that they imply, priors included.
    """
    total = cells.row_sums(counts)
    mean = cells.means(counts)
    learnt = np.where(cells.is_fixed, 0.0, 1.0)
    entries = Entries.of(cells, votes, q)
    left_open = entries.variance(len(counts))
    response = learnt * (1.0 / counts - 1.0 / total)
    pull = response * left_open
    pull[cells.of_state] = np.inf  # classes move together with all workers
    chosen = np.argsort(-pull, kind="stable")[:TOGETHER]
    chosen = np.sort(chosen[pull[chosen] > LEAST_PULL])
    alone = learnt * left_open / (1.0 - np.minimum(response * left_open, LARGEST))
    alone[chosen] = 0.0
    own = learnt * mean * (1.0 - mean) / (total + 1.0)
    of_row = cells.row[chosen]
    among = np.diag(1.0 / counts[chosen]) - (of_row[:, None] == of_row) / total[chosen][:, None]
    fixed = cells.is_fixed[chosen]
    among[fixed] = 0.0
    among[:, fixed] = 0.0
    covariance = entries.covariance(chosen, left_open)
    feedback = covariance @ among  # M C, no larger than what something holds in place
    feedback *= min(1.0, LARGEST / max(_largest_eigenvalue(feedback, among), LARGEST))
    joint = np.linalg.solve(np.eye(len(feedback)) - feedback, covariance)
    return Spread(cells, mean, own, chosen, (joint + joint.T) / 2.0, alone, total)


class Entries(NamedTuple):
    """What a unit in a state adds to cells: one entry per response, or prior, and state."""

    cell: Offsets
    column: Offsets  # unit · n_states + state
    weight: Floats
    q: Floats  # (n_units, n_states)

    @classmethod
    def of(cls, cells: WorkerCells, votes: Votes, q: Floats) -> Entries:
        """Return the entries of all responses and of the states of each unit."""
        n_states = q.shape[1]
        _, first = np.unique(votes.unit, return_index=True)
        unit = votes.unit[votes.task].astype(np.int64)
        states = np.broadcast_to(np.arange(n_states), (len(unit), n_states))
        is_flipped = votes.flip[votes.task] != votes.flip[first[unit]]
        states = np.where(is_flipped[:, None], states[:, ::-1], states)
        own = np.arange(len(first) * n_states)
        n_layers = len(cells.of_state)
        return cls(
            np.concatenate(
                [cells.of_code[votes.code].ravel(), np.tile(cells.of_state, len(first)).ravel()]
            ),
            np.concatenate([(unit[:, None] * n_states + states).ravel(), *[own] * n_layers]),
            np.concatenate([np.repeat(votes.weight, n_states), np.ones(n_layers * len(own))]),
            q[first],
        )

    def variance(self, n_cells: int) -> Floats:
        """Return the variance of the counts of each cell, entries of a unit taken one by one."""
        q = self.q.ravel()[self.column]
        variance = self.weight**2 * q * (1.0 - q)
        return np.bincount(self.cell, variance, minlength=n_cells).astype(np.float64)

    def covariance(self, chosen: Offsets, variance: Floats) -> Floats:
        """Return C among the chosen cells: Σ over units of A (diag q − q q') A'."""
        n_units, n_states = self.q.shape
        place = np.full(len(variance), -1)
        place[chosen] = np.arange(len(chosen))
        doubt = 1.0 - self.q.max(axis=1)
        is_open = np.zeros(n_units, dtype=bool)
        is_open[np.argsort(-doubt, kind="stable")[:OPEN_TASKS]] = True
        is_open &= doubt > 1e-9
        kept = (place[self.cell] >= 0) & is_open[self.column // n_states]
        some = Entries(place[self.cell[kept]], self.column[kept], self.weight[kept], self.q)
        weighed = some.weight * self.q.ravel()[some.column]

        def by_cell(weight: Floats, column: Offsets, n_columns: int) -> sparse.csr_array:
            shape = (len(chosen), n_columns)
            return sparse.csr_array((weight, (some.cell, column)), shape=shape)

        added = by_cell(some.weight, some.column, self.q.size)
        mean = by_cell(weighed, some.column // n_states, n_units)
        product = by_cell(weighed, some.column, self.q.size) @ added.T
        covariance = np.asarray(product.toarray() - (mean @ mean.T).toarray())
        if n_units <= OPEN_TASKS:
            return covariance
        # Some tasks stand for all: scaled so that each cell has the variance all tasks give it.
        found = some.variance(len(chosen))
        scale = np.sqrt(np.where(found > 0.0, variance[chosen] / np.maximum(found, 1e-300), 1.0))
        return np.asarray(covariance * scale[:, None] * scale)


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
