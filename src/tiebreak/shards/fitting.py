"""Fit and predict over shards: the driver's part, in its order."""

from __future__ import annotations

import copy
import os
import pickle
import secrets
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak import tables
from tiebreak._version import __version__
from tiebreak.arguments import FITTED, FLAG, FUNCTION, MAPPING, PATH, TEXT, checks, having, optional
from tiebreak.data import ids
from tiebreak.data.scale import read_scale
from tiebreak.errors import OptionError, ResponseError
from tiebreak.estimators import publishing
from tiebreak.estimators.base import Estimator, require_fitted
from tiebreak.estimators.dawid_skene import DawidSkene
from tiebreak.estimators.majority_vote import MajorityVote
from tiebreak.estimators.variational_bayes import VariationalBayes
from tiebreak.inference.door import Inputs, lay_out, memory_bytes, read_and_check_inputs
from tiebreak.inference.stages import Fitted
from tiebreak.inference.workers import SCALE, name_of, named
from tiebreak.kernels.arrays import default_threads, majority
from tiebreak.kernels.contract import choose_backend
from tiebreak.kernels.layout import Offsets, Swept
from tiebreak.kernels.sweeper import HostSweeper, Logs
from tiebreak.life.predict import ready_to_send
from tiebreak.life.update import Carried, drop_tasks
from tiebreak.options import AUTO, MeanFieldOptions
from tiebreak.shards import units, write
from tiebreak.shards.executor import Executor, Serial, each, executor_of
from tiebreak.shards.join import JoinedCrowd, gather_named, join
from tiebreak.shards.sources import Look, naming, read_shards
from tiebreak.shards.sweeper import FitProgress, Shards
from tiebreak.shards.units import FitPlan, LabelWish
from tiebreak.shards.write import Checkpoint, LabelFiles
from tiebreak.tables import read_gold, read_links
from tiebreak.tables.array_folder import read_packed

BACKENDS = ("auto", "numpy", "numba")
TABLES_HELD = 6  # by the driver: beliefs of three sweeps, logs, sums, and one on the way
DRIVER_BYTES = 300 << 20  # beside tables
# What a task that links or gold name takes in the driver: id, links, q some times over. With two
# classes, five responses and half a link that is 438 bytes (tracemalloc, 2.5e5 tasks less 5e4).
NAMED_BYTES = 300
NAMED_BYTES_A_STATE = 48
NAMED_BYTES_A_RESPONSE = 8

SHARDED = {  # what the public functions take, all of them
    "out": PATH,
    "columns": optional(MAPPING),
    "repeats": optional(TEXT),
    "client": optional(having("scheduler", words="a client of dask")),
    "executor": optional(having("share", words="an Executor")),
}


class DistributedFit:
    """A fit over shards: parameters in memory, labels in files.

    What a model of one machine says of workers and classes is here under the same names:
    `confusion_`, `class_prior_`, `bounds_`, `n_iter_`, `converged_`, `workers_`, `classes_`,
    `calibration_`, `violations_`. `labels_` are files; see `LabelFiles`. `model` is an estimator
    that keeps counts in the place of responses: it can be saved, asked to predict, updated.
    """

    def __init__(
        self, model: Estimator, labels: LabelFiles, shards: Shards, n_written: Offsets
    ) -> None:
        self.model = model
        self.labels_ = labels
        self.n_tasks = shards.crowd.n_tasks
        self.n_unsure = int(n_written[0])
        self.labels_by_class: Offsets = n_written[1:]
        self.n_responses = shards.crowd.n_responses
        self.answers: Offsets = shards.counts  # (worker, class) responses
        self.n_lost = shards.executor.n_lost  # workers that died on the way

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "model":
            raise AttributeError(name)
        if name in ("tasks_", "probabilities_", "responses_"):
            raise AttributeError(f"{name} of a fit over shards are files: see labels_.dataset().")
        return getattr(self.model, name)

    def __repr__(self) -> str:
        return f"DistributedFit({self.model!r}, {self.n_tasks:,} tasks, {self.labels_!r})"


