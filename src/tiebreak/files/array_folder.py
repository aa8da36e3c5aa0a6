"""Folders of plain arrays, ids and one JSON: how packed responses and models lie on the disk.

    x.tbm/about.json     what this is, its version, what it says, and the checksum of each file
          q-5f3a….npy    an array; 5f3a… is the name of the writing, drawn at random
          tasks-5f3a….arrow  ids

A new writing puts its files beside those of the last one and then replaces `about.json`, in one
step of the disk: whoever dies on the way leaves the last writing whole. Checksums are of the bytes
that were handed over, not of what lies on the disk, and `about.json` seals them all. One process
writes at a time (`locks`). Nothing in a folder is ever executed: no pickle is read, and JSON names
no code.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.errors import FileError, InputError
from tiebreak.files.atomic_write import Target, not_written, open_folder, open_target
from tiebreak.files.content import ABOUT
from tiebreak.files.locks import SAVE_WAIT, Lock, holder_name
from tiebreak.ids import Ids, is_arrow

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 1 << 24
MAPPED_BYTES = 1 << 20  # arrays from this size on stay on the disk until they are touched
PLAIN_KINDS = "biuf"  # of arrays: booleans and numbers
N_TRIES = 20  # to read a folder that is written anew meanwhile


class FolderContent(NamedTuple):
    """What a folder holds."""

    about: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]
    ids: dict[str, Ids]


class Kind(NamedTuple):
    """A kind of folder: what `about.json` says it is, in which version, and how to make it."""

    what: str
    version: int
    way_out: str  # what to do where a folder is damaged


def write(target: Target, kind: Kind, content: FolderContent, lock: Lock | None = None) -> None:
    """Write a folder, or write it anew; one of another kind, or a file, is refused.

    `lock` is that of the target, where the caller holds it already.
    """
    path = Path(os.path.realpath(target))
    refuse_foreign(path, kind)  # before a lock file is made in a folder that may not exist
    if lock is None:
        with Lock(path, holder_name(), wait=SAVE_WAIT) as lock:
            write(path, kind, content, lock)
        return
    writing = secrets.token_hex(8)
    if not path.exists() or not any(path.iterdir()):
        with open_folder(path) as folder:
            _write_about(folder, kind, content, _write_files(folder, content, writing), writing)
        return
    written: dict[str, dict[str, Any]] = {}
    try:
        written = _write_files(path, content, writing)
        _write_about(path, kind, content, written, writing)
    except BaseException as error:  # Ctrl-C too
        for file in path.glob(f"*-{writing}.*"):
            file.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise not_written(target, path, error) from None
        raise
    _remove_others(path, written)


def read(target: Target, kind: Kind) -> FolderContent:
    """Read a folder of a kind; what is damaged, half or foreign is refused."""
    folder = Path(target)
    for _ in range(N_TRIES - 1):
        about = read_about(folder, kind)
        try:
            return _read_content(folder, kind, about)
        except FileError:
            if read_about(folder, kind).get("writing") == about.get("writing"):
                raise
    return _read_content(folder, kind, read_about(folder, kind))


def read_about(folder: Path, kind: Kind) -> dict[str, Any]:
    """Read what a folder says of itself; refuse other kinds, and versions yet to come."""
    if not folder.exists():
        raise FileError(f"There is no folder {folder}. {kind.way_out}")
    try:
        about = _read_json(folder)
    except FileNotFoundError:
        raise damaged(folder, f"it has no {ABOUT}", kind) from None
    except NotADirectoryError:
        raise FileError(f"{folder} is a file; a {kind.what} is a folder.") from None
    except (OSError, ValueError) as error:
        raise damaged(folder, f"{ABOUT}: {error}", kind) from None
    if not isinstance(about, dict) or about.get("what") != kind.what:
        raise FileError(f"{folder} does not hold a {kind.what}: {ABOUT} says something else.")
    version = about.get("version")
    if not isinstance(version, int) or version > kind.version:
        raise FileError(
            f"{folder} has version {version!r} of a {kind.what}, and this tiebreak reads up to "
            f"version {kind.version}. Use a newer tiebreak."
        )
    if about.get("seal") != _seal_of_json(about):
        raise damaged(folder, f"{ABOUT} is not what was written", kind)
    return about


def _read_content(folder: Path, kind: Kind, about: dict[str, Any]) -> FolderContent:
    try:
        files = {name: _checked(folder, kind, each) for name, each in about["files"].items()}
        arrays = {name: read_array(f) for name, f in files.items() if f.suffix == ".npy"}
        ids = {name: read_ids(f) for name, f in files.items() if f.suffix == ".arrow"}
        return FolderContent(about, arrays, ids)
    except (KeyError, TypeError, ValueError, AttributeError, EOFError, OSError) as error:
        if isinstance(error, FileError):
            raise
        raise damaged(folder, str(error), kind) from None


def damaged(folder: Path, reason: str, kind: Kind) -> FileError:
    """Say what is wrong with a folder, and the way out."""
    return FileError(
        f"{folder} is damaged or was not written to its end ({reason}). {kind.way_out}"
    )


def seal(file: Path) -> dict[str, int]:
    """Return the size and the checksum of a file."""
    found = 0
    with file.open("rb") as content:
        while chunk := content.read(CHUNK):
            found = zlib.crc32(chunk, found)
        return {"bytes": content.tell(), "crc32": found}


def write_ids(file: Path, what: str, names: Ids) -> dict[str, int]:
    """Write ids as one Arrow column, and return the seal; those of several kinds are refused."""
    return _write_sealed(file, lambda sink: _put_ids(sink, what, names))


def ids_as_bytes(what: str, names: Ids) -> bytes:
    """Return what `write_ids` writes."""
    sink = io.BytesIO()
    _put_ids(sink, what, names)
    return sink.getvalue()


def ids_of_bytes(data: bytes) -> Ids:
    """Return the ids of `ids_as_bytes`."""
    import pyarrow as pa

    (column,) = pa.ipc.open_file(pa.BufferReader(data)).read_all().columns
    return Ids(column.combine_chunks())


def _put_ids(sink: BinaryIO, what: str, names: Ids) -> None:
    import pyarrow as pa

    column = _as_arrow(what, names)
    with pa.ipc.new_file(sink, pa.schema({what: column.type})) as out:
        out.write_table(pa.table({what: column}))


def read_ids(file: Path) -> Ids:
    """Map ids into memory; Arrow takes what it needs from there."""
    import pyarrow as pa

    try:
        with pa.memory_map(str(file)) as source:
            (column,) = pa.ipc.open_file(source).read_all().columns
        is_large = file.stat().st_size >= MAPPED_BYTES
        if is_large and column.num_chunks == 1:  # to combine is to copy
            return Ids(column.chunk(0))
        return Ids(column.combine_chunks())
    except pa.ArrowException as error:
        raise ValueError(f"{file.name}: {error}") from None


def read_array(file: Path) -> npt.NDArray[Any]:
    """Read an array of numbers; a large one is mapped into memory."""
    is_large = file.stat().st_size >= MAPPED_BYTES
    array = np.load(file, mmap_mode="r" if is_large else None, allow_pickle=False)
    if array.dtype.kind not in PLAIN_KINDS:
        raise ValueError(f"{file.name} holds no numbers")
    return np.asarray(array)  # a plain array; a large one is still on the disk


def new_mapped(file: Path, dtype: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return an array that lies in a new file and is mapped; one of nothing cannot be, and is not.

    It is whole only once whoever made it has filled it.
    """
    if 0 in shape:
        return np.empty(shape, dtype)
    file.parent.mkdir(parents=True, exist_ok=True)
    return np.asarray(np.lib.format.open_memmap(file, "w+", dtype, shape))


