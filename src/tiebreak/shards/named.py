"""Named tasks: those that links or gold name. The driver fits them, with all their responses.

Each partition says which of its tasks are named, and writes what was said of them; the driver maps
all of that, in the order of partitions and of tasks in them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data import Responses, ids
from tiebreak.data.gold import Gold
from tiebreak.data.ids import Ids
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.links import Links
from tiebreak.shards.executor import Executor, each_of
from tiebreak.shards.partitions import JoinedCrowd
from tiebreak.tables.array_folder import new_mapped, read_packed
from tiebreak.tables.write import open_target


class _Named(NamedTuple):
    """Tasks of a partition that links or gold name."""

    task: Codes  # ascending
    names: Any  # their ids
    length: Offsets  # responses of each


def gather_named(
    executor: Executor, crowd: JoinedCrowd, links: Links | None, gold: Gold | None, folder: Path
) -> tuple[list[Codes], Responses]:
    """Return the tasks of each partition that links and gold name, and the responses on all.

    Responses lie in the folder, in arrays that are mapped, not held: workers write what they have.
    """
    names = Ids(()) if gold is None else gold.tasks
    if links is not None and len(links):
        names = links.tasks if not len(names) else ids.merge(names, links.tasks)
    if not len(names):
        return [np.empty(0, np.int32)] * len(crowd.looks), crowd.empty()
    folder.mkdir(parents=True, exist_ok=True)
    pieces = [folder / f"piece-{i:05d}.npz" for i in range(len(crowd.looks))]
    parts = zip(crowd.looks, crowd.rows, pieces, strict=True)
    given = ((look.path, names, rows, crowd.classes, str(out)) for look, rows, out in parts)
    found = each_of(executor, write_named, given)
    length = np.concatenate([each.length for each in found])
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    np.save(folder / "start.npy", start)
    code, weight = _together(pieces, int(start[-1]), folder)
    tasks = ids.concatenate([each.names for each in found])
    gathered = replace(crowd.empty(), start=start, code=code, tasks=tasks, weight=weight)
    return [each.task for each in found], gathered


def write_named(path: str, names: Ids, rows: Codes, classes: Ids, out: str) -> _Named:
    """Find the tasks of a partition that have such names; write the responses on them.

    They are written in the codes of all, sorted by task; `rows` are those of the partition's
    workers.
    """
    whole = read_packed(path, is_checked=True)
    found = codes_of(whole.tasks, names)
    task = np.unique(found[found >= 0]).astype(np.int32)
    crowd = whole.on_tasks(task).in_classes(classes)
    code = rows[crowd.worker_of_each()] * np.int32(len(classes)) + crowd.label_of_each()
    order = np.lexsort((code, crowd.task_of_each()))
    columns: dict[str, Any] = {"code": code[order].astype(np.int32)}
    if crowd.weight is not None:
        columns["weight"] = crowd.weight[order]
    with open_target(out) as file:
        np.savez(file, **columns)
    return _Named(task, crowd.tasks.values, np.diff(crowd.start))


def codes_of(tasks: Ids, names: Ids) -> Codes:
    """Return the code of each name, without a Python object for each task: there may be millions.

    >>> import pyarrow as pa
    >>> codes_of(Ids(pa.array(["a", "b"])), Ids(["b", "z"])).tolist()
    [1, -1]
    """
    import pyarrow as pa

    if ids.is_arrow(tasks.values) and not ids.is_arrow(names.values):
        try:
            names = Ids(pa.array(list(names)))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return tasks.codes(names)  # of several types: slow, and right
    return tasks.codes(names)


def _together(pieces: list[Path], n: int, folder: Path) -> tuple[Codes, Floats | None]:
    """Put the responses of partitions side by side, one partition after the other."""
    code = new_mapped(folder / "code.npy", np.int32, (n,))
    weight: Floats | None = None
    low = 0
    for piece in pieces:
        with np.load(piece) as kept:
            high = low + len(kept["code"])
            code[low:high] = kept["code"]
            if "weight" in kept:
                if weight is None:
                    weight = new_mapped(folder / "weight.npy", np.float64, (n,))
                    weight[:] = 1.0
                weight[low:high] = kept["weight"]
        piece.unlink()
        low = high
    return code, weight
