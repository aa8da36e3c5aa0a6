"""Frames: columns as a table of the caller's kind, pandas, polars or pyarrow, as text or JSON."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

from tiebreak.data.ids import Column, Ids
from tiebreak.options import require_word
from tiebreak.wording import aligned, printable

FRAMES = ("pandas", "polars", "pyarrow")
LONGEST = 40  # characters of a cell


def as_frame(columns: dict[str, Column], frame: str) -> Any:
    """Make a table of the caller's kind from columns."""
    require_word("frame", frame, FRAMES)
    import pyarrow as pa

    arrays = {
        name: each.values if isinstance(each, Ids) else each for name, each in columns.items()
    }
    table = pa.table(arrays)
    if frame == "pandas":
        return table.to_pandas()
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
    return "\n".join(aligned([header, *([_cell(value) for value in row] for row in rows)]))


def as_html(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Make a small table for notebooks; whatever ids hold is escaped.

    >>> as_html("1 row", ["task"], [["<b>"]])
    '<div>1 row<table><tr><th>task</th></tr><tr><td>&lt;b&gt;</td></tr></table></div>'
    """

    def escaped(text: str) -> str:  # what HTML cannot hold, such as control characters, is replaced
        return html.escape(printable(text))

    def line(element: str, cells: Iterable[str]) -> str:
        return f"<tr>{''.join(f'<{element}>{escaped(cell)}</{element}>' for cell in cells)}</tr>"

    if not header:
        return f"<div>{escaped(title)}</div>"
    lines = [line("th", header), *(line("td", map(_cell, row)) for row in rows)]
    return f"<div>{escaped(title)}<table>{''.join(lines)}</table></div>"


def _cell(value: object) -> str:
    text = f"{value:.4f}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def as_plain(value: Any) -> Any:
    """Turn named tuples, dataclasses and arrays into what JSON knows; what is not finite is None.

    >>> import numpy as np
    >>> as_plain((np.array([1.5, np.inf]), "a"))
    [[1.5, None], 'a']
    """
    if hasattr(value, "_asdict"):
        return as_plain(value._asdict())
    if isinstance(value, dict):
        return {name: as_plain(each) for name, each in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return {name: as_plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if hasattr(value, "tolist"):
        return as_plain(value.tolist())
    if isinstance(value, list | tuple | Ids):
        return [as_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
