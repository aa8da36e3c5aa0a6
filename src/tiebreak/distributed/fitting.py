"""Fitting partitions: look, join, load, fit, write. The driver's part, in its order."""

from __future__ import annotations

import copy
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak import files, ids
from tiebreak._version import __version__
from tiebreak.distributed import estimators, output, partitions, spread, starts
from tiebreak.distributed.checkpoint import Checkpoint
from tiebreak.distributed.estimators import Outcome
from tiebreak.distributed.executor import Executor, Serial
from tiebreak.distributed.far_links import cut_far_tasks
from tiebreak.distributed.output import LabelFiles
from tiebreak.distributed.partitions import Crowd, Named
from tiebreak.distributed.sources import ReadOptions, Shard, find_shards
from tiebreak.distributed.sweeper import Progress, Units
from tiebreak.distributed.tables import rows_of
from tiebreak.distributed.units import (
    LabelWish,
    NamedLabels,
    PartRecipe,
    Recipe,
    Written,
    forget_units,
)
from tiebreak.errors import ResponseError
from tiebreak.gold import Gold
from tiebreak.ids import Ids
from tiebreak.inference import VariationalBayes
from tiebreak.inference.estimator import Estimator
from tiebreak.inference.inputs import Inputs, read_and_check_inputs
from tiebreak.kernels.layout import Offsets
from tiebreak.kernels.sweeper import Logs
from tiebreak.labels import Labels
from tiebreak.links import Links
from tiebreak.options import ExactLinkOptions

TABLES_HELD = 6  # by the driver: beliefs of three sweeps, logs, sums, and one on the way
DRIVER_BYTES = 300 << 20  # beside tables
# What a task that links or gold name takes in the driver: id, links, q some times over. With two
# classes, five responses and half a link that is 438 bytes (tracemalloc, 2.5e5 tasks less 5e4).
NAMED_BYTES = 300
NAMED_BYTES_A_STATE = 48
NAMED_BYTES_A_RESPONSE = 8  # where the driver sweeps them
# Linked tasks are swept by the driver up to so many bytes of their responses and q, above in units:
LINKED_BYTES = 1 << 30
LINK_UNIT_BYTES = 1 << 28


class ClusterOptions(NamedTuple):
    """How a fit over partitions runs; what it finds does not depend on it, but for `n_units`."""

    resume: bool = False  # go on from the checkpoint in the folder of labels
    force: bool = False  # begin anew where a fit was broken off
    n_units: int | None = None  # runs of partitions that are added up where they lie
    probabilities: bool = False  # write one column a class
    on_disk: bool = False  # q lies in mapped files, not in memory
    tell: Callable[[Progress], None] | None = None
    read: ReadOptions = ReadOptions()


class DistributedFit:
    """A fit over partitions: parameters in memory, labels in files.

    What a model of one machine says of workers and classes is here under the same names:
    `confusion_`, `class_prior_`, `bounds_`, `n_iter_`, `converged_`, `workers_`, `classes_`,
    `calibration_`, `violations_`. `labels_` are files; see `LabelFiles`. `model` is an estimator
    that keeps counts in the place of responses: it can be saved, asked to predict, updated.
    """

    def __init__(self, model: Estimator, labels: LabelFiles, written: list[Written]) -> None:
        self.model = model
        self.labels_ = labels
        self.n_tasks = sum(each.n_tasks for each in written)
        self.n_unsure = sum(each.n_unsure for each in written)
        self.labels_by_class: Offsets = np.sum([each.by_class for each in written], axis=0)
        self.n_responses = 0
        self.answers: Offsets = np.zeros((0, 0), np.int64)  # (worker, class) responses
        self.n_lost = 0  # workers that died on the way

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)

    def __repr__(self) -> str:
        return f"DistributedFit({self.model!r}, {self.n_tasks:,} tasks, {self.labels_!r})"

    def save(self, target: Any) -> None:
        """Keep the model, for `tb.load`, predict and update."""
        self.model.save(target)

    def predict(self, responses: Any, *, links: Any = None) -> Labels:
        """Label new tasks by workers as they are known."""
        return self.model.predict(responses, links=links)


