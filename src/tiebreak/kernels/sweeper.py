"""Sweepers: where sweeps run, and who owns responses and q between them.

A backend opens a sweeper on laid-out responses and a start of q; from then on q is the sweeper's.
Here both lie in this process's memory. A sweeper elsewhere (a GPU, a cluster) has the same methods
and keeps q there, so that only tables go in and sums come out.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tiebreak.kernels.layout import FREE, ByTask, Floats, Mask, Swept, rounded

TASKS_AT_ONCE = 1 << 20

Logs = tuple[Floats, Floats]  # the expected logs: of the class prior, and the table [code, state]


class Sweeper(Protocol):
    """Owns the responses and q between sweeps."""

    @property
    def tasks(self) -> ByTask:
        """The responses by task, with the role of each task."""

    def sweep(self, logs: Logs, scores: Floats | None = None) -> Swept:
        """Update the free tasks, and return what they and the known ones say.

        Rows of linked tasks in `scores` are overwritten with their scores.
        """

    def tally(self, chosen: Mask | None = None) -> tuple[Floats, Floats]:
        """Return Σ q by code and over tasks, of the chosen tasks; None: of all."""

    def entropy(self) -> float:
        """Return Σ H(q) over the free tasks."""

    def q(self) -> Floats:
        """Return q, (n_tasks, n_states); on this machine the very array that sweeps overwrite."""

    def close(self) -> None:
        """Give back what the sweeper holds."""

    def elsewhere(self) -> Any:
        """Return where q of tasks on other machines stands; None: all tasks are here."""

    def go_to(self, elsewhere: Any) -> None:
        """Put q of tasks on other machines to where `elsewhere` said that it stood."""

    def watch(self, bound: float) -> None:
        """Be told the bound after each sweep."""

    def dirichlet_step(self, alpha0: Floats, beta0: Floats) -> DirichletStep | None:
        """Return sweeps that keep Dirichlet parameters where q is; None: they are kept here.

        `alpha0`, (n_states,), and `beta0`, (n_workers or 1, answer, state), are the priors.
        """


class DirichletStep(Protocol):
    """Sweeps whose parameters, α of classes and β of workers, lie where q is."""

    def begin(self, alpha: Floats, beta: Floats) -> tuple[Any, ...]:
        """Bring parameters there."""

    def end(self, parameters: tuple[Any, ...]) -> tuple[Floats, ...]:
        """Fetch parameters from there."""

    def __call__(self, parameters: tuple[Any, ...]) -> tuple[tuple[Any, ...], float, float]:
        """Sweep; return what it implies, the bound there, and the largest change of any q."""


class SweepKernels(Protocol):
    """The kernels that a sweep needs: `reference` says what they mean."""

    def sweep_tasks(
        self,
        q: Floats,
        u: Floats,
        tasks: ByTask,
        log_prior: Floats,
        log_table: Floats,
        n_threads: int = 1,
    ) -> Swept:
        """Update the free tasks, score the linked ones, and count by code."""

    def tally(
        self, q: Floats, tasks: ByTask, chosen: Mask, n_threads: int = 1
    ) -> tuple[Floats, Floats]:
        """Return Σ weight · q by code and Σ q over tasks, of the chosen tasks."""


class AllHere:
    """Part of a sweeper whose tasks are all on this machine."""

    def elsewhere(self) -> None:
        """No task is elsewhere."""
        return

    def go_to(self, elsewhere: Any) -> None:
        """No task is elsewhere: all start where q does."""

    def watch(self, bound: float) -> None:
        """Nobody asks."""


class HostSweeper(AllHere):
    """A sweeper in this process's memory, on the kernels of one backend.

    `copies` says for how many tasks each row of `tasks` counts, where equal response patterns were
    made one: (n_tasks,), or None, one each.
    """

    def __init__(
        self,
        kernels: SweepKernels,
        tasks: ByTask,
        q: Floats,
        n_threads: int = 1,
        copies: Floats | None = None,
    ) -> None:
        self._kernels = kernels
        self._tasks = tasks
        self._q = q
        self._n_threads = n_threads
        self._copies = copies

    @property
    def tasks(self) -> ByTask:
        """The responses by task."""
        return self._tasks

    def sweep(self, logs: Logs, scores: Floats | None = None) -> Swept:
        """Update the free tasks, and return what they and the known ones say: [eq:equal-rows]."""
        u = self._q[:0] if scores is None else scores
        swept = self._kernels.sweep_tasks(self._q, u, self._tasks, *logs, self._n_threads)
        if self._copies is None:
            return swept
        counts, totals = self.tally(self._tasks.is_counted)
        return Swept(counts, totals, swept.change, self.entropy())

    def tally(self, chosen: Mask | None = None) -> tuple[Floats, Floats]:
        """Return Σ q by code and over tasks, of the chosen tasks; None: of all."""
        if chosen is None:
            chosen = np.ones(self._tasks.n_tasks, dtype=bool)
        if self._copies is None:
            return self._kernels.tally(self._q, self._tasks, chosen, self._n_threads)
        of_all = rounded(self._q, self._tasks.rounder) * self._copies[:, None]
        tasks = self._tasks._replace(rounder=None)
        return self._kernels.tally(of_all, tasks, chosen, self._n_threads)

    def entropy(self) -> float:
        """Return Σ H(q) over the free tasks, a million at a time: each takes four rows of q."""
        total = 0.0
        for low in range(0, self._tasks.n_tasks, TASKS_AT_ONCE):
            some = slice(low, low + TASKS_AT_ONCE)
            free = self._tasks.role[some] == FREE
            q = self._q[some][free]
            logs = np.log(np.where(q > 0.0, q, 1.0))
            weighed = q if self._copies is None else q * self._copies[some][free, None]
            total -= float((weighed * logs).sum())
        return total

    def q(self) -> Floats:
        """Return q: the very array that sweeps overwrite."""
        return self._q

    def close(self) -> None:
        """Nothing to give back."""

    def dirichlet_step(self, alpha0: Floats, beta0: Floats) -> None:
        """Parameters are kept by the caller, in the same memory."""
        return
