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
from tiebreak.distributed.partitions import in_classes
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
from tiebreak.kernels.contract import COMPILED_LINKED, COMPILED_ROWS, Backend, choose_backend
from tiebreak.kernels.layout import FREE, POOLED, Codes, Floats, Offsets, Swept
from tiebreak.kernels.sweeper import HostSweeper, Logs
from tiebreak.labels import Labels
from tiebreak.wording import first_few

VOTES = 0  # the number of the state in which q is the shares of votes
NOWHERE = -1  # a sweep was begun and not ended


class PartRecipe(NamedTuple):
    """How a partition is loaded."""

    number: int
    path: str
    name: str  # as the caller gave it
    classes: Ids  # of all partitions
    n_states: int
    rows: Codes | None  # the row of each worker in the tables of the unit; None: they are the same
    named: Codes  # tasks that links or gold name: these are the driver's
    backend: str
    n_threads: int | None
    scratch: str | None  # a folder for q; None: in memory
    start: Logs | None  # tables by which q starts, in the rows of the unit; None: at the votes
    n_before: int = 0  # tasks in earlier partitions
    seed: int | None = None  # by which subtypes start


class Recipe(NamedTuple):
    """How a unit is made."""

    parts: tuple[PartRecipe, ...]
    n_rows: int  # workers of the unit
    folder: str | None = None  # for large tables; None: they are sent

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
    at: int | None  # the number of the sweep that made q; None: wherever it is
    recipe: Any = None  # of the unit, which may have to be made again
    tables: Any = None  # those of that sweep; None: of the start


class Behind(NamedTuple):
    """The unit is not there, or its q is that of another sweep."""

    key: str


class Loaded(NamedTuple):
    """What a unit says once it is loaded."""

    counts: Offsets  # (n_rows · n_classes,) responses by code
    weights: Floats | None  # (n_rows,) by worker, where responses have weights
    n_tasks: int  # without named ones
    n_votes: float  # responses on these, by weight


class NamedLabels(NamedTuple):
    """What the driver found for the tasks that links or gold name."""

    task: Codes
    label: Codes
    q: Floats  # (n_named, n_classes)


class LabelWish(NamedTuple):
    """How labels are made and written."""

    folder: str
    tables: Logs | None  # of the last beliefs, in the rows of the unit; None: q as it is
    calibration: Calibration | None
    named: dict[int, NamedLabels]  # by partition
    probabilities: bool
    overturned: Overturned | None = None  # where gold contradicts the crowd


class Written(NamedTuple):
    """What was written of a partition."""

    file: str
    n_tasks: int
    n_unsure: int
    by_class: Offsets  # labels of each class


class Part:
    """A partition in memory, or mapped into it."""

    def __init__(self, recipe: PartRecipe) -> None:
        self.recipe = recipe
        crowd = in_classes(read_packed(recipe.path, is_checked=True), recipe.classes)
        self.crowd = crowd
        role = np.full(crowd.n_tasks, FREE, dtype=np.int8)
        role[recipe.named] = POOLED
        n_codes = crowd.n_workers * crowd.n_classes
        self.tasks = layout.lay_out(
            crowd.start, crowd.code, role, n_codes, recipe.n_states, crowd.weight
        )
        self.backend = kernels_for(recipe.backend, crowd.n_responses)
        self.large = arrays.LARGE if self.backend is reference else 0
        self.n_threads = recipe.n_threads or own_threads()
        self.q = self._place(self._votes())
        self.sweeper = HostSweeper(self.backend, self.tasks, self.q, self.n_threads)
        if recipe.start is not None:
            self.sweep(recipe.start)

    def _place(self, votes: Floats) -> Floats:
        """Return the array that q lies in: mapped from a file where there is a folder for it."""
        if self.recipe.scratch is None:
            return votes
        file = Path(self.recipe.scratch) / f"q-{self.recipe.number:05d}.f8"
        file.parent.mkdir(parents=True, exist_ok=True)
        mapped = np.memmap(file, dtype=np.float64, mode="w+", shape=votes.shape)
        mapped[:] = votes
        return np.asarray(mapped)

    def _votes(self) -> Floats:
        """Return where q starts: at shares of votes, which NumPy takes five sweeps for."""
        n_classes = self.crowd.n_classes
        shares = arrays.majority(self.tasks, n_classes, self.large)
        n_subtypes = self.recipe.n_states // n_classes
        if n_subtypes == 1:
            return shares
        at = self.recipe.n_before + np.arange(len(shares))
        return vb.split_into_subtypes(shares, n_subtypes, self.recipe.seed, at)

    def count_answers(self) -> Offsets:
        """Return how often each worker gave each label, (n_workers, n_classes)."""
        by_code = arrays.count_codes(self.tasks.code, self.tasks.n_codes, self.large)
        return by_code.reshape(-1, self.crowd.n_classes)

    def n_votes(self) -> float:
        """Return the responses on free tasks, by weight."""
        if self.crowd.weight is None:
            start = self.crowd.start
            named = self.recipe.named
            return float(len(self.crowd.code) - (start[named + 1] - start[named]).sum())
        free = self.tasks.role == FREE
        return float(calibration.n_responses(self.tasks)[free].sum())

    def restart(self) -> None:
        """Put q where it starts."""
        self.q[:] = self._votes()
        if self.recipe.start is not None:
            self.sweep(self.recipe.start)

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

    def write(self, wish: LabelWish) -> Written:
        """Write the labels of the partition, in the order of its tasks, whole or not at all."""
        crowd = self.crowd
        by_class = self.q.reshape(crowd.n_tasks, crowd.n_classes, -1).sum(axis=2)
        label, _ = self.backend.likeliest(by_class)
        if wish.calibration is not None and wish.tables is not None:
            scale = wish.calibration.scale(calibration.n_responses(self.tasks))
            tables = self.own(wish.tables)
            by_class = calibration.probabilities_by(
                tables, self.tasks, scale, crowd.n_classes, self.backend, self.n_threads
            )
        named = wish.named[self.recipe.number]
        by_class[named.task] = named.q
        label[named.task] = named.label
        if wish.overturned is not None:  # the driver has done so with named tasks
            is_here = np.bincount(named.task, minlength=crowd.n_tasks) == 0
            votes = vb.majority(self.tasks, crowd.n_classes)
            by_class = wish.overturned.limit(by_class, label, votes, is_here)
        labels = Labels.from_probabilities(crowd.tasks, crowd.classes, by_class, label=label)
        file = f"labels-{self.recipe.number:05d}.parquet"
        try:
            files.write_labels(Path(wish.folder) / file, labels, probabilities=wish.probabilities)
        except FileError as error:
            raise FileError(f"{error} The fit is kept: go on with --resume.") from None
        assert labels.probability is not None  # made from probabilities
        n_unsure = int((labels.probability < 0.9).sum())
        each = np.bincount(label, minlength=crowd.n_classes)
        return Written(file, crowd.n_tasks, n_unsure, each)


