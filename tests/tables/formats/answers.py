"""What the small files hold, and how to look at what was read."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import tiebreak as tb
from tiebreak.data import Responses

VOTES = {1: "ppn", 2: "nnn", 3: "npn", 4: "ppp"}  # by task: what ann, bob and cat said


def read(path: Any, **options: Any) -> Responses:
    """Read responses without their notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.InputNote)
        return tb.read_responses(path, **options)


def answers(responses: Responses) -> dict[tuple[Any, Any], Any]:
    """Return the label by task and worker."""
    rows = zip(
        responses.task_of_each(),
        responses.worker_of_each(),
        responses.label_of_each(),
        strict=True,
    )
    return {
        (responses.tasks[int(t)], responses.workers[int(w)]): responses.classes[int(k)]
        for t, w, k in rows
    }


def expected(
    tasks: str | None, workers: tuple[str, ...], positive: Any = "pos", negative: Any = "neg"
) -> dict[tuple[Any, Any], Any]:
    """Return the votes under the names of a format; `tasks` is a pattern, None for numbers."""
    label = {"p": positive, "n": negative}
    return {
        (task if tasks is None else tasks.format(task), worker): label[mark]
        for task, marks in VOTES.items()
        for worker, mark in zip(workers, marks, strict=True)
    }


def notes_of(path: Path, **options: Any) -> str:
    """Return what reading a file says."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tb.read_responses(path, **options)
    return "\n".join(str(one.message) for one in caught)
