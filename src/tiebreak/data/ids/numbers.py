"""Numbers: columns of weights and probabilities, from text or typed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak.data.ids.table import Column, Ids, as_list, is_arrow, is_missing
from tiebreak.kernels.layout import Floats, Mask, Offsets
from tiebreak.wording import Source

SHOWN_VALUES = 3


def as_numbers(column: Column) -> tuple[Floats, Mask]:
    """Return a column as numbers (NaN where it is none), and where a value is given at all.

    >>> as_numbers(["1.5", None, "x"])
    (array([1.5, nan, nan]), array([ True, False,  True]))
    """
    if is_arrow(column):
        fast = _arrow_numbers(column)
        if fast is not None:
            return fast, np.asarray(column.is_valid(), dtype=bool)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        numbers = column.astype(np.float64)
        return numbers, ~np.isnan(numbers)
    values = as_list(column)
    is_given = np.array([not is_missing(value) for value in values], dtype=bool)
    return np.array([_number(value) for value in values], dtype=np.float64), is_given


def offenders(rows: Offsets, column: Column, source: Source) -> str:
    """Name the first few wrong values and their places."""
    values = Ids(
        column.take(rows[:SHOWN_VALUES])
        if is_arrow(column)
        else [column[r] for r in rows[:SHOWN_VALUES]]
    )
    shown = "; ".join(
        f"{'nothing' if is_missing(value) else repr(value)} ({source.where(int(row))})"
        for row, value in zip(rows, values, strict=False)
    )
    return f"{shown}{'; …' if len(rows) > SHOWN_VALUES else ''}"


def _arrow_numbers(column: Any) -> Floats | None:
    """Convert without a loop; None where some value is not a plain number."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        return None
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowException:
        return None
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _number(value: object) -> float:
    if isinstance(value, bool):  # True is not a number, although Python counts it as 1
        return np.nan
    try:
        return float(value)  # type: ignore[arg-type]  # whatever is not a number raises
    except (TypeError, ValueError, OverflowError):
        return np.nan
