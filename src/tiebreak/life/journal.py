"""The journal: events since the last save, on the disk before they count.

A batch is its lines and one `{"end": seq}`. Lines after the last end were not acknowledged: the
sender sends them again. Whoever holds the journal holds the lock of the model, as every update and
save does, so that nobody else writes into it meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from tiebreak.errors import FileError
from tiebreak.tables.locks import Lock

SUFFIX = ".journal"


class Journal:
    """A file beside the model file that holds batches of events, and the lock of the model.

    Where somebody else holds the lock for longer than `wait` seconds, that is an error.
    """

    def __init__(self, model: Path, *, wait: float = 0.0) -> None:
        self.lock = Lock(model, "tiebreak stream", wait=wait)
        real = self.lock.target  # one journal, whichever link names the model
        self.path = real.with_name(real.name + SUFFIX)
        try:
            self._file = self.path.open("a+b")
        except OSError as error:
            self.lock.release()
            raise FileError(f"{self.path} cannot be written: {error.strerror}.") from None

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

    def close(self) -> None:
        """Give the lock back; an empty journal is removed."""
        with contextlib.suppress(OSError):
            if self.path.stat().st_size == 0:
                self.path.unlink()
        self._file.close()
        self.lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
