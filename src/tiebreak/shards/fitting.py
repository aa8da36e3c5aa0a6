"""Fitting partitions: look, join, load, fit, write. The driver's part, in its order."""

from __future__ import annotations

import copy
import operator
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak._version import __version__
from tiebreak.arguments import FLAG, FUNCTION, checks, optional, whole
from tiebreak.data import Responses, ids
from tiebreak.data.gold import Gold
from tiebreak.data.labels import Labels
from tiebreak.errors import ResponseError
from tiebreak.estimators.base import Estimator
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.inference.inputs import Inputs, memory_bytes, read_and_check_inputs
from tiebreak.kernels.layout import Codes, Offsets
from tiebreak.kernels.sweeper import Logs
from tiebreak.life.update import drop_tasks
from tiebreak.links import Links
from tiebreak.shards import estimators, output, partitions, spread
from tiebreak.shards.checkpoint import Checkpoint
from tiebreak.shards.executor import SHARDED, Executor, executor_of
from tiebreak.shards.named import gather_named
from tiebreak.shards.output import LabelFiles
from tiebreak.shards.partitions import JoinedCrowd
from tiebreak.shards.sources import ReadOptions, find_shards
from tiebreak.shards.sweeper import FitProgress, Units
from tiebreak.shards.tables import rows_of
from tiebreak.shards.units import LabelWish, NamedLabels, PartRecipe, Recipe, forget_units
from tiebreak.tables import read_gold, read_links
from tiebreak.wording import byte_size

TABLES_HELD = 6  # by the driver: beliefs of three sweeps, logs, sums, and one on the way
DRIVER_BYTES = 300 << 20  # beside tables
# What a task that links or gold name takes in the driver: id, links, q some times over. With two
# classes, five responses and half a link that is 438 bytes (tracemalloc, 2.5e5 tasks less 5e4).
NAMED_BYTES = 300
NAMED_BYTES_A_STATE = 48
NAMED_BYTES_A_RESPONSE = 8


class DistributedFit:
    """A fit over partitions: parameters in memory, labels in files.

    What a model of one machine says of workers and classes is here under the same names:
    `confusion_`, `class_prior_`, `bounds_`, `n_iter_`, `converged_`, `workers_`, `classes_`,
    `calibration_`, `violations_`. `labels_` are files; see `LabelFiles`. `model` is an estimator
    that keeps counts in the place of responses: it can be saved, asked to predict, updated.
    """

    def __init__(
        self, model: Estimator, labels: LabelFiles, units: Units, n_written: Offsets
    ) -> None:
        self.model = model
        self.labels_ = labels
        self.n_tasks = units.crowd.n_tasks
        self.n_unsure = int(n_written[0])
        self.labels_by_class: Offsets = n_written[1:]
        self.n_responses = units.crowd.n_responses
        self.answers: Offsets = units.counts  # (worker, class) responses
        self.n_lost = int(getattr(units.executor, "n_lost", 0))  # workers that died on the way

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "model":
            raise AttributeError(name)
        if name in ("tasks_", "probabilities_", "responses_"):
            raise AttributeError(f"{name} of a fit over shards are files: see labels_.dataset().")
        return getattr(self.model, name)

    def __repr__(self) -> str:
        return f"DistributedFit({self.model!r}, {self.n_tasks:,} tasks, {self.labels_!r})"

    def save(self, target: Any) -> None:
        """Keep the model, for `tb.load`, predict and update."""
        self.model.save(target)

    def predict(self, responses: Any, *, links: Any = None) -> Labels:
        """Label new tasks by workers as they are known."""
        return self.model.predict(responses, links=links)


