"""What users call: fit, predict and shuffle partitions."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tiebreak import files
from tiebreak.distributed import output, partitions, spread
from tiebreak.distributed.executor import Executor, Serial, each_of
from tiebreak.distributed.fitting import ClusterOptions, DistributedFit, fit_partitions
from tiebreak.distributed.output import LabelFiles
from tiebreak.distributed.partitions import look
from tiebreak.distributed.sources import ReadOptions, Shard, find_shards
from tiebreak.distributed.sweeper import Progress
from tiebreak.errors import NotFittedError
from tiebreak.files.packed import read_packed
from tiebreak.inference import VariationalBayes
from tiebreak.inference.estimator import Estimator

Folder = str | os.PathLike[str]


def fit(
    source: Any,
    out: Folder,
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
    progress: Callable[[Progress], None] | None = None,
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
    ...     tb.write_responses(f"{folder}/one.csv", tb.Responses.from_rows(one))
    ...     tb.write_responses(f"{folder}/two.csv", tb.Responses.from_rows(two))
    ...     made = tb.distributed.fit(f"{folder}/*.csv", f"{folder}/labels")
    ...     [(each["task"], each["label"]) for each in made.labels_]
    [('a', 'x'), ('b', 'y')]
    """
    options = ClusterOptions(
        resume=resume,
        force=force,
        n_units=units,
        probabilities=probabilities,
        on_disk=client is None and executor is None,
        tell=progress,
        read=ReadOptions(columns, repeats),
    )
    engine = executor or _executor(client)
    model = estimator or VariationalBayes()
    return fit_partitions(source, out, model, engine, options, links, gold, start)


def predict(
    model: Any,
    source: Any,
    out: Folder,
    *,
    client: Any = None,
    probabilities: bool = False,
    columns: dict[str, str] | None = None,
    repeats: Any = None,
    executor: Executor | None = None,
) -> LabelFiles:
    """Label new tasks that lie in partitions, by workers as a model knows them.

    See `fit` for the arguments. `model` is a fitted estimator, or what `fit` returned.
    """
    known = model.model if isinstance(model, DistributedFit) else model
    if "labels_" not in vars(known):
        raise NotFittedError(f"{type(known).__name__} knows no workers yet. Call fit first.")
    folder = Path(os.path.realpath(out))
    work = output.prepare(folder, resume=False, force=True)
    shards = find_shards(source)
    options = ReadOptions(columns, repeats)
    how = (options, str(work / "parts"), _without_responses(known), str(folder), probabilities)
    given = ((*each, *how) for each in enumerate(shards))
    done = each_of(executor or _executor(client), predict_shard, given)
    output.finish(folder, {"tasks": sum(done), "partitions": len(shards)})
    return LabelFiles(folder)


def predict_shard(
    index: int,
    shard: Shard,
    options: ReadOptions,
    parts: str,
    model: Estimator,
    folder: str,
    probabilities: bool,
) -> int:
    """Label the tasks of one partition; return how many there are."""
    found = look(index, shard, options, parts)
    if found is None:
        return 0
    labels = model.predict(read_packed(found.path, is_checked=True))
    file = Path(folder) / f"labels-{index:05d}.parquet"
    files.write_labels(file, labels, probabilities=probabilities)
    return len(labels)


def shuffle(
    source: Any,
    out: Folder,
    *,
    parts: int | None = None,
    client: Any = None,
    columns: dict[str, str] | None = None,
    repeats: Any = None,
    executor: Executor | None = None,
) -> list[str]:
    """Bring the responses of each task into one partition; return the new, packed partitions.

    `parts` is how many there shall be; None: as many as there are now. Out of core: a process holds
    one partition at a time. See `fit` for the other arguments.
    """
    engine = executor or _executor(client)
    folder = Path(os.path.realpath(out))
    shards = find_shards(source)
    packed = folder.with_name(f".{folder.name}.parts")
    try:
        looks = partitions.look_at(engine, shards, ReadOptions(columns, repeats), packed)
        return spread.shuffle(engine, partitions.join(looks, None, None), folder, parts)
    finally:
        shutil.rmtree(packed, ignore_errors=True)


def _without_responses(model: Estimator) -> Estimator:
    """Return the model as prediction needs it: a copy for each partition shall be small."""
    import copy

    from tiebreak.inference.kept.prediction import knowledge_of

    small = copy.copy(model)
    knowledge_of(small)  # made once, and sent along
    for name in ("_warm_start", "responses_", "probabilities_", "tasks_"):
        vars(small).pop(name, None)
    small.labels_ = small.labels_ if len(small.labels_) == 0 else None  # type: ignore[assignment]
    return small


def _executor(client: Any) -> Executor:
    if client is None:
        return Serial()
    from tiebreak.distributed.dask_executor import DaskExecutor

    return DaskExecutor(client)
