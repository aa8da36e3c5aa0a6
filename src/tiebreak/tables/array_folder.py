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
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.data import Responses
from tiebreak.data.ids import Ids
from tiebreak.data.runs import Runs
from tiebreak.errors import FileError
from tiebreak.tables.locks import SAVE_WAIT, Lock, holder_name
from tiebreak.tables.source import ABOUT
from tiebreak.tables.write import Target, not_written, open_folder, open_target

CHUNK = 1 << 24
MAPPED_BYTES = 1 << 20  # arrays from this size on stay on the disk until they are touched
PLAIN_KINDS = "biuf"  # of arrays: booleans and numbers
N_TRIES = 20  # to read a folder that is written anew meanwhile
OWN_FILE = re.compile(r".+-[0-9a-f]{16}\.(npy|arrow)")
# What a file that is not as it was written raises where it is read.
SPOILT = (KeyError, TypeError, ValueError, AttributeError, EOFError, OSError)

Array = npt.NDArray[Any]


class FolderContent(NamedTuple):
    """What a folder holds."""

    about: dict[str, Any]
    arrays: dict[str, Array]
    ids: dict[str, Ids]


class Kind(NamedTuple):
    """A kind of folder: what `about.json` says it is, in which version, and how to make it."""

    what: str
    version: int
    way_out: str  # what to do where a folder is damaged


# Packed responses: start (n_tasks + 1,), where the responses of each task start; code
# (n_responses,), worker · n_classes + label; and weight, where responses differ in it.

PACKED = Kind("tiebreak responses", 1, "Write it again with write_responses.")


def write_packed(target: Target, responses: Responses) -> None:
    """Write responses into a folder, which appears whole or not at all."""
    arrays: dict[str, Array] = {"start": responses.start, "code": responses.code}
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
    except SPOILT as error:
        raise damaged(Path(target), str(error), PACKED) from None


def count_packed(folder: Path) -> int:
    """Return how many responses a folder holds, by its `about.json` alone."""
    return int(read_about(folder, PACKED)["responses"])


def fits(start: Array, code: Array, n_tasks: int, n_workers: int, n_classes: int) -> bool:
    """Return whether the arrays can be responses; compiled code would trust them blindly."""
    if start.shape != (n_tasks + 1,) or start.dtype != np.int64 or code.ndim != 1:
        return False
    if code.dtype not in (np.int32, np.int64) or start[0] != 0 or start[-1] != len(code):
        return False
    most = max(n_workers * n_classes, 1)
    codes = (code[at : at + CHUNK] for at in range(0, len(code), CHUNK))
    steps = (start[at : at + CHUNK + 1] for at in range(0, n_tasks, CHUNK))
    is_known = all(piece.min() >= 0 and piece.max() < most for piece in codes)
    return is_known and all((np.diff(step) >= 0).all() for step in steps)


# Folders of any kind


def write(target: Target, kind: Kind, content: FolderContent, lock: Lock | None = None) -> None:
    """Write a folder, or write it anew; one of another kind, or a file, is refused.

    `lock` is that of the target, where the caller holds it already.
    """
    path = Path(os.path.realpath(target))
    refuse_foreign(path, kind)  # before a lock file is made in a folder that may not exist
    with nullcontext() if lock else Lock(path, holder_name(), wait=SAVE_WAIT):
        is_new = not path.exists() or not any(path.iterdir())
        try:
            with open_folder(path) if is_new else nullcontext(path) as folder:
                _write_content(folder, kind, content)
        except OSError as error:
            raise not_written(target, path, error) from None
        finally:
            if path.exists():
                _remove_unnamed(path)


def read(target: Target, kind: Kind, *, is_checked: bool = False) -> FolderContent:
    """Read a folder of a kind; what is damaged, half or foreign is refused."""
    folder = Path(target)
    about = read_about(folder, kind)
    for _ in range(N_TRIES):
        try:
            return _read_content(folder, about, is_checked=is_checked)
        except SPOILT as error:
            before, about = about, read_about(folder, kind)
            if about.get("writing") == before.get("writing"):
                raise damaged(folder, str(error), kind) from None
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
    found = about.get("what") if isinstance(about, dict) else None
    if found != kind.what:
        raise FileError("array-folder-of-other-kind", folder=folder, what=kind.what, found=found)
    version = about.get("version")
    if not isinstance(version, int) or version > kind.version:
        fields = {"version": version, "what": kind.what, "known": kind.version}
        raise FileError("array-folder-version", folder=folder, **fields)
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


