"""Tasks that are spread over partitions: found, refused, and brought together by a shuffle.

Spans of ids that do not overlap prove that no task is spread, at no cost. Else every task gets a
64-bit hash; hashes that two partitions share are looked up, and their ids compared: two different
ids may share a hash.
"""

from __future__ import annotations

import os
import shutil
import warnings
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tiebreak.arguments import checks, optional, whole
from tiebreak.data import Builder, Responses, ids
from tiebreak.data.ids import Ids
from tiebreak.data.ids.hashing import Hashes, hash_ids
from tiebreak.errors import InputError, InputNote, note
from tiebreak.kernels.layout import weights_or_ones
from tiebreak.shards.executor import SHARDED, Executor, each_of, executor_of
from tiebreak.shards.partitions import JoinedCrowd, Look, look_and_join
from tiebreak.shards.sources import ReadOptions, find_shards
from tiebreak.tables.array_folder import read_packed, write_packed
from tiebreak.tables.write import open_folder
from tiebreak.wording import counted

BUCKET_TASKS = 1 << 22  # hashes compared at a time
SHOWN = 3


def require_apart(executor: Executor, crowd: JoinedCrowd, folder: Path) -> None:
    """Refuse tasks that lie in several partitions, with the command that brings them together."""
    if _spans_are_apart(crowd.looks) or len(crowd.looks) < 2:
        return
    folder.mkdir(parents=True, exist_ok=True)
    paths = enumerate(look.path for look in crowd.looks)
    each_of(executor, write_hashes, ((*each, str(folder)) for each in paths))
    n_buckets = max(1, crowd.n_tasks // BUCKET_TASKS)
    n_parts = len(crowd.looks)
    buckets = ((b, n_buckets, n_parts, str(folder)) for b in range(n_buckets))
    hashes = np.concatenate(each_of(executor, shared_hashes, buckets))
    if len(hashes):
        _compare_ids(executor, crowd, hashes)
    shutil.rmtree(folder, ignore_errors=True)


def write_hashes(index: int, path: str, folder: str) -> int:
    """Write the hashes of a partition's tasks, sorted; return how many."""
    found = np.sort(hash_ids(read_packed(path, is_checked=True).tasks))
    np.save(Path(folder) / f"hashes-{index:05d}.npy", found)
    return len(found)


def shared_hashes(bucket: int, n_buckets: int, n_parts: int, folder: str) -> Hashes:
    """Return the hashes of a bucket that several partitions have."""
    low = np.uint64(bucket * 2**64 // n_buckets)
    high = (bucket + 1) * 2**64 // n_buckets
    pieces = []
    for index in range(n_parts):
        found = np.load(Path(folder) / f"hashes-{index:05d}.npy", mmap_mode="r")
        end = len(found) if high == 2**64 else int(np.searchsorted(found, np.uint64(high)))
        pieces.append(np.asarray(found[int(np.searchsorted(found, low)) : end]))
    together = np.sort(np.concatenate(pieces))
    return np.unique(together[1:][together[1:] == together[:-1]])


def ids_with(path: str, hashes: Hashes) -> list[Any]:
    """Return the ids of a partition's tasks that have one of these hashes."""
    tasks = read_packed(path, is_checked=True).tasks
    at = np.flatnonzero(np.isin(hash_ids(tasks), hashes))
    return ids.as_list(tasks.take(at))


def _compare_ids(executor: Executor, crowd: JoinedCrowd, hashes: Hashes) -> None:
    """Refuse ids that several partitions have; equal hashes of different ids are no harm."""
    some = hashes[:1000]
    found = each_of(executor, ids_with, ((look.path, some) for look in crowd.looks))
    where: dict[Any, list[str]] = {}
    for look, names in zip(crowd.looks, found, strict=True):
        for name in names:
            where.setdefault(name, []).append(look.name)
    twice = [f"{name!r} in {at[0]} and {at[1]}" for name, at in where.items() if len(at) > 1]
    if not twice:
        return
    shown = "; ".join(twice[:SHOWN])
    n = f"at least {len(twice):,}" if len(hashes) > len(some) else f"{len(twice):,}"
    is_one = "task has" if n == "1" else "tasks have"
    raise InputError(
        f"{n} {is_one} responses in several shards: {shown}.\n"
        "Bring each task together first: tiebreak shuffle SHARDS -o FOLDER"
    )


def _spans_are_apart(looks: list[Look]) -> bool:
    spans = [look.span for look in looks]
    if any(span is None for span in spans):
        return False
    ordered = sorted(span for span in spans if span is not None)
    return all(one[1] < other[0] for one, other in pairwise(ordered))


@checks(**SHARDED, parts=optional(whole(1)))
def shuffle(
    source: Any,
    out: str | os.PathLike[str],
    *,
    parts: int | None = None,
    client: Any = None,
    columns: dict[str, str] | None = None,
    repeats: Any = None,
    executor: Executor | None = None,
) -> list[str]:
    """Bring the responses of each task into one partition; return the new, packed partitions.

    `parts` is how many there shall be; None: as many as there are now. Out of core: a process holds
    one partition at a time. Repeats of a worker on a task: the last one counts, in the order of the
    partitions. See `fit` for the other arguments.
    """
    engine = executor or executor_of(client)
    folder = Path(os.path.realpath(out))
    shards = find_shards(source)
    packed = folder.with_name(f".{folder.name}.parts")
    try:
        crowd = look_and_join(engine, shards, ReadOptions(columns, repeats), packed)
        return _shuffle(engine, crowd, folder, parts or len(crowd.looks))
    finally:
        shutil.rmtree(packed, ignore_errors=True)


def _shuffle(executor: Executor, crowd: JoinedCrowd, out: Path, n_parts: int) -> list[str]:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is there already, and is not empty. Choose another folder.")
    with open_folder(out) as beside:
        pieces = beside / ".pieces"
        pieces.mkdir()
        paths = enumerate(look.path for look in crowd.looks)
        how = (crowd.classes, n_parts, str(pieces))
        each_of(executor, split_partition, ((*each, *how) for each in paths))
        where = (len(crowd.looks), crowd.classes, str(pieces), str(beside))
        made = each_of(executor, join_pieces, ((part, *where) for part in range(n_parts)))
        shutil.rmtree(pieces)
    kept = [each for each in made if each is not None]
    n_repeats = sum(n for _, n in kept)
    if n_repeats:
        note(
            f"{counted(n_repeats, 'response')} repeat a worker on a task; the last one counts, in "
            "the order of the shards."
        )
    return [str(out / name) for name, _ in kept]


def split_partition(index: int, path: str, classes: Ids, n_parts: int, folder: str) -> int:
    """Write the responses of a partition into one packed piece per new partition."""
    crowd = read_packed(path, is_checked=True).in_classes(classes)
    bucket = (hash_ids(crowd.tasks) % np.uint64(n_parts)).astype(np.int64)
    for part in range(n_parts):
        task = np.flatnonzero(bucket == part)
        if len(task):
            write_packed(_piece(folder, part, index), crowd.on_tasks(task))
    return n_parts


def join_pieces(
    part: int, n_pieces: int, classes: Ids, folder: str, out: str
) -> tuple[str, int] | None:
    """Build a new partition from its pieces, in their order; None where there are none."""
    paths = (_piece(folder, part, index) for index in range(n_pieces))
    pieces = [read_packed(path, is_checked=True) for path in paths if path.exists()]
    if not pieces:
        return None
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
    tasks = reduce(ids.merge, (piece.tasks for piece in pieces))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)  # told once, of all
        built = builder.finish(tasks=tasks.values, classes=classes.values)
    made = Responses.from_built(built)
    name = f"part-{part:05d}.tb"
    write_packed(Path(out) / name, made)
    return name, made.n_repeats


def _piece(folder: str, part: int, index: int) -> Path:
    return Path(folder) / f"{part:05d}-{index:05d}.tb"
