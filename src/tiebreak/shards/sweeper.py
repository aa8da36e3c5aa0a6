"""The sweeper of a fit over partitions: tables go out, sums come back.

Tasks that links or gold name are few and stay with the driver, with their responses: links join
tasks of different partitions, and gold is compared with what the crowd says. All others are in
units. A sweep is a sweep of both, and the fit above it is that of one machine.

Parameters are the driver's alone. A unit is told the tables of the sweep and the number of the one
before; which process makes it changes no bit, as units add up in a fixed order.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tiebreak.inference.workers import AnswerCounts, one_class
from tiebreak.kernels.contract import Backend, choose_backend
from tiebreak.kernels.layout import ByTask, Codes, Floats, Mask, Swept
from tiebreak.kernels.sweeper import HostSweeper, Logs, Sweeper
from tiebreak.shards.checkpoint import SWEEP, Checkpoint, digest_of
from tiebreak.shards.executor import Executor
from tiebreak.shards.partitions import JoinedCrowd
from tiebreak.shards.tables import add_rows, add_swept, rows_of, to_store
from tiebreak.shards.units import VOTES, Ask, Behind, Recipe, ask_unit


class State(NamedTuple):
    """Where q of all units stands: after which sweep, and by which tables."""

    number: int
    tables: Any  # logs, or with a `Stored` table; None: of the start
    digest: int  # of these tables


START = State(VOTES, None, 0)


class FitProgress(NamedTuple):
    """What is told after each sweep."""

    n_sweeps: int
    bound: float | None  # that of the sweep before
    seconds: float  # that this sweep took
    n_responses: int
    n_lost: int  # workers, so far

    @property
    def rate(self) -> float:
        """Responses a second."""
        return self.n_responses / max(self.seconds, 1e-9)


class Units:
    """The units of a fit, wherever they are, and where their q stands: a `TasksElsewhere`."""

    def __init__(
        self,
        executor: Executor,
        crowd: JoinedCrowd,
        recipes: list[Recipe],
        checkpoint: Checkpoint | None = None,
        tell: Callable[[FitProgress], None] | None = None,
    ) -> None:
        self.executor = executor
        self.crowd = crowd
        self.recipes = recipes
        self.checkpoint = checkpoint
        self.tell = tell
        self.fit = secrets.token_hex(8)
        everyone = len(crowd.workers)
        rows = [crowd.unit_rows(u) for u in range(len(crowd.units))]
        self.rows: list[Codes | None] = [None if len(r) == everyone else r for r in rows]
        n_named = sum(len(part.named) for recipe in recipes for part in recipe.parts)
        self.n_tasks = crowd.n_tasks - n_named
        self.state = START
        self.last_number = VOTES
        self.bound: float | None = None

    def ask(self, what: str, arguments: dict[int, tuple[Any, ...]]) -> list[Any]:
        """Have units do something, from where the fit stands; return what each says.

        Those that are behind are asked again, with the way to where the fit is. Where they cannot
        but be behind, they are told it at once: when they are loaded.
        """
        number = self.state.number
        asks = {u: Ask(f"{self.fit}/{u}", what, given, number) for u, given in arguments.items()}
        behind = list(asks) if what == "load" else []
        found: dict[int, Any] = {}
        while asks:
            for u in behind:
                asks[u] = asks[u]._replace(recipe=self.recipes[u], tables=self._way(u))
            found |= self.executor.each(ask_unit, {u: (ask,) for u, ask in asks.items()})
            behind = [u for u in asks if isinstance(found[u], Behind)]
            asks = {u: asks[u] for u in behind}
        return [found[u] for u in sorted(arguments)]

    def ask_parts(self, what: str, *tables: Logs) -> list[Any]:
        """Have every unit of partitions do something, with tables in its rows."""
        sent = [self.sent(each) for each in tables]
        cuts = {u: tuple(self.cut(u, each) for each in sent) for u in range(len(self.rows))}
        return self.ask(what, cuts)

    def _way(self, unit: int) -> Any:
        """Return what brings a unit to where the fit stands, wherever it is."""
        return None if self.state.tables is None else self.cut(unit, self.state.tables)

    def load(self) -> None:
        """Load every unit; add up who gave how many responses."""
        counts, weighed, n_votes = zip(*self.ask_parts("load"), strict=True)
        n_classes = len(self.crowd.classes)
        self.counts = self.by_row(counts, n_classes, np.int64)
        self.weighed = self.by_row(weighed, n_classes)
        self.n_given = self.weighed.sum(axis=1)
        self.n_responses = sum(n_votes)

    @cached_property
    def answers(self) -> AnswerCounts:
        """What all workers said; rows of one-class voters are not learnt, as `one_class` has it."""
        if not one_class.is_of_rules(self.weighed):
            return AnswerCounts(self.weighed, None)
        agree, asked = self.by_row(self.ask_parts("agreement"), 2).T
        return AnswerCounts(self.weighed, one_class.rows_of_rules(self.weighed, agree, asked))

    def backend(self, name: str, n_responses: int, n_linked: int) -> Backend:
        """Return a backend whose sweepers have units beside them."""
        n_all = self.crowd.n_responses if n_responses else 0  # as on one machine
        inner = choose_backend(name, n_all, n_linked, may_be_device=False)
        return ClusterBackend(inner, self)

    def sweep(self, tables: Logs) -> Swept:
        """Sweep all units; return the sums. What a checkpoint holds is not made again."""
        number = self.last_number + 1
        began = time.perf_counter()
        state = State(number, self.sent(tables), digest_of(tables))
        own = {u: (number, self.cut(u, state.tables)) for u in range(len(self.recipes))}
        found = self._once(SWEEP, state, lambda: self._add(self.ask("sweep", own)))
        self.state = state
        self.last_number = number
        sums = _swept(found)
        if self.tell is not None:
            lost = getattr(self.executor, "n_lost", 0)
            seconds = time.perf_counter() - began
            self.tell(FitProgress(number, self.bound, seconds, self.crowd.n_responses, lost))
        return sums

    def sums(self) -> Swept:
        """Return what q implies where it stands; at the start no sweep has said so."""
        return _swept(self._once(SWEEP, self.state, lambda: self._add(self.ask_parts("tally"))))

    def _once(self, what: str, state: State, make: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """Return what a checkpoint holds of a sweep; what it does not hold is made, and kept."""
        if self.checkpoint is None:
            return make()
        kept = self.checkpoint.recall(what, state.number, state.digest)
        if kept is None:
            kept = make()
            self.checkpoint.keep(what, state.number, state.digest, kept)
        return kept

    def watch(self, bound: float) -> None:
        """Take note of the bound, to tell it."""
        self.bound = bound

    def by_row(self, of_units: Any, width: int, dtype: Any = np.float64) -> Any:
        """Add up what units say of their workers, (n_rows, width), in their order."""
        total = np.zeros((len(self.crowd.workers), width), dtype)
        for rows, each in zip(self.rows, of_units, strict=True):
            add_rows(total, rows, each)
        return total

    def _add(self, found: list[Any]) -> Sequence[Any]:
        """Add up what units say of a sweep, in their order."""
        return add_swept(found, self.rows, len(self.crowd.workers), len(self.crowd.classes))

    def cut(self, unit: int, tables: Any) -> Any:
        """Return tables as a unit needs them: in the rows of its workers."""
        log_prior, table = tables
        return log_prior, rows_of(table, self.rows[unit], len(self.crowd.classes))

    def sent(self, tables: Logs) -> Any:
        """Return tables without the codes that only the driver's tasks have; large ones stored."""
        log_prior, log_table = tables
        own = log_table[: len(self.crowd.workers) * len(self.crowd.classes)]
        return log_prior, to_store(self.recipes[0].work, own)