@checks(
    **SHARDED,
    resume=FLAG,
    force=FLAG,
    probabilities=FLAG,
    units=optional(whole(1)),
    estimator=optional(Estimator),
    progress=optional(FUNCTION),
)
def fit(
    source: Any,
    out: str | os.PathLike[str],
    *,
    client: Any = None,
    estimator: Estimator | None = None,
    links: Any = None,
    gold: Any = None,
    start: Any = None,
    resume: bool = False,
    force: bool = False,
    units: int | None = None,
    probabilities: bool = False,
    columns: dict[str, str] | None = None,
    repeats: Any = None,
    progress: Callable[[FitProgress], None] | None = None,
    executor: Executor | None = None,
) -> DistributedFit:
    """Fit responses that lie in partitions; labels are written into a folder.

    Parameters
    ----------
    source
        A glob, a folder or a list of them: folders of packed responses, or Parquet, CSV, TSV and
        JSON-lines files, which workers pack. Every task lies in one partition: see `shuffle`.
    out
        The folder of labels: one Parquet file a partition, and `_SUCCESS` once all are there.
    client
        A `distributed.Client`. None: one partition after the other in this process, mapped from
        the disk, so that memory holds little more than one of them.
    estimator
        `VariationalBayes` (the default), `DawidSkene` or `MajorityVote`, with its options.
    links, gold, start
        As of `VariationalBayes.fit`; tasks start where the model `start` would label them.
    resume, force
        Go on from the checkpoint that a broken-off fit left in `out`, or begin anew.
    units
        Into how many runs partitions are cut that are added up where they lie. Bits depend on
        this and on the input, never on workers. None: by the number of responses.
    probabilities
        Whether to write one column per class.
    columns, repeats
        How tables are read: see `read_responses`.
    progress
        Called after each sweep.

    Examples
    --------
    >>> import tempfile, tiebreak as tb
    >>> one = [("a", "ann", "x"), ("a", "bob", "x"), ("a", "cy", "y")]
    >>> two = [("b", "ann", "y"), ("b", "bob", "y"), ("b", "cy", "x")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tb.Responses.from_rows(one).write(f"{folder}/one.csv")
    ...     tb.Responses.from_rows(two).write(f"{folder}/two.csv")
    ...     made = tb.shards.fit(f"{folder}/*.csv", f"{folder}/labels")
    ...     [(each["task"], each["label"]) for each in made.labels_]
    [('a', 'x'), ('b', 'y')]
    """
    model = copy.copy(estimator or VariationalBayes())
    estimators.refuse_unable(model, links, start)
    pairs = None if links is None else read_links(links)
    known = None if gold is None else read_gold(gold)
    shards = find_shards(source)
    engine = executor or executor_of(client)
    folder = Path(os.path.realpath(out))
    work = output.prepare(folder, resume=resume, force=force)
    crowd = partitions.look_and_join(
        engine, shards, ReadOptions(columns, repeats), work / "parts", known, units
    )
    spread.require_apart(engine, crowd, work / "hashes")
    named, responses = gather_named(engine, crowd, pairs, known, work / "named")
    inputs = _read_inputs(model, crowd, responses, pairs, known)
    tables = None if start is None else estimators.start_tables(start, crowd, model)
    fingerprint = _fingerprint(crowd, model, pairs, known, tables)
    checkpoint = Checkpoint(work / "checkpoint", fingerprint, resume=resume)
    on_disk = client is None and executor is None
    recipes = cut_recipes(crowd, named, model, tables, work, is_on_disk=on_disk)
    there = Units(engine, crowd, recipes, checkpoint, progress)
    try:
        there.load()
        last = estimators.fit(model, inputs._replace(elsewhere=there), there, tables)
        wish = LabelWish(str(folder), probabilities, model.calibration_)
        n_written = _write(there, named, model, last, wish)
    finally:
        # An engine that knows all processes tells all.
        getattr(engine, "everywhere", operator.call)(forget_units, there.fit)
    drop_tasks(model, crowd.empty(), estimators.n_states(model, crowd))
    model._warn_unsettled(getattr(model, "tol", 0.0))
    output.finish(folder, _summary(model, crowd))
    return DistributedFit(model, LabelFiles(folder), there, n_written)


def _read_inputs(
    model: Estimator,
    crowd: JoinedCrowd,
    responses: Responses,
    links: Links | None,
    gold: Gold | None,
) -> Inputs:
    """Check links and gold as one machine does."""
    n_states = estimators.n_states(model, crowd)
    _require_memory(crowd, n_states, responses.n_tasks, responses.n_responses)
    if not isinstance(model, VariationalBayes):
        return read_and_check_inputs(responses, None, gold)
    return model._read_inputs(responses, links, gold)


