"""Folders of plain arrays, ids and one JSON: packed responses and models.

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
import re
import secrets
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.data import Responses
from tiebreak.data.ids import Ids, is_arrow
from tiebreak.data.runs import Runs
from tiebreak.errors import FileError, InputError
from tiebreak.tables.locks import SAVE_WAIT, Lock, holder_name
from tiebreak.tables.source import ABOUT
from tiebreak.tables.write import Target, not_written, open_folder, open_target

CHUNK = 1 << 24
MAPPED_BYTES = 1 << 20  # arrays from this size on stay on the disk until they are touched
PLAIN_KINDS = "biuf"  # of arrays: booleans and numbers
N_TRIES = 20  # to read a folder that is written anew meanwhile
OWN_FILE = re.compile(r".+-[0-9a-f]{16}\.(npy|arrow)")


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


PACKED = Kind("tiebreak responses", 1, "Write it again with write_responses.")


def write_packed(target: Target, responses: Responses) -> None:
    """Write responses into a folder, which appears whole or not at all.

    The arrays are start (n_tasks + 1,), where the responses of each task start; code
    (n_responses,), worker · n_classes + label; and weight, where responses differ in it.
    """
    arrays: dict[str, npt.NDArray[Any]] = {"start": responses.start, "code": responses.code}
    if responses.weight is not None:
        arrays["weight"] = responses.weight
    about: dict[str, Any] = {
        "responses": responses.n_responses,
        "empty": responses.n_empty,
        "repeats": responses.n_repeats,
        "ordered": responses.is_class_ordered,
        "runs": None if responses.runs is None else responses.runs.to_dict(),
    }
    names = {name: getattr(responses, name) for name in ("tasks", "workers", "classes")}
    write(target, PACKED, FolderContent(about, arrays, names))


def read_packed(target: Target, *, is_checked: bool = False) -> Responses:
    """Read responses that `write_packed` has written; what is damaged is refused.

    `is_checked`: this folder was read before, so that its checksums need no second look.
    """
    about, arrays, names = read(target, PACKED, is_checked=is_checked)
    try:
        made = Responses(
            arrays["start"],
            arrays["code"],
            names["tasks"],
            names["workers"],
            names["classes"],
            about["empty"],
            about["repeats"],
            is_class_ordered=about["ordered"],
            weight=arrays.get("weight"),
        )
        counts = made.n_tasks, made.n_workers, made.n_classes
        if not is_checked and not fits(made.start, made.code, *counts):
            raise ValueError("its responses do not match its ids")
        runs = about["runs"]
        return made if runs is None else replace(made, runs=Runs.from_dict(runs))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(Path(target), str(error), PACKED) from None


def count_packed(folder: Path) -> int:
    """Return how many responses a folder holds, by its `about.json` alone."""
    return int(read_about(folder, PACKED)["responses"])


def fits(
    start: npt.NDArray[Any], code: npt.NDArray[Any], n_tasks: int, n_workers: int, n_classes: int
) -> bool:
    """Return whether the arrays can be responses; compiled code would trust them blindly."""
    if start.shape != (n_tasks + 1,) or start.dtype != np.int64 or code.ndim != 1:
        return False
    if code.dtype not in (np.int32, np.int64) or start[0] != 0 or start[-1] != len(code):
        return False
    pieces = [code[at : at + CHUNK] for at in range(0, len(code), CHUNK)]
    is_known = all(
        piece.min() >= 0 and piece.max() < max(n_workers * n_classes, 1) for piece in pieces
    )
    steps = (start[at : at + CHUNK + 1] for at in range(0, n_tasks, CHUNK))
    return is_known and all((np.diff(step) >= 0).all() for step in steps)


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
    head = {"what": kind.what, "version": kind.version, "writing": writing, **content.about}
    if not path.exists() or not any(path.iterdir()):
        with open_folder(path) as folder:
            _write_about(folder, head | {"files": _write_files(folder, content, writing)})
        return
    written: dict[str, dict[str, Any]] = {}
    try:
        written = _write_files(path, content, writing)
        _write_about(path, head | {"files": written})
    except BaseException as error:  # Ctrl-C too
        for file in path.glob(f"*-{writing}.*"):
            file.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise not_written(target, path, error) from None
        raise
    kept = {each["file"] for each in written.values()}
    for file in path.iterdir():  # of earlier writings; whoever has them mapped keeps them
        if file.name not in kept and OWN_FILE.fullmatch(file.name):
            file.unlink(missing_ok=True)


def read(target: Target, kind: Kind, *, is_checked: bool = False) -> FolderContent:
    """Read a folder of a kind; what is damaged, half or foreign is refused."""
    folder = Path(target)
    about = read_about(folder, kind)
    for _ in range(N_TRIES):
        try:
            return _read_content(folder, kind, about, is_checked=is_checked)
        except FileError:
            before, about = about, read_about(folder, kind)
            if about.get("writing") == before.get("writing"):
                raise
    raise damaged(folder, "it changes all the time", kind)


def read_about(folder: Path, kind: Kind) -> dict[str, Any]:
    """Read what a folder says of itself; refuse other kinds, and versions yet to come."""
    if not folder.exists():
        raise FileError("array-folder-missing", folder=folder, cure=kind.way_out)
    try:
        about = _read_json(folder)
    except FileNotFoundError:
        raise damaged(folder, f"it has no {ABOUT}", kind) from None
    except NotADirectoryError:
        raise FileError("array-folder-is-file", path=folder, what=kind.what) from None
    except (OSError, ValueError) as error:
        raise damaged(folder, f"{ABOUT}: {error}", kind) from None
    if not isinstance(about, dict) or about.get("what") != kind.what:
        raise FileError("array-folder-of-other-kind", folder=folder, what=kind.what)
    version = about.get("version")
    if not isinstance(version, int) or version > kind.version:
        raise FileError(
            "array-folder-version",
            folder=folder,
            version=version,
            what=kind.what,
            known=kind.version,
        )
    if about.get("seal") != seal_of_json(about):
        raise damaged(folder, f"{ABOUT} is not what was written", kind)
    return about


def damaged(folder: Path, reason: str, kind: Kind) -> FileError:
    """Say what is wrong with a folder, and the way out."""
    return FileError("array-folder-damaged", folder=folder, reason=reason, cure=kind.way_out)


def refuse_foreign(path: Path, kind: Kind) -> None:
    """Refuse a path where something else lies, or whose folder does not exist."""
    if not path.parent.is_dir():
        raise FileError("target-folder-missing", file=path, folder=path.parent)
    if not path.exists():
        return
    if not path.is_dir():
        raise FileError("array-folder-is-file", path=path, what=kind.what)
    try:
        is_own = not any(path.iterdir()) or _read_json(path).get("what") == kind.what
    except (OSError, ValueError, AttributeError):
        is_own = False
    if not is_own:
        raise FileError("array-folder-foreign", folder=path)


def ids_as_bytes(what: str, names: Ids) -> bytes:
    """Return ids as one Arrow column, as a file of a folder holds them."""
    sink = io.BytesIO()
    _write_arrow(_as_table(what, names), sink)
    return sink.getvalue()


def ids_of_bytes(data: bytes) -> Ids:
    """Return the ids of `ids_as_bytes`."""
    import pyarrow as pa

    (column,) = pa.ipc.open_file(pa.BufferReader(data)).read_all().columns
    return Ids(column.combine_chunks())


def new_mapped(file: Path, dtype: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return an array that lies in a new file and is mapped; one of nothing is not.

    It is whole only once whoever made it has filled it.
    """
    if 0 in shape:
        return np.empty(shape, dtype)
    file.parent.mkdir(parents=True, exist_ok=True)
    return np.asarray(np.lib.format.open_memmap(file, "w+", dtype, shape))