def _swept(columns: Sequence[Any]) -> Swept:
    """Return the sums that come first in what a sweep gave."""
    return Swept(*columns[:2], *map(float, columns[2:4]))


class ClusterSweeper(HostSweeper):
    """A sweeper of the driver's own tasks and of all units together.

    Units stay where they are when it is closed: the next ascent goes on there.
    """

    def __init__(self, units: Units, *here: Any) -> None:
        super().__init__(*here)
        self._units = units
        units.state = START

    def sweep(self, logs: Logs, scores: Floats | None = None) -> Swept:
        """Sweep the units, then the driver's own tasks."""
        others = self._units.sweep(logs)
        if not self.tasks.n_tasks:
            return others
        return _plus(others, super().sweep(logs, scores))

    def tally(self, chosen: Mask | None = None) -> tuple[Floats, Floats]:
        """Return Σ q by code and over tasks; those chosen are the driver's own."""
        counts, totals = super().tally(chosen)
        if chosen is not None:
            return counts, totals
        return _plus(self._units.sums(), Swept(counts, totals, 0.0, 0.0))[:2]

    def entropy(self) -> float:
        """Return Σ H(q) over all free tasks."""
        return self._units.sums().entropy + super().entropy()

    def elsewhere(self) -> Any:
        """Return where q of the units stands."""
        return self._units.state

    def go_to(self, elsewhere: State) -> None:
        """Go on from there; units that stand elsewhere are brought there when they are asked."""
        self._units.state = elsewhere


def _plus(others: Swept, here: Swept) -> Swept:
    """Add up; the driver's tasks may have codes of their own, after those of workers."""
    more = len(here.counts) - len(others.counts)
    if more > 0:
        counts = np.concatenate([others.counts, np.zeros((more, others.counts.shape[1]))])
        others = others._replace(counts=counts)
    return others.plus(here)


class ClusterBackend:
    """A backend whose sweepers have units beside them; all else is done by the one it wraps."""

    sweeps_here = False

    def __init__(self, inner: Backend, units: Units) -> None:
        self._inner = inner
        self._units = units

    def open(
        self, tasks: ByTask, q: Floats, n_threads: int = 1, copies: Floats | None = None
    ) -> Sweeper:
        """Open a sweeper on the driver's own tasks and on all units."""
        return ClusterSweeper(self._units, self._inner, tasks, q, n_threads, copies)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
