"""Large tables go by files in the folder of work, which every process reaches, not in messages.

A message of 80 MB is held several times on its way by whoever sends it and whoever gets it. A file
is written once for all units, and mapped where it is read.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.errors import FileError
from tiebreak.kernels.layout import Codes, Floats, Swept
from tiebreak.kernels.sweeper import Logs

LARGE_TABLE = 8 << 20  # bytes
ROWS_AT_ONCE = 4096


class StoredRows(NamedTuple):
    """A table in a file, or the rows of some workers in it."""

    path: str
    rows: Codes | None  # of workers; None: all
    n_classes: int

    def load(self) -> Floats:
        """Map the table, or copy the rows."""
        whole = np.asarray(np.load(self.path, mmap_mode="c"))  # kernels take no sealed tables
        return np.asarray(rows_of(whole, self.rows, self.n_classes))


class Stored:
    """A table that the driver wrote: its file goes when nothing refers to it any more."""

    def __init__(self, work: str, table: Floats) -> None:
        self.path = write_table(work, table)
        weakref.finalize(self, Path(self.path).unlink, missing_ok=True)


def write_table(work: str, table: Floats) -> str:
    """Write a table into the folder of work; return its file."""
    folder = Path(work) / "tables"
    path = folder / f"table-{secrets.token_hex(8)}.npy"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        np.save(path, table)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise FileError(
            f"A table of {table.nbytes:,} bytes was not written into {folder}: {error.strerror}. "
            "Free some room and go on with --resume."
        ) from None
    return str(path)


def to_store(work: str, table: Floats) -> Any:
    """Return a table as the driver keeps and sends it; a large one lies in a file while it does."""
    return Stored(work, table) if table.nbytes > LARGE_TABLE else table


def to_answer(work: str, table: Floats) -> Any:
    """Return a table as a unit answers; a large one is in a file, for the driver to remove."""
    if table.nbytes <= LARGE_TABLE:
        return table
    return StoredRows(write_table(work, table), None, 0)


def rows_of(table: Any, rows: Codes | None, n_classes: int) -> Any:
    """Return the rows of some workers of a table that lies by code; None: of all."""
    if isinstance(table, Stored):
        return StoredRows(table.path, rows, n_classes)
    if rows is None:
        return table
    n_states = table.shape[1]
    return table.reshape(-1, n_classes * n_states)[rows].reshape(-1, n_states)


def opened(tables: tuple[Floats, Any]) -> Logs:
    """Return tables as arrays, wherever they lie."""
    log_prior, table = tables
    return log_prior, table.load() if isinstance(table, StoredRows) else table


def add_rows(total: npt.NDArray[Any], rows: Codes | None, part: Any) -> None:
    """Add what a unit says of its workers, (n_rows, …); of a file, a few rows at a time."""
    if not isinstance(part, StoredRows):
        total[slice(None) if rows is None else rows] += part.reshape(-1, *total.shape[1:])
        return
    mapped = np.load(part.path, mmap_mode="r").reshape(-1, *total.shape[1:])
    for low in range(0, len(mapped), ROWS_AT_ONCE):
        some = slice(low, low + ROWS_AT_ONCE)
        total[some if rows is None else rows[some]] += mapped[some]
    Path(part.path).unlink()


def add_swept(
    swept: list[Swept], rows: Sequence[Codes | None], n_workers: int, n_classes: int
) -> Swept:
    """Add up sweeps in their order; `rows` are those of the workers of each, None: all."""
    n_states = len(swept[0].totals)
    counts = np.zeros((n_workers, n_classes * n_states))
    for each, at in zip(swept, rows, strict=True):
        add_rows(counts, at, each.counts)
    return Swept(
        counts.reshape(-1, n_states),
        np.asarray(sum(each.totals for each in swept)),
        max(each.change for each in swept),
        sum(each.entropy for each in swept),
    )
