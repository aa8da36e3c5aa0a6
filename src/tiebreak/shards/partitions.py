"""Partitions: folders of packed responses, looked at where they lie and joined by ids.

A task lies in one partition; workers and classes may be in all. Responses keep the codes of their
partition. What joins them is small: for each partition the row of each of its workers among all.

    part 0: workers ann, bob      part 1: workers bob, cy      all: ann, bob, cy
    rows    [0, 1]                rows    [1, 2]
"""

from __future__ import annotations

import contextlib
import warnings
import zlib
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data import Responses, ids
from tiebreak.data.gold import Gold, note_unused_classes
from tiebreak.data.ids import Ids
from tiebreak.errors import FileError, InputError, InputNote, note
from tiebreak.kernels.contract import COMPILED_ROWS, load_compiled_early
from tiebreak.kernels.layout import Codes
from tiebreak.shards.executor import Executor, each_of
from tiebreak.shards.sources import ReadOptions, Shard, naming, read_shard
from tiebreak.tables.array_folder import count_packed, read_packed, write_packed
from tiebreak.tables.source import ABOUT
from tiebreak.wording import counted

SHOWN_NOTES = 5


class Look(NamedTuple):
    """What is known of a partition without its responses."""

    number: int  # among those that are not empty, once they are joined
    n_before: int  # tasks in earlier partitions
    path: str  # the packed folder
    name: str  # as the caller gave it
    n_tasks: int
    n_responses: int
    workers: Ids
    classes: Ids
    is_class_ordered: bool
    span: tuple[Any, Any] | None  # the first and the last task id, where ids have an order
    seal: int  # of what the folder says of itself, checksums included
    notes: tuple[str, ...]


class JoinedCrowd(NamedTuple):
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
        first = read_packed(self.looks[0].path, is_checked=True)
        nothing = first.on_tasks(np.zeros(0, dtype=np.int32))
        return replace(nothing, workers=self.workers, classes=self.classes, weight=None)


def look_and_join(
    executor: Executor,
    shards: list[Shard],
    options: ReadOptions,
    folder: Path,
    gold: Gold | None = None,
    n_units: int | None = None,
) -> JoinedCrowd:
    """Look at every partition where it lies; join them by ids, with the classes of gold."""
    given = ((i, shard, options, str(folder)) for i, shard in enumerate(shards))
    looks = each_of(executor, look, given)
    return join(looks, None if gold is None else gold.classes, n_units)


def look(index: int, shard: Shard, options: ReadOptions, folder: str) -> Look | None:
    """Check a partition, packed first where it is a table; None: there is nothing in it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InputNote)
        with naming(index, shard.path):
            path = shard.path if shard.is_packed else _pack(index, shard, options, folder)
            if path is not None and _is_large(Path(path)):
                load_compiled_early()
            crowd = None if path is None else read_packed(path)
            if path is None or crowd is None or not crowd.n_tasks:
                return None
            return Look(
                index,
                0,
                path,
                shard.path,
                crowd.n_tasks,
                crowd.n_responses,
                crowd.workers,
                crowd.classes,
                crowd.is_class_ordered,
                ids.span(crowd.tasks),
                zlib.crc32((Path(path) / ABOUT).read_bytes()),
                tuple(str(each.message) for each in caught if issubclass(each.category, InputNote)),
            )


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


def _is_large(folder: Path) -> bool:
    """Tell whether compiled kernels will sweep a partition, by its size alone."""
    with contextlib.suppress(FileError):  # the reader says what is wrong with it
        return count_packed(folder) > COMPILED_ROWS
    return False


def join(looks: list[Look | None], more_classes: Ids | None, n_units: int | None) -> JoinedCrowd:
    """Join partitions in their order: workers as they first appear, classes sorted."""
    kept = [each for each in looks if each is not None]
    _tell(len(looks), kept)
    if not kept:
        raise InputError("There is no response in any of the partitions.")
    for each in kept:
        _require_type(each, kept[0])
    classes = _join_classes(kept, more_classes)
    workers = reduce(ids.merge, (each.workers for each in kept))
    rows = [workers.codes(each.workers) for each in kept]
    units = cut_units([each.n_responses for each in kept], n_units)
    before = np.cumsum([0, *(each.n_tasks for each in kept)]).tolist()
    nobody = Ids(())  # the driver stays small
    light = [
        each._replace(number=i, n_before=before[i], workers=nobody, notes=())
        for i, each in enumerate(kept)
    ]
    return JoinedCrowd(light, workers, classes, rows, units)


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


def _join_classes(looks: list[Look], more: Ids | None) -> Ids:
    first = looks[0]
    classes = reduce(ids.merge, (each.classes for each in looks))
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
            note_unused_classes(classes[known:], classes[:known])
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


def _tell(n_looks: int, kept: list[Look]) -> None:
    """Say what was found: empty shards, and what was dropped, merged or guessed in others."""
    n_empty = n_looks - len(kept)
    if n_empty:
        note(f"{counted(n_empty, 'shard')} of {n_looks:,} empty: left out.")
    told = ((each.name, text) for each in kept for text in each.notes)
    notes = [text if name in text else f"{name}: {text}" for name, text in told]
    for text in notes[:SHOWN_NOTES]:
        note(text)
    if len(notes) > SHOWN_NOTES:
        note(f"There are {len(notes) - SHOWN_NOTES:,} more notes like these on other shards.")
