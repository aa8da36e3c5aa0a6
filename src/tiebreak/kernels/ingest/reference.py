"""Arranging in plain NumPy: the oracle of `sort_by_task`, and what small inputs use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Offsets

Numbers = npt.NDArray[Any]  # int32, or narrower where codes are small


class ResponseRows(NamedTuple):
    """Some rows of responses: worker[r] gave label[r] to task[r]."""

    task: Codes
    worker: Numbers
    label: Numbers


class Arranged(NamedTuple):
    """Responses sorted by task, then by code = worker · K + label.

    Those of task i are code[start[i]:start[i + 1]]; `n_repeats` rows repeat a worker on a task.
    """

    start: Offsets  # (n_tasks + 1,)
    code: Codes  # (n_responses,); 64 bits wide where 32 do not suffice
    n_repeats: int
    rows: Offsets | None = None  # which rows they are; None where it was not kept


def arrange(
    parts: Sequence[ResponseRows], n_tasks: int, new_label: Codes, *, keep_last: bool
) -> Arranged:
    """Sort responses by task; of several by one worker on one task keep all, or the last one.

    Parameters
    ----------
    new_label
        (n_classes,), the final code of each label.
    """
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    rows = order_of_rows(columns[0], columns[1])  # stable: the last of equals is the last row
    task, worker, label = (column[rows] for column in columns)
    is_repeat = np.zeros(len(task), dtype=bool)
    is_repeat[:-1] = (task[1:] == task[:-1]) & (worker[1:] == worker[:-1])
    code = worker.astype(np.int64) * len(new_label) + new_label[label]
    if keep_last:
        task = task[~is_repeat]
        code = code[~is_repeat]
        rows = rows[~is_repeat]
    else:
        by_code = order_of_rows(task, code)
        code = code[by_code]
        rows = rows[by_code]
    start = np.zeros(n_tasks + 1, dtype=np.int64)
    np.cumsum(np.bincount(task, minlength=n_tasks), out=start[1:])
    is_wide = len(code) and int(code.max()) > np.iinfo(np.int32).max
    code = code.astype(np.int64 if is_wide else np.int32)
    return Arranged(start, code, int(np.count_nonzero(is_repeat)), rows)


def order_of_rows(task: Codes, then: Numbers) -> Offsets:
    """Return rows sorted by task, then by a second number, then as they stand.

    As `np.lexsort((then, task))` does, in a third of its time: where 63 bits hold both numbers and
    the row, sorting is of whole numbers (of 2e6 rows in 0.24 s instead of 0.8 s).

    >>> order_of_rows(np.array([1, 0, 1, 0]), np.array([5, 7, 4, 7])).tolist()
    [1, 3, 2, 0]
    """
    n_rows = len(task)
    bits_of_row = n_rows.bit_length()
    bits_of_then = int(then.max()).bit_length() if n_rows else 0
    bits_of_task = int(task.max()).bit_length() if n_rows else 0
    if bits_of_task + bits_of_then + bits_of_row > 63:
        return np.lexsort((then, task))
    key = task.astype(np.int64) << bits_of_then
    key |= then
    key <<= bits_of_row
    key |= np.arange(n_rows)
    key.sort()
    key &= (1 << bits_of_row) - 1
    return key
