"""Categories: the order that a frame gives its labels, and those that nobody used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tiebreak.files.table import Table


def category_order(table: Table, position: int) -> list[Any] | None:
    """Return the ordered categories of a column; None where it has none.

    An ordered categorical of pandas, an Enum of polars, an ordered dictionary of Arrow or Parquet.
    """
    if table.order_of is not None:
        return table.order_of(position)
    if table.stream is not None or table.has_header:
        return None
    (column,) = table.load([position])
    kind = type(column).__module__.partition(".")[0]
    dtype = getattr(column, "dtype", None)
    if kind == "pandas" and getattr(dtype, "ordered", False):
        return list(column.cat.categories)
    if kind == "polars" and type(dtype).__name__ == "Enum":
        return list(dtype.categories)  # type: ignore[union-attr]
    if kind == "pyarrow" and getattr(column.type, "ordered", False):
        chunks = getattr(column, "chunks", [column])
        return list(chunks[0].dictionary.to_pylist()) if chunks else None
    return None


def with_class_names(table: Table, names: Mapping[str, list[str]]) -> Table:
    """Return a table whose columns of these names have these classes, in this order."""
    return replace(table, order_of=lambda position: names.get(table.names[position]))
