"""Loading: a table of any source, and the columns of it that a schema names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiebreak.files.columns import Schema, find_columns
from tiebreak.files.doubts import stripped
from tiebreak.files.sources import as_table
from tiebreak.files.table import Table
from tiebreak.ids import Column

ColumnNames = Mapping[str, object]


def load_table(
    source: Any,
    schema: Schema,
    columns: ColumnNames | None,
    format: str | None,
    *,
    allow_empty: bool = False,
) -> tuple[Table, dict[str, Column]]:
    """Make a table of the source and read the columns of its schema."""
    table = as_table(source, schema.names, len(schema.needed), format)
    positions = find_columns(table, schema, columns)
    read = stripped(table, table.read(list(positions.values()), allow_empty=allow_empty))
    return table, dict(zip(positions, read, strict=True))
