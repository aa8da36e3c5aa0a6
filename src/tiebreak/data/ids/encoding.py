"""Dictionary encoding: columns of ids into codes, at once or batch by batch."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tiebreak.data.ids.table import MISSING, Column, Ids, is_arrow, is_missing, is_text
from tiebreak.errors import InputError
from tiebreak.kernels.layout import Codes

if TYPE_CHECKING:
    import pyarrow as pa

INT32_MAX = np.iinfo(np.int32).max


class Coder(Protocol):
    """Gives the same id the same code in every batch; codes count up by first appearance."""

    def add(self, column: Any) -> Codes:
        """Return codes of a batch, -1 where a value is missing: final once `settle` was asked."""

    def settle(self) -> Codes | None:
        """Return the final code of each code given since this was last asked; None: the same.

        The last one stands for what is missing, -1.
        """

    def names(self) -> Ids:
        """Return the ids that are settled, by code."""

    def __len__(self) -> int:
        """Return how many ids are settled."""


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
    final = coder.settle()
    return codes if final is None else final[codes], coder.names()


def coder_for(column: Column) -> Coder:
    """Return what codes columns of this type."""
    return _ArrowCoder() if is_arrow(column) else _PlainCoder()


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

    def settle(self) -> None:
        return

    def names(self) -> Ids:
        return Ids(self._index)

    def __len__(self) -> int:
        return len(self._index)


class _ArrowCoder:
    """Codes Arrow columns by Arrow's dictionary encoding.

    Each batch is encoded apart, as Arrow keeps no table between calls. Codes count on from batch to
    batch, until the dictionaries of all are encoded together, those settled before as the first:

        batch     b a b    c b      dictionaries    b a | c b
        given     0 1 0    2 3      final           0 1   2 0
    """

    def __init__(self) -> None:
        self._names: pa.Array | None = None
        self._apart: list[pa.Array] = []  # dictionaries since
        self._n_apart = 0
        self._kind: pa.DataType | None = None  # of the first batch, which the others follow

    def add(self, column: Any) -> Codes:
        import pyarrow as pa

        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        codes = [self._add_chunk(chunk) for chunk in chunks]
        return codes[0] if len(codes) == 1 else np.concatenate([np.empty(0, np.int32), *codes])

    def _add_chunk(self, chunk: Any) -> Codes:
        import pyarrow as pa

        if pa.types.is_null(chunk.type):
            return np.full(len(chunk), MISSING, dtype=np.int32)
        if not hasattr(chunk, "dictionary"):
            return self._codes_of(chunk.dictionary_encode())
        # Of the column's own dictionary, what its rows use, in order of first appearance.
        used = chunk.indices.unique().drop_null()
        code_of = np.full(len(chunk.dictionary) + 1, MISSING, dtype=np.int32)  # one for nothing
        code_of[used] = self._codes_of(chunk.dictionary.take(used).dictionary_encode())
        return np.asarray(code_of[chunk.indices.fill_null(MISSING)])

    def _codes_of(self, encoded: Any) -> Codes:
        """Keep the dictionary of a batch; return its indices, counted on from those before."""
        codes = np.asarray(encoded.indices.fill_null(MISSING), dtype=np.int32)
        if self._n_apart:
            codes = np.where(codes == MISSING, MISSING, codes + self._n_apart).astype(np.int32)
        names = encoded.dictionary
        self._kind = self._kind or names.type
        are_texts = is_text(self._kind) and is_text(names.type)  # of any width
        self._apart.append(names if are_texts else names.cast(self._kind))
        self._n_apart += len(names)
        return codes

    def settle(self) -> Codes | None:
        import pyarrow as pa

        parts = self._apart if self._names is None else [self._names, *self._apart]
        self._apart = []
        self._n_apart = 0
        if not parts:
            return None
        kind = self._kind
        if is_text(kind) and sum(part.nbytes for part in parts) > INT32_MAX:
            kind = pa.large_string()
        n_settled = len(self)
        joined = pa.chunked_array([_without_empty(part.cast(kind)) for part in parts], kind)
        if not len(joined) or (len(parts) == 1 and not joined.null_count):  # distinct already
            self._names = joined.chunk(0)
            return None
        chunks = joined.dictionary_encode().chunks
        self._names = chunks[0].dictionary
        final = [np.asarray(chunk.indices.fill_null(MISSING)) for chunk in chunks]
        return np.append(np.concatenate(final)[n_settled:], np.int32(MISSING))

    def names(self) -> Ids:
        return Ids(() if self._names is None else self._names)

    def __len__(self) -> int:
        return 0 if self._names is None else len(self._names)


def _without_empty(names: pa.Array) -> pa.Array:
    """Make empty text missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text(names.type) or pc.min(pc.binary_length(names)).as_py() != 0:
        return names
    return pc.if_else(pc.equal(names, ""), pa.scalar(None, names.type), names)
