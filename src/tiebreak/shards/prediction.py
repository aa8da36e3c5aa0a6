"""Labels of new tasks that lie in partitions, by workers as a model knows them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tiebreak import tables
from tiebreak.arguments import FITTED, FLAG, checks
from tiebreak.estimators.base import Estimator
from tiebreak.life.predict import ready_to_send
from tiebreak.shards import output
from tiebreak.shards.executor import SHARDED, Executor, each_of, executor_of
from tiebreak.shards.fitting import DistributedFit
from tiebreak.shards.output import LabelFiles
from tiebreak.shards.partitions import look
from tiebreak.shards.sources import ReadOptions, Shard, find_shards
from tiebreak.tables.array_folder import read_packed


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
    """Label new tasks that lie in partitions, by workers as a model knows them.

    See `fit` for the arguments. `model` is a fitted estimator, or what `fit` returned.
    """
    known = model.model if isinstance(model, DistributedFit) else model
    small = ready_to_send(known)
    folder = Path(os.path.realpath(out))
    work = output.prepare(folder, resume=False, force=True)
    shards = find_shards(source)
    options = ReadOptions(columns, repeats)
    how = (options, str(work / "parts"), small, str(folder), probabilities)
    given = ((*each, *how) for each in enumerate(shards))
    done = each_of(executor or executor_of(client), predict_shard, given)
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
    tables.write_labels(file, labels, probabilities=probabilities)
    return len(labels)
