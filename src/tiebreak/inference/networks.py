"""Networks: tasks with neighbours, such as papers that cite each other, [eq:near].

What the classes of neighbours have to do with each other is one learnt table T, symmetric: they may
be alike, or unlike in a regular way (an author and a venue). An edge weighs T_ab / (π_a π_b), which
preserves the shares of classes: rare ones hold their own, and no class takes all. Messages are
passed along edges (Bethe's approximation), so that the bound is none, and fits stop on q.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tiebreak.inference.climb import FitState, Problem, Stopping, climb
from tiebreak.inference.door import Inputs, Rows
from tiebreak.inference.known import Known
from tiebreak.inference.stages import FitOptions, Fitted, Scored, Start, calibrate
from tiebreak.inference.tasks import Independent, Inferred, OwnRows, Parameters
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import entropy
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import Codes, Floats, Offsets

# Chosen on Cora; experiments/13_sequences shows them on CiteSeer, too.
PLAIN_SWEEPS = 5  # before neighbours are heard; from the votes alone they may agree on one class
PASSES = 3  # of messages a sweep
DAMPING = 0.3
LAST_PASSES = 30


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkTasks(Independent):
    """Rows with neighbours; all of them are own rows."""

    start: Offsets  # (n_own + 1,) where the slots of a row begin
    other: Codes  # (2 · n_edges,)
    mate: Offsets  # the slot of the same edge at its other end
    backend: Backend

    @property
    def prior(self) -> Parameters:
        """α₀, and no edge yet: their prior depends on the shares of classes, see `table`."""
        n = self.shares.n_classes
        return (self.shares.prior, np.zeros((n, n)))

    @property
    def exact(self) -> bool:
        return False

    def table(self, parameters: Parameters) -> tuple[Floats, Floats]:
        """Return T, whose prior says that neighbours are independent, and what an edge weighs."""
        shares = self.shares.mean(parameters[0])
        joint = len(shares) * np.outer(shares, shares) + parameters[1]
        joint /= joint.sum()
        margin = joint.sum(axis=1)
        return joint, joint / np.outer(margin, margin)

    def infer(self, parameters: Parameters, score: Floats, q: Floats, memory: Any) -> Inferred:
        found, memory, table = self._passed(parameters, score, q, memory, PASSES)
        edges = self.start, self.other, self.mate
        counts = self.backend.count_neighbours(edges, table, memory, found)
        return Inferred(found, (counts,), entropy(found), memory)

    def tally(self, q: Floats) -> Parameters:
        row = np.repeat(np.arange(len(q)), np.diff(self.start))
        return (q[row].T @ q[self.other] / 2.0,)  # each edge from both ends

    def value(self, q: Floats) -> None:
        return

    def conclude(
        self, parameters: Parameters, score: Floats | None, scale: Floats, q: Floats, memory: Any
    ) -> Inferred:
        if score is None:
            return Inferred(q, memory=memory)
        found, memory, _ = self._passed(parameters, score, q, memory, LAST_PASSES)
        return Inferred(found, memory=memory)

    def _passed(
        self, parameters: Parameters, score: Floats, q: Floats, memory: Any, n_passes: int
    ) -> tuple[Floats, Floats, Floats]:
        """Return beliefs, messages and the table after some passes."""
        _, table = self.table(parameters)
        shape = len(self.other), score.shape[1]
        messages = np.full(shape, 1.0 / shape[1]) if memory is None else memory.copy()
        found = q.copy()
        edges = self.start, self.other, self.mate
        for _ in range(n_passes):
            self.backend.pass_along(score, edges, table, messages, found, DAMPING)
        return found, messages, table


def with_neighbours(problem: Problem, left: Codes, right: Codes, known: Known) -> Problem:
    """Return the problem with edges between rows, and with known rows."""
    problem = known.on(problem)
    n_rows, n_classes = problem.rows.n_tasks, problem.n_classes
    at = np.unique(np.concatenate([left, right])).astype(np.int32)
    place = np.full(n_rows, -1, dtype=np.int32)
    place[at] = np.arange(len(at), dtype=np.int32)
    ends = np.concatenate([place[left], place[right]])
    order = np.argsort(ends, kind="stable")
    n_edges = len(left)
    slot = np.empty(2 * n_edges, dtype=np.int64)
    slot[order] = np.arange(2 * n_edges)
    others = np.concatenate([place[right], place[left]])[order].astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=len(at)))])
    label = np.full(n_rows, -1)
    label[known.task] = known.label
    is_known = label[at] >= 0
    fixed = np.zeros((len(at), n_classes))
    fixed[is_known] = np.where(np.arange(n_classes) == label[at[is_known], None], 0.0, -np.inf)
    own = OwnRows(
        at,
        layout.part_of(problem.rows, at, n_classes),
        fixed=fixed if is_known.any() else None,
    )
    tasks = NetworkTasks(
        shares=problem.tasks.shares,
        own=own,
        start=start,
        other=others,
        mate=slot[(order + n_edges) % (2 * n_edges)],
        backend=problem.backend,
    )
    return problem._replace(tasks=tasks)


def fit(
    plain: Problem,
    inputs: Inputs,
    rows: Rows,
    start: Start,
    options: FitOptions,
    plain_parameters: Parameters,
) -> tuple[Fitted, Scored]:
    """Fit tasks in a network, and score. Workers are reported as q shows them."""
    assert inputs.network is not None
    known = Known.of(rows.gold, options.weight)
    first = FitState(known.clamp(start.state.q))
    state = climb(known.on(plain), first, Stopping(0.0, PLAIN_SWEEPS, accelerate=False))
    problem = with_neighbours(plain, *inputs.network, known)
    state = climb(problem, FitState(state.q), options.stopping._replace(accelerate=False))
    tasks = problem.tasks
    assert isinstance(tasks, NetworkTasks)
    fitted = Fitted(inputs, rows, plain, plain_parameters, problem, known, state)
    scored = calibrate(fitted, options, {}).adding(neighbours_=tasks.table(state.parameters)[0])
    implied = state._replace(parameters=known.on(plain).implied(state.q), memory=None)
    return fitted._replace(state=implied), replace(scored, memory=None)
