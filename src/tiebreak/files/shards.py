"""Shards: which files a path, a pattern, a folder, a list or an address names, and what is in them.

p1.csv p2.csv      as they are listed           in/           the tables in a folder, by name
p*.csv             by name; a file that is      s3://b/x/*    on any file system of pyarrow
called so comes first
"""

from __future__ import annotations

import fnmatch
import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tiebreak.errors import FileError, InputError, note
from tiebreak.files.content import (
    BYTE_ORDER_MARK,
    EXTENSIONS,
    FOREIGN_MAGIC,
    PATTERN_SIGNS,
    Content,
    TableFile,
    TableFiles,
    is_json_list,
    is_packed,
    missing,
    plain_content,
    read_content,
)
from tiebreak.wording import counted, first_few

PERHAPS = ".json"  # a table where a folder has no other; beside tables it says something of them
ENDINGS = tuple({*EXTENSIONS, ".gz"} - {PERHAPS})
SHOWN = 5  # names of what a folder holds, in a message
HEAD = 1 << 12  # bytes in which a row is looked for first


def open_one(files: TableFiles, path: str) -> Content | None:
    """Open one of several files; None where it has no row. What lies elsewhere is fetched once."""
    if is_packed(path):
        raise FileError(
            f"{path} is a folder of packed responses, which is read alone. Fit several of them "
            "with --out-of-core (tb.distributed.fit), or name the tables of which it was made."
        )
    if "://" not in path:
        return open_file(path)
    if path not in files.fetched:
        files.fetched[path] = open_file(path)
    return files.fetched[path]


def contents(files: TableFiles) -> Iterator[tuple[str, Content]]:
    """Yield the path and the bytes of each file that has a row; say how many have none."""
    n_empty = 0
    for file in files.files:
        content = open_one(files, file.path)
        if content is None:
            n_empty += 1
        else:
            yield file.path, content
    if n_empty == len(files.files):
        raise InputError(f"{files.name} are empty: none of them has a row.")
    if n_empty:
        note(f"{counted(n_empty, 'file')} of {len(files.files):,} empty: left out.")


def find_files(source: Any) -> list[TableFile]:
    """Return the files that a path, a pattern, a folder, an address or a list of them names.

    A name with a scheme, such as s3://bucket/shards/*.parquet, is read with pyarrow's file systems.
    """
    given = source if isinstance(source, list | tuple) else [source]
    for each in given:
        if not isinstance(each, str | os.PathLike):
            raise InputError(
                f"Shards are named by a path, a pattern or a list of them; got {each!r}."
            )
    names = [os.fspath(each) for each in given]
    is_perhaps_a_row = len(names) > 1 and not any(Path(name).suffix for name in names)
    hint = " A list of texts names files; rows are tuples." if is_perhaps_a_row else ""
    found = [file for name in names for file in _files_of(name, hint)]
    paths = (_real(file.path) for file in found)
    twice = [path for path, n in Counter(paths).items() if n > 1]
    if twice:
        raise InputError(f"{min(twice)} is named twice. Name each file once.")
    return found


def open_source(source: Any) -> Any:
    """Return what a pattern, a folder, a list or an address names: one file, or `TableFiles`."""
    found = find_files(source)
    if len(found) > 1:
        return TableFiles(tuple(found))
    path = found[0].path
    return read_remote(path) if "://" in path else path


def open_file(path: str) -> Content | None:
    """Return the bytes of a file, here or at an address; None where it has no row."""
    read = read_remote if "://" in path else read_content
    content = read(path, allow_empty=True)
    return content if has_rows(content) else None


def has_rows(content: Content) -> bool:
    r"""Tell whether a file holds more than a header, which JSON does not have.

    >>> has_rows(Content("a.csv", memoryview(b"task,label\n\n")))
    False
    >>> has_rows(Content("a.jsonl", memoryview(b'{"task": 1}')))
    True
    """
    start = bytes(content.data[:HEAD]).removeprefix(BYTE_ORDER_MARK).lstrip()
    if start.startswith(b"PAR1"):
        return _parquet_has_rows(content)
    if start.startswith((b"{", *FOREIGN_MAGIC)):
        return True  # the reader says what is wrong with a foreign one
    if is_json_list(content):
        return not start[1:].lstrip().startswith(b"]")
    size = HEAD
    while True:
        lines = bytes(content.data[:size]).splitlines()
        n_filled = sum(bool(line.strip()) for line in lines)
        if n_filled > 1 or size >= len(content.data):
            return n_filled > 1
        size *= 8


def read_remote(address: str, *, allow_empty: bool = False) -> Content:
    """Return the bytes of a file on a file system of pyarrow, all of them in memory."""
    system, path = _filesystem(address)
    try:
        with system.open_input_file(path) as file:
            data = memoryview(file.read_buffer()).cast("B")  # of Arrow they are signed
    except OSError as error:
        raise FileError(f"{address} cannot be read: {error}") from None
    return plain_content(Content(address, data), allow_empty=allow_empty)