class Unit:
    """Some partitions, loaded."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.parts: list[Part] = []
        for each in recipe.parts:
            with naming(each.number, each.name):
                self.parts.append(Part(each))
        self.at = VOTES

    def bring_to(self, number: int, tables: Logs | None) -> None:
        """Make q what it was after a sweep, from its tables; None: at the start.

        Sums are not needed, but are made: without them kernels take a way with other bits.
        """
        self.at = NOWHERE
        for part in self.parts:
            with naming(part.recipe.number, part.recipe.name):
                part.restart() if tables is None else part.sweep(tables)
        self.at = number

    def load(self) -> Loaded:
        """Say who gave how many responses."""
        n_classes = len(self.recipe.parts[0].classes)
        counts = np.zeros((self.recipe.n_rows, n_classes), dtype=np.int64)
        weights = np.zeros(self.recipe.n_rows)
        n_tasks = 0
        n_votes = 0.0
        for part in self.parts:
            rows = _rows_of(part)
            answers = part.count_answers()
            counts[rows] += answers
            weights[rows] += _weight_by_worker(part, answers)
            n_tasks += part.crowd.n_tasks - len(part.recipe.named)
            n_votes += part.n_votes()
        has_weights = any(part.tasks.weight is not None for part in self.parts)
        return Loaded(counts.ravel(), weights if has_weights else None, n_tasks, n_votes)

    def agreement(self) -> Floats:
        """Count by worker the others' responses that agree, and all of them: (2, n_rows)."""
        found = np.zeros((2, self.recipe.n_rows))
        for part in self.parts:
            found[:, _rows_of(part)] += one_class.count_agreement(part.crowd)
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

    def write(self, wish: LabelWish) -> list[Written]:
        """Write the labels of all partitions."""
        written = []
        for part in self.parts:
            with naming(part.recipe.number, part.recipe.name):
                written.append(part.write(wish))
        return written

    def _add(self, swept: list[Swept]) -> Swept:
        n_classes = len(self.recipe.parts[0].classes)
        rows = [each.rows for each in self.recipe.parts]
        made = add_swept(swept, rows, self.recipe.n_rows, n_classes)
        folder = self.recipe.folder
        if folder is None or made.counts.nbytes <= LARGE_TABLE:
            return made
        file: Any = TableFile(write_table(Path(folder), made.counts), None, n_classes)
        return made._replace(counts=file)


_HELD: dict[str, Any] = {}  # the units of this process, by key
_LOCKS: dict[str, Lock] = {}


def ask_unit(ask: Ask) -> Any:
    """Have a unit do something; it answers `Behind` where it cannot be where it should be."""
    with _LOCKS.setdefault(ask.key, Lock()):
        unit = _HELD.get(ask.key)
        if unit is None:
            if ask.recipe is None:
                return Behind(ask.key)
            unit = _HELD.setdefault(ask.key, ask.recipe.open())
        if ask.at is not None and unit.at != ask.at:
            if ask.recipe is None:
                return Behind(ask.key)
            unit.bring_to(ask.at, ask.tables)
        return getattr(unit, ask.what)(*ask.arguments)


def forget_units(fit: str) -> int:
    """Let go of all units of a fit; return how many there were."""
    mine = [key for key in _HELD if key.startswith(f"{fit}/")]
    for key in mine:
        _HELD.pop(key, None)
        _LOCKS.pop(key, None)
    return len(mine)


def _rows_of(part: Part) -> Any:
    return slice(None) if part.recipe.rows is None else part.recipe.rows


def _weight_by_worker(part: Part, answers: Offsets) -> Floats:
    """Return the responses of each worker, by weight."""
    crowd = part.crowd
    if crowd.weight is None:
        return np.asarray(answers.sum(axis=1), dtype=np.float64)
    worker = crowd.code // crowd.n_classes
    found = np.bincount(worker, weights=crowd.weight, minlength=crowd.n_workers)
    return np.asarray(found, dtype=np.float64)


def kernels_for(backend: str, n_responses: int, n_linked: int = 0) -> Backend:
    """Return kernels of the processor, by the input alone: all shall give the same bits."""
    is_large = n_responses >= COMPILED_ROWS or n_linked >= COMPILED_LINKED
    name = ("numba" if is_large else "numpy") if backend == "auto" else backend
    return choose_backend(name, n_responses, n_linked)
