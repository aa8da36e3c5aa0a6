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
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.distributed.checkpoint import Checkpoint, digest_of
from tiebreak.distributed.executor import Executor
from tiebreak.distributed.far_links import FarTasks
from tiebreak.distributed.link_units import LinkSwept, LinkTables
from tiebreak.distributed.partitions import Crowd
from tiebreak.distributed.tables import LARGE_TABLE, Stored, TableFile, add_rows, add_swept, rows_of
from tiebreak.distributed.units import VOTES, Ask, Behind, Loaded, Recipe, ask_unit
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import ByTask, Codes, Floats, Mask, Swept
from tiebreak.kernels.sweeper import HostSweeper, Logs, Sweeper


class State(NamedTuple):
    """Where q of all units stands: after which sweep, by which tables, and what it implies."""

    number: int
    tables: Any  # logs, or with a `Stored` table; None: of the start
    digest: int  # of these tables
    sums: Swept | None  # None: the checkpoint has them


START = State(VOTES, None, 0, None)


class Progress(NamedTuple):
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
    """The units of a fit, wherever they are, and where their q stands."""

    def __init__(
        self,
        executor: Executor,
        crowd: Crowd,
        recipes: list[Recipe],
        checkpoint: Checkpoint | None = None,
        tell: Callable[[Progress], None] | None = None,
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
        self.far: FarTasks | None = None
        self.state = START
        self.last_number = VOTES
        self.bound: float | None = None

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Have every unit do something, from where the fit stands; return what each says.

        An argument that is a pair of tables is cut to the rows of each unit.
        """
        sent = [self.sent(each) for each in arguments]
        return self.ask_each(
            what, [tuple(self.cut(u, each) for each in sent) for u in range(len(self.recipes))]
        )

    def ask_each(self, what: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Have every unit do something, each with arguments of its own."""
        return self._ask(self._asks(what, arguments, 0, self.state.number))

    def ask_links(self, what: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Have every link unit do something with its arguments, from where the ascent stands."""
        at = None if what == "open_links" else self.state.number
        return self._ask(self._asks(what, arguments, len(self.recipes), at))

    def _asks(
        self, what: str, arguments: list[tuple[Any, ...]], first: int, at: int | None
    ) -> dict[int, Ask]:
        """Return what is asked, by unit; one that is nowhere yet may have to be made."""
        asks = {
            u: Ask(f"{self.fit}/{u}", what, given, at)
            for u, given in enumerate(arguments, start=first)
        }
        if what == "load":
            return {u: ask._replace(**self._way_back(u)) for u, ask in asks.items()}
        if at is None:
            return {u: ask._replace(recipe=self._way_back(u)["recipe"]) for u, ask in asks.items()}
        return asks

    def _ask(self, asks: dict[int, Ask]) -> list[Any]:
        """Ask units; those that are behind are asked again, with the way to where the fit is."""
        found = self.executor.each(ask_unit, {u: (ask,) for u, ask in asks.items()})
        late = [u for u, each in found.items() if isinstance(each, Behind)]
        if late:
            again = {u: (asks[u]._replace(**self._way_back(u)),) for u in late}
            found |= self.executor.each(ask_unit, again)
        return [found[u] for u in sorted(asks)]

    def _way_back(self, unit: int) -> dict[str, Any]:
        """Return what brings a unit to where the fit stands, wherever it is."""
        if unit < len(self.recipes):
            return {"recipe": self.recipes[unit], "tables": self.cut(unit, self.state.tables)}
        assert self.far is not None
        at = unit - len(self.recipes)
        way = (self.far.begins[at], self.far.tables[at]) if self.far.tables else None
        return {"recipe": self.far.recipes[at], "tables": way}

    def load(self) -> list[Loaded]:
        """Load every unit."""
        return self.ask("load")

    def sweep(self, tables: Logs) -> Swept:
        """Sweep all units; return the sums. What a checkpoint holds is not made again."""
        number = self.last_number + 1
        began = time.perf_counter()
        digest = digest_of(tables)
        sent = self.sent(tables)
        kept = self._recall(number, digest)
        sums, linked = self._sweep(number, sent) if kept is None else kept
        if kept is None and self.checkpoint is not None:
            self.checkpoint.keep(number, digest, sums, linked)
        self.state = State(number, sent, digest, None if self._goes_by_file(sums.counts) else sums)
        self.last_number = number
        if self.far is not None and linked is not None:
            self.far.tables = self._link_tables(sent)
            self.far.last = linked
            sums = sums.plus(linked.swept)
        if self.tell is not None:
            lost = getattr(self.executor, "n_lost", 0)
            seconds = time.perf_counter() - began
            self.tell(Progress(number, self.bound, seconds, self.crowd.n_responses, lost))
        return sums

    def _recall(self, number: int, digest: int) -> tuple[Swept, LinkSwept | None] | None:
        return None if self.checkpoint is None else self.checkpoint.recall(number, digest)

    def _sweep(self, number: int, tables: Any) -> tuple[Swept, LinkSwept | None]:
        own = [(number, self.cut(u, tables)) for u in range(len(self.recipes))]
        asks = self._asks("sweep", own, 0, self.state.number)
        if self.far is not None:
            is_first = not self.far.tables
            given = [
                (number, each, begin if is_first else None)
                for each, begin in zip(self._link_tables(tables), self.far.begins, strict=True)
            ]
            at = None if is_first else self.state.number
            asks |= self._asks("sweep", given, len(own), at)
        found = self._ask(asks)
        sums = self._add(found[: len(own)])
        return sums, None if self.far is None else self.far.take(found[len(own) :])

    def _link_tables(self, tables: Any) -> list[LinkTables]:
        assert self.far is not None
        return self.far.next_tables(self._to_send(tables, None))

    def fetch(self, q: Floats) -> None:
        """Set the rows of q whose tasks lie in link units."""
        if self.far is None or not self.far.tables:
            return
        number = self.state.number
        kept = None if self.checkpoint is None else self.checkpoint.recall_states(number)
        if kept is None:
            kept = self.ask_links("states", [()] * len(self.far.recipes))
            if self.checkpoint is not None:
                self.checkpoint.keep_states(number, kept)
        self.far.fetched(q, kept)

    def sums(self) -> Swept:
        """Return what q implies where it stands."""
        if self.state.sums is not None:
            return self.state.sums
        kept = self._recall(self.state.number, self.state.digest)
        if kept is not None:
            return kept[0]
        made = self._add(self.ask("tally"))  # at the start: no sweep was made yet
        if self.checkpoint is not None:
            self.checkpoint.keep(self.state.number, self.state.digest, made)
        return made

    def log_norm(self, tables: Logs) -> float:
        """Return the log-likelihood of the responses in all units."""
        return float(sum(self.ask("log_norm", tables)))

    def watch(self, bound: float) -> None:
        """Take note of the bound, to tell it."""
        self.bound = bound

    def by_row(self, of_units: list[Any], width: int, dtype: Any = np.float64) -> Any:
        """Add up what units say of their workers, (n_rows, width), in their order."""
        total = np.zeros((len(self.crowd.workers), width), dtype)
        for rows, each in zip(self.rows, of_units, strict=True):
            add_rows(total, rows, each)
        return total

    def _add(self, swept: list[Swept]) -> Swept:
        return add_swept(swept, self.rows, len(self.crowd.workers), len(self.crowd.classes))

    def cut(self, unit: int, argument: Any) -> Any:
        """Return tables in the rows of a unit; all else as it is."""
        return self._to_send(argument, self.rows[unit]) if _is_tables(argument) else argument

    def sent(self, argument: Any) -> Any:
        """Return tables without the codes that only the driver's tasks have; large ones stored."""
        if not _is_tables(argument) or isinstance(argument[1], Stored):
            return argument
        log_prior, log_table = argument
        own = log_table[: len(self.crowd.workers) * len(self.crowd.classes)]
        folder = self.recipes[0].folder
        if folder is None or not self._goes_by_file(own):
            return log_prior, own
        return log_prior, Stored(Path(folder), own)

    def _goes_by_file(self, table: Floats) -> bool:
        return self.recipes[0].folder is not None and table.nbytes > LARGE_TABLE

    def _to_send(self, tables: Any, rows: Codes | None) -> Any:
        log_prior, table = tables
        n_classes = len(self.crowd.classes)
        if isinstance(table, Stored):
            return log_prior, TableFile(table.path, rows, n_classes)
        return log_prior, rows_of(table, rows, n_classes)


def _is_tables(argument: Any) -> bool:
    is_pair = type(argument) is tuple and len(argument) == 2
    return is_pair and isinstance(argument[1], np.ndarray | Stored)


class ClusterSweeper:
    """A sweeper of the driver's own tasks and of all units together."""

    def __init__(self, here: HostSweeper, units: Units, own: HostSweeper | None = None) -> None:
        self._here = here
        self._own = own or here  # of what the driver sweeps itself
        self._units = units
        units.state = START
        if units.far is not None:
            units.far.begin(here.tasks, here.q())

    @property
    def tasks(self) -> ByTask:
        """The driver's own tasks."""
        return self._here.tasks

    def sweep(self, logs: Logs, scores: Floats | None = None, *, counting: bool = True) -> Swept:
        """Sweep the units, then the driver's own tasks."""
        others = self._units.sweep(logs)
        if not self.tasks.n_tasks:
            return others
        return self._plus_here(others, self._own.sweep(logs, scores, counting=counting))

    def tally(self, chosen: Mask | None = None) -> tuple[Floats, Floats]:
        """Return Σ q by code and over tasks; those chosen are the driver's own."""
        counts, totals = self._here.tally(chosen)
        if chosen is not None:
            return counts, totals
        whole = self._plus_here(self._units.sums(), Swept(counts, totals, 0.0, 0.0, 0.0))
        return whole.counts, whole.totals

    def entropy(self) -> float:
        """Return Σ H(q) over all free tasks."""
        return self._units.sums().entropy + self._here.entropy()

    def q(self) -> Floats:
        """Return q of the driver's own tasks, as link units have it where these lie there."""
        q = self._here.q()
        self._units.fetch(q)
        return q

    def close(self) -> None:
        """Units stay where they are: the next ascent goes on there."""

    def elsewhere(self) -> State:
        """Return where q of the units stands."""
        return self._units.state

    def go_to(self, elsewhere: State) -> None:
        """Go on from there; units that stand elsewhere are brought there when they are asked."""
        self._units.state = elsewhere

    def dirichlet_step(self, alpha0: Floats, beta0: Floats) -> None:
        """Parameters are the driver's."""
        return

    @staticmethod
    def _plus_here(others: Swept, here: Swept) -> Swept:
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
        here = HostSweeper(self._inner, tasks, q, n_threads, copies)
        far = self._units.far
        if far is None:
            return ClusterSweeper(here, self._units)
        own = HostSweeper(self._inner, far.without_far(tasks), q, n_threads, copies)
        return ClusterSweeper(here, self._units, own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
