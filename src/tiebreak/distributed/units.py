"""Units: neighbouring partitions that one process holds, sweeps and adds up in a fixed order.

A unit is made from its recipe, which says everything, so that it can be made again wherever its
process died. Its q is a function of the tables of the last sweep alone. So a unit that is not where
the fit is answers `Behind`, and is asked again with its recipe and the tables of the last sweep: it
makes that sweep, and is where it was, bit by bit.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from tiebreak import files
from tiebreak.distributed.executor import own_threads
from tiebreak.distributed.sources import naming
from tiebreak.distributed.tables import (
    LARGE_TABLE,
    TableFile,
    add_swept,
    opened,
    rows_of,
    write_table,
)
from tiebreak.errors import FileError
from tiebreak.files.packed import read_packed
from tiebreak.ids import Ids
from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.overturned import Overturned
from tiebreak.inference.worker_models import one_class
from tiebreak.kernels import arrays, layout, reference
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import FREE, POOLED, Codes, Floats, Offsets, Swept
from tiebreak.kernels.sweeper import HostSweeper, Logs
from tiebreak.labels import Labels
from tiebreak.wording import first_few

VOTES = 0  # the number of the state in which q is the shares of votes
NOWHERE = -1  # a sweep was begun and not ended
UNSURE = 0.9  # a label below it is counted as unsure


class PartRecipe(NamedTuple):
    """How a partition is loaded."""

    number: int
    path: str
    name: str  # as the caller gave it
    n_before: int  # tasks in earlier partitions
    rows: Codes | None  # the row of each worker in the tables of the unit; None: they are the same
    named: Codes  # tasks that links or gold name: these are the driver's


class Recipe(NamedTuple):
    """How a unit is made."""

    parts: tuple[PartRecipe, ...]
    n_rows: int  # workers of the unit
    start: Logs | None  # tables by which q starts, in the rows of the unit; None: at the votes
    classes: Ids  # of all partitions
    n_states: int
    seed: int | None  # by which subtypes start
    backend: str
    n_threads: int | None
    work: str  # the folder of work, for large tables
    is_on_disk: bool  # q lies in mapped files there, not in memory

    def open(self) -> Unit:
        """Load the unit."""
        return Unit(self)

    def __str__(self) -> str:
        return first_few([f"partition {each.number} ({each.name})" for each in self.parts], 3)


class Ask(NamedTuple):
    """What a unit shall do, and where it must stand before; it may have to be brought there."""

    key: str
    what: str
    arguments: tuple[Any, ...]
    at: Any  # the number of the sweep that made q
    recipe: Any = None  # of the unit, which may have to be made again
    tables: Any = None  # those of that sweep; None: of the start


class Behind:
    """The unit is not there, or its q is that of another sweep."""


class LabelWish(NamedTuple):
    """How labels are made and written."""

    folder: str
    probabilities: bool
    calibration: Calibration | None
    overturned: Overturned | None  # where gold contradicts the crowd


class NamedLabels(NamedTuple):
    """What the driver found for the tasks of a partition that links or gold name."""

    task: Codes
    label: Codes
    q: Floats  # (n_named, n_classes)


class Part:
    """A partition in memory, or mapped into it."""

    def __init__(self, recipe: PartRecipe, unit: Recipe) -> None:
        self.recipe = recipe
        self.crowd = read_packed(recipe.path, is_checked=True).in_classes(unit.classes)
        crowd = self.crowd
        role = np.full(crowd.n_tasks, FREE, dtype=np.int8)
        role[recipe.named] = POOLED
        n_codes = crowd.n_workers * crowd.n_classes
        self.tasks = layout.lay_out(
            crowd.start, crowd.code, role, n_codes, unit.n_states, crowd.weight
        )
        self.backend = choose_backend(unit.backend, crowd.n_responses, may_be_device=False)
        self.large = arrays.LARGE if self.backend is reference else 0
        self.n_threads = unit.n_threads or own_threads()
        self.q = self._votes(unit)
        if unit.is_on_disk:
            self.q = _mapped(Path(unit.work) / "q" / f"{recipe.number:05d}.f8", self.q)
        self.sweeper = HostSweeper(self.backend, self.tasks, self.q, self.n_threads)
        if unit.start is not None:
            self.sweep(unit.start)

    @property
    def rows(self) -> Any:
        """The rows of the partition's workers in tables of the unit."""
        return slice(None) if self.recipe.rows is None else self.recipe.rows

    def _votes(self, unit: Recipe) -> Floats:
        """Return where q starts: at shares of votes, which NumPy takes five sweeps for."""
        shares = arrays.majority(self.tasks, self.crowd.n_classes, self.large)
        n_subtypes = unit.n_states // self.crowd.n_classes
        if n_subtypes == 1:
            return shares
        at = self.recipe.n_before + np.arange(len(shares))
        return vb.split_into_subtypes(shares, n_subtypes, unit.seed, at)

    def count_answers(self) -> Offsets:
        """Return how often each worker gave each label, (n_workers, n_classes)."""
        by_code = arrays.count_codes(self.tasks.code, self.tasks.n_codes, self.large)
        return by_code.reshape(-1, self.crowd.n_classes)

    def count_by_worker(self, answers: Offsets) -> Floats:
        """Return the responses of each worker, by weight."""
        crowd = self.crowd
        if crowd.weight is None:
            return np.asarray(answers.sum(axis=1), dtype=np.float64)
        worker = crowd.code // crowd.n_classes
        found = np.bincount(worker, weights=crowd.weight, minlength=crowd.n_workers)
        return np.asarray(found, dtype=np.float64)

    def n_votes(self) -> float:
        """Return the responses on free tasks, by weight."""
        if self.crowd.weight is None:
            start = self.crowd.start
            named = self.recipe.named
            return float(len(self.crowd.code) - (start[named + 1] - start[named]).sum())
        free = self.tasks.role == FREE
        return float(calibration.n_responses(self.tasks)[free].sum())

    def sweep(self, tables: Logs) -> Swept:
        """Sweep with the tables of the unit; return sums in the codes of the partition."""
        return self.sweeper.sweep(self.own(tables))

    def tally(self) -> Swept:
        """Count what q implies."""
        counts, totals = self.sweeper.tally(self.tasks.is_counted)
        return Swept(counts, totals, 0.0, self.sweeper.entropy(), 0.0)

    def log_norm(self, tables: Logs) -> float:
        """Return Σ log Σ exp(score) over free tasks, and leave q as it is."""
        log_prior, log_table = self.own(tables)
        total = 0.0
        for low in range(0, self.tasks.n_tasks, calibration.TASKS_AT_ONCE):
            high = min(low + calibration.TASKS_AT_ONCE, self.tasks.n_tasks)
            part = layout.slice_of(self.tasks, low, high, len(log_prior))
            scores = self.backend.score_tasks(part, log_prior, log_table)[part.role == FREE]
            total += float(np.logaddexp.reduce(scores, axis=1).sum())
        return total

    def own(self, tables: Logs) -> Logs:
        """Return the rows of the partition's workers."""
        log_prior, log_table = opened(tables)
        return log_prior, rows_of(log_table, self.recipe.rows, self.crowd.n_classes)

    def write(self, wish: LabelWish, tables: Logs | None, named: NamedLabels) -> Offsets:
        """Write labels in the order of tasks, whole or not at all; count the unsure, each class."""
        crowd = self.crowd
        by_class = self.q.reshape(crowd.n_tasks, crowd.n_classes, -1).sum(axis=2)
        label, _ = self.backend.likeliest(by_class)
        if wish.calibration is not None and tables is not None:
            scale = wish.calibration.scale(calibration.n_responses(self.tasks))
            by_class = calibration.probabilities_by(
                self.own(tables), self.tasks, scale, crowd.n_classes, self.backend, self.n_threads
            )
        by_class[named.task] = named.q
        label[named.task] = named.label
        if wish.overturned is not None:  # the driver has done so with named tasks
            is_here = np.bincount(named.task, minlength=crowd.n_tasks) == 0
            votes = vb.majority(self.tasks, crowd.n_classes)
            by_class = wish.overturned.limit(by_class, label, votes, is_here)
        labels = Labels.from_probabilities(crowd.tasks, crowd.classes, by_class, label=label)
        file = Path(wish.folder) / f"labels-{self.recipe.number:05d}.parquet"
        try:
            files.write_labels(file, labels, probabilities=wish.probabilities)
        except FileError as error:
            raise FileError(f"{error} The fit is kept: go on with --resume.") from None
        assert labels.probability is not None  # made from probabilities
        of_classes = np.bincount(label, minlength=crowd.n_classes)
        return np.append((labels.probability < UNSURE).sum(), of_classes)


