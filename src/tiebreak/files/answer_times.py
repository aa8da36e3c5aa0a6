"""Times of answers: where a worker answered a task twice, is the last row the latest?

    task  worker  label  timestamp
    a     ann     x      2024-02-02
    a     ann     y      2024-01-30      this row counts, and is the earlier one

Rows count in the order of the table, whatever its columns; that the times say otherwise is told.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tiebreak import ids
from tiebreak.errors import InputError, note
from tiebreak.files.columns import squashed
from tiebreak.files.response_table import ResponseColumns, joined
from tiebreak.files.table import Table
from tiebreak.ids import Column, is_arrow, is_text
from tiebreak.kernels.layout import Floats
from tiebreak.wording import agreeing, counted

TIMES = frozenset(
    {"time", "timestamp", "datetime", "date", "createdat", "updatedat", "submittedat"}
)
# Text that sorts as the times do: a date that begins with the year, or seconds since 1970.
SORTS_AS_TIME = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}.*|[0-9]{10}|[0-9]{13})$"


def note_rows_against_time(table: Table, found: ResponseColumns) -> None:
    """Say how many rows count although the same worker answered the same task later."""
    position = _position_of_time(table, found)
    if position is None or table.stream is not None:
        return  # a table that is read in pieces has no rows at hand
    n_task = len(found.task)
    try:
        *names, times = table.read([*found.task, *found.worker, position])
    except InputError:  # of mixed types: nobody asked for this column, so nothing is lost
        return
    rank = _rank(times)
    if rank is None:
        return
    task_code, _ = ids.encode(joined(names[:n_task]))
    worker_code, workers = ids.encode(joined(names[n_task:]))
    n_late = _count_falls(task_code.astype(np.int64) * len(workers) + worker_code, rank)
    if n_late:
        name = table.names[position]
        note(
            f"{counted(n_late, 'repeated response')} {agreeing(n_late, 'are')} earlier by column "
            f"{name!r} than the row before: the last row counts, not the latest. If the latest "
            f"shall count, sort the table by {name!r}."
        )


def _position_of_time(table: Table, found: ResponseColumns) -> int | None:
    if "time" in found.extras:
        return found.extras["time"]
    called_so = [i for i, name in enumerate(table.names) if squashed(name) in TIMES]
    return called_so[0] if len(called_so) == 1 else None


def _rank(times: Column) -> Floats | None:
    """Return the place of each time among all, NaN where there is none; None where not known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_arrow(times):
        return None
    kind = times.type
    if is_text(kind):
        if not pc.all(pc.match_substring_regex(times, SORTS_AS_TIME)).as_py():
            return None
    elif not (
        pa.types.is_temporal(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    ):
        return None
    rank: Floats = pc.rank(times, tiebreaker="dense").to_numpy().astype(np.float64)
    rank[pc.is_null(times, nan_is_null=True).to_numpy(zero_copy_only=False)] = np.nan
    return rank


def _count_falls(pair: npt.NDArray[np.int64], rank: Floats) -> int:
    """Count rows of a task and worker that are earlier than the row of them before.

    >>> _count_falls(np.array([7, 8, 7]), np.array([2.0, 1.0, 1.0]))
    1
    """
    by_pair = np.argsort(pair, kind="stable")
    is_same = np.diff(pair[by_pair]) == 0
    return int(np.count_nonzero(is_same & (np.diff(rank[by_pair]) < 0.0)))