def _read_content(
    folder: Path, kind: Kind, about: dict[str, Any], *, is_checked: bool
) -> FolderContent:
    arrays: dict[str, npt.NDArray[Any]] = {}
    names: dict[str, Ids] = {}
    try:
        for name, written in about["files"].items():
            file = folder / written["file"]
            _check(file, written, is_checked=is_checked)
            if file.suffix == ".npy":
                arrays[name] = _read_array(file)
            else:
                names[name] = _read_ids(file)
    except (KeyError, TypeError, ValueError, AttributeError, EOFError, OSError) as error:
        raise damaged(folder, str(error), kind) from None
    return FolderContent(about, arrays, names)


def _check(file: Path, written: dict[str, Any], *, is_checked: bool) -> None:
    """Refuse a file that is not what was written."""
    if file.name != written["file"]:
        raise ValueError(f"{written['file']} is not a name of a file")
    if file.is_symlink():
        raise ValueError(f"{file.name} is a symbolic link")
    if not file.is_file():
        raise ValueError(f"{file.name} is missing")
    found = 0
    with file.open("rb") as content:
        while not is_checked and (chunk := content.read(CHUNK)):
            found = zlib.crc32(chunk, found)
    has_sum = is_checked or found == written["crc32"]
    if file.stat().st_size != written["bytes"] or not has_sum:
        raise ValueError(f"{file.name} is not what was written")


