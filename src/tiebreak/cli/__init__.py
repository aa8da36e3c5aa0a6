"""The command line: one file per command, all listed in `app.py`.

Nothing here imports numpy or a room of this package but `errors` at the top of a file, so that
`tiebreak --help` answers at once; commands import what they need when they run.
"""

from __future__ import annotations

import os
import signal
import threading


def end_on_interrupt() -> None:
    """Let Ctrl-C end the process at once, while modules load: there is nothing to put in order.

    A KeyboardInterrupt there would come out as a traceback, or be swallowed by a module.
    """
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _end)


def raise_on_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again: a command has begun."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)
