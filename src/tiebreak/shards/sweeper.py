"""All shards together, as the engine sees them: tables go out, sums come back.

Tasks that links or gold name stay with the driver; all others are in shards. A sweep is a sweep of
both, and the fit above it is that of one machine. Parameters are the driver's alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from tiebreak.inference.workers import AnswerCounts, one_class
from tiebreak.kernels.contract import Backend, choose_backend
from tiebreak.kernels.layout import Floats, Mask, Offsets, Swept
from tiebreak.kernels.sweeper import HostSweeper, Logs
from tiebreak.shards import units
from tiebreak.shards.executor import Executor
from tiebreak.shards.join import JoinedCrowd
from tiebreak.shards.units import LARGE_TABLE, LabelWish, ShardSums, State, Stored, take_table
from tiebreak.shards.write import Checkpoint, digest_of


class FitProgress(NamedTuple):
    """What is known after each sweep."""

    n_sweeps: int
    bound: float | None  # that of the sweep before
    seconds: float  # that this sweep took
    n_responses: int
    n_lost: int  # workers, so far

    @property
    def rate(self) -> float:
        """Responses a second."""
        return self.n_responses / max(self.seconds, 1e-9)


class Shards:
    """The shards of a fit, wherever they are, and the state that their q is in."""

    def __init__(
        self,
        executor: Executor,
        crowd: JoinedCrowd,
        plan: str,
        checkpoint: Checkpoint | None,
        tell: Callable[[FitProgress], None] | None = None,
    ) -> None:
        self.executor = executor
        self.crowd = crowd
        self.plan = plan  # a file, in the folder of work
        self.checkpoint = checkpoint
        self.tell = tell
        self.start = State(0, None)
        self.state = self.start
        self.n_sweeps = 0
        self.bound: float | None = None
        self.n_tasks = crowd.n_tasks

    def add_up(self, what: str, *given: Any) -> ShardSums:
        """Have all shards do something where they stand; return the sum of what they say."""
        task = partial(units.add_up, self.plan, self.state, what, given)
        first, *others = self.executor.share(task, [(one,) for one in self.crowd.looks])
        total = first._replace(by_worker=np.array(take_table(first.by_worker)))
        for found in others:
            total = total.plus(found)
        return total

    def load(self) -> None:
        """Load all shards; add up who gave how many responses."""
        both, n_free, _ = self.add_up("count")
        counts, self.weighed = np.split(both, 2, axis=1)
        self.counts: Offsets = counts.astype(np.int64)  # (worker, class) responses
        self.n_responses = float(n_free[0])

    @cached_property
    def answers(self) -> AnswerCounts:
        """What all workers said; rows of one-class voters are not learnt, as `one_class` has it."""
        if not one_class.is_of_rules(self.weighed):
            return AnswerCounts(self.weighed, None)
        agree, asked = self.add_up("agreement").by_worker.T
        return AnswerCounts(self.weighed, one_class.rows_of_rules(self.weighed, agree, asked))

    def backend(self, name: str, n_responses: int, n_linked: int) -> Backend:
        """Return a backend whose sweepers have shards beside them."""
        n_all = self.crowd.n_responses if n_responses else 0  # as on one machine
        inner = choose_backend(name, n_all, n_linked, may_be_device=False)
        own = {
            "open": partial(ShardSweeper, self, inner),
            "sweeps_here": False,
            "n_remote_tasks": self.n_tasks,
            "n_remote_responses": self.n_responses,
        }
        return SimpleNamespace(**vars(inner) | own)

    def sweep(self, tables: Logs) -> Swept:
        """Sweep all shards; return the sums. What a checkpoint holds is not done again."""
        began = time.perf_counter()
        after = State(self.n_sweeps + 1, self._sent(tables))
        found = self._kept(after, lambda: self.add_up("sweep", after))
        self.state = after
        self.n_sweeps = after.number
        if self.tell is not None:
            seconds = time.perf_counter() - began
            n_lost = self.executor.n_lost
            self.tell(
                FitProgress(after.number, self.bound, seconds, self.crowd.n_responses, n_lost)
            )
        return found

    def sums(self) -> Swept:
        """Return what q implies where it stands; but at the start the last sweep has said it."""
        return self._kept(self.state, lambda: self.add_up("tally"))

    def _kept(self, state: State, make: Callable[[], ShardSums]) -> Swept:
        """Return the sums of a sweep that the checkpoint holds; others are made, and kept."""
        found: Any = None
        sweep = state.number, 0 if state.tables is None else digest_of(state.tables)
        if self.checkpoint is not None:
            found = self.checkpoint.recall(*sweep)
        if found is None:
            found = make()
            if self.checkpoint is not None:
                self.checkpoint.keep(*sweep, found)
        n_states = len(found[1]) - 1
        counts = np.asarray(found[0]).reshape(-1, n_states)
        return Swept(counts, found[1][:-1], float(found[2]), float(found[1][-1]))

    def write(self, wish: LabelWish, label: Sequence[Any], q: Sequence[Floats]) -> Offsets:
        """Write all labels, those of the driver's tasks (by shard) too; count the unsure ones."""
        if wish.tables is not None:
            wish = wish._replace(tables=self._sent(wish.tables))
        task = partial(units.write, self.plan, self.state, wish)
        items = list(zip(self.crowd.looks, label, q, strict=True))
        return np.asarray(np.sum(self.executor.share(task, items), axis=0))

    def _sent(self, tables: Logs) -> Any:
        """Return tables without the codes that only the driver's tasks have; large ones stored."""
        log_prior, log_table = tables
        own = log_table[: len(self.crowd.workers) * len(self.crowd.classes)]
        return log_prior, Stored(
            str(Path(self.plan).parent), own
        ) if own.nbytes > LARGE_TABLE else own


class ShardSweeper(HostSweeper):
    """A sweeper of the driver's own tasks and of all shards together."""

    def __init__(self, shards: Shards, *here: Any) -> None:
        super().__init__(*here)
        self.shards = shards
        shards.state = shards.start

    def sweep(self, logs: Logs) -> Swept:
        others = self.shards.sweep(logs)
        return _plus(others, super().sweep(logs)) if len(self.q()) else others

    def tally(self, chosen: Mask | None = None) -> tuple[Floats, Floats]:
        """Return Σ q by code and over tasks; those chosen are the driver's own."""
        counts, totals = super().tally(chosen)
        if chosen is not None:
            return counts, totals
        return _plus(self.shards.sums(), Swept(counts, totals, 0.0, 0.0))[:2]

    def entropy(self) -> float:
        return self.shards.sums().entropy + super().entropy()

    def remote(self) -> State:
        return self.shards.state

    def go_to(self, remote: State) -> None:
        self.shards.state = remote

    def watch(self, bound: float) -> None:
        self.shards.bound = bound


def _plus(others: Swept, here: Swept) -> Swept:
    """Add up; the driver's tasks may have codes of their own, after those of workers."""
    more = len(here.counts) - len(others.counts)
    counts = np.concatenate([others.counts, np.zeros((more, others.counts.shape[1]))])
    return others._replace(counts=counts).plus(here)