class _Sealing(io.RawIOBase):
    """A file that adds up what is written into it: the seal is of the bytes handed over."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.n_bytes = 0
        self.crc32 = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.n_bytes

    def write(self, chunk: Any) -> int:
        self._out.write(chunk)
        self.crc32 = zlib.crc32(chunk, self.crc32)
        n = memoryview(chunk).nbytes
        self.n_bytes += n
        return n


def _write_sealed(file: Path, fill: Callable[[Any], None]) -> dict[str, int]:
    """Write a file, see to it that it is on the disk, and return its seal."""
    with file.open("xb") as out:
        sealing = _Sealing(out)
        fill(sealing)
        out.flush()
        os.fsync(out.fileno())
    return {"bytes": sealing.n_bytes, "crc32": sealing.crc32}


def _write_array(file: Path, array: npt.NDArray[Any]) -> dict[str, int]:
    return _write_sealed(file, lambda out: np.save(out, array))


def _write_files(folder: Path, content: FolderContent, writing: str) -> dict[str, dict[str, Any]]:
    """Write arrays and ids under names of their own; return the seal of each, by its name."""
    written: dict[str, dict[str, Any]] = {}
    for name, array in content.arrays.items():
        file = folder / f"{name}-{writing}.npy"
        written[name] = {"file": file.name, **_write_array(file, array)}
    for name, ids in content.ids.items():
        file = folder / f"{name}-{writing}.arrow"
        written[name] = {"file": file.name, **write_ids(file, name, ids)}
    return written


def _write_about(
    folder: Path,
    kind: Kind,
    content: FolderContent,
    files: dict[str, dict[str, Any]],
    writing: str,
) -> None:
    head = {"what": kind.what, "version": kind.version, "writing": writing}
    about = {**head, **content.about, "files": files}
    about["seal"] = _seal_of_json(about)
    text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    with open_target(folder / ABOUT) as out:
        out.write(text.encode())


def _seal_of_json(about: dict[str, Any]) -> int:
    rest = {name: value for name, value in about.items() if name != "seal"}
    return zlib.crc32(json.dumps(rest, sort_keys=True, ensure_ascii=False).encode())


def _read_json(folder: Path) -> dict[str, Any]:
    file = folder / ABOUT
    if file.is_symlink():
        raise ValueError("it is a symbolic link")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _checked(folder: Path, kind: Kind, about_file: dict[str, Any]) -> Path:
    """Return the path of a file that is what was written."""
    name: str = about_file["file"]
    if Path(name).name != name:
        raise damaged(folder, f"{name} is not a name of a file", kind)
    file = folder / name
    if file.is_symlink():
        raise damaged(folder, f"{name} is a symbolic link", kind)
    if not file.is_file():
        raise damaged(folder, f"{name} is missing", kind)
    if seal(file) != {"bytes": about_file["bytes"], "crc32": about_file["crc32"]}:
        raise damaged(folder, f"{name} is not what was written", kind)
    return file


def _remove_others(folder: Path, written: dict[str, dict[str, Any]]) -> None:
    """Remove the files of earlier writings; whoever has them mapped keeps them."""
    kept = {each["file"] for each in written.values()} | {ABOUT}
    for file in folder.iterdir():
        if file.name not in kept and file.suffix in (".npy", ".arrow"):
            file.unlink(missing_ok=True)


def refuse_foreign(path: Path, kind: Kind) -> None:
    """Refuse a path where something else lies, or whose folder does not exist."""
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: the folder {path.parent} does not exist.")
    if path.exists() and not path.is_dir():
        raise FileError(f"{path} is a file, and a {kind.what} is a folder. Choose another name.")
    if path.is_dir() and any(path.iterdir()):
        try:
            about = _read_json(path)
        except (OSError, ValueError):
            about = {}
        if not isinstance(about, dict) or about.get("what") != kind.what:
            raise FileError(f"{path} is a folder of something else. Choose another name.")


def _as_arrow(what: str, names: Ids) -> pa.Array:
    import pyarrow as pa

    if is_arrow(names.values):
        return names.values
    try:
        column = pa.array(list(names))
        if pa.types.is_nested(column.type) or column.to_pylist() != list(names):
            raise pa.ArrowInvalid
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        raise InputError(
            f"The ids of {what} are not all text, or all numbers of one kind, so they cannot be "
            f"packed: {names!r}. Give them as text."
        ) from None
    return column
