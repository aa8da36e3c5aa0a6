"""Frames: columns as a table of the caller's kind, pandas, polars or pyarrow, or as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tiebreak.errors import InputError, OptionError
from tiebreak.ids import Column, is_arrow

FRAMES = ("pandas", "polars", "pyarrow")
LONGEST = 40  # characters of a cell


def as_frame(columns: dict[str, Column], frame: str) -> Any:
    """Make a table of the caller's kind from columns."""
    if frame not in FRAMES:
        raise OptionError.unknown("frame", frame, FRAMES)
    if frame == "pandas":
        import pandas as pd

        return pd.DataFrame({name: _for_pandas(column) for name, column in columns.items()})
    import pyarrow as pa

    table = pa.table({name: _for_arrow(name, column) for name, column in columns.items()})
    if frame == "polars":
        import polars as pl

        return pl.from_arrow(table)
    return table


def as_text(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lay rows out in aligned columns.

    >>> print(as_text(["task", "p"], [["a", 0.5], ["bcdef", 1.0]]))
    task   p
    a      0.5000
    bcdef  1.0000
    """
    cells = [[*header], *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def as_html(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Make a small table for notebooks; whatever ids hold is escaped.

    >>> as_html("1 row", ["task"], [["<b>"]])
    '<div>1 row<table><tr><th>task</th></tr><tr><td>&lt;b&gt;</td></tr></table></div>'
    """
    from tiebreak.markup import tag

    head = tag("tr", *(tag("th", name) for name in header))
    body = [tag("tr", *(tag("td", _cell(value)) for value in row)) for row in rows]
    return tag("div", title, tag("table", head, *body) if header else None)


def _cell(value: object) -> str:
    text = f"{value:.4f}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


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
