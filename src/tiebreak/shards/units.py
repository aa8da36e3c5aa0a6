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

from tiebreak.data.ids import Ids
from tiebreak.data.labels import Labels
from tiebreak.errors import FileError
from tiebreak.inference import calibration, vb
from tiebreak.inference.calibration import Calibration
from tiebreak.inference.workers import one_class
from tiebreak.kernels import arrays, layout, reference
from tiebreak.kernels.arrays import likeliest
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import FREE, POOLED, Codes, Floats, Offsets, Swept
from tiebreak.kernels.sweeper import HostSweeper, Logs
from tiebreak.shards.executor import own_threads
from tiebreak.shards.partitions import Look
from tiebreak.shards.sources import naming
from tiebreak.shards.tables import add_rows, add_swept, opened, rows_of, to_answer
from tiebreak.tables import write_labels
from tiebreak.tables.array_folder import new_mapped, read_packed
from tiebreak.wording import first_few

VOTES = 0  # the number of the state in which q is the shares of votes
NOWHERE = -1  # a sweep was begun and not ended
UNSURE = 0.9  # a label below it is counted as unsure


class PartRecipe(NamedTuple):
    """How a partition is loaded."""

    look: Look
    rows: Codes | None  # the row of each worker in the tables of the unit; None: they are the same
    named: Codes  # tasks that links or gold name: these are the driver's


class Recipe(NamedTuple):
    """How a unit is made."""

    parts: tuple[PartRecipe, ...]
    n_rows: int  # workers of the unit
    start: Logs | None  # tables by which q starts, in the rows of the unit; None: at the votes
    classes: Ids  # of all partitions
    n_states: int
    backend: str
    n_tasks: int  # of all partitions: by them sums are made exact, and by responses
    n_responses: int  # kernels are chosen, as on one machine
    n_threads: int | None
    work: str  # the folder of work, for large tables
    is_on_disk: bool  # q lies in mapped files there, not in memory

    def open(self) -> Unit:
        """Load the unit."""
        return Unit(self)

    def __str__(self) -> str:
        looks = (part.look for part in self.parts)
        return first_few([f"partition {each.number} ({each.name})" for each in looks], 3)


class Ask(NamedTuple):
    """What a unit shall do, and where it must stand before; it may have to be brought there."""

    key: str
    what: str
    arguments: tuple[Any, ...]
    at: Any  # the number of the sweep that made q
    recipe: Any = None  # of the unit, which may have to be made again
    tables: Any = None  # those of that sweep; None: of the start

    def __str__(self) -> str:
        return self.key if self.recipe is None else str(self.recipe)


class Behind:
    """The unit is not there, or its q is that of another sweep."""


class LabelWish(NamedTuple):
    """How labels are made and written."""

    folder: str
    probabilities: bool
    calibration: Calibration | None


class NamedLabels(NamedTuple):
    """What the driver found for the tasks of a partition that links or gold name."""

    task: Codes
    label: Codes
    q: Floats  # (n_named, n_classes)


