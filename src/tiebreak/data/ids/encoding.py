"""Dictionary encoding: columns of ids into codes, at once or batch by batch."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from tiebreak.data.ids.table import MISSING, Column, Ids, is_arrow, is_missing, is_text, to_arrow
from tiebreak.errors import InputError
from tiebreak.kernels.contract import repays_compiled_intake
from tiebreak.kernels.layout import Codes, Mask

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1 << 20  # rows coded at a time, so that memory stays bounded
FEW = 1 << 12  # ids; Arrow's own table is the faster one while it is that small


class Coder(Protocol):
    """Gives the same id the same code in every batch; codes count up by first appearance."""

    def add(self, column: Any) -> Codes:
        """Return the codes of a batch, -1 where a value is missing."""

    def names(self) -> Ids:
        """Return the ids met so far, by code."""

    def __len__(self) -> int:
        """Return how many ids were met so far."""


def encode(column: Column) -> tuple[Codes, Ids]:
    """Turn a column of ids into codes and names in order of first appearance; missing is -1.

    >>> codes, names = encode(["b", "a", None, "b"])
    >>> codes.tolist(), names
    ([0, 1, -1, 0], Ids(['b', 'a'], n=2))
    """
    coder = coder_for(column)
    try:
        codes = coder.add(column)
    except TypeError as error:
        raise InputError(f"Ids must be texts, numbers or tuples: {error}.") from None
    return codes, coder.names()


def coder_for(column: Column, n_rows: int | None = None) -> Coder:
    """Return what codes columns of this type, with `n_rows` rows in all their batches."""
    if not is_arrow(column):
        return _PlainCoder()
    compiled = repays_compiled_intake(len(column) if n_rows is None else n_rows)
    kind = getattr(column.type, "value_type", column.type)  # of a dictionary: its values
    if compiled and is_text(kind):
        return _TextCoder(kind)
    if compiled and _is_whole(column.type):
        return _WholeCoder(column.type)
    return _ArrowCoder()


class _PlainCoder:
    """Codes Python objects by a dictionary."""

    def __init__(self) -> None:
        self._index: dict[Hashable, int] = {}

    def add(self, column: Any) -> Codes:
        index = self._index
        return np.fromiter(
            (MISSING if is_missing(v) else index.setdefault(v, len(index)) for v in column),
            dtype=np.int32,
            count=len(column),
        )

    def names(self) -> Ids:
        return Ids(self._index)

    def __len__(self) -> int:
        return len(self._index)


class _ArrowCoder:
    """Codes Arrow columns of any type; each batch is added to the dictionary of those before."""

    def __init__(self) -> None:
        self._names: pa.Array | None = None

    def add(self, column: Any) -> Codes:
        import pyarrow as pa

        if pa.types.is_null(column.type):
            column = column.cast(pa.string())
        # The names so far come first, so that they keep their codes.
        known = [] if self._names is None else [self._names]
        joined = pa.chunked_array([*known, *_chunks(column)], column.type).combine_chunks()
        encoded = joined.dictionary_encode()
        self._names = encoded.dictionary
        codes: Codes = encoded.indices.fill_null(MISSING).to_numpy()[len(known and known[0]) :]
        return codes.astype(np.int32, copy=False)

    def names(self) -> Ids:
        return Ids(() if self._names is None else self._names)

    def __len__(self) -> int:
        return 0 if self._names is None else len(self._names)


class _TextCoder:
    """Codes text by a compiled table; where ids are few, Arrow first makes each batch short."""

    def __init__(self, kind: pa.DataType) -> None:
        from tiebreak.kernels.ingest.id_tables import TextTable

        self._kind = kind
        self._table = TextTable()

    def add(self, column: Any) -> Codes:
        parts = [self._add_batch(batch) for batch in _batches(column)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _add_batch(self, batch: pa.Array) -> Codes:
        if hasattr(batch, "dictionary"):
            return self._add_dictionary(batch)
        if 0 < self._table.n <= FEW:
            short = batch.dictionary_encode()
            new = self._add_text(short.dictionary)
            return _taken(new, short.indices)
        return self._add_text(batch)

    def _add_dictionary(self, batch: pa.Array) -> Codes:
        """Code the ids of a file's own dictionary, in order of their first appearance in rows."""
        indices = np.asarray(batch.indices.fill_null(MISSING), dtype=np.int64)
        first = np.full(len(batch.dictionary) + 1, len(indices))  # the last one for what is missing
        first[indices[::-1]] = np.arange(len(indices))[::-1]  # of several, the last one stays
        used = np.flatnonzero(first[:-1] < len(indices))
        used = used[np.argsort(first[used])]
        new = np.full(len(first), MISSING, dtype=np.int32)
        new[used] = self._add_text(batch.dictionary.take(to_arrow(used)))
        return new[indices]

    def _add_text(self, batch: pa.Array) -> Codes:
        _, start, data = batch.buffers()
        width = np.int64 if _is_large(batch.type) else np.int32
        offsets = np.frombuffer(start, dtype=width)[batch.offset : batch.offset + len(batch) + 1]
        text = np.frombuffer(data or b"", dtype=np.uint8)
        return self._table.add(offsets, text, _validity(batch))

    def names(self) -> Ids:
        import pyarrow as pa

        table = self._table
        start = table.start[: table.n + 1]
        n_bytes = int(start[-1])
        large = _is_large(self._kind) or n_bytes > np.iinfo(np.int32).max
        offsets = start.astype(np.int64 if large else np.int32)
        kind = pa.large_string() if large else pa.string()
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(table.data[:n_bytes].copy())]
        return Ids(pa.Array.from_buffers(kind, table.n, buffers))

    def __len__(self) -> int:
        return self._table.n


