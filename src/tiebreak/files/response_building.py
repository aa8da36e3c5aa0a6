"""Responses of a table: its rows coded batch by batch, without spaces around ids, with weights."""

from __future__ import annotations

from tiebreak.errors import InputError, ResponseError
from tiebreak.files.doubts import needs_strip, stripped
from tiebreak.files.response_columns import Batch, ResponseColumns
from tiebreak.files.table import Table
from tiebreak.ids import Column, Ids, as_list, is_arrow
from tiebreak.responses import Builder, Built, MixedLabelsError, Repeats, read_weights


def build(
    table: Table,
    found: ResponseColumns,
    repeats: Repeats,
    *,
    tasks: Column | None,
    classes: Column | None,
) -> Built:
    """Take the rows of a table; where spaces stand around ids, once more without them.

    `tasks` and `classes` exist even where no row names them.
    """
    builder = Builder(repeats, table.source)
    last = _add_rows(builder, table, found, strip=False)
    if needs_strip(table, builder.names()):  # rare: read again rather than look at every value
        builder = Builder(repeats, table.source)
        last = _add_rows(builder, table, found, strip=True)
    try:
        return builder.finish(
            tasks=None if tasks is None else like(last.task, tasks, "tasks"),
            classes=None if classes is None else like(last.label, classes, "classes"),
        )
    except MixedLabelsError as error:
        raise ResponseError(f"{_first_mixed(last.label, table)}{error}") from None


def _add_rows(builder: Builder, table: Table, found: ResponseColumns, *, strip: bool) -> Batch:
    """Hand all rows to a builder; return the last of them, which tell the types of ids."""
    for batch in found.batches(table):
        weight = None
        if batch.weight is not None:
            weight = read_weights(batch.weight, table.source, builder.n_rows)
        ids = stripped(table, batch[:3]) if strip else batch[:3]
        builder.add(*ids, weight=weight, is_large=table.stream is not None)
    return batch


def _first_mixed(labels: Column, table: Table) -> str:
    """Say where the first label of another type stands, beside the first of all."""
    given = [(row, value) for row, value in enumerate(as_list(labels)) if value is not None]
    (row, first), *others = given
    for other, value in others:
        if not isinstance(value, type(first)):
            where = f"{table.source.where(other)}: the label is {value!r}"
            return f"{where}, and {first!r} in {table.source.where(row)}. "
    return ""


def like(known: Column, column: Column, what: str) -> Column:
    """Give ids listed apart the type of those in the table, where that is typed."""
    if not is_arrow(known):
        return column
    import pyarrow as pa

    kind = getattr(known.type, "value_type", known.type)  # of a dictionary: its values
    try:
        return (column if is_arrow(column) else pa.array(column)).cast(kind)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        raise InputError(
            f"{what}= holds ids that do not fit those of the table, which are {kind}: "
            f"{Ids(column)!r}. Give both the same type."
        ) from None