def _read_ids(file: Path) -> Ids:
    """Map ids into memory; Arrow takes what it needs from there."""
    import pyarrow as pa

    try:
        with pa.memory_map(str(file)) as source:
            (column,) = pa.ipc.open_file(source).read_all().columns
    except pa.ArrowException as error:
        raise ValueError(f"{file.name}: {error}") from None
    is_large = file.stat().st_size >= MAPPED_BYTES and column.num_chunks == 1  # combining copies
    return Ids(column.chunk(0) if is_large else column.combine_chunks())


def _read_array(file: Path) -> npt.NDArray[Any]:
    """Read an array of numbers; a large one is mapped into memory."""
    is_large = file.stat().st_size >= MAPPED_BYTES
    array = np.load(file, mmap_mode="r" if is_large else None, allow_pickle=False)
    if array.dtype.kind not in PLAIN_KINDS:
        raise ValueError(f"{file.name} holds no numbers")
    return np.asarray(array)  # a plain array; a large one is still on the disk


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


def _write_files(folder: Path, content: FolderContent, writing: str) -> dict[str, dict[str, Any]]:
    """Write arrays and ids under names of their own; return the seal of each, by its name."""
    fills: dict[str, tuple[str, Callable[[Any], None]]] = {}
    for name, array in content.arrays.items():
        fills[name] = f"{name}-{writing}.npy", partial(np.save, arr=array)
    for name, names in content.ids.items():
        fills[name] = f"{name}-{writing}.arrow", partial(_write_arrow, _as_table(name, names))
    written = {}
    for name, (file, fill) in fills.items():
        with (folder / file).open("xb") as out:
            sealing = _Sealing(out)
            fill(sealing)
            out.flush()
            os.fsync(out.fileno())
        written[name] = {"file": file, "bytes": sealing.n_bytes, "crc32": sealing.crc32}
    return written


def _write_arrow(table: Any, out: Any) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(out, table.schema) as sink:
        sink.write_table(table)


def _as_table(what: str, names: Ids) -> Any:
    """Return ids as a table of one column; those of several kinds are refused."""
    import pyarrow as pa

    if is_arrow(names.values):
        return pa.table({what: names.values})
    try:
        column = pa.array(list(names))
        if pa.types.is_nested(column.type) or column.to_pylist() != list(names):
            raise pa.ArrowInvalid
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        raise InputError("ids-not-packable", what=what, ids=names) from None
    return pa.table({what: column})


def _write_about(folder: Path, about: dict[str, Any]) -> None:
    about["seal"] = seal_of_json(about)
    with open_target(folder / ABOUT) as out:
        out.write((json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode())


def seal_of_json(about: dict[str, Any]) -> int:
    """Return the checksum of what a folder says of itself."""
    rest = {name: value for name, value in about.items() if name != "seal"}
    return zlib.crc32(json.dumps(rest, sort_keys=True, ensure_ascii=False).encode())


def _read_json(folder: Path) -> dict[str, Any]:
    file = folder / ABOUT
    if file.is_symlink():
        raise ValueError("it is a symbolic link")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found
