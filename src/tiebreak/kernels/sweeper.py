"""Sweepers: where sweeps run, and who owns responses and q between them.

A backend opens a sweeper on laid-out responses and a start of q; from then on q is the sweeper's.
Here both lie in this process's memory. A sweeper of a GPU, or of shards, has the same methods and
keeps q there, so that only tables go in and sums come out. Sums of several add up.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tiebreak.kernels.layout import FREE, ByTask, Floats, Mask, Swept, rounded

TASKS_AT_ONCE = 1 << 20

Logs = tuple[Floats, Floats]  # the expected logs: of the class prior, and the table [code, state]


class Sweeper(Protocol):
    """Owns the responses and q between sweeps."""

    def sweep(self, logs: Logs) -> Swept:
        """Update the free rows, and return what they and the known ones imply."""

    def tally(self, chosen: Mask | None = None) -> tuple[Floats, Floats]:
        """Return Σ q by code and over tasks, of the chosen rows; None: of all."""

    def entropy(self) -> float:
        """Return Σ H(q) over the free rows."""

    def q(self) -> Floats:
        """Return q, (n_rows, n_states); on this machine the very array that sweeps overwrite."""

    # What follows is for sweepers that are not in this process's memory; others inherit it.

    def close(self) -> None:
        """Give back what the sweeper holds."""
        return

    def remote(self) -> Any:
        """Return where q of rows on other machines stands; None: all rows are here."""
        return None

    def go_to(self, remote: Any) -> None:
        """Put q of rows on other machines to where `remote` said that it stood."""
        return

    def watch(self, bound: float) -> None:
        """Be told the bound after each sweep."""
        return

    def dirichlet_step(self, alpha0: Floats, beta0: Floats) -> Any:
        """Return sweeps that keep Dirichlet parameters where q is; None: they are kept here.

        `alpha0`, (n_states,), and `beta0`, (n_workers or 1, answer, state), are the priors. What is
        returned brings parameters there (`begin`), fetches them (`end`), and when it is called
        sweeps and returns what that implies, the bound, and the largest change of any q.
        """
        return None


class HostSweeper(Sweeper):
    """A sweeper in this process's memory, on the kernels of one backend.

    `copies` says for how many tasks each row counts, where equal response patterns were made one:
    (n_rows,), or None, one each.
    """

    def __init__(
        self,
        kernels: Any,
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

    def sweep(self, logs: Logs) -> Swept:
        """Update the free rows, and return what they and the known ones imply: [eq:equal-rows]."""
        swept: Swept = self._kernels.sweep_tasks(self._q, self._tasks, *logs, self._n_threads)
        if self._copies is None:
            return swept
        sums = self.tally(self._tasks.is_counted)
        return Swept(*sums, swept.change, self.entropy())

    def tally(self, chosen: Mask | None = None) -> tuple[Floats, Floats]:
        q, tasks = self._q, self._tasks
        if chosen is None:
            chosen = np.ones(tasks.n_tasks, dtype=bool)
        if self._copies is not None:
            q = rounded(q, tasks.rounder) * self._copies[:, None]
            tasks = tasks._replace(rounder=None)
        sums: tuple[Floats, Floats] = self._kernels.tally(q, tasks, chosen, self._n_threads)
        return sums

    def entropy(self) -> float:
        """Return Σ H(q) over the free rows, a million at a time: each takes four rows of q."""
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
        return self._q
