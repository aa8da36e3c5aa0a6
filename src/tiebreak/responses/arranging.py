"""Arranging: rows in any order become responses by task."""

from __future__ import annotations

from tiebreak.ids import Codes
from tiebreak.kernels.contract import COMPILED_ROWS
from tiebreak.kernels.ingest import reference
from tiebreak.kernels.ingest.reference import Arranged, Part

INT32_END = 2**31


def arrange(
    parts: list[Part], n_tasks: int, n_workers: int, new_label: Codes, *, keep_last: bool
) -> Arranged:
    """Sort responses by task, compiled where there are many: `parts` is then used up."""
    n_responses = sum(len(part.task) for part in parts)
    if n_responses < COMPILED_ROWS or n_workers * len(new_label) >= INT32_END:
        return reference.arrange(parts, n_tasks, new_label, keep_last=keep_last)
    from tiebreak.kernels.ingest import sort_by_task

    return sort_by_task.arrange(parts, n_tasks, new_label, keep_last=keep_last)
