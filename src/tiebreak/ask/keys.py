"""Keys: one at a time, from a terminal without Enter, or from a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

END = "\x04"  # Ctrl-D on a terminal: no more keys
INTERRUPT = "\x03"
ESCAPE = b"\x1b"
UNREADABLE = "�"
A_MOMENT = 0.2  # seconds that Ctrl-C may take


class Keys(Protocol):
    """Where keys come from."""

    def read(self) -> str | None:
        """Wait for the next key; None where no more will come."""

    def forget(self) -> None:
        """Drop keys that were struck before anything was shown."""


@contextmanager
def open_keys(stream: TextIO) -> Iterator[Keys]:
    """Read single keys from a terminal, or characters from anything else."""
    if not stream.isatty():
        yield PipedKeys(stream)
    elif sys.platform == "win32":  # pragma: no cover - tried by hand only
        yield WindowsKeys()
    else:
        with _without_enter(stream.fileno()):
            yield TerminalKeys(stream.fileno())


class PipedKeys:
    """Characters of a file or a pipe; blanks and line ends between them mean nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def read(self) -> str | None:
        """Return the next character that is not blank; None at the end."""
        while key := self._stream.read(1):
            if not key.isspace():
                return key
        return None

    def forget(self) -> None:
        """Keep everything: whoever wrote the file knew what comes."""


if sys.platform == "win32":  # pragma: no cover - tried by hand only
    import msvcrt

    class WindowsKeys:
        """Keys of a Windows console."""

        def read(self) -> str | None:
            """Return the next key; None at Ctrl-D."""
            key = msvcrt.getwch()
            if key == INTERRUPT:
                raise KeyboardInterrupt
            if key in "\x00\xe0":  # an arrow or the like: its second half follows
                msvcrt.getwch()
                return UNREADABLE
            return None if key == END else key

        def forget(self) -> None:
            """Drop what was typed ahead."""
            while msvcrt.kbhit():
                msvcrt.getwch()

else:
    import select
    import termios
    import tty

    class TerminalKeys:
        """Keys of a terminal that hands over each at once."""

        def __init__(self, handle: int) -> None:
            self._handle = handle

        def read(self) -> str | None:
            """Return the next key; None at Ctrl-D, or where the terminal is gone.

            A signal that comes between the last look at signals and the wait does not end the wait,
            so that it is cut into short ones.
            """
            while not self._is_more(within=A_MOMENT):
                pass
            try:
                first = os.read(self._handle, 1)
            except OSError:  # hung up
                return None
            if first == ESCAPE:  # an arrow or the like: the rest of it is there already
                while self._is_more():
                    os.read(self._handle, 1)
                return UNREADABLE
            n_more = sum(first >= bytes([lead]) for lead in (0xC0, 0xE0, 0xF0))
            key = (first + b"".join(os.read(self._handle, 1) for _ in range(n_more))).decode(
                "utf-8", "replace"
            )
            return None if key in ("", END) else key

        def forget(self) -> None:
            """Drop what was typed ahead."""
            termios.tcflush(self._handle, termios.TCIFLUSH)

        def _is_more(self, within: float = 0.01) -> bool:
            return bool(select.select([self._handle], [], [], within)[0])

    @contextmanager
    def _without_enter(handle: int) -> Iterator[None]:
        """Let a terminal hand over keys one by one, unseen; Ctrl-C still interrupts."""
        before = termios.tcgetattr(handle)
        try:
            tty.setcbreak(handle)
            yield
        finally:
            termios.tcsetattr(handle, termios.TCSADRAIN, before)
