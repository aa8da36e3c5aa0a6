"""Shards as they are given: files or packed folders, looked at and packed where they are read.

A task lies in one shard. Spans of ids that do not overlap prove that at no cost; else every task
gets a 64-bit hash, and where two shards share one, all shards are cut anew, by the hash of the
task. Nothing of this holds more than one shard in memory.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
import zlib
from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tiebreak import tables
from tiebreak.data import Builder, ids
from tiebreak.data.ids import Ids, hash_ids
from tiebreak.errors import (
    Coded,
    FileError,
    InputError,
    InputNote,
    TiebreakError,
    note,
    sentence,
    warn,
)
from tiebreak.kernels.contract import COMPILED_ROWS, load_compiled_early
from tiebreak.kernels.layout import weights_or_ones
from tiebreak.shards.executor import Executor, each
from tiebreak.tables.array_folder import count_packed, read_packed, write_packed
from tiebreak.tables.source import ABOUT, find_files, is_packed, open_file
from tiebreak.tables.write import open_folder

BUCKET_TASKS = 1 << 22  # hashes compared at a time
SHOWN_NOTES = 5

CodedT = TypeVar("CodedT", bound=Coded)


class Shard(NamedTuple):
    """A shard as it was given: a folder of packed responses, or a table to pack."""

    number: int
    path: str
    stamp: str = ""  # size and time of a table: another stamp is another table

    def __str__(self) -> str:
        return f"shard {self.number} ({self.path})"


class Look(NamedTuple):
    """What is known of a shard without its responses."""

    shard: Shard
    path: str  # of the packed folder
    n_tasks: int
    n_responses: int
    workers: Ids
    classes: Ids
    is_class_ordered: bool
    span: tuple[Any, Any] | None  # the first and the last task id, where ids have an order
    seal: int  # of what the folder says of itself, checksums included
    notes: tuple[InputNote, ...]

    def __str__(self) -> str:
        return str(self.shard)


@contextlib.contextmanager
def naming(shard: Shard | Look) -> Iterator[None]:
    """Name a shard in whatever goes wrong with it."""
    where = str(shard)[0].upper() + str(shard)[1:]
    try:
        yield
    except TiebreakError as error:
        raise _placed(error, where, shard) from None
    except MemoryError:
        raise MemoryError(sentence("shard-memory", {"where": where})) from None
    except OSError as error:
        raise FileError("shard-unreadable", where=where, reason=error.strerror or error) from None


def _placed(told: CodedT, where: str, shard: Shard | Look) -> CodedT:
    """Return an error or a note that names its shard; its code and fields stay."""
    made = type(told)(f"{where}: {told}")
    made.code, made.fields = told.code, told.fields | {"shard": str(shard)}
    return made


def find_shards(source: Any) -> list[Shard]:
    """Return the shards that a path, a pattern, a folder, an address or a list of them names."""
    return [
        Shard(i, file.path if "://" in file.path else os.path.realpath(file.path), file.stamp)
        for i, file in enumerate(find_files(source))
    ]


def read_shards(
    executor: Executor, source: Any, options: dict[str, Any], folder: Path
) -> list[Look]:
    """Look at all shards where they lie; where they share tasks they are cut anew, by task."""
    shards = find_shards(source)
    looks = _look_at(executor, shards, options, folder)
    if len(looks) < len(shards):
        note("shards-empty", n=len(shards) - len(looks), n_shards=len(shards))
    notes = [told for one in looks for told in one.notes]
    for told in notes[:SHOWN_NOTES]:
        warn(told, InputNote)
    if len(notes) > SHOWN_NOTES:
        note("more-notes-on-shards", n=len(notes) - SHOWN_NOTES)
    if not looks:
        raise InputError("shards-without-responses")
    for one in looks:
        _require_types(one, looks[0])
    n_spread = 0 if _are_apart(looks) else _count_spread(executor, looks, folder / "hashes")
    if not n_spread:
        return looks
    note("tasks-spread", n=n_spread, n_shards=len(looks))
    parts = _cut_by_task(executor, looks, folder)
    return _look_at(executor, [Shard(i, path) for i, path in enumerate(parts)], options, folder)


def _look_at(
    executor: Executor, shards: list[Shard], options: dict[str, Any], folder: Path
) -> list[Look]:
    found = each(executor, look, ((shard, options, str(folder)) for shard in shards))
    return [one for one in found if one is not None]


def look(shard: Shard, options: dict[str, Any], folder: str) -> Look | None:
    """Check a shard, packed first where it is a table; None: there is nothing in it."""
    with warnings.catch_warnings(record=True) as caught, naming(shard):
        warnings.simplefilter("always", InputNote)
        path = shard.path if is_packed(shard.path) else _pack(shard, options, folder)
        if path is None:
            return None
        with contextlib.suppress(FileError):  # the reader says what is wrong with it
            if count_packed(Path(path)) > COMPILED_ROWS:
                load_compiled_early()
        crowd = read_packed(path)
        if not crowd.n_tasks:
            return None
        notes = [each.message for each in caught if isinstance(each.message, InputNote)]
        return Look(
            shard,
            path,
            crowd.n_tasks,
            crowd.n_responses,
            crowd.workers,
            crowd.classes,
            crowd.is_class_ordered,
            ids.span(crowd.tasks),
            zlib.crc32((Path(path) / ABOUT).read_bytes()),
            tuple(
                told if shard.path in str(told) else _placed(told, shard.path, shard)
                for told in notes
            ),
        )


def _pack(shard: Shard, options: dict[str, Any], folder: str) -> str | None:
    """Pack a table, unless an earlier run has done so; None where it has no row."""
    stamp = zlib.crc32(repr((shard, options)).encode())
    target = Path(folder) / f"part-{shard.number:05d}-{stamp:08x}.tb"
    if not (target / ABOUT).is_file():
        content = open_file(shard.path)
        if content is None:
            return None
        made = tables.read_responses(content, **options)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_packed(target, made)
    return str(target)


def _require_types(one: Look, first: Look) -> None:
    """Refuse shards whose ids cannot be compared: text in one, numbers in another."""
    kinds: dict[str, tuple[Any, Any]] = {
        "worker ids": (one.workers[:1], first.workers[:1]),
        "labels": (one.classes[:1], first.classes[:1]),
        "task ids": (one.span or (), first.span or ()),
    }
    for what, (mine, other) in kinds.items():
        if not len(mine) or not len(other):
            continue  # tasks that nobody answered
        if isinstance(mine[0], str) != isinstance(other[0], str):
            raise InputError(
                "shards-of-other-types",
                what=what,
                first=first.shard.path,
                kind=type(other[0]).__name__,
                other=one.shard.path,
                other_kind=type(mine[0]).__name__,
            )


# -- tasks in several shards -----------------------------------------------------------------------


def _are_apart(looks: list[Look]) -> bool:
    """Tell whether the spans of task ids alone prove that no task is spread."""
    spans = [one.span for one in looks]
    if len(spans) < 2 or any(span is None for span in spans):
        return len(spans) < 2
    ordered = sorted(span for span in spans if span is not None)
    return all(one[1] < other[0] for one, other in pairwise(ordered))


def _count_spread(executor: Executor, looks: list[Look], folder: Path) -> int:
    """Return how many tasks lie in several shards; two ids with one hash count too, in vain."""
    folder.mkdir(parents=True, exist_ok=True)
    each(executor, write_hashes, ((one, str(folder)) for one in looks))
    n_buckets = max(1, sum(one.n_tasks for one in looks) // BUCKET_TASKS)
    buckets = ((bucket, n_buckets, str(folder)) for bucket in range(n_buckets))
    n_spread = sum(each(executor, count_shared_hashes, buckets))
    shutil.rmtree(folder, ignore_errors=True)
    return n_spread


def write_hashes(one: Look, folder: str) -> None:
    """Write the hashes of a shard's tasks, sorted."""
    found = np.sort(hash_ids(read_packed(one.path, is_checked=True).tasks))
    np.save(Path(folder) / f"{one.shard.number:05d}.npy", found)


