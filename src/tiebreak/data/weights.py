"""Weights: how often each response counts, arranged as the responses are.

    task  worker  label  weight
    b     ann     y      0.5
    a     ann     x      2           of "last" only the next row stays
    a     ann     y      1

Rows of responses have no order of their own, so that whatever sorts or drops responses does the
same to their weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiebreak.data.ids import Column
from tiebreak.data.ids.numbers import as_numbers
from tiebreak.errors import ResponseError
from tiebreak.kernels.ingest.reference import Arranged, ResponseRows
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.wording import Source


def read_weights(column: Column, source: Source, first_row: int) -> Floats:
    """Return a column of weights as numbers, 1 where it is empty; refuse what is not above 0.

    >>> read_weights(["2", None, 0.5], Source("r.csv"), 0)
    array([2. , 1. , 0.5])
    """
    numbers, is_given = as_numbers(column)
    weight = np.where(is_given, numbers, 1.0)
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight > 0.0)))
    if len(wrong):
        row = int(wrong[0])
        value = column[row].as_py() if hasattr(column[row], "as_py") else column[row]
        raise ResponseError(
            f"{source.where(first_row + row)}: the weight is {value!r}. A weight says how often a "
            "response counts: a number above 0, or nothing, which is 1."
        )
    return weight


def check_length(weight: Floats, n_responses: int) -> None:
    """Refuse weights that are not one per response."""
    if len(weight) != n_responses:
        raise ResponseError(f"There are {n_responses:,} responses, but {len(weight):,} weights.")


def arrange_weighted(
    parts: Sequence[ResponseRows],
    weight: Floats,
    n_tasks: int,
    new_label: Codes,
    *,
    keep_last: bool,
) -> tuple[Arranged, Floats]:
    """Sort responses by task, as `reference.arrange` does, and their weights with them."""
    task, worker, label = (np.concatenate(column) for column in zip(*parts, strict=True))
    code = worker.astype(np.int64) * len(new_label) + new_label[label]
    by_task = np.lexsort((worker if keep_last else code, task))  # stable: the last row is last
    same_task = np.diff(task[by_task]) == 0
    same_worker = np.diff(worker[by_task].astype(np.int64)) == 0
    is_repeat = np.append(same_task & same_worker, False)[: len(task)]  # there may be no row
    kept = by_task[~is_repeat] if keep_last else by_task
    start = np.zeros(n_tasks + 1, dtype=np.int64)
    np.cumsum(np.bincount(task[kept], minlength=n_tasks), out=start[1:])
    is_wide = len(code) and int(code.max()) > np.iinfo(np.int32).max
    codes = code[kept].astype(np.int64 if is_wide else np.int32)
    return Arranged(start, codes, int(np.count_nonzero(is_repeat))), weight[kept]
