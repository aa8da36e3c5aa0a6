"""Arranging, compiled: a counting sort by task, part by part, then each task by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiebreak.kernels.arrays import default_threads, for_each
from tiebreak.kernels.compile import kernel
from tiebreak.kernels.ingest.reference import Arranged, Numbers, ResponseRows
from tiebreak.kernels.layout import Codes, Offsets

SHORT = 32  # up to here insertion beats any other sort
PIECES = 16


def arrange(
    parts: Sequence[ResponseRows], n_tasks: int, new_label: Codes, *, keep_last: bool
) -> Arranged:
    """Sort responses by task: see `reference.arrange`. A list of parts is used up on the way."""
    start = np.zeros(n_tasks + 1, dtype=np.int64)
    for part in parts:
        _count(part.task, start)
    np.cumsum(start, out=start)
    code = np.empty(sum(len(part.task) for part in parts), dtype=np.int32)
    left = parts if isinstance(parts, list) else list(parts)
    left.reverse()
    while left:
        part = left.pop()
        _place(part.task, part.worker, part.label, new_label, start, code)
    n_repeats = _sort_tasks(start, code, 1 if not keep_last else len(new_label), len(new_label))
    if n_repeats and keep_last:
        code = code[: _drop_repeats(start, code, len(new_label))].copy()
    return Arranged(start, code, n_repeats)


def _sort_tasks(start: Offsets, code: Codes, divisor: int, n_classes: int) -> int:
    """Sort the responses of each task by code // divisor; return how many repeat a worker."""
    edges = np.linspace(0, len(start) - 1, PIECES + 1).astype(np.int64)
    n_repeats = np.zeros(PIECES, dtype=np.int64)

    def work(piece: int) -> None:
        low, high = edges[piece : piece + 2]
        n_repeats[piece] = _sort_each(low, high, start, code, divisor, n_classes)

    for_each(work, PIECES, default_threads())
    return int(n_repeats.sum())


@kernel
def _count(task: Codes, start: Offsets) -> None:
    """Count the responses of task t in start[t + 2]; nobody asks for the last task's."""
    for r in range(len(task)):
        if task[r] + 2 < len(start):
            start[task[r] + 2] += 1


@kernel
def _place(
    task: Codes, worker: Numbers, label: Numbers, new_label: Codes, start: Offsets, code: Codes
) -> None:
    """Put responses where their task's go next, start[t + 1], which ends where task t ends."""
    n_classes = len(new_label)
    for r in range(len(task)):
        at = start[task[r] + 1]
        code[at] = np.int64(worker[r]) * n_classes + new_label[label[r]]
        start[task[r] + 1] = at + 1


# Dividing takes longer than all else here, and is seldom needed to tell.


@kernel
def _is_after(a: int, b: int, divisor: int) -> bool:
    """Tell whether a // divisor > b // divisor."""
    return a > b and (a - b >= divisor or a // divisor > b // divisor)


@kernel
def _is_same(a: int, b: int, divisor: int) -> bool:
    """Tell whether a // divisor == b // divisor."""
    return abs(a - b) < divisor and a // divisor == b // divisor


@kernel
def _insertion_sort(code: Codes, begin: int, end: int, divisor: int) -> None:
    for r in range(begin + 1, end):
        moving = code[r]
        at = r
        while at > begin and _is_after(code[at - 1], moving, divisor):
            code[at] = code[at - 1]
            at -= 1
        code[at] = moving


@kernel
def _merge_runs(code: Codes, divisor: int) -> None:
    """Merge sorted runs of SHORT codes, two by two, until one is left: a stable merge sort.

    NumPy's own sort does the same, but takes two seconds to compile on first use.
    """
    n = len(code)
    spare = np.empty_like(code)
    width = SHORT
    while width < n:
        for begin in range(0, n, 2 * width):
            left = begin
            middle = min(begin + width, n)
            right = middle
            end = min(begin + 2 * width, n)
            for at in range(begin, end):
                takes_right = left == middle or (
                    right < end and _is_after(code[left], code[right], divisor)
                )
                if takes_right:
                    spare[at] = code[right]
                    right += 1
                else:
                    spare[at] = code[left]
                    left += 1
        for at in range(n):  # not code[:] = spare, whose check of shapes takes 2 s to compile
            code[at] = spare[at]
        width *= 2


@kernel
def _sort_each(
    low: int, high: int, start: Offsets, code: Codes, divisor: int, n_classes: int
) -> int:
    """Sort tasks low … high − 1 by code // divisor, stably; return how many repeat a worker."""
    n_repeats = 0
    for i in range(low, high):
        begin = start[i]
        end = start[i + 1]
        for run in range(begin, end, SHORT):
            _insertion_sort(code, run, min(run + SHORT, end), divisor)
        if end - begin > SHORT:
            _merge_runs(code[begin:end], divisor)
        for r in range(begin + 1, end):
            n_repeats += _is_same(code[r - 1], code[r], n_classes)
    return n_repeats


@kernel
def _drop_repeats(start: Offsets, code: Codes, n_classes: int) -> int:
    """Keep the last response of each worker on each task; return how many are left."""
    kept = 0
    begin = start[0]
    for i in range(len(start) - 1):
        end = start[i + 1]
        for r in range(begin, end):
            if r + 1 == end or not _is_same(code[r], code[r + 1], n_classes):
                code[kept] = code[r]
                kept += 1
        begin = end
        start[i + 1] = kept
    return kept
