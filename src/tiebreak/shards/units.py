"""A shard in the process that sweeps it: loaded, swept, added up with others, written.

What q is follows from the tables that it was last made by: a sweep replaces all of it. So nothing
needs to be saved or restored. Each request says by which tables q was made (`State`); a process
whose q is another, or that has not loaded the shard yet, makes that sweep first.
"""

from __future__ import annotations

import pickle
import secrets
import warnings
import weakref
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data import Responses
from tiebreak.data.ids import Ids
from tiebreak.data.labels import Labels
from tiebreak.data.scale import Scale
from tiebreak.errors import FileError, InputNote
from tiebreak.estimators.base import Estimator
from tiebreak.inference import calibration
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.climb import split_into_subtypes
from tiebreak.inference.workers import one_class
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import likeliest, majority
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import AWAY, FREE, Codes, Floats, Offsets, Swept
from tiebreak.kernels.sweeper import HostSweeper, Logs
from tiebreak.life.predict import label_crowd
from tiebreak.shards.executor import own_threads
from tiebreak.shards.join import in_classes, named_tasks
from tiebreak.shards.sources import Look, naming
from tiebreak.tables import write_labels
from tiebreak.tables.array_folder import new_mapped, read_packed

LARGE_TABLE = 8 << 20  # bytes
UNSURE = 0.9  # a label below it is counted as unsure
LOADED = -1  # q is where it starts, and no request has come yet
NOWHERE = -2  # a sweep was begun and not ended


class FitPlan(NamedTuple):
    """What a process must know of a fit to load a shard; it lies in a file, which names it."""

    work: str  # the folder for all that is needed while the fit runs
    workers: Ids  # of all shards
    classes: Ids
    scale: Scale | None  # of the classes
    names: Ids  # of the driver's tasks
    n_states: int
    backend: str
    n_threads: int | None
    n_tasks: int  # of all shards: by them sums are made exact, and by responses
    n_responses: int  # kernels are chosen, as on one machine
    is_on_disk: bool  # q lies in mapped files, not in memory
    start: Estimator | None = None  # by which tasks start; None: at the votes


class State(NamedTuple):
    """Where q of all shards stands: by which tables it was last made."""

    number: int
    tables: Any  # expected logs, (prior, table); None: q is where it starts


class ShardSums(NamedTuple):
    """What shards say; sums of several add up."""

    by_worker: Any  # (n_workers, n) sums; the name of a file where they are large
    others: Floats  # (n,) sums that are of no worker
    change: float = 0.0  # the largest of any q

    def plus(self, other: ShardSums, rows: Any = slice(None)) -> ShardSums:
        """Add other sums, in place; `rows` are those of their workers."""
        self.by_worker[rows] += take_table(other.by_worker)
        self.others[:] += other.others
        return self._replace(change=max(self.change, other.change))


class LabelWish(NamedTuple):
    """How labels are made and written."""

    folder: str
    probabilities: bool
    calibration: Calibration | None
    tables: Any  # by which scores are made; None: labels are those of q


