"""One sweep over all rows: those that are alone in a sweeper, own ones by the task model.

The backend fuses score, softmax and counts of a row in one pass; `numpy_sweep` says what it means.
A row is *own* to the task model where its score alone does not make its q: rows with links, rows
of a chain, rows with a log prior of their own. These are laid out apart, scored together, handed to
`Tasks.infer`, and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiebreak.inference.tasks import OwnRows, Parameters
from tiebreak.kernels.layout import Floats, Mask, Swept, rounder_for
from tiebreak.kernels.sweeper import Logs, Sweeper

if TYPE_CHECKING:
    from tiebreak.inference.climb import Problem


class Sums(NamedTuple):
    """What a sweep found. Those of different rows add up."""

    codes: Floats  # (n_codes, n_states) Σ copies · weight · q by code
    tasks: Parameters  # (Σ copies · draws · q, and what the task model adds to its parameters)
    value: float = 0.0  # the entropy of q and what ties rows: their part of the bound
    change: float = 0.0  # the largest of any q
    memory: Any = None
    may_cycle: bool = False


class Sweeps:
    """All rows of a fit; owns q from a start until `close`."""

    def __init__(self, problem: Problem, q: Floats, remote: Any = None) -> None:
        self.problem = problem
        self.own: OwnRows | None = problem.tasks.own
        rows = problem.rows
        if problem.n_states > problem.n_classes:
            # Sums are exact, [eq:exact-sums]: fits with subtypes start near a saddle, where
            # rounding grows, so that another order of the same rows would lead elsewhere.
            rows = rows._replace(rounder=rounder_for(problem.n_tasks))
        if self.own is not None:
            rows = rows._replace(role=self.own.away(rows.role))
            self.own_rows = self.own.rows._replace(rounder=rows.rounder)
            self.own_q = q[self.own.at]
        self.inner: Sweeper = problem.backend.open(rows, q, problem.n_threads, problem.copies)
        if remote is not None:
            self.inner.go_to(remote)
        self.watch = self.inner.watch

    def sweep(self, parameters: Parameters, logs: Logs, memory: Any) -> Sums:
        """Update every q by these parameters; return what it implies."""
        own = self.own
        if own is not None and own.is_all(self.problem):
            n_states = len(logs[0])
            swept = Swept(np.zeros((len(logs[1]), n_states)), np.zeros(n_states), 0.0, 0.0)
        else:
            swept = self.inner.sweep(logs)
        codes, totals, change, entropy = swept
        if own is None:
            return Sums(codes, (totals,), entropy, change, memory)
        found = self._infer(own, parameters, logs, memory)
        return found._replace(
            codes=codes + found.codes,
            tasks=(totals + found.tasks[0], *found.tasks[1:]),
            value=entropy + found.value,
            change=max(change, found.change),
        )

    def infer_alone(self, parameters: Parameters, logs: Logs) -> tuple[Sums, Sums]:
        """Update the own rows alone; return what they imply before and after."""
        assert self.own is not None  # asked for where there are some
        before = self._tally_own(self.own, ())
        return before, self._infer(self.own, parameters, logs, None)

    def _infer(self, own: OwnRows, parameters: Parameters, logs: Logs, memory: Any) -> Sums:
        score = own.score(self.problem, logs)
        found = self.problem.tasks.infer(parameters, score, self.own_q, memory)
        change = max(found.change, float(np.abs(found.q - self.own_q).max(initial=0.0)))
        self.own_q = found.q
        sums = self._tally_own(own, found.added)
        value = found.value + own.expected_fixed(found.q)
        return Sums(sums.codes, sums.tasks, value, change, found.memory, found.may_cycle)

    def _tally_own(self, own: OwnRows, added: Parameters) -> Sums:
        everyone = np.ones(len(own.at), dtype=bool)
        given = (self.own_q, self.own_rows, everyone, self.problem.n_threads)
        codes, totals = self.problem.backend.tally(*given)
        if own.draws is not None:
            totals = totals - (1.0 - own.draws) @ self.own_q
        return Sums(codes, (totals, *added))

    def tally(self, chosen: Mask | None = None) -> Sums:
        """Return what q implies as it stands, of the chosen rows alone or of all."""
        codes, totals = self.inner.tally(chosen)
        own = self.own
        if own is None:
            return Sums(codes, (totals,))
        if own.draws is not None:
            absent = 1.0 - own.draws
            totals = totals - (absent if chosen is None else absent * chosen[own.at]) @ self.own_q
        return Sums(codes, (totals, *self.problem.tasks.tally(self.own_q)))

    def value(self) -> float | None:
        """Return the rows' part of the bound as q stands; None: a sweep must come first."""
        if self.own is None:
            return self.inner.entropy()
        of_own = self.problem.tasks.value(self.own_q)
        if of_own is None:
            return None
        return self.inner.entropy() + of_own + self.own.expected_fixed(self.own_q)

    def close(self) -> tuple[Floats, Any]:
        """Give back what the sweeper holds; return q, and where that on other machines stands."""
        q, remote = self.inner.q(), self.inner.elsewhere()
        self.inner.close()
        if self.own is not None:
            q[self.own.at] = self.own_q
        return q, remote