def fit_partitions(
    source: Any,
    out: str | os.PathLike[str],
    *,
    estimator: Estimator,
    executor: Executor | None = None,
    links: Any = None,
    gold: Any = None,
    start: Any = None,
    options: ClusterOptions | None = None,
) -> DistributedFit:
    """Fit an estimator to partitions and write the labels; see `tiebreak.distributed.fit`."""
    executor = executor or Serial()
    options = options or ClusterOptions()
    model = copy.copy(estimator)
    estimators.refuse_unable(model, has_links=links is not None)
    pairs = None if links is None else files.read_links(links)
    known = None if gold is None else files.read_gold(gold)
    shards = find_shards(source)
    folder = Path(os.path.realpath(out))
    work = output.prepare(folder, resume=options.resume, force=options.force)
    crowd = _look(executor, shards, known, work, options)
    named = _find_named(executor, crowd, pairs, known)
    n_states = starts.n_states(model, crowd)
    is_far = pairs is not None and _named_bytes(named, n_states) > LINKED_BYTES
    _require_memory(crowd, named, n_states, is_far=is_far)
    linked = output.subfolder(work, "linked") if is_far else None
    inputs = _inputs(model, partitions.gather_named(executor, crowd, named, linked), pairs, known)
    tables = None if start is None else starts.start_tables(start, crowd, model)
    fingerprint = _fingerprint(crowd, model, pairs, known, tables)
    checkpoint = Checkpoint(work / "checkpoint", fingerprint, resume=options.resume)
    recipes = _recipes(crowd, named, model, tables, work, options)
    units = Units(executor, crowd, recipes, checkpoint, options.tell)
    if linked is not None and inputs.link_codes is not None:
        units.far = cut_far_tasks(model, inputs, n_states, linked, LINK_UNIT_BYTES)
    try:
        sums = estimators.add_up(units, units.load())
        places = _places_of(crowd, named)
        outcome = estimators.fit(model, inputs, units, sums, starts.StartOf(tables, places))
        written = _write(units, named, outcome, folder, options)
    finally:
        _forget(executor, units)
    made = DistributedFit(_without_tasks(model, crowd), LabelFiles(folder), written)
    made.n_responses = crowd.n_responses
    made.answers = sums.counts
    made.n_lost = int(getattr(executor, "n_lost", 0))
    model._warn_unsettled(getattr(model, "tol", 0.0))
    output.finish(folder, _summary(made, crowd))
    return made


def _look(
    executor: Executor,
    shards: list[Shard],
    gold: Gold | None,
    work: Path,
    options: ClusterOptions,
) -> Crowd:
    parts = str(work / "parts")
    arguments = {i: (i, shard, options.read, parts) for i, shard in enumerate(shards)}
    found = executor.each(partitions.look, arguments)
    looks = [found[i] for i in range(len(shards))]
    crowd = partitions.join(looks, None if gold is None else gold.classes, options.n_units)
    spread.require_apart(executor, crowd, work / "hashes")
    return crowd


def _find_named(
    executor: Executor, crowd: Crowd, links: Links | None, gold: Gold | None
) -> list[Named]:
    """Find the tasks that links and gold name, in every partition."""
    names = Ids(()) if gold is None else gold.tasks
    if links is not None and len(links):
        names = links.tasks if not len(names) else ids.merge(names, links.tasks)
    given = {i: (look.path, names) for i, look in enumerate(crowd.looks)}
    found = executor.each(partitions.find_named, given)
    return [found[i] for i in range(len(given))]


def _inputs(model: Estimator, named: Any, links: Links | None, gold: Gold | None) -> Inputs:
    """Check links and gold against each other and the tasks, as a fit on one machine does."""
    if not isinstance(model, VariationalBayes):
        return read_and_check_inputs(named, None, gold)
    options = model.link_options or ExactLinkOptions()
    return read_and_check_inputs(
        named,
        links,
        gold,
        on_contradiction=model.on_contradiction,
        soft_links=options.is_soft,
        may_break=options.may_break,
    )


def _require_memory(crowd: Crowd, named: list[Named], n_states: int, *, is_far: bool) -> None:
    """Refuse, before the work begins, what the driver cannot hold; say the arithmetic."""
    n_workers = len(crowd.workers)
    n_classes = len(crowd.classes)
    table = 8 * n_workers * n_classes * n_states
    n_named = sum(len(each.task) for each in named)
    n_responses = 0 if is_far else sum(int(each.length.sum()) for each in named)
    of_named = n_named * (NAMED_BYTES + NAMED_BYTES_A_STATE * n_states)
    of_named += NAMED_BYTES_A_RESPONSE * n_responses
    needed = DRIVER_BYTES + TABLES_HELD * table + of_named
    limit = _memory_bytes()
    if needed <= limit:
        return
    raise ResponseError(
        f"{n_workers:,} workers and {n_classes:,} classes make a table of {_size(table)} "
        f"(workers · classes · states · 8 bytes), of which the driver holds {TABLES_HELD}; "
        f"{n_named:,} tasks that links and gold name take {_size(of_named)}; all else "
        f"{_size(DRIVER_BYTES)}. Together that is {_size(needed)}, and this machine has "
        f"{_size(limit)}. Start the driver on a larger machine, fit fewer workers or classes at a "
        "time, or name fewer tasks."
    )


def _named_bytes(named: list[Named], n_states: int) -> int:
    """Return the bytes of the responses and of q of named tasks."""
    return sum(4 * int(each.length.sum()) + 8 * n_states * len(each.task) for each in named)