def _parquet_has_rows(content: Content) -> bool:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return bool(parquet.read_metadata(pa.BufferReader(pa.py_buffer(content.data))).num_rows)
    except (pa.ArrowException, OSError):
        return True  # the reader says what is wrong with it


def _files_of(name: str, hint: str) -> list[TableFile]:
    if name == "-":
        raise InputError("Standard input ('-') cannot be one of several files. Write it to a file.")
    if "://" in name:
        return _remote_files(name)
    path = Path(name)
    if path.is_dir() and not is_packed(name):
        return [_local(each) for each in _tables_in(path)]
    if os.path.lexists(name) or not any(sign in name for sign in PATTERN_SIGNS):
        return [_local(name, hint)]
    fitting = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - it may begin at the root
    found = [each for each in fitting if is_packed(each) or not Path(each).is_dir()]
    if not found:
        what = f"{name} fits folders only" if fitting else f"There is no file that fits {name}"
        raise FileError(f"{what}. Check the pattern and the folder ({Path.cwd()}).")
    return [_local(each) for each in found]


def _tables_in(folder: Path) -> list[str]:
    """Return the tables and packed folders in a folder; names that begin with . or _ are none."""
    try:
        inside = sorted(each.name for each in folder.iterdir())
    except OSError as error:
        raise FileError(f"The folder {folder} cannot be read: {error.strerror}.") from None
    names = _shown(inside)
    tables = _tables_of(names)
    tables += [n for n in names if n not in tables and is_packed(folder / n)]
    if not tables:
        held = f"it holds {first_few(inside, SHOWN)}" if inside else "it is empty"
        raise FileError(f"{folder} holds no tables (.csv, .parquet, .jsonl …): {held}.")
    return [str(folder / name) for name in sorted(tables)]


def _shown(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.startswith((".", "_"))]


def _tables_of(names: Sequence[str]) -> list[str]:
    """Return which names are of tables."""
    tables = [name for name in names if name.lower().endswith(ENDINGS)]
    return tables or [name for name in names if name.lower().endswith(PERHAPS)]


def _local(path: str, hint: str = "") -> TableFile:
    if is_packed(path):
        return TableFile(path)
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        raise FileError(missing(Path(path)) + hint) from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise FileError(f"{path!r} cannot be read: {error}.") from None
    return TableFile(path, status.st_size, f"{status.st_size}-{status.st_mtime_ns}")


def _real(path: str) -> str:
    return path if "://" in path else os.path.realpath(path)


def _remote_files(address: str) -> list[TableFile]:
    """List what an address names; a star in its last part stands for any text.

    What follows a question mark are options of the file system, such as `?endpoint_override=…`.
    """
    name, mark, options = address.rpartition("?")
    if "=" not in options:  # none, or a pattern with a question mark
        name, mark, options = address, "", ""
    _refuse_keys(name)
    folder, _, pattern = name.rpartition("/")
    has_pattern = any(sign in pattern for sign in PATTERN_SIGNS)
    start = folder if has_pattern else name
    system, path = _filesystem(start + mark + options)
    found = {each.base_name: each for each in _listed(system, path, address)}
    chosen = fnmatch.filter(found, pattern) if has_pattern else _tables_of(_shown(found))
    if not has_pattern and [each.path for each in found.values()] == [path]:
        chosen = list(found)
    if not chosen:
        what = f"no file that fits {pattern}" if has_pattern else "no table"
        raise FileError(f"{address} holds {what}. Check the address.")
    before = start.removesuffix(path) if start.endswith(path) else name.partition("://")[0] + "://"
    infos = [found[each] for each in sorted(chosen)]
    return [
        TableFile(f"{before}{i.path}{mark}{options}", i.size, f"{i.size}-{i.mtime_ns}")
        for i in infos
    ]


def _refuse_keys(name: str) -> None:
    scheme, _, place = name.partition("://")
    if "@" in place.partition("/")[0]:
        raise FileError(
            f"Leave keys out of the address {scheme}://…: it is shown and written down. Give them "
            "in the environment or in the configuration of the file system."
        )


def _listed(system: Any, path: str, address: str) -> list[Any]:
    """Return what is known of the file of a path, or of the files in that folder."""
    from pyarrow import fs

    try:
        info = system.get_file_info(path)
        inside = fs.FileSelector(path, allow_not_found=True)
        listed = [info] if info.type == fs.FileType.File else system.get_file_info(inside)
    except OSError as error:
        raise FileError(f"{address} cannot be listed: {error}") from None
    return [each for each in listed if each.type == fs.FileType.File]


def _filesystem(address: str) -> tuple[Any, str]:
    import pyarrow as pa
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(address)  # type: ignore[no-any-return]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FileError(f"{address} cannot be reached: {error}") from None