class Unit:
    """Some partitions, loaded."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.parts: list[Part] = []
        for each in recipe.parts:
            with naming(each.number, each.name):
                self.parts.append(Part(each, recipe))
        self.at = VOTES

    def bring_to(self, number: int, tables: Logs) -> None:
        """Make q what it was after a sweep, from its tables.

        Sums are not needed, but are made: without them kernels take a way with other bits.
        """
        self.at = NOWHERE
        for part in self.parts:
            with naming(part.recipe.number, part.recipe.name):
                part.sweep(tables)
        self.at = number

    def load(self) -> tuple[Offsets, Floats, float]:
        """Count answers by code, responses by worker, and those on free tasks, by weight."""
        counts = np.zeros((self.recipe.n_rows, len(self.recipe.classes)), dtype=np.int64)
        given = np.zeros(self.recipe.n_rows)
        for part in self.parts:
            answers = part.count_answers()
            counts[part.rows] += answers
            given[part.rows] += part.count_by_worker(answers)
        return counts, given, sum(part.n_votes() for part in self.parts)

    def agreement(self) -> Floats:
        """Count by worker the others' responses that agree, and all of them: (n_rows, 2)."""
        found = np.zeros((self.recipe.n_rows, 2))
        for part in self.parts:
            found[part.rows] += np.stack(one_class.count_agreement(part.crowd), axis=1)
        return found

    def sweep(self, number: int, tables: Logs) -> Swept:
        """Sweep all partitions; add up in their order."""
        self.at = NOWHERE
        made = self._add([part.sweep(tables) for part in self.parts])
        self.at = number
        return made

    def tally(self) -> Swept:
        """Count what q implies."""
        return self._add([part.tally() for part in self.parts])

    def log_norm(self, tables: Logs) -> float:
        """Return the log-likelihood of the responses by these tables."""
        return sum(part.log_norm(tables) for part in self.parts)

    def write(self, wish: LabelWish, tables: Logs | None, named: list[NamedLabels]) -> Offsets:
        """Write the labels of all partitions; count the unsure ones, and those of each class."""
        n_written = np.zeros(1 + len(self.recipe.classes), dtype=np.int64)
        for part, own in zip(self.parts, named, strict=True):
            with naming(part.recipe.number, part.recipe.name):
                n_written += part.write(wish, tables, own)
        return n_written

    def _add(self, swept: list[Swept]) -> Swept:
        n_classes = len(self.recipe.classes)
        rows = [each.rows for each in self.recipe.parts]
        made = add_swept(swept, rows, self.recipe.n_rows, n_classes)
        if made.counts.nbytes <= LARGE_TABLE:
            return made
        file: Any = TableFile(write_table(self.recipe.work, made.counts), None, n_classes)
        return made._replace(counts=file)


