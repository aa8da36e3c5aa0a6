"""Arranging in plain NumPy: the oracle of `sort_by_task`, and what small inputs use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Offsets

Numbers = npt.NDArray[Any]  # int32, or narrower where codes are small


class Part(NamedTuple):
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


def arrange(parts: Sequence[Part], n_tasks: int, new_label: Codes, *, keep_last: bool) -> Arranged:
    """Sort responses by task; of several by one worker on one task keep all, or the last one.

    Parameters
    ----------
    new_label
        (n_classes,), the final code of each label.
    """
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    by_worker = np.lexsort((columns[1], columns[0]))  # stable: the last of equals is the last row
    task, worker, label = (column[by_worker] for column in columns)
    is_repeat = np.zeros(len(task), dtype=bool)
    is_repeat[:-1] = (task[1:] == task[:-1]) & (worker[1:] == worker[:-1])
    code = worker.astype(np.int64) * len(new_label) + new_label[label]
    if keep_last:
        task = task[~is_repeat]
        code = code[~is_repeat]
    else:
        code = code[np.lexsort((code, task))]
    start = np.zeros(n_tasks + 1, dtype=np.int64)
    np.cumsum(np.bincount(task, minlength=n_tasks), out=start[1:])
    is_wide = len(code) and int(code.max()) > np.iinfo(np.int32).max
    return Arranged(
        start, code.astype(np.int64 if is_wide else np.int32), int(np.count_nonzero(is_repeat))
    )