class Part:
    """A shard, in memory or mapped into it."""

    def __init__(self, one: Look, plan: FitPlan) -> None:
        self.number = one.shard.number
        packed = read_packed(one.path, is_checked=True)
        self.crowd = crowd = in_classes(packed, plan.classes, plan.scale)
        self.values = None if plan.scale is None else plan.scale.values
        self.named = named_tasks(crowd.tasks, plan.names)
        rows = plan.workers.codes(crowd.workers)
        is_same = np.array_equal(rows, np.arange(len(plan.workers)))
        self.rows: Any = slice(None) if is_same else rows  # of its workers among all
        role = np.full(crowd.n_tasks, FREE, dtype=np.int8)
        role[self.named] = AWAY
        n_codes = crowd.n_workers * crowd.n_classes
        self.tasks = layout.lay_out(
            crowd.start, crowd.code, role, n_codes, plan.n_states, crowd.weight
        )
        if plan.n_states > crowd.n_classes:
            self.tasks = self.tasks._replace(rounder=layout.rounder_for(plan.n_tasks))
        self.backend = choose_backend(plan.backend, plan.n_responses, may_be_device=False)
        self.n_threads = plan.n_threads or own_threads()
        self.n_subtypes = plan.n_states // crowd.n_classes
        self.start = plan.start
        self.q = self.first_q()
        if plan.is_on_disk:
            file = Path(plan.work) / "q" / f"{self.number:05d}.npy"
            mapped = new_mapped(file, np.float64, self.q.shape)
            mapped[:] = self.q
            self.q = mapped
        self.sweeper = HostSweeper(self.backend, self.tasks, self.q, self.n_threads)
        self.at = LOADED

    def first_q(self) -> Floats:
        """Return where q starts."""
        votes = majority(self.tasks, self.crowd.n_classes)
        q = votes if self.start is None else q_by(self.start, self.crowd, votes)
        if self.n_subtypes == 1:
            return q
        return split_into_subtypes(q, votes, self.n_subtypes)

    def go_to(self, state: State) -> None:
        if state.tables is not None and self.at != state.number:
            self.sweep(state)
        elif self.at not in (state.number, LOADED):
            self.q[:] = self.first_q()
        self.at = state.number

    def own(self, tables: Any) -> Logs:
        """Return tables with the rows of the shard's workers."""
        log_prior, table = tables
        table = np.asarray(table)
        by_worker = table.reshape(len(table) // self.crowd.n_classes, -1)[self.rows]
        return log_prior, np.ascontiguousarray(by_worker).reshape(-1, table.shape[1])

    def sweep(self, state: State) -> ShardSums:
        self.at = NOWHERE
        swept = self.sweeper.sweep(self.own(state.tables))
        self.at = state.number
        return self._found(swept)

    def tally(self) -> ShardSums:
        """Return what the sweep that led here returned, but for the change."""
        sums = self.sweeper.tally(self.tasks.is_counted)
        return self._found(Swept(*sums, 0.0, self.sweeper.entropy()))

    def _found(self, swept: Swept) -> ShardSums:
        by_worker = swept.counts.reshape(self.crowd.n_workers, -1)
        return ShardSums(by_worker, np.append(swept.totals, swept.entropy), swept.change)

    def count(self) -> ShardSums:
        """Count responses by worker and class, the same by weight, and by weight on free tasks."""
        both = np.hstack([self.crowd.count_labels(), self.crowd.weigh_labels()])
        of_tasks = calibration.n_responses(self.tasks)
        return ShardSums(both, of_tasks[self.tasks.role == FREE].sum(keepdims=True))

    def agreement(self) -> ShardSums:
        """Count by worker the others' responses that agree, and all of them."""
        return ShardSums(np.stack(one_class.count_agreement(self.crowd), axis=1), np.zeros(0))

    def write(self, wish: LabelWish, label: Codes, q: Floats) -> Offsets:
        """Write labels in the order of tasks, whole or not at all; count the unsure, each class.

        `label` and `q` are those of the driver's tasks.
        """
        crowd = self.crowd
        by_class = self.q.reshape(crowd.n_tasks, crowd.n_classes, -1).sum(axis=2)
        labels, _ = likeliest(by_class)
        if wish.calibration is not None and wish.tables is not None:
            scale = wish.calibration.scale(calibration.n_responses(self.tasks))
            logs = self.own(wish.tables)
            by_class = calibration.probabilities_by(
                logs, self.tasks, scale, crowd.n_classes, self.backend, self.n_threads
            )
        by_class[self.named] = q
        labels[self.named] = label
        made = Labels.from_probabilities(
            crowd.tasks, crowd.classes, by_class, label=labels, values=self.values
        )
        file = Path(wish.folder) / f"labels-{self.number:05d}.parquet"
        try:
            write_labels(file, made, probabilities=wish.probabilities)
        except FileError as error:
            raise FileError("labels-not-written", reason=error) from None
        assert made.probability is not None  # made from probabilities
        of_classes = np.bincount(labels, minlength=crowd.n_classes)
        return np.append((made.probability < UNSURE).sum(), of_classes)


def q_by(model: Estimator, crowd: Responses, votes: Floats) -> Floats:
    """Return q as a model labels these tasks; votes, where it knows no class of theirs."""
    with warnings.catch_warnings(action="ignore", category=InputNote):  # a start need not fit
        labels = label_crowd(model, crowd)
    column = crowd.classes.codes(model.classes_)
    seen = column >= 0
    q = np.zeros((crowd.n_tasks, crowd.n_classes))
    q[:, column[seen]] = np.asarray(labels.probabilities)[:, seen]
    total = q.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(q, total, out=votes.copy(), where=total > 0.0))


