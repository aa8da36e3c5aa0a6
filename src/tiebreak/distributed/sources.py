"""Sources: which folders or files are the partitions of a fit."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import gzip
import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tiebreak import files
from tiebreak.errors import FileError, InputError, TiebreakError
from tiebreak.files.content import is_packed
from tiebreak.responses import Responses

TABLES = (".parquet", ".csv", ".tsv", ".jsonl", ".gz")


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
    """Return the partitions that a path, a glob, a folder or a list of them names, in order.

    A name with a scheme, such as s3://bucket/shards/*.parquet, is read with pyarrow's file systems.
    """
    given = source if isinstance(source, list | tuple) else [source]
    found = [shard for each in given for shard in _shards_of(os.fspath(each))]
    if not found:
        names = ", ".join(map(str, given))
        raise FileError(f"{names} holds no shards: no packed folders, no tables.")
    twice = [path for path, n in Counter(shard.path for shard in found).items() if n > 1]
    if twice:
        raise InputError(f"{min(twice)} is named twice. Name each shard once.")
    return found


def read_shard(shard: Shard, options: ReadOptions) -> Responses | None:
    """Read a table of responses; None where it has no row at all."""
    table = _open_remote(shard.path) if "://" in shard.path else shard.path
    if _is_empty(table):
        return None
    return files.read_responses(table, columns=options.columns, repeats=options.repeats)


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


def _shards_of(name: str) -> list[Shard]:
    if "://" in name:
        return _remote_shards(name)
    path = Path(name)
    if path.is_dir() and not is_packed(name):
        inside = sorted(
            str(each) for each in path.iterdir() if not each.name.startswith((".", "_"))
        )
        return [_local(each) for each in inside if is_packed(each) or each.endswith(TABLES)]
    if path.exists():
        return [_local(name)]
    found = sorted(glob.glob(name))  # noqa: PTH207 - a pattern may begin at the root
    if not found:
        raise FileError(f"There is no {name}: no file, no folder, and no pattern that fits any.")
    return [_local(each) for each in found]


def _local(path: str) -> Shard:
    whole = os.path.realpath(path)
    if is_packed(path):
        return Shard(whole, True)
    status = Path(whole).stat()
    return Shard(whole, False, f"{status.st_size}-{status.st_mtime_ns}")


def _remote_shards(uri: str) -> list[Shard]:
    """List what a URI names; a star in its last part stands for any text.

    What follows a question mark are options of the file system, such as `?endpoint_override=…`.
    """
    from pyarrow import fs

    name, mark, options = uri.rpartition("?")
    if "=" not in options:  # none, or a pattern with a question mark
        name, mark, options = uri, "", ""
    scheme, _, place = name.partition("://")
    if "@" in place.partition("/")[0]:
        raise FileError(
            f"Leave keys out of the address {scheme}://…: it is shown and written down. Give them "
            "in the environment or in the configuration of the file system."
        )
    folder, _, pattern = name.rpartition("/")
    has_pattern = any(sign in pattern for sign in "*?[")
    system, path = _filesystem((folder if has_pattern else name) + mark + options)
    try:
        info = system.get_file_info(path)
        inside = fs.FileSelector(path, allow_not_found=True)
        listed = [info] if info.type == fs.FileType.File else system.get_file_info(inside)
    except OSError as error:
        raise FileError(f"{uri} cannot be listed: {error}") from None
    chosen = [
        each
        for each in listed
        if each.type == fs.FileType.File
        and (fnmatch.fnmatch(each.base_name, pattern) if has_pattern else _is_table(each.base_name))
    ]
    return [
        Shard(f"{scheme}://{each.path}{mark}{options}", False, f"{each.size}-{each.mtime_ns}")
        for each in sorted(chosen, key=lambda each: each.path)
    ]


def _open_remote(uri: str) -> Any:
    """Open a table on a file system of pyarrow."""
    import pyarrow.parquet as pq

    system, path = _filesystem(uri)
    try:
        if path.endswith(".parquet"):
            return pq.read_table(path, filesystem=system)
        opened = io.BufferedReader(system.open_input_file(path))
        return gzip.open(opened) if path.endswith(".gz") else opened
    except OSError as error:
        raise FileError(f"{uri} cannot be read: {error}") from None


def _filesystem(uri: str) -> tuple[Any, str]:
    import pyarrow as pa
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(uri)  # type: ignore[no-any-return]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FileError(f"{uri} cannot be reached: {error}") from None


def _is_table(name: str) -> bool:
    return name.endswith(TABLES) and not name.startswith((".", "_"))


def _is_empty(table: Any) -> bool:
    """Tell whether a table has a header at most."""
    if hasattr(table, "num_rows"):
        return int(table.num_rows) == 0
    if not isinstance(table, str):
        is_empty = _has_header_at_most(table)
        table.seek(0)
        return is_empty
    if table.endswith(".parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return int(pq.read_metadata(table).num_rows) == 0
        except (pa.ArrowException, OSError):
            return False  # the reader says what is wrong with it
    opener = gzip.open if table.endswith(".gz") else open
    with opener(table, "rb") as lines:
        return _has_header_at_most(lines)


def _has_header_at_most(lines: Iterable[bytes]) -> bool:
    filled = (line for line in lines if line.strip())
    next(filled, None)
    return next(filled, None) is None
