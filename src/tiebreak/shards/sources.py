"""Sources: the files or packed folders that are the partitions of a fit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from tiebreak import tables
from tiebreak.data import Responses
from tiebreak.errors import FileError, TiebreakError
from tiebreak.tables.source import find_files, is_packed, open_file


class Shard(NamedTuple):
    """A partition as it was given: a folder of packed responses, or a table to pack."""

    path: str
    is_packed: bool
    stamp: str = ""  # size and time of a table: another stamp is another table


class ReadOptions(NamedTuple):
    """How tables are read: as `read_responses` takes it."""

    columns: dict[str, str] | None = None
    repeats: Any = None


def find_shards(source: Any) -> list[Shard]:
    """Return the partitions that a path, a glob, a folder, an address or a list of them names."""
    return [
        Shard(
            file.path if "://" in file.path else os.path.realpath(file.path),
            is_packed(file.path),
            file.stamp,
        )
        for file in find_files(source)
    ]


def read_shard(shard: Shard, options: ReadOptions) -> Responses | None:
    """Read a table of responses; None where it has no row at all."""
    content = open_file(shard.path)
    if content is None:
        return None
    return tables.read_responses(content, columns=options.columns, repeats=options.repeats)


@contextlib.contextmanager
def naming(number: int, name: str) -> Iterator[None]:
    """Name a partition in whatever goes wrong with it."""
    where = f"Partition {number} ({name})"
    try:
        yield
    except TiebreakError as error:
        raise type(error)(f"{where}: {error}") from None
    except MemoryError:
        raise MemoryError(
            f"{where}: memory ran out. Cut it into smaller shards with tiebreak shuffle --parts, "
            "or give each process more memory."
        ) from None
    except OSError as error:
        raise FileError(f"{where}: {error.strerror or error}.") from None