class Part:
    """A partition in memory, or mapped into it."""

    def __init__(self, recipe: PartRecipe, unit: Recipe) -> None:
        self.look, self.rows, self.named = recipe
        crowd = read_packed(self.look.path, is_checked=True).in_classes(unit.classes)
        self.crowd = crowd
        role = np.full(crowd.n_tasks, FREE, dtype=np.int8)
        role[self.named] = POOLED
        n_codes = crowd.n_workers * crowd.n_classes
        self.tasks = layout.lay_out(
            crowd.start, crowd.code, role, n_codes, unit.n_states, crowd.weight
        )
        if unit.n_states > crowd.n_classes:
            self.tasks = self.tasks._replace(rounder=layout.rounder_for(unit.n_tasks))
        self.backend = choose_backend(unit.backend, unit.n_responses, may_be_device=False)
        self.large = arrays.LARGE if self.backend is reference else 0
        self.n_threads = unit.n_threads or own_threads()
        votes = self._votes(unit)
        self.q = votes
        if unit.is_on_disk:
            file = Path(unit.work) / "q" / f"{self.look.number:05d}.npy"
            self.q = new_mapped(file, np.float64, votes.shape)
            self.q[:] = votes
        self.sweeper = HostSweeper(self.backend, self.tasks, self.q, self.n_threads)
        if unit.start is not None:
            self.sweep(unit.start)

    def _votes(self, unit: Recipe) -> Floats:
        """Return where q starts: at shares of votes, which NumPy takes five sweeps for."""
        shares = arrays.majority(self.tasks, self.crowd.n_classes, self.large)
        n_subtypes = unit.n_states // self.crowd.n_classes
        if n_subtypes == 1:
            return shares
        return vb.split_into_subtypes(shares, shares, n_subtypes)

    def count(self) -> tuple[Offsets, Floats, float]:
        """Count answers by code, the same by weight, and responses on free tasks by weight."""
        crowd = self.crowd
        by_code = arrays.count_codes(self.tasks.code, self.tasks.n_codes)
        answers = by_code.reshape(-1, crowd.n_classes)
        if crowd.weight is None:
            n_named = (crowd.start[self.named + 1] - crowd.start[self.named]).sum()
            return answers, answers.astype(np.float64), float(crowd.n_responses - n_named)
        of_tasks = calibration.n_responses(self.tasks)
        return answers, crowd.weigh_labels(), float(of_tasks[self.tasks.role == FREE].sum())

    def sweep(self, tables: Logs) -> Swept:
        """Sweep with the tables of the unit; return sums in the codes of the partition."""
        return self.sweeper.sweep(self.own(tables))

    def tally(self) -> Swept:
        """Count what q implies."""
        counts, totals = self.sweeper.tally(self.tasks.is_counted)
        return Swept(counts, totals, 0.0, self.sweeper.entropy())

    def own(self, tables: Logs) -> Logs:
        """Return the rows of the partition's workers."""
        log_prior, log_table = opened(tables)
        return log_prior, rows_of(log_table, self.rows, self.crowd.n_classes)

    def write(self, wish: LabelWish, tables: Logs | None, named: NamedLabels) -> Offsets:
        """Write labels in the order of tasks, whole or not at all; count the unsure, each class."""
        crowd = self.crowd
        by_class = self.q.reshape(crowd.n_tasks, crowd.n_classes, -1).sum(axis=2)
        label, _ = likeliest(by_class)
        if wish.calibration is not None and tables is not None:
            scale = wish.calibration.scale(calibration.n_responses(self.tasks))
            by_class = calibration.probabilities_by(
                self.own(tables), self.tasks, scale, crowd.n_classes, self.backend, self.n_threads
            )
        by_class[named.task] = named.q
        label[named.task] = named.label
        labels = Labels.from_probabilities(crowd.tasks, crowd.classes, by_class, label=label)
        file = Path(wish.folder) / f"labels-{self.look.number:05d}.parquet"
        try:
            write_labels(file, labels, probabilities=wish.probabilities)
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
            with naming(each.look.number, each.look.name):
                self.parts.append(Part(each, recipe))
        self.at = VOTES

    def bring_to(self, number: int, tables: Logs) -> list[Swept]:
        """Make q what it was after a sweep, from its tables; return the sums of each partition.

        Where they are not needed they are made too: without them kernels take a way with other
        bits.
        """
        self.at = NOWHERE
        made = []
        for part in self.parts:
            with naming(part.look.number, part.look.name):
                made.append(part.sweep(tables))
        self.at = number
        return made

    def load(self) -> tuple[Offsets, Floats, float]:
        """Count answers by code, the same by weight, and responses on free tasks by weight."""
        counts = np.zeros((self.recipe.n_rows, len(self.recipe.classes)), dtype=np.int64)
        weighed = np.zeros(counts.shape)
        n_votes = 0.0
        for part in self.parts:
            answers, by_weight, on_free = part.count()
            add_rows(counts, part.rows, answers)
            add_rows(weighed, part.rows, by_weight)
            n_votes += on_free
        return counts, weighed, n_votes

    def agreement(self) -> Floats:
        """Count by worker the others' responses that agree, and all of them: (n_rows, 2)."""
        found = np.zeros((self.recipe.n_rows, 2))
        for part in self.parts:
            add_rows(found, part.rows, np.stack(one_class.count_agreement(part.crowd), axis=1))
        return found

    def sweep(self, number: int, tables: Logs) -> Swept:
        """Sweep all partitions; add up in their order."""
        return self._add(self.bring_to(number, tables))

    def tally(self) -> Swept:
        """Count what q implies."""
        return self._add([part.tally() for part in self.parts])

    def write(self, wish: LabelWish, tables: Logs | None, named: list[NamedLabels]) -> Offsets:
        """Write the labels of all partitions; count the unsure ones, and those of each class."""
        n_written = np.zeros(1 + len(self.recipe.classes), dtype=np.int64)
        for part, own in zip(self.parts, named, strict=True):
            with naming(part.look.number, part.look.name):
                n_written += part.write(wish, tables, own)
        return n_written

    def _add(self, swept: list[Swept]) -> Swept:
        n_classes = len(self.recipe.classes)
        rows = [each.rows for each in self.recipe.parts]
        made = add_swept(swept, rows, self.recipe.n_rows, n_classes)
        return made._replace(counts=to_answer(self.recipe.work, made.counts))


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