def _require_memory(crowd: JoinedCrowd, n_states: int, n_named: int, n_responses: int) -> None:
    """Refuse, before the work begins, what the driver cannot hold; say the arithmetic.

    `n_responses` are those on named tasks.
    """
    n_workers = len(crowd.workers)
    n_classes = len(crowd.classes)
    table = 8 * n_workers * n_classes * n_states
    of_named = n_named * (NAMED_BYTES + NAMED_BYTES_A_STATE * n_states)
    of_named += NAMED_BYTES_A_RESPONSE * n_responses
    needed = DRIVER_BYTES + TABLES_HELD * table + of_named
    limit = memory_bytes()
    if needed <= limit:
        return
    raise ResponseError(
        f"{n_workers:,} workers and {n_classes:,} classes make a table of {byte_size(table)} "
        f"(workers · classes · states · 8 bytes), of which the driver holds {TABLES_HELD}; "
        f"{n_named:,} tasks that links and gold name take {byte_size(of_named)}; all else "
        f"{byte_size(DRIVER_BYTES)}. Together that is {byte_size(needed)}, and this machine has "
        f"{byte_size(limit)}. Start the driver on a larger machine, fit fewer workers or classes "
        "at a time, or name fewer tasks."
    )


def cut_recipes(
    crowd: JoinedCrowd,
    named: list[Codes],
    model: Any,
    start: Logs | None,
    work: Path,
    *,
    is_on_disk: bool = False,
) -> list[Recipe]:
    """Return how each unit is made."""
    n_classes = len(crowd.classes)
    n_states = estimators.n_states(model, crowd)
    sizes = (crowd.n_tasks, crowd.n_responses, model.n_threads)
    how = (crowd.classes, n_states, model.backend, *sizes, str(work), is_on_disk)
    recipes = []
    for number, unit in enumerate(crowd.units):
        rows = crowd.unit_rows(number)
        parts = tuple(
            PartRecipe(crowd.looks[i], _places(rows, crowd.rows[i]), named[i]) for i in unit
        )
        own_start = None if start is None else (start[0], rows_of(start[1], rows, n_classes))
        recipes.append(Recipe(parts, len(rows), own_start, *how))
    return recipes


def _places(unit_rows: Any, rows: Any) -> Any:
    """Return where a partition's workers stand in the unit; None where they are the same."""
    if len(rows) == len(unit_rows) and np.array_equal(rows, unit_rows):
        return None
    return np.searchsorted(unit_rows, rows).astype(np.int32)


def _write(
    units: Units, named: list[Codes], model: Estimator, tables: Logs | None, wish: LabelWish
) -> Offsets:
    """Have every unit write its labels; those of named tasks are sent to where their tasks lie."""
    ends = np.cumsum([len(each) for each in named])[:-1]
    label = np.split(model.labels_.label, ends)
    q = np.split(model.probabilities_, ends)
    sent = None if tables is None else units.sent(tables)
    asked = {
        u: (
            wish,
            None if sent is None else units.cut(u, sent),
            [NamedLabels(named[i], label[i], q[i]) for i in unit],
        )
        for u, unit in enumerate(units.crowd.units)
    }
    return np.asarray(np.sum(units.ask("write", asked), axis=0))


def _fingerprint(
    crowd: JoinedCrowd, model: Estimator, links: Links | None, gold: Gold | None, start: Logs | None
) -> dict[str, Any]:
    """Say which fit this is: another one cannot go on from its checkpoint."""
    params = {name: _told(value) for name, value in sorted(model.get_params().items())}
    params.pop("n_threads", None)  # bits do not depend on it
    return {
        "tiebreak": __version__,
        "layout of the checkpoint": 2,
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


def _summary(model: Estimator, crowd: JoinedCrowd) -> dict[str, Any]:
    return {
        "tiebreak": __version__,
        "responses": crowd.n_responses,
        "tasks": crowd.n_tasks,
        "workers": len(crowd.workers),
        "classes": [str(name) for name in crowd.classes],
        "partitions": len(crowd.looks),
        "sweeps": model.n_iter_,
        "converged": model.converged_,
    }
