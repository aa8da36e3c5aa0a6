"""The journal: events since the last save, on the disk before they count.

A batch is its lines and one `{"end": seq}`. Lines after the last end were not acknowledged: the
sender sends them again. Whoever holds the journal holds a lock on it, so that two streams never
write into one model.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from tiebreak.errors import FileError

SUFFIX = ".journal"


class Journal:
    """A file beside the model file that holds batches of events."""

    def __init__(self, model: Path) -> None:
        self.path = model.with_name(model.name + SUFFIX)
        try:
            self._file = self.path.open("a+b")
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {error.strerror}.") from None
        try:
            _lock(self._file.fileno(), model)
        except FileError:
            self._file.close()
            raise

    def batches(self) -> list[list[bytes]]:
        """Return the batches that were written to their end; what follows them is cut off."""
        self._file.seek(0)
        found: list[list[bytes]] = []
        lines: list[bytes] = []
        whole = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            if line.startswith(b'{"end": '):
                found.append(lines)
                lines = []
                whole = self._file.tell()
            else:
                lines.append(line)
        self._file.truncate(whole)
        return found

    def append(self, lines: list[bytes], seq: int) -> None:
        """Write a batch to the disk, and come back when it is there."""
        end = json.dumps({"end": seq}).encode() + b"\n"
        whole = [line if line.endswith(b"\n") else line + b"\n" for line in lines]
        try:
            self._file.write(b"".join([*whole, end]))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {error.strerror}.") from None

    def clear(self) -> None:
        """Forget all batches: the model file holds what they said."""
        self._file.truncate(0)
        os.fsync(self._file.fileno())

    def close(self, *, is_empty: bool) -> None:
        """Give the lock back; an empty journal is removed."""
        if is_empty:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(is_empty=kind is None and self.path.stat().st_size == 0)


def _lock(handle: int, model: Path) -> None:
    try:
        import fcntl
    except ImportError:  # pragma: no cover - not on this system
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise FileError(
            f"Another stream writes into {model} now. End it first, or name another model."
        ) from None