@checks(
    **SHARDED,
    resume=FLAG,
    force=FLAG,
    probabilities=FLAG,
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
    probabilities: bool = False,
    columns: dict[str, str] | None = None,
    repeats: Any = None,
    progress: Callable[[FitProgress], None] | None = None,
    executor: Executor | None = None,
) -> DistributedFit:
    """Fit responses that lie in shards; labels are written into a folder.

    Parameters
    ----------
    source
        A pattern, a folder or a list of them: folders of packed responses, or Parquet, CSV, TSV
        and JSON-lines files, which workers pack. Where tasks are spread over several, all are cut
        anew by task, on the disk.
    out
        The folder of labels: one Parquet file a shard, and `_SUCCESS` once all are there.
    client
        A `distributed.Client`. None: one shard after the other in this process, mapped from the
        disk, so that memory holds little more than one of them.
    estimator
        `VariationalBayes` (the default), `DawidSkene` or `MajorityVote`, with its options.
    links, gold, start
        As of `VariationalBayes.fit`; tasks start where the model `start` would label them.
    resume, force
        Go on from the checkpoint that a broken-off fit left in `out`, or begin anew.
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
    _refuse_unable(model, links, start)
    pairs = None if links is None else read_links(links)
    known = None if gold is None else read_gold(gold)
    scale = None if getattr(model, "scale", None) is None else read_scale(model.scale)
    known = known if known is None or scale is None else scale.on_gold(known)
    engine = executor or executor_of(client)
    folder = Path(os.path.realpath(out))
    work = write.prepare(folder, resume=resume, force=force)
    options = {"columns": columns, "repeats": repeats}
    looks = read_shards(engine, source, options, work / "parts")
    crowd = join(looks, pairs, known, scale)
    _require_memory(model, crowd, len(crowd.names), 0)
    n_named, responses = gather_named(engine, crowd)
    _require_memory(model, crowd, responses.n_tasks, responses.n_responses)
    if isinstance(model, VariationalBayes):
        inputs = model._read_inputs(responses, pairs, known)._replace(scale=scale)
    else:
        inputs = read_and_check_inputs(responses, None, known)
    if start is not None:
        require_fitted(start)
    begin = None if start is None else ready_to_send(start)
    fingerprint = _fingerprint(
        looks,
        model,
        links=None if pairs is None else pairs.columns(),
        gold=None if known is None else known.to_dict(),
        start=None if start is None else start.confusion_,
    )
    checkpoint = Checkpoint(work / "checkpoint", fingerprint, resume=resume)
    plan = write_plan(crowd, model, begin, work, is_on_disk=isinstance(engine, Serial))
    shards = Shards(engine, crowd, plan, checkpoint, progress)
    shards.n_tasks -= responses.n_tasks
    try:
        shards.load()
        last = _fit_model(model, inputs._replace(remote=shards), shards, begin)
        wish = LabelWish(str(folder), probabilities, model.calibration_, last)
        ends = np.cumsum(n_named)[:-1]
        own = np.split(model.labels_.label, ends), np.split(model.probabilities_, ends)
        n_written = shards.write(wish, *own)
    finally:
        engine.everywhere(units.forget, plan)
    drop_tasks(model, crowd.empty(), _n_states(model, crowd))
    model._warn_unconverged(getattr(model, "tol", 0.0))
    write.finish(folder, _summary(model, crowd))
    return DistributedFit(model, LabelFiles(folder), shards, n_written)


@checks(**SHARDED, model=FITTED, probabilities=FLAG)
def predict(
    model: Any,
    source: Any,
    out: str | os.PathLike[str],
    *,
    client: Any = None,
    probabilities: bool = False,
    columns: dict[str, str] | None = None,
    repeats: Any = None,
    executor: Executor | None = None,
) -> LabelFiles:
    """Label new tasks that lie in shards, by workers as a model knows them.

    See `fit` for the arguments. `model` is a fitted estimator, or what `fit` returned.
    """
    known = model.model if isinstance(model, DistributedFit) else model
    small = ready_to_send(known)
    engine = executor or executor_of(client)
    folder = Path(os.path.realpath(out))
    work = write.prepare(folder, resume=False, force=True)
    options = {"columns": columns, "repeats": repeats}
    looks = read_shards(engine, source, options, work / "parts")
    given = ((one, small, str(folder), probabilities) for one in looks)
    done = each(engine, predict_shard, given)
    write.finish(folder, {"tasks": sum(done), "shards": len(looks)})
    return LabelFiles(folder)


def predict_shard(one: Look, model: Estimator, folder: str, probabilities: bool) -> int:
    with naming(one):
        labels = model.predict(read_packed(one.path, is_checked=True))
        file = Path(folder) / f"labels-{one.shard.number:05d}.parquet"
        tables.write_labels(file, labels, probabilities=probabilities)
    return len(labels)


# -- before the work -------------------------------------------------------------------------------


def _refuse_unable(estimator: Estimator, links: Any, start: Any) -> None:
    """Refuse, before any work, what cannot be fitted over shards, and say what can."""
    if not isinstance(estimator, VariationalBayes | DawidSkene | MajorityVote):
        raise OptionError("shards-estimator", name=type(estimator).__name__)
    if getattr(estimator, "scale", None) == AUTO:
        raise OptionError("shards-auto-scale")
    if estimator.backend not in BACKENDS:
        allowed = ", ".join(map(repr, BACKENDS))
        raise OptionError("shards-backend", backend=estimator.backend, allowed=allowed)
    if not isinstance(estimator, VariationalBayes):
        estimator._check(links, start)
        return
    estimator._check()
    if not isinstance(estimator.init, str) or estimator.init != "majority":
        raise OptionError("shards-init")
    if isinstance(estimator.link_options, MeanFieldOptions):
        raise OptionError("shards-mean-field")


def _n_states(model: Estimator, crowd: JoinedCrowd) -> int:
    workers = named(getattr(model, "worker_model", "confusion"))
    return len(crowd.classes) * getattr(workers, "n_subtypes", 1)


def _require_memory(model: Estimator, crowd: JoinedCrowd, n_named: int, n_responses: int) -> None:
    """Refuse, before the work begins, what the driver cannot hold; say the arithmetic.

    `n_responses` are those on the tasks that links or gold name.
    """
    n_workers = len(crowd.workers)
    n_classes = len(crowd.classes)
    n_states = _n_states(model, crowd)
    table = 8 * n_workers * n_classes * n_states
    of_named = n_named * (NAMED_BYTES + NAMED_BYTES_A_STATE * n_states)
    of_named += NAMED_BYTES_A_RESPONSE * n_responses
    limit = memory_bytes()
    needed = DRIVER_BYTES + TABLES_HELD * table + of_named
    if needed > limit:
        raise ResponseError(
            "shards-too-large",
            n_workers=n_workers,
            n_classes=n_classes,
            table=table,
            n_tables=TABLES_HELD,
            n_named=n_named,
            named=of_named,
            rest=DRIVER_BYTES,
            needed=needed,
            limit=limit,
        )


def write_plan(
    crowd: JoinedCrowd, model: Any, start: Estimator | None, work: Path, *, is_on_disk: bool
) -> str:
    """Write what processes must know to load a shard; return the name of the file."""
    plan = FitPlan(
        str(work),
        crowd.workers,
        crowd.classes,
        crowd.scale,
        crowd.names,
        _n_states(model, crowd),
        model.backend,
        model.n_threads,
        crowd.n_tasks,
        crowd.n_responses,
        is_on_disk,
        start,
    )
    file = work / f"plan-{secrets.token_hex(8)}"  # no worker takes it for that of an earlier run
    file.write_bytes(pickle.dumps(plan))
    return str(file)


def _fingerprint(looks: list[Look], model: Estimator, **given: Any) -> dict[str, Any]:
    """Say which fit this is: another one cannot go on from its checkpoint."""
    options = dict(sorted(model.get_params().items()))
    options.pop("n_threads", None)  # results do not depend on it
    return {
        "tiebreak": __version__,
        "responses": [one.seal for one in looks],
        "estimator": type(model).__name__,
        "options": _digest(options),
        **{name: _digest(value) for name, value in given.items()},
    }


def _digest(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return zlib.crc32(np.ascontiguousarray(value).tobytes(), value.ndim)
    if isinstance(value, dict):
        value = [(str(name), _digest(part)) for name, part in value.items()]
    elif isinstance(value, tuple):
        value = [_digest(part) for part in value]
    elif ids.is_arrow(value):
        value = value.to_pylist()
    return zlib.crc32(repr(value).encode())


# -- the fit ---------------------------------------------------------------------------------------


def _fit_model(model: Any, inputs: Inputs, shards: Shards, start: Estimator | None) -> Logs | None:
    """Fit an estimator; return the tables of its last beliefs, None: labels are those of q.

    It is the fit of one machine, of the driver's tasks, with sweepers that have shards beside them.
    """
    crowd = inputs.responses
    n_linked = 0 if inputs.link_codes is None else 2 * inputs.link_codes.n_links
    n_responses = shards.crowd.n_responses if crowd.n_responses else 0
    kernels = choose_backend(model.backend, n_responses, n_linked, may_be_device=False)
    tasks = lay_out(crowd)
    q = None if start is None else units.q_by(start, crowd, majority(tasks, crowd.n_classes))
    fitted: Fitted | None = None
    if isinstance(model, VariationalBayes):
        model.worker_model_ = SCALE if inputs.scale is not None else name_of(model.worker_model)
        model._communities = None
        fitted, scored = model._fit_inputs(inputs, q=q)
        q = fitted.state.q
        shards.state = fitted.state.remote
        publishing.publish(model, fitted, scored)
    else:
        q = model._fit_inputs(inputs, q)
    sums = shards.sums()
    if crowd.n_tasks:
        here = HostSweeper(kernels, tasks, q, model.n_threads or default_threads())
        sums = sums.plus(Swept(*here.tally(), 0.0, 0.0))
    model._carried = Carried(sums.counts, sums.totals, np.zeros(0))
    if not isinstance(model, MajorityVote):  # has one class taken nearly all, are there too few?
        votes = shards.weighed.sum(axis=0)
        by_class = sums.totals.reshape(len(votes), -1).sum(axis=1)
        mean_q = by_class / max(by_class.sum(), 1.0)
        n_tasks = shards.crowd.n_tasks
        if not publishing.note_collapse(n_tasks, shards.crowd.classes, votes, mean_q):
            publishing.note_few_responses(inputs, n_tasks, votes.sum())
    if fitted is None:
        return None
    publishing.note_gold(fitted, model.dependence)
    return fitted.plain.logs(fitted.state.parameters)


def _summary(model: Estimator, crowd: JoinedCrowd) -> dict[str, Any]:
    return {
        "tiebreak": __version__,
        "responses": crowd.n_responses,
        "tasks": crowd.n_tasks,
        "workers": len(crowd.workers),
        "classes": [str(name) for name in crowd.classes],
        "shards": len(crowd.looks),
        "sweeps": model.n_iter_,
        "converged": model.converged_,
    }
