"""Partitions: folders of packed responses, looked at where they lie and joined by ids.

A task lies in one partition; workers and classes may be in all. Responses keep the codes of their
partition. What joins them is small: for each partition the row of each of its workers among all.

    part 0: workers ann, bob      part 1: workers bob, cy      all: ann, bob, cy
    rows    [0, 1]                rows    [1, 2]
"""

from __future__ import annotations

import warnings
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak import ids
from tiebreak.distributed.executor import Executor
from tiebreak.distributed.sources import ReadOptions, Shard, naming, read_shard
from tiebreak.errors import InputError, InputNote, note
from tiebreak.files.atomic_write import open_target
from tiebreak.files.content import ABOUT
from tiebreak.files.packed import read_packed, write_packed
from tiebreak.ids import Ids
from tiebreak.kernels import layout
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.responses import Responses
from tiebreak.wording import counted

SHOWN_NOTES = 5


class Look(NamedTuple):
    """What is known of a partition without its responses."""

    path: str  # the packed folder
    name: str  # as the caller gave it
    n_tasks: int
    n_responses: int
    workers: Ids
    classes: Ids
    is_class_ordered: bool
    span: tuple[Any, Any] | None  # the first and the last task id, where ids have an order
    seal: int  # of what the folder says of itself, checksums included
    notes: tuple[str, ...] = ()


class Crowd(NamedTuple):
    """Partitions, joined: who is in which, and in which unit each lies."""

    looks: list[Look]
    workers: Ids  # in order of first appearance
    classes: Ids
    rows: list[Codes]  # by partition: the row of each of its workers among all
    units: list[range]  # runs of neighbouring partitions

    @property
    def n_tasks(self) -> int:
        """How many tasks there are."""
        return sum(look.n_tasks for look in self.looks)

    @property
    def n_responses(self) -> int:
        """How many responses there are."""
        return sum(look.n_responses for look in self.looks)

    def unit_rows(self, unit: int) -> Codes:
        """Return the rows of the workers of a unit, ascending."""
        return np.unique(np.concatenate([self.rows[i] for i in self.units[unit]]))

    def empty(self) -> Responses:
        """Return responses with all workers and classes, and no task."""
        nobody = Ids(read_packed(self.looks[0].path, is_checked=True).tasks.values[:0])
        start = np.zeros(1, dtype=np.int64)
        ordered = self.looks[0].is_class_ordered
        return Responses(
            start,
            np.zeros(0, dtype=np.int32),
            nobody,
            self.workers,
            self.classes,
            is_class_ordered=ordered,
        )


