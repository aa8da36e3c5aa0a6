"""Table: named columns from anywhere, cleaned so that the rooms below can use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tiebreak.errors import InputError, note
from tiebreak.ids import Column, Ids, is_arrow, is_missing, is_text
from tiebreak.wording import NOWHERE, Source, counted

if TYPE_CHECKING:
    import pyarrow as pa

INT32_MAX = 2**31 - 1
EXACT = 2.0**53  # below, floats hold every whole number


class NoRowsError(InputError):
    """A table is as it should be, and holds nothing."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns by position, loaded only when asked for: a table may hold many that nobody needs.

    `frame` is the caller's kind of table; `has_header` says that the names were the first line
    of a text file, so that they may be a row of data where the header was forgotten. `stream`
    gives a large file piece by piece; its columns are Arrow arrays, clean but for empty text.
    `order_of` tells the ordered categories of a column of a typed file.
    """

    names: tuple[str, ...]
    load: Callable[[Sequence[int]], Sequence[Column]]
    source: Source = NOWHERE
    frame: str = "pyarrow"
    has_header: bool = False
    stream: Callable[[Sequence[int]], Iterator[Sequence[Column]]] | None = None
    order_of: Callable[[int], list[Any] | None] | None = None

    @property
    def title(self) -> str:
        """How messages call this table."""
        return self.source.name or "The table"

    def read(self, positions: Sequence[int], *, allow_empty: bool = False) -> list[Column]:
        """Load and clean some columns; all have the same length, at least 1 unless allowed."""
        raw = self.load(positions)
        columns = [
            clean(self.names[i], column, self.source)
            for i, column in zip(positions, raw, strict=True)
        ]
        lengths = {self.names[i]: len(c) for i, c in zip(positions, columns, strict=True)}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} {n:,}" for name, n in lengths.items())
            raise InputError(f"{self.title}: columns must be equally long; got {shown}.")
        if not any(lengths.values()) and not allow_empty:
            raise self._without_rows()
        return columns

    def batches(self, positions: Sequence[int]) -> Iterator[Sequence[Column]]:
        """Give some columns piece by piece where the table is large, else at once."""
        if self.stream is None:
            yield self.read(positions)
            return
        n_rows = 0
        for columns in self.stream(positions):
            n_rows += len(columns[0])
            yield columns
        if not n_rows:
            raise self._without_rows()

    def category_order(self, position: int) -> list[Any] | None:
        """Return the ordered categories of a column; None where it has none.

        An ordered categorical of pandas, an Enum of polars, an ordered dictionary of Arrow or
        Parquet.
        """
        if self.order_of is not None:
            return self.order_of(position)
        if self.stream is not None or self.has_header:
            return None
        (column,) = self.load([position])
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

    def with_classes(self, names: Mapping[str, list[str]]) -> Table:
        """Return a table whose columns of these names have these classes, in this order."""
        return replace(self, order_of=lambda position: names.get(self.names[position]))

    def _without_rows(self) -> NoRowsError:
        what = "a header but no rows" if self.has_header else "no rows"
        return NoRowsError(f"{self.title} holds {what}. Add at least one row.")


def clean(name: str, column: Any, source: Source = NOWHERE) -> Column:
    """Make a column one Arrow array, or a list of Python objects where Arrow cannot hold it.

    Missing values (None, NaN, empty text) become null; what cannot be an id is refused.

    >>> clean("task", ["b", "a", None])
    ['b', 'a', None]
    >>> clean("task", np.array([1.0, np.nan])).to_pylist()
    [1, None]
    """
    if isinstance(column, Ids):
        column = column.values
    kind = type(column).__module__.partition(".")[0]
    if isinstance(column, np.ndarray):
        column = _from_numpy(name, column)
    elif kind == "pandas":
        column = _from_pandas(name, column)
    elif kind == "polars":
        column = _from_polars(column)
    elif not is_arrow(column) and hasattr(column, "__arrow_c_stream__"):
        import pyarrow as pa

        column = pa.chunked_array(column)
    if is_arrow(column):
        column = _plain_arrow(column)
    return column if is_arrow(column) else _python_column(name, column, source)


def stripped(table: Table, columns: Iterable[Column]) -> list[Column]:
    """Strip spaces around the values of a text file; say where there were any."""
    found = list(columns)
    if not table.has_header:
        return found
    made = [_strip(column) for column in found]
    n_changed = sum(n for _, n in made)
    if n_changed:
        values = counted(n_changed, "value")
        note(f"{table.title}: spaces around {values} (ids, labels) were left out.")
    return [column for column, _ in made]


def needs_strip(table: Table, names: Iterable[Ids]) -> bool:
    """Tell whether any id of a text file has spaces around it.

    One bit an id is made for that, no copy of the ids: there may be hundreds of millions.
    """
    return table.has_header and any(_has_spaces(each.values) for each in names)


def _from_numpy(name: str, column: np.ndarray[Any, Any]) -> Column:
    import pyarrow as pa

    if column.ndim != 1:
        raise InputError(f"Column {name!r} has {column.ndim} dimensions; a column has one.")
    if column.dtype.kind not in "OSV":
        try:
            return pa.array(column)
        except (pa.ArrowException, TypeError, ValueError):
            pass  # a type that Arrow does not know, such as complex numbers
    return column.tolist()


def _from_pandas(name: str, column: Any) -> Column:
    import pyarrow as pa

    try:
        converted = pa.Array.from_pandas(column)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        refuse_mixed_types(name, column.tolist())
        return column.tolist()
    is_plain = not pa.types.is_nested(converted.type)
    return converted if is_plain else column.tolist()  # tuples are good ids; Arrow makes lists


def _from_polars(column: Any) -> Column:
    import polars as pl

    if column.dtype == pl.Object:
        return column.to_list()
    # Without views of text, which Arrow before 18 cannot cast.
    return column.to_arrow(compat_level=pl.CompatLevel.oldest())


def refuse_mixed_types(name: str, values: Sequence[Any]) -> None:
    """Refuse a frame's column in which text and numbers stand together.

    Raises InputError that names the first value of each of two types.
    """
    first: dict[str, int] = {}
    for row, value in enumerate(values):
        if not _is_nothing(value) and not is_missing(value):
            first.setdefault(type(value).__name__, row)
        if len(first) == 2:
            (kind, row), (other, other_row) = first.items()
            raise InputError(
                f"Column {name!r} mixes types: row {row + 1:,} holds {values[row]!r} ({kind}), "
                f"row {other_row + 1:,} holds {values[other_row]!r} ({other}).\n"
                f"Make them one type, for instance: df[{name!r}] = df[{name!r}].astype(str)"
            )


def _plain_arrow(column: pa.Array | pa.ChunkedArray) -> Column:
    """Undo encodings, join chunks, and mark NaN and empty text as missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.Scalar):
        return [column.as_py()]
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain_arrow(_decoded(column))
    if pa.types.is_run_end_encoded(kind):
        return _plain_arrow(pc.run_end_decode(column))
    if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        return column.to_pylist()
    column = _one_chunk(column.cast(_sortable(kind)))
    if pa.types.is_floating(column.type):
        return _whole(pc.if_else(pc.is_nan(column), None, column))
    if is_text(column.type):
        is_empty = pc.equal(column, "")
        return pc.if_else(is_empty, None, column) if pc.any(is_empty).as_py() else column
    return column


