"""Named tasks: those that links or gold name. The driver fits them, with all their responses.

Each partition says which of its tasks are named, and writes what was said of them; the driver maps
all of that, in the order of partitions and of tasks in them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak import ids
from tiebreak.distributed.executor import Executor, each_of
from tiebreak.distributed.partitions import Crowd, in_classes
from tiebreak.files.atomic_write import open_target
from tiebreak.files.packed import read_packed
from tiebreak.gold import Gold
from tiebreak.ids import Ids
from tiebreak.kernels import layout
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.links import Links
from tiebreak.responses import Responses


class Named(NamedTuple):
    """Tasks of a partition that links or gold name."""

    task: Codes  # ascending
    names: Any  # their ids
    length: Offsets  # responses of each


def find_named(
    executor: Executor, crowd: Crowd, links: Links | None, gold: Gold | None
) -> list[Named]:
    """Find the tasks that links and gold name, in every partition."""
    names = Ids(()) if gold is None else gold.tasks
    if links is not None and len(links):
        names = links.tasks if not len(names) else ids.merge(names, links.tasks)
    return each_of(executor, named_in, ((look.path, names) for look in crowd.looks))


def named_in(path: str, names: Ids) -> Named:
    """Find the tasks that links or gold name in a partition."""
    crowd = read_packed(path, is_checked=True)
    found = codes_of(crowd.tasks, names)
    task = np.unique(found[found >= 0]).astype(np.int32)
    length = np.asarray(crowd.start[task + 1] - crowd.start[task])
    return Named(task, crowd.tasks.take(task), length)


def write_responses_on(path: str, task: Codes, rows: Codes, classes: Ids, out: str) -> None:
    """Write the responses on some tasks of a partition, in the codes of all, sorted by task.

    `rows` are those of the partition's workers.
    """
    crowd = in_classes(read_packed(path, is_checked=True), classes)
    whole = layout.ByTask(
        crowd.start, crowd.code, np.empty(0, np.int8), np.empty(0, np.int64), 0, weight=crowd.weight
    )
    start, code = layout.responses_on(whole, task)
    n_classes = np.int32(len(classes))
    code = rows[code // n_classes] * n_classes + code % n_classes
    order = np.lexsort((code, np.repeat(np.arange(len(task)), np.diff(start))))
    columns: dict[str, Any] = {"code": code[order].astype(np.int32)}
    weight = layout.weights_on(whole, task)
    if weight is not None:
        columns["weight"] = weight[order]
    with open_target(out) as file:
        np.savez(file, **columns)


def codes_of(tasks: Ids, names: Ids) -> Codes:
    """Return the code of each name, without a Python object for each task: there may be millions.

    >>> import pyarrow as pa
    >>> codes_of(Ids(pa.array(["a", "b"])), Ids(["b", "z"])).tolist()
    [1, -1]
    """
    import pyarrow as pa

    if not len(names):
        return np.empty(0, dtype=np.int32)
    if ids.is_arrow(tasks.values) and not ids.is_arrow(names.values):
        try:
            names = Ids(pa.array(list(names)))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return tasks.codes(names)  # of several types: slow, and right
    return tasks.codes(names)


def gather_named(executor: Executor, crowd: Crowd, found: list[Named], folder: Path) -> Responses:
    """Return responses on all named tasks, in the order of partitions and of tasks in them.

    They lie in the folder, in arrays that are mapped, not held: workers write what they have.
    """
    length = np.concatenate([each.length for each in found])
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    code: Codes = np.empty(0, np.int32)
    weight: Floats | None = None
    if start[-1]:
        folder.mkdir(parents=True, exist_ok=True)
        pieces = [folder / f"piece-{i:05d}.npz" for i in range(len(found))]
        parts = zip(crowd.looks, found, crowd.rows, pieces, strict=True)
        each_of(
            executor,
            write_responses_on,
            ((look.path, of.task, rows, crowd.classes, str(out)) for look, of, rows, out in parts),
        )
        np.save(folder / "start.npy", start)
        code, weight = _together(pieces, int(start[-1]), folder)
    tasks = _joined([each.names for each in found])
    ordered = crowd.looks[0].is_class_ordered
    return Responses(
        start, code, tasks, crowd.workers, crowd.classes, is_class_ordered=ordered, weight=weight
    )


def _together(pieces: list[Path], n: int, folder: Path) -> tuple[Codes, Floats | None]:
    """Put the responses of partitions side by side, one partition after the other."""
    code = _column(folder, "code", n, np.int32)
    weight: Floats | None = None
    low = 0
    for piece in pieces:
        with np.load(piece) as kept:
            part = kept["code"]
            high = low + len(part)
            code[low:high] = part
            if "weight" in kept and weight is None:
                weight = _column(folder, "weight", n, np.float64)
                weight[:] = 1.0
            if "weight" in kept and weight is not None:
                weight[low:high] = kept["weight"]
        piece.unlink()
        low = high
    return code, weight


def _column(folder: Path, name: str, n: int, dtype: Any) -> Any:
    return np.asarray(np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, (n,)))


def _joined(columns: list[Any]) -> Ids:
    import pyarrow as pa

    if all(ids.is_arrow(column) for column in columns):
        widest = next((c for c in columns if len(c)), columns[0])
        return Ids(pa.concat_arrays([column.cast(widest.type) for column in columns]))
    return Ids([name for column in columns for name in ids.as_list(column)])