def count_shared_hashes(bucket: int, n_buckets: int, folder: str) -> int:
    """Return how many hashes of a bucket, a range of hashes, are in several files."""
    low, high = (edge * 2**64 // n_buckets for edge in (bucket, bucket + 1))
    pieces = []
    for file in sorted(Path(folder).glob("*.npy")):
        found = np.load(file, mmap_mode="r")
        end = len(found) if high == 2**64 else int(np.searchsorted(found, np.uint64(high)))
        pieces.append(np.asarray(found[int(np.searchsorted(found, np.uint64(low))) : end]))
    together = np.sort(np.concatenate(pieces))
    return len(np.unique(together[1:][together[1:] == together[:-1]]))


def _cut_by_task(executor: Executor, looks: list[Look], folder: Path) -> list[str]:
    """Pack as many shards anew, each task in one of them; return those that have a task."""
    stamp = zlib.crc32(repr([one.seal for one in looks]).encode())
    out = folder / f"by-task-{stamp:08x}"
    if not out.exists():  # else an earlier run was broken off later
        folder.mkdir(parents=True, exist_ok=True)
        with open_folder(out) as beside:
            pieces = beside / "pieces"
            pieces.mkdir()
            each(executor, split_shard, ((one, len(looks), str(pieces)) for one in looks))
            parts = range(len(looks))
            made = each(executor, join_pieces, ((i, str(pieces), str(beside)) for i in parts))
            shutil.rmtree(pieces)
        if sum(made):
            note("repeats-between-shards", n=sum(made))
    return sorted(str(path) for path in out.glob("*.tb"))


def split_shard(one: Look, n_parts: int, folder: str) -> None:
    """Write the responses of a shard into one packed piece a new shard."""
    crowd = read_packed(one.path, is_checked=True)
    part_of = (hash_ids(crowd.tasks) % np.uint64(n_parts)).astype(np.int64)
    for part in np.unique(part_of):
        piece = Path(folder) / f"{part:05d}-{one.shard.number:05d}.tb"
        write_packed(piece, crowd.on_tasks(np.flatnonzero(part_of == part)))


def join_pieces(part: int, folder: str, out: str) -> int:
    """Pack a new shard from its pieces, in their order; return how many responses repeat."""
    paths = sorted(Path(folder).glob(f"{part:05d}-*.tb"))
    pieces = [read_packed(path, is_checked=True) for path in paths]
    if not pieces:
        return 0
    builder = Builder("last")
    has_weights = any(piece.weight is not None for piece in pieces)
    for piece in pieces:
        weight = np.asarray(weights_or_ones(piece.weight, piece.n_responses))
        builder.add(
            piece.tasks.take(piece.task_of_each()),
            piece.workers.take(piece.worker_of_each()),
            piece.classes.take(piece.label_of_each()),
            weight=weight if has_weights else None,
        )
    task_names = reduce(Ids.merge, (piece.tasks for piece in pieces))
    classes = reduce(Ids.merge, (piece.classes for piece in pieces))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)  # told once, of all
        made = builder.finish(tasks=task_names, classes=classes)
    if pieces[0].is_class_ordered:
        made = made.with_class_order(pieces[0].classes)
    write_packed(Path(out) / f"part-{part:05d}.tb", made)
    return made.n_repeats
