"""Atomic write: write beside the target and rename, so that no crash leaves half a file."""

from __future__ import annotations

import contextlib
import io
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import zlib
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

from tiebreak.errors import FileError

Target = str | os.PathLike[str]

LEFTOVER = re.compile(r"\.tiebreak-(?P<host>\w+)-(?P<process>\d+)-\w+\.(?P<ending>tmp|old|copy)")
_WAITING: ContextVar[list[tuple[Path, Path]] | None] = ContextVar("waiting", default=None)


@contextlib.contextmanager
def open_target(target: Target) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `target` once it is complete; "-" is standard output.

    The old file stays untouched until then, and whatever goes wrong leaves nothing behind.
    """
    if isinstance(target, str) and target == "-":
        with _standard_output() as out:
            yield out
        return
    path = Path(os.path.realpath(target))  # a link keeps pointing where it points
    try:
        mode = _mode_of(path)
        if mode is not None and not stat.S_ISREG(mode):  # a device or a pipe has no old content
            with path.open("wb") as out:
                yield out
            return
        with _replacing(path, mode) as out:
            yield out
    except OSError as error:
        raise not_written(target, path, error) from None


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Let all files that are written inside appear at the end, or none of them.

    What goes to standard output cannot be taken back, so write it last.
    """
    waiting: list[tuple[Path, Path]] = []
    token = _WAITING.set(waiting)
    try:
        yield
        _replace_all(waiting)
    finally:
        _WAITING.reset(token)
        for beside, _ in waiting:
            beside.unlink(missing_ok=True)


def _replace_all(waiting: list[tuple[Path, Path]]) -> None:
    """Rename complete files over their targets; where one fails, put the former ones back."""
    copies: dict[Path, Path] = {}
    done: list[Path] = []
    try:
        for _, path in waiting:
            if path.exists():
                copies[path] = _second_name(path)
        for beside, path in waiting:
            os.replace(beside, path)  # noqa: PTH105 - one name that tests can make fail
            done.append(path)
    except OSError as error:
        for path in done:
            if path in copies:
                copies.pop(path).replace(path)
            else:
                path.unlink(missing_ok=True)
        target = waiting[len(done)][1]
        raise not_written(target, target, error) from None
    finally:
        for copy in copies.values():
            copy.unlink(missing_ok=True)


def _second_name(path: Path) -> Path:
    """Keep a file under a second name: a link costs nothing; where there are none, a copy."""
    copy = _beside(path, "copy")
    try:
        copy.hardlink_to(path)
    except OSError:
        shutil.copy2(path, copy)
    return copy


@contextlib.contextmanager
def open_folder(path: Path) -> Iterator[Path]:
    """Give a new folder that takes the place of the one at `path` once it is complete."""
    beside = _beside(path, "tmp")
    old = _beside(path, "old")
    try:
        beside.mkdir()
        yield beside
        if path.exists():
            path.rename(old)
        try:
            beside.rename(path)
        except OSError:
            if old.exists():
                old.rename(path)
            raise
    except OSError as error:
        raise not_written(path, path, error) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _replacing(path: Path, mode: int | None) -> Iterator[BinaryIO]:
    beside = _beside(path, "tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(beside, flags, 0o666)  # less what the umask takes away
    try:
        with os.fdopen(handle, "wb") as out:
            if mode is not None:
                beside.chmod(stat.S_IMODE(mode))
            yield out
            out.flush()
            os.fsync(out.fileno())
        waiting = _WAITING.get()
        if waiting is None:
            os.replace(beside, path)  # noqa: PTH105 - one name that tests can make fail
        else:
            waiting.append((beside, path))
    except BaseException:  # Ctrl-C too
        beside.unlink(missing_ok=True)
        raise


def _mode_of(path: Path) -> int | None:
    """Return the mode of the old file, None where there is none; refuse folders early."""
    if path.is_dir():
        raise FileError(f"{path} is a folder. Name a file in it to write to.")
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: the folder {path.parent} does not exist.")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    if not os.access(path, os.W_OK):  # renaming over it would work all the same
        raise FileError(f"{path} is write-protected. Make it writable or choose another name.")
    return mode


def _beside(path: Path, ending: str) -> Path:
    """Name a file or folder beside the target, on the same disk, that nobody else uses."""
    _remove_leftovers(path.parent)
    return path.parent / f".tiebreak-{_host()}-{os.getpid()}-{secrets.token_hex(4)}.{ending}"


def _remove_leftovers(folder: Path) -> None:
    """Remove what a killed run of this machine left: its process is no more."""
    for left in folder.glob(".tiebreak-*-*-*.*"):
        found = LEFTOVER.fullmatch(left.name)
        if found is None or found["host"] != _host() or _is_alive(int(found["process"])):
            continue
        if found["ending"] == "old":  # the killed run had just moved it out of the way
            continue
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def _host() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def not_written(target: Target, path: Path, error: OSError) -> FileError:
    """Say which file could not be written, and why."""
    if isinstance(error, FileError):
        return error
    reason = error.strerror or str(error)
    if isinstance(error, PermissionError):
        reason = f"you may not write into the folder {path.parent}"
    return FileError(f"{target} cannot be written: {reason}.")


@contextlib.contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    """Write to standard output; a reader that has had enough (`| head`) is no error."""
    if sys.stdout is None:
        raise FileError("Standard output is closed, so nothing can be written there. Use -o FILE.")
    buffer: BinaryIO | None = getattr(sys.stdout, "buffer", None)
    out = buffer or io.BytesIO()  # a notebook's standard output takes text only
    try:
        sys.stdout.flush()  # what was printed before stays before
        yield out
        if isinstance(out, io.BytesIO) and buffer is None:
            sys.stdout.write(out.getvalue().decode())
        out.flush()
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at exit; let that go nowhere.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
