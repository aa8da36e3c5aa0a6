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