_HELD: dict[str, Any] = {}  # the units of this process, by key
_LOCKS: dict[str, Lock] = {}


def ask_unit(ask: Ask) -> Any:
    """Have a unit do something; it answers `Behind` where it cannot be where it should be."""
    with _LOCKS.setdefault(ask.key, Lock()):
        unit = _HELD.get(ask.key)
        if unit is None or unit.at != ask.at:
            if ask.recipe is None:
                return Behind()
            unit = _brought(ask)
        return getattr(unit, ask.what)(*ask.arguments)


def _brought(ask: Ask) -> Any:
    """Return a unit that stands where it should; one that should start is made anew."""
    if ask.tables is None:
        _HELD.pop(ask.key, None)
    if ask.key not in _HELD:
        _HELD[ask.key] = ask.recipe.open()
    unit = _HELD[ask.key]
    if ask.tables is not None:
        unit.bring_to(ask.at, ask.tables)
    return unit


def forget_units(fit: str) -> None:
    """Let go of all units of a fit."""
    for key in [key for key in _HELD if key.startswith(f"{fit}/")]:
        _HELD.pop(key, None)
        _LOCKS.pop(key, None)


def _mapped(file: Path, values: Floats) -> Floats:
    """Return the values in a file that is mapped into memory."""
    file.parent.mkdir(parents=True, exist_ok=True)
    mapped = np.memmap(file, dtype=np.float64, mode="w+", shape=values.shape)
    mapped[:] = values
    return np.asarray(mapped)