def seal_of_json(about: dict[str, Any]) -> int:
    """Return the checksum of what a folder says of itself."""
    rest = {name: value for name, value in about.items() if name != "seal"}
    return zlib.crc32(json.dumps(rest, sort_keys=True, ensure_ascii=False).encode())


def new_mapped(file: Path, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Return an array that lies in a new file and is mapped; one of nothing is not.

    It is whole only once whoever made it has filled it.
    """
    if 0 in shape:
        return np.empty(shape, dtype)
    file.parent.mkdir(parents=True, exist_ok=True)
    return np.asarray(np.lib.format.open_memmap(file, "w+", dtype, shape))


def ids_as_bytes(what: str, names: Ids) -> bytes:
    """Return ids as one Arrow column, as a file of a folder holds them."""
    sink = io.BytesIO()
    _write_ids(sink, what, names)
    return sink.getvalue()


def ids_of_bytes(data: bytes) -> Ids:
    """Return the ids of `ids_as_bytes`."""
    import pyarrow as pa

    (column,) = pa.ipc.open_file(pa.BufferReader(data)).read_all().columns
    return Ids(column.combine_chunks())


# Files in a folder


def _read_json(folder: Path) -> dict[str, Any]:
    file = folder / ABOUT
    if file.is_symlink():
        raise ValueError("it is a symbolic link")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _read_content(folder: Path, about: dict[str, Any], *, is_checked: bool) -> FolderContent:
    content = FolderContent(about, {}, {})
    for name, written in about["files"].items():
        file = folder / written["file"]
        if file.name != written["file"] or file.is_symlink():
            raise ValueError(f"{written['file']} is a path or a symbolic link")
        found = 0
        with file.open("rb") as data:
            while not is_checked and (chunk := data.read(CHUNK)):
                found = zlib.crc32(chunk, found)
        has_sum = is_checked or found == written["crc32"]
        if file.stat().st_size != written["bytes"] or not has_sum:
            raise ValueError(f"{file.name} is not what was written")
        is_mapped = file.stat().st_size >= MAPPED_BYTES
        if file.suffix == ".npy":
            array = np.load(file, mmap_mode="r" if is_mapped else None, allow_pickle=False)
            if array.dtype.kind not in PLAIN_KINDS:
                raise ValueError(f"{file.name} holds no numbers")
            content.arrays[name] = np.asarray(array)  # a mapped one is still on the disk
        else:
            content.ids[name] = _read_ids(file, is_mapped=is_mapped)
    return content


def _read_ids(file: Path, *, is_mapped: bool) -> Ids:
    import pyarrow as pa

    try:
        with pa.memory_map(str(file)) as source:
            (column,) = pa.ipc.open_file(source).read_all().columns
    except pa.ArrowException as error:
        raise ValueError(f"{file.name}: {error}") from None
    is_whole = is_mapped and column.num_chunks == 1  # combining copies
    return Ids(column.chunk(0) if is_whole else column.combine_chunks())


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


def _write_content(folder: Path, kind: Kind, content: FolderContent) -> None:
    """Write arrays and ids under names of their own, then what names and seals them."""
    writing = secrets.token_hex(8)
    written: dict[str, Any] = {}
    for name, part in (content.arrays | content.ids).items():
        file = f"{name}-{writing}.{'arrow' if isinstance(part, Ids) else 'npy'}"
        with (folder / file).open("xb") as out:
            sealing = _Sealing(out)
            if isinstance(part, Ids):
                _write_ids(sealing, name, part)
            else:
                np.save(sealing, part)
            out.flush()
            os.fsync(out.fileno())
        written[name] = {"file": file, "bytes": sealing.n_bytes, "crc32": sealing.crc32}
    head = {"what": kind.what, "version": kind.version, "writing": writing}
    about = head | content.about | {"files": written}
    about["seal"] = seal_of_json(about)
    with open_target(folder / ABOUT) as out:
        out.write((json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode())


def _write_ids(out: Any, what: str, names: Ids) -> None:
    import pyarrow as pa

    table = pa.table({what: names.values})
    with pa.ipc.new_file(out, table.schema) as sink:
        sink.write_table(table)


def _remove_unnamed(folder: Path) -> None:
    """Remove files of other writings, or of one that failed; who has them mapped keeps them."""
    kept = {each["file"] for each in _read_json(folder)["files"].values()}
    for file in folder.iterdir():
        if file.name not in kept and OWN_FILE.fullmatch(file.name):
            file.unlink(missing_ok=True)
