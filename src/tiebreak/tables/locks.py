"""The lock of a file or folder that several processes may write: one at a time.

The lock is held on `NAME.lock` beside the target, which also says who holds it. The system gives
it back when a process ends, however it ends. The file is removed by whoever releases the lock; a
file that a killed process left is harmless, because what counts is the lock and not the file.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Self

from tiebreak.errors import FileError, note
from tiebreak.tables.write import Target

SUFFIX = ".lock"
SAVE_WAIT = 60.0  # seconds that a save waits for somebody else's
PAUSE = 0.02  # seconds between two tries
# Errors of disks that know no locks, such as some network and cluster file systems.
NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)


class Lock:
    """Held from the moment it is made until it is released, by one holder at a time.

    Parameters
    ----------
    target
        What is written under the lock.
    what
        What the holder does, as others are told: "tiebreak update".
    wait
        Seconds to wait where somebody else holds it, before that is an error.
    """

    def __init__(self, target: Target, what: str, *, wait: float = 0.0) -> None:
        real = Path(os.path.realpath(target))
        self.target = real
        self._path = real.with_name(real.name + SUFFIX)
        self._handle: int | None = None
        until = time.monotonic() + wait
        while not self._try(what):
            if time.monotonic() >= until:
                raise FileError("in-use", target=target, holder=self._holder())
            time.sleep(PAUSE)

    def _try(self, what: str) -> bool:
        """Take the lock if nobody else has it."""
        try:
            import fcntl
        except ImportError:  # pragma: no cover - not on this system
            return True
        try:
            handle = self._open()
        except OSError as error:
            raise FileError("not-written", file=self._path, reason=error.strerror) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_current = os.path.samestat(os.fstat(handle), self._path.stat())
        except FileNotFoundError:  # the former holder removed it meanwhile
            is_current = False
        except OSError as error:
            os.close(handle)
            if error.errno in NO_LOCKS:
                note("no-locks", lock=self._path, reason=error.strerror, target=self.target.name)
                self._path.unlink(missing_ok=True)
                return True
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise FileError("not-locked", lock=self._path, reason=error.strerror) from None
        if not is_current:
            os.close(handle)
            return False
        self._handle = handle
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        about = {"what": what, "process": os.getpid(), "host": platform.node(), "since": since}
        with contextlib.suppress(OSError):  # a full disk: others are told less, no more
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(about).encode(), 0)
        return True

    def _open(self) -> int:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            return os.open(self._path, flags, 0o666)  # less what the umask takes away
        except PermissionError:  # a killed process of somebody else left it; it can be locked
            return os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)

    def _holder(self) -> str:
        try:
            about = json.loads(self._path.read_text("utf-8"))
            who = f"{about['what']} (process {about['process']} on {about['host']})"
            return f"{who} has held it since {about['since']}"
        except (OSError, ValueError, KeyError, TypeError):
            return f"another process holds {self._path.name}"

    def release(self) -> None:
        """Give the lock back. The file goes first: who opens it later makes a new one."""
        if self._handle is None:
            return
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(self._handle)
        self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def holder_name() -> str:
    """Name this process, for those who wait for it."""
    return Path(sys.argv[0]).name or "python" if sys.argv else "python"
