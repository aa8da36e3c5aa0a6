"""Parquet: typed columns; a large file is read piece by piece."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tiebreak.errors import FileError
from tiebreak.files.content import Content
from tiebreak.files.table import Table
from tiebreak.ids import Column
from tiebreak.wording import Source

if TYPE_CHECKING:
    import pyarrow as pa

LARGE = 3_000_000  # rows; a smaller file is read at once
BATCH = 1 << 20  # rows of a piece
TIDY = 16  # pieces
SHORT = 4  # bytes per row; with fewer, the file keeps a dictionary of its texts


def parquet_table(content: Content) -> Table:
    """Make a table of a Parquet file; columns are read when they are asked for."""
    import pyarrow as pa

    try:
        file = _open(content)
        schema = file.schema_arrow
        n_rows = file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise _broken(content, error) from None
    names = tuple(schema.names)

    def load(positions: Sequence[int]) -> list[Column]:
        try:
            table = _open(content).read(columns=[names[i] for i in positions])
            return [_text_if_possible(table.column(names[i])) for i in positions]
        except (pa.ArrowException, OSError) as error:
            raise _broken(content, error) from None

    def stream(positions: Sequence[int]) -> Iterator[Sequence[Column]]:
        if not all(_is_plain(schema.field(i).type) for i in positions):
            yield table.read(positions)
            return
        try:
            yield from _stream(content, [names[i] for i in positions])
        except (pa.ArrowException, OSError) as error:
            raise _broken(content, error) from None

    def order_of(position: int) -> list[Any] | None:
        kind = schema.field(position).type
        if not pa.types.is_dictionary(kind) or not kind.ordered or not n_rows:
            return None
        column = _open(content).read_row_group(0, columns=[names[position]]).column(0)
        return list(column.chunk(0).dictionary.to_pylist())

    table = Table(
        names,
        load,
        Source(content.name),
        stream=stream if n_rows >= LARGE else None,
        order_of=order_of,
    )
    return table


def _stream(content: Content, wanted: list[str]) -> Iterator[Sequence[Column]]:
    """Yield pieces of some columns; texts of which the file keeps a dictionary come with it."""
    import pyarrow as pa

    short = [name for name in wanted if _is_short(_open(content), name)]
    file = _open(content, read_dictionary=short)
    for number, batch in enumerate(_ahead(file.iter_batches(batch_size=BATCH, columns=wanted))):
        yield [batch.column(name) for name in wanted]
        if number % TIDY == TIDY - 1:
            pa.default_memory_pool().release_unused()  # what Arrow keeps for later adds up


def _ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the next piece while the caller works on this one."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


def _open(content: Content, **options: Any) -> Any:
    """Open by path where the file lies there as it is, so that only what is read is in memory."""
    import pyarrow as pa
    from pyarrow import parquet

    if content.path is not None and isinstance(content.data.obj, mmap.mmap):
        return parquet.ParquetFile(content.path, **options)
    return parquet.ParquetFile(pa.BufferReader(pa.py_buffer(content.data)), **options)


def _broken(content: Content, error: Exception) -> FileError:
    return FileError(f"{content.name} is a broken Parquet file ({error}). Make it again.")


def _is_short(file: Any, name: str) -> bool:
    """Tell whether a column of text is kept by a dictionary, in all of the first group of rows."""
    import pyarrow as pa

    kind = file.schema_arrow.field(name).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return False
    group = file.metadata.row_group(0)
    columns = (group.column(i) for i in range(group.num_columns))
    column = next(c for c in columns if c.path_in_schema == name)
    return bool(column.total_uncompressed_size < SHORT * group.num_rows)


def _is_plain(kind: pa.DataType) -> bool:
    """Tell whether columns of this type can be coded piece by piece, without more cleaning."""
    import pyarrow as pa

    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def _text_if_possible(column: Any) -> Column:
    """Read bytes as text: some writers of Parquet do not mark text as such."""
    import pyarrow as pa

    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        try:
            return column.cast(pa.large_string())
        except pa.ArrowInvalid:
            return column
    return column