def _whole(column: pa.Array) -> pa.Array:
    """Make whole numbers of floats that all are: pandas keeps ids beside a gap as 1.0, 2.0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return column
    is_whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), EXACT))
    return column.cast(pa.int64()) if pc.all(is_whole).as_py() else column


def _decoded(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace codes by values; by hand, as Arrow cannot cast every type of dictionary."""
    import pyarrow as pa

    kind = _sortable(column.type.value_type)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    values = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in chunks]
    return pa.chunked_array(values, type=kind)


def _sortable(kind: pa.DataType) -> pa.DataType:
    """Replace a type that Arrow cannot encode or sort by one that it can."""
    import pyarrow as pa

    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    return pa.float32() if pa.types.is_float16(kind) else kind


def _one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    if isinstance(column, pa.Array):
        return column
    if pa.types.is_string(column.type) and column.nbytes > INT32_MAX:
        column = column.cast(pa.large_string())
    return column.combine_chunks()


def _python_column(name: str, column: Any, source: Source) -> list[Any]:
    """Check that every value of a Python column can be an id; mark what is missing."""
    if isinstance(column, str | bytes) or not hasattr(column, "__iter__"):
        raise InputError(f"Column {name!r} must be a list or an array; got {column!r}.")
    values = list(column)
    for row, value in enumerate(values):
        try:
            hash(value)
        except TypeError:
            cure = "--multi-label (multi_label=True) makes one yes/no task of each label."
            where = f"Column {name!r}, row {row + 1:,}"
            if source.name:
                where = f"{source.where(row)}: column {name!r}"
            raise InputError(
                f"{where} holds {value!r} ({type(value).__name__}), "
                "which cannot be an id or a label. "
                f"{cure if isinstance(value, list) else 'Use text or a number.'}"
            ) from None
        if _is_nothing(value):
            values[row] = None
    return values


def _is_nothing(value: Any) -> bool:
    """Tell whether a value is pandas' NA, which cannot be compared, or some library's NaN."""
    return type(value).__name__ == "NAType" or bool(value != value)


def _has_spaces(column: Column) -> bool:
    """Tell whether any text of a column begins or ends with a space."""
    if not is_arrow(column) or not is_text(column.type):
        return False
    import pyarrow.compute as pc

    tests = (pc.starts_with, pc.ends_with)
    return any(bool(pc.any(test(column, pattern=" ")).as_py()) for test in tests)


def _strip(column: Column) -> tuple[Column, int]:
    """Return a column of text without spaces around values, and how many had some."""
    if not is_arrow(column):
        return column, 0
    if not is_text(column.type):
        return column, 0
    import pyarrow.compute as pc

    bare = pc.utf8_trim(column, characters=" ")  # line ends stand in quotes, and are meant
    n_changed = pc.sum(pc.not_equal(bare, column)).as_py() or 0
    if not n_changed:
        return column, 0
    return pc.if_else(pc.equal(bare, ""), None, bare), int(n_changed)


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