class _WholeCoder:
    """Codes whole numbers by a compiled table."""

    def __init__(self, kind: pa.DataType) -> None:
        from tiebreak.kernels.ingest.id_tables import WholeTable

        self._kind = kind
        self._table = WholeTable()

    def add(self, column: Any) -> Codes:
        parts = [self._table.add(_wholes(b), _validity(b)) for b in _batches(column)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def names(self) -> Ids:
        import pyarrow as pa

        keys = pa.array(self._table.keys[: self._table.n])
        return Ids(keys.view(self._kind) if self._kind == pa.uint64() else keys.cast(self._kind))

    def __len__(self) -> int:
        return self._table.n


def _taken(new: Codes, indices: pa.Array) -> Codes:
    """Translate indices, of which some may be missing."""
    if not indices.null_count:
        return new.take(np.asarray(indices))
    return np.append(new, np.int32(MISSING)).take(np.asarray(indices.fill_null(MISSING)))


def _chunks(column: Any) -> list[pa.Array]:
    import pyarrow as pa

    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _batches(column: Any) -> list[pa.Array]:
    """Cut a column into pieces of at most BATCH rows, at least one."""
    import pyarrow as pa

    cut = [c.slice(at, BATCH) for c in _chunks(column) for at in range(0, len(c), BATCH)]
    return cut or [pa.array([], column.type)]


def _validity(batch: pa.Array) -> Mask:
    """Return which rows hold a value; empty where all do."""
    if not batch.null_count:
        return np.empty(0, dtype=bool)
    return np.asarray(batch.is_valid().to_numpy(zero_copy_only=False), dtype=bool)


def _wholes(batch: pa.Array) -> npt.NDArray[np.int64]:
    import pyarrow as pa

    wide = batch.view(pa.int64()) if batch.type == pa.uint64() else batch.cast(pa.int64())
    return np.asarray(np.frombuffer(wide.buffers()[1], np.int64)[wide.offset :][: len(wide)])


def _is_large(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_large_string(kind))


def _is_whole(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind))