def _recipes(
    crowd: Crowd,
    named: list[Named],
    model: Estimator,
    start: Logs | None,
    work: Path,
    options: ClusterOptions,
) -> list[Recipe]:
    scratch = str(work / "q") if options.on_disk else None
    before = np.cumsum([0, *(look.n_tasks for look in crowd.looks)])
    recipes = []
    for number, unit in enumerate(crowd.units):
        rows = crowd.unit_rows(number)
        own = None if start is None else (start[0], rows_of(start[1], rows, len(crowd.classes)))
        parts = tuple(
            PartRecipe(
                i,
                crowd.looks[i].path,
                crowd.looks[i].name,
                crowd.classes,
                starts.n_states(model, crowd),
                _places(rows, crowd.rows[i]),
                named[i].task,
                getattr(model, "backend", "auto"),
                getattr(model, "n_threads", None),
                scratch,
                own,
                int(before[i]),
                getattr(model, "random_state", None),
            )
            for i in unit
        )
        recipes.append(Recipe(parts, len(rows), str(work / "tables")))
    return recipes


def _places(unit_rows: Any, rows: Any) -> Any:
    """Return where a partition's workers stand in the unit; None where they are the same."""
    if len(rows) == len(unit_rows) and np.array_equal(rows, unit_rows):
        return None
    return np.searchsorted(unit_rows, rows).astype(np.int32)


def _write(
    units: Units, named: list[Named], outcome: Outcome, folder: Path, options: ClusterOptions
) -> list[Written]:
    """Have every unit write its labels; those of named tasks are sent to where their tasks lie."""
    crowd = units.crowd
    ends = np.cumsum([0, *(len(each.task) for each in named)])
    of_parts = {
        i: NamedLabels(each.task, outcome.label[low:high], outcome.q[low:high])
        for i, (each, low, high) in enumerate(zip(named, ends[:-1], ends[1:], strict=True))
    }
    tables = None if outcome.tables is None else units.sent(outcome.tables)
    wish = LabelWish(
        str(folder), None, outcome.calibration, {}, options.probabilities, outcome.overturned
    )
    wishes = [
        wish._replace(
            tables=None if tables is None else units.cut(u, tables),
            named={i: of_parts[i] for i in unit},
        )
        for u, unit in enumerate(crowd.units)
    ]
    found = units.ask_each("write", [(each,) for each in wishes])
    return [written for each in found for written in each]


def _places_of(crowd: Crowd, named: list[Named]) -> Offsets:
    """Return where named tasks stand among all tasks."""
    before = np.cumsum([0, *(look.n_tasks for look in crowd.looks)])
    return np.concatenate([each.task + before[i] for i, each in enumerate(named)]).astype(np.int64)


def _forget(executor: Executor, units: Units) -> None:
    """Let processes let go of their units; where the executor knows all processes, it tells all."""
    everywhere = getattr(executor, "everywhere", None)
    if everywhere is None:
        forget_units(units.fit)
    else:
        everywhere(forget_units, units.fit)


def _without_tasks(model: Estimator, crowd: Crowd) -> Estimator:
    """Return the model with all workers and no task: what it learnt is in its counts."""
    empty = crowd.empty()
    none = np.zeros((0, len(crowd.classes)))
    model.responses_ = empty
    model.tasks_ = empty.tasks
    model.probabilities_ = none
    model.labels_ = Labels.from_probabilities(empty.tasks, empty.classes, none)
    return model


def _fingerprint(
    crowd: Crowd, model: Estimator, links: Links | None, gold: Gold | None, start: Logs | None
) -> dict[str, Any]:
    """Say which fit this is: another one cannot go on from its checkpoint."""
    params = {name: _told(value) for name, value in sorted(model.get_params().items())}
    for where in ("n_threads",):
        params.pop(where, None)  # bits do not depend on it
    return {
        "tiebreak": __version__,
        "responses": [look.seal for look in crowd.looks],
        "units": [len(unit) for unit in crowd.units],
        "estimator": type(model).__name__,
        "options": params,
        "links": None if links is None else _told(links.columns()),
        "gold": None if gold is None else _told(gold.to_dict()),
        "start": None if start is None else [_told(each) for each in start],
    }


def _told(value: Any) -> str:
    """Return a short text that differs where a value does."""
    if isinstance(value, np.ndarray):
        return f"{value.shape}-{zlib.crc32(np.ascontiguousarray(value).tobytes()):08x}"
    if isinstance(value, dict):
        value = {
            str(key): ids.as_list(each) if ids.is_arrow(each) else each
            for key, each in value.items()
        }
    text = repr(value)
    return text if len(text) < 80 else f"{zlib.crc32(text.encode()):08x}"


def _summary(made: DistributedFit, crowd: Crowd) -> dict[str, Any]:
    return {
        "tiebreak": __version__,
        "responses": crowd.n_responses,
        "tasks": made.n_tasks,
        "workers": len(crowd.workers),
        "classes": [str(name) for name in crowd.classes],
        "partitions": len(crowd.looks),
        "sweeps": made.model.n_iter_,
        "converged": made.model.converged_,
    }


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:,.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:,.0f} MiB"
