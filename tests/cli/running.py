"""What tests of commands share: how a command is run, and what it said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

HEADER = "task,worker,label\n"
ROWS = HEADER + "a,ann,x\na,bob,x\nb,ann,y\nb,bob,x\nb,cid,y\n"


def told(done: Any) -> str:
    return " ".join(done.stderr.replace("│", " ").split())


def code_of(done: Any) -> str | None:
    """Return the code of the error that ended a command; "usage" where it was not understood."""
    error = done.exception
    while error is not None:
        if isinstance(getattr(error, "code", None), str):
            return str(error.code)
        if hasattr(error, "format_message"):
            return "usage"
        error = error.__cause__ or error.__context__
    return None