# -- what a process is asked -----------------------------------------------------------------------


class _Held:
    """The shards of a fit that this process has loaded."""

    def __init__(self, plan: str) -> None:
        self.plan: FitPlan = pickle.loads(Path(plan).read_bytes())
        self.parts: dict[int, Part] = {}
        self.lock = Lock()

    def part(self, one: Look, state: State) -> Part:
        number = one.shard.number
        if number not in self.parts:
            self.parts[number] = Part(one, self.plan)
        self.parts[number].go_to(state)
        return self.parts[number]


_HELD: dict[str, _Held] = {}  # by plan


def _held(plan: str) -> _Held:
    if plan not in _HELD:
        _HELD[plan] = _Held(plan)
    return _HELD[plan]


def add_up(
    plan: str, state: State, what: str, given: tuple[Any, ...], items: list[tuple[Look]]
) -> ShardSums:
    """Have shards in a state do something; add up what they say, in the rows of all workers."""
    held = _held(plan)
    total = ShardSums(np.zeros((0, 0)), np.zeros(0))
    with held.lock:
        for i, (one,) in enumerate(items):
            with naming(one):
                part = held.part(one, state)
                found: ShardSums = getattr(part, what)(*given)
            if i == 0:
                shape = len(held.plan.workers), found.by_worker.shape[1]
                total = ShardSums(np.zeros(shape), np.zeros(len(found.others)))
            total = total.plus(found, part.rows)
    if total.by_worker.nbytes > LARGE_TABLE:
        return total._replace(by_worker=save_table(held.plan.work, total.by_worker))
    return total


def write(
    plan: str, state: State, wish: LabelWish, items: list[tuple[Look, Codes, Floats]]
) -> Offsets:
    """Write the labels of shards; count the unsure ones, and those of each class."""
    held = _held(plan)
    n_written = np.zeros(1 + len(held.plan.classes), dtype=np.int64)
    with held.lock:
        for one, label, q in items:
            with naming(one):
                n_written += held.part(one, state).write(wish, label, q)
    return n_written


def forget(plan: str) -> None:
    _HELD.pop(plan, None)


# -- large tables, by files ------------------------------------------------------------------------


class Stored:
    """A table in a file, which goes when nothing refers to this any more.

    A message of 80 MB is held several times on its way by whoever sends it and whoever gets it. A
    file is written once for all. Whoever is sent this gets the table, mapped.
    """

    def __init__(self, work: str, table: Floats) -> None:
        self.path = save_table(work, table)
        weakref.finalize(self, Path(self.path).unlink, missing_ok=True)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return load_table(self.path)

    def __reduce__(self) -> tuple[Any, ...]:
        return load_table, (self.path,)


def save_table(work: str, table: Floats) -> str:
    """Write a table into the folder of work; return the name of its file."""
    folder = Path(work) / "tables"
    path = folder / f"table-{secrets.token_hex(8)}.npy"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        np.save(path, table)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise FileError(
            "table-not-written", size=table.nbytes, folder=folder, reason=error.strerror
        ) from None
    return str(path)


def load_table(path: str) -> Floats:
    """Map a table; kernels take none that cannot be written to."""
    return np.asarray(np.load(path, mmap_mode="c"))


def take_table(table: Any) -> Floats:
    """Return a table that came in an answer; its file goes once it is mapped."""
    if not isinstance(table, str):
        return np.asarray(table)
    mapped = load_table(table)
    Path(table).unlink()
    return mapped
