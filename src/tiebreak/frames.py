"""Frames: columns as a table of the caller's kind, pandas, polars or pyarrow."""

from __future__ import annotations

from typing import Any

from tiebreak.errors import InputError
from tiebreak.ids import Column, is_arrow


def as_frame(columns: dict[str, Column], frame: str) -> Any:
    """Make a table of the caller's kind from columns."""
    if frame == "pandas":
        import pandas as pd

        return pd.DataFrame({name: _for_pandas(column) for name, column in columns.items()})
    import pyarrow as pa

    table = pa.table({name: _for_arrow(name, column) for name, column in columns.items()})
    if frame == "polars":
        import polars as pl

        return pl.from_arrow(table)
    return table


def _for_pandas(column: Column) -> Any:
    return column.to_pandas() if is_arrow(column) else column


def _for_arrow(name: str, column: Column) -> Any:
    import pyarrow as pa

    try:
        return column if is_arrow(column) else pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise InputError(
            f"Column {name!r} holds values that no table column can hold together. "
            "Use .best() for a dictionary of task to label."
        ) from None