def look(index: int, shard: Shard, options: ReadOptions, folder: str) -> Look | None:
    """Check a partition, packed first where it is a table; None: there is nothing in it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InputNote)
        with naming(index, shard.path):
            path = shard.path if shard.is_packed else _pack(index, shard, options, folder)
            found = None if path is None else _look(index, shard, path)
    notes = tuple(str(each.message) for each in caught if issubclass(each.category, InputNote))
    return None if found is None else found._replace(notes=notes)


def _pack(index: int, shard: Shard, options: ReadOptions, folder: str) -> str | None:
    """Pack a table, unless an earlier run has done so; the stamp says of which table it is."""
    stamp = zlib.crc32(repr((shard, options)).encode())
    target = Path(folder) / f"part-{index:05d}-{stamp:08x}.tb"
    if not (target / ABOUT).is_file():
        responses = read_shard(shard, options)
        if responses is None:
            return None
        target.parent.mkdir(parents=True, exist_ok=True)
        write_packed(target, responses)
    return str(target)


def _look(index: int, shard: Shard, path: str) -> Look | None:
    crowd = read_packed(path)
    if not crowd.n_tasks:
        return None
    seal = zlib.crc32((Path(path) / ABOUT).read_bytes())
    return Look(
        path,
        shard.path,
        crowd.n_tasks,
        crowd.n_responses,
        crowd.workers,
        crowd.classes,
        crowd.is_class_ordered,
        _span(crowd.tasks),
        seal,
    )


def _span(tasks: Ids) -> tuple[Any, Any] | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not ids.is_arrow(tasks.values):
        return None
    try:
        found = pc.min_max(tasks.values)
    except pa.ArrowNotImplementedError:
        return None
    return found["min"].as_py(), found["max"].as_py()


def join(looks: list[Look | None], more_classes: Ids | None, n_units: int | None) -> Crowd:
    """Join partitions in their order: workers as they first appear, classes sorted."""
    kept = [each for each in looks if each is not None]
    _tell(looks, kept)
    if not kept:
        raise InputError("There is no response in any of the partitions.")
    for each in kept:
        _require_type(each, kept[0])
    classes = _join_classes(kept, more_classes)
    workers = kept[0].workers
    for each in kept[1:]:
        workers = ids.merge(workers, each.workers)
    rows = [workers.codes(each.workers) for each in kept]
    sizes = [each.n_responses for each in kept]
    light = [each._replace(workers=Ids(()), notes=()) for each in kept]  # the driver stays small
    return Crowd(light, workers, classes, rows, cut_units(sizes, n_units))


UNIT_RESPONSES = 25_000_000  # a sweep of so many takes ten times what a message costs
LEAST_UNITS = 4
MOST_UNITS = 256


def cut_units(sizes: list[int], n_units: int | None = None) -> list[range]:
    """Cut partitions into runs of about as many responses; by the input alone, never by workers.

    >>> cut_units([5, 5, 10, 10], 3)
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    total = max(sum(sizes), 1)
    wanted = n_units or min(MOST_UNITS, max(LEAST_UNITS, total // UNIT_RESPONSES))
    wanted = min(wanted, len(sizes))
    ends = np.cumsum(sizes)
    cuts = [0]
    for unit in range(1, wanted):
        at = int(np.searchsorted(ends, total * unit / wanted - 0.5))
        lowest = cuts[-1] + 1
        highest = len(sizes) - (wanted - unit)  # every unit gets a partition
        cuts.append(min(max(at + 1, lowest), highest))
    return [range(low, high) for low, high in zip(cuts, [*cuts[1:], len(sizes)], strict=True)]


def in_classes(read: Responses, classes: Ids) -> Responses:
    """Return a partition's responses in the classes of all; as they are where these are equal."""
    if read.classes == classes:
        return read
    label_of = classes.codes(read.classes)
    worker, label = np.divmod(np.asarray(read.code, dtype=np.int64), read.n_classes)
    code = (worker * len(classes) + label_of[label]).astype(np.int32)
    return Responses(read.start, code, read.tasks, read.workers, classes, weight=read.weight)


class Named(NamedTuple):
    """Tasks of a partition that links or gold name."""

    task: Codes  # ascending
    names: Any  # their ids
    length: Offsets  # responses of each


def find_named(path: str, names: Ids) -> Named:
    """Find the tasks that links or gold name in a partition."""
    crowd = read_packed(path, is_checked=True)
    found = codes_of(crowd.tasks, names)
    task = np.unique(found[found >= 0]).astype(np.int32)
    length = np.asarray(crowd.start[task + 1] - crowd.start[task])
    return Named(task, crowd.tasks.take(task), length)


def responses_on(
    path: str, task: Codes, rows: Codes, classes: Ids, out: str | None
) -> tuple[Codes, Floats | None] | str:
    """Return the responses on some tasks of a partition, in the codes of all, sorted by task.

    `rows` are those of the partition's workers. With `out` they are written there: many are not
    sent, and their file is returned.
    """
    crowd = in_classes(read_packed(path, is_checked=True), classes)
    whole = layout.ByTask(
        crowd.start, crowd.code, np.empty(0, np.int8), np.empty(0, np.int64), 0, weight=crowd.weight
    )
    start, code = layout.responses_on(whole, task)
    n_classes = np.int32(len(classes))
    code = rows[code // n_classes] * n_classes + code % n_classes
    order = np.lexsort((code, np.repeat(np.arange(len(task)), np.diff(start))))
    code = code[order].astype(np.int32)
    weight = None if crowd.weight is None else layout.weights_on(whole, task)[order]  # type: ignore[index]
    if out is None:
        return code, weight
    with open_target(out) as file:
        columns: dict[str, Any] = (
            {"code": code} if weight is None else {"code": code, "weight": weight}
        )
        np.savez(file, **columns)
    return out


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


def gather_named(
    executor: Executor, crowd: Crowd, found: list[Named], folder: Path | None = None
) -> Responses:
    """Return responses on all named tasks, in the order of partitions and of tasks in them.

    With a folder they lie there, in arrays that are mapped, not held: workers write what they have.
    """
    pieces = executor.each(
        responses_on,
        {
            i: (crowd.looks[i].path, each.task, crowd.rows[i], crowd.classes, _piece(folder, i))
            for i, each in enumerate(found)
        },
    )
    length = np.concatenate([each.length for each in found])
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    code, weight = _together([pieces[i] for i in range(len(found))], int(start[-1]), folder)
    if folder is not None:
        np.save(folder / "start.npy", start)
    tasks = _joined([each.names for each in found])
    ordered = crowd.looks[0].is_class_ordered
    return Responses(
        start, code, tasks, crowd.workers, crowd.classes, is_class_ordered=ordered, weight=weight
    )


def _piece(folder: Path | None, index: int) -> str | None:
    return None if folder is None else str(folder / f"piece-{index:05d}.npz")


def _together(pieces: list[Any], n: int, folder: Path | None) -> tuple[Codes, Floats | None]:
    """Put the responses of partitions side by side, one partition after the other."""
    opened = (_open_piece(each) for each in pieces)
    code = _column(folder, "code", n, np.int32)
    weight: Floats | None = None
    low = 0
    for part, its_weight in opened:
        high = low + len(part)
        code[low:high] = part
        if its_weight is not None and weight is None:
            weight = _column(folder, "weight", n, np.float64)
            weight[:] = 1.0
        if its_weight is not None and weight is not None:
            weight[low:high] = its_weight
        low = high
    return code, weight


def _open_piece(piece: Any) -> tuple[Codes, Floats | None]:
    if not isinstance(piece, str):
        return piece  # type: ignore[no-any-return]
    with np.load(piece) as kept:
        found = kept["code"], kept.get("weight")
    Path(piece).unlink()
    return found


def _column(folder: Path | None, name: str, n: int, dtype: Any) -> Any:
    if folder is None or not n:
        return np.empty(n, dtype)
    return np.asarray(np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, (n,)))


def _joined(columns: list[Any]) -> Ids:
    import pyarrow as pa

    if all(ids.is_arrow(column) for column in columns):
        widest = next((c for c in columns if len(c)), columns[0])
        return Ids(pa.concat_arrays([column.cast(widest.type) for column in columns]))
    return Ids([name for column in columns for name in ids.as_list(column)])


def _join_classes(looks: list[Look], more: Ids | None) -> Ids:
    first = looks[0]
    classes = first.classes
    for each in looks[1:]:
        classes = ids.merge(classes, each.classes)
    differ = [each for each in looks if each.classes != first.classes]
    if differ:
        note(
            f"The classes of {counted(len(differ), 'shard')} differ from those of {first.name}: "
            f"all {len(classes)} are used everywhere."
        )
    keeps_order = first.is_class_ordered and not differ
    if more is not None:
        known = len(classes)
        classes = ids.merge(classes, more)
        if len(classes) > known:
            unseen = ", ".join(str(name) for name in classes[known:])
            note(f"No worker used {unseen}, which gold names: added to the classes.")
    return classes if keeps_order else ids.sort(classes)[0]


def _require_type(look: Look, first: Look) -> None:
    """Refuse partitions whose ids cannot be compared: text in one, numbers in another."""
    for what, mine, others in (
        ("worker ids", look.workers, first.workers),
        ("labels", look.classes, first.classes),
    ):
        if not len(mine) or not len(others):
            continue  # tasks that nobody answered
        if isinstance(mine[0], str) != isinstance(others[0], str):
            kinds = [type(each[0]).__name__ for each in (others, mine)]
            raise InputError(
                f"The {what} of {first.name} are of type {kinds[0]}, those of {look.name} of type "
                f"{kinds[1]}. Write all shards with one type, for instance text."
            )
    spans = (first.span, look.span)
    is_text = {isinstance(span[0], str) for span in spans if span is not None}
    if len(is_text) > 1:
        raise InputError(
            f"The task ids of {first.name} and {look.name} differ in type. Write all shards with "
            "one type, for instance text."
        )


def _tell(looks: list[Look | None], kept: list[Look]) -> None:
    """Say what was found: empty shards, and what was dropped, merged or guessed in others."""
    n_empty = len(looks) - len(kept)
    if n_empty:
        note(f"{counted(n_empty, 'shard')} of {len(looks):,} empty: left out.")
    told = ((each.name, text) for each in kept for text in each.notes)
    notes = [text if name in text else f"{name}: {text}" for name, text in told]
    for text in notes[:SHOWN_NOTES]:
        note(text)
    if len(notes) > SHOWN_NOTES:
        note(f"There are {len(notes) - SHOWN_NOTES:,} more notes like these on other shards.")
