"""Table: named columns from anywhere. Each column becomes one Arrow array here, once.

After this border nobody asks of what kind a column is: missing values (None, NaN, empty text) are
null, dictionaries are decoded, chunks are joined, and whole numbers that pandas keeps as 1.0, 2.0
beside a gap are whole again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tiebreak.data.ids import Column, Ids, is_arrow, is_missing, is_text
from tiebreak.errors import InputError, note
from tiebreak.wording import NOWHERE, Source

INT32_MAX = 2**31 - 1
EXACT = 2.0**53  # below, floats hold every whole number
MATRIX_VALUES = 20  # distinct whole numbers, at most, in each column of a matrix of labels


class NoRowsError(InputError):
    """A table is as it should be, and has no rows."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns by position, loaded only when asked for: there may be many that nobody needs.

    `pieces` gives some columns, of any kind, in one piece or several; those of a large table are
    Arrow arrays that are clean but for empty text. `frame` is the caller's kind of table.
    `has_header`: the names were the first line of a text file, so that they may be a row of data
    where the header was forgotten. `order_of` returns the ordered categories of a column.
    """

    names: tuple[str, ...]
    pieces: Callable[[Sequence[int]], Iterable[Sequence[Any]]]
    source: Source = NOWHERE
    frame: str = "pyarrow"
    has_header: bool = False
    is_large: bool = False
    order_of: Callable[[int], list[Any] | None] | None = None

    @property
    def title(self) -> str:
        """How messages call this table."""
        return self.source.name or "The table"

    def read(self, positions: Sequence[int], *, allow_empty: bool = False) -> list[Column]:
        """Load some columns; all have the same length, at least 1 unless allowed."""
        names = [self.names[i] for i in positions]
        pieces = zip(*self.pieces(positions), strict=True)
        columns = [
            to_arrow(name, column[0] if len(column) == 1 else _together(column), self.source)
            for name, column in zip(names, pieces, strict=False)
        ]
        lengths = dict(zip(names, map(len, columns), strict=False))
        if len(set(lengths.values())) > 1:
            raise InputError("unequal-columns", table=self.title, lengths=lengths)
        if not any(lengths.values()) and not allow_empty:
            raise self._without_rows()
        return columns

    def batches(self, positions: Sequence[int]) -> Iterator[Sequence[Column]]:
        """Yield some columns piece by piece where the table is large, else at once."""
        if not self.is_large:
            yield self.read(positions)
            return
        n_rows = 0
        for columns in self.pieces(positions):
            n_rows += len(columns[0])
            yield columns
        if not n_rows:
            raise self._without_rows()

    def category_order(self, position: int) -> list[Any] | None:
        """Return the ordered categories of a column; None where it has none.

        They are those of an ordered categorical (pandas), an Enum (polars) or an ordered
        dictionary (Arrow, Parquet).
        """
        if self.order_of is not None:
            return self.order_of(position)
        if self.is_large or self.has_header:
            return None
        column = next(iter(self.pieces([position])))[0]
        dtype = getattr(column, "dtype", None)
        if getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum":
            return list(dtype.categories)  # type: ignore[union-attr]  # of pandas, of polars
        if is_arrow(column) and getattr(column.type, "ordered", False):
            chunks = getattr(column, "chunks", [column])
            return list(chunks[0].dictionary.to_pylist()) if chunks else None
        return None

    def with_classes(self, names: list[str]) -> Table:
        """Return a table whose labels have these classes, in this order."""
        order = {"label": names}
        return replace(self, order_of=lambda position: order.get(self.names[position]))

    def _without_rows(self) -> NoRowsError:
        return NoRowsError("no-rows", table=self.title)


def _together(pieces: Sequence[Any]) -> Column:
    """Join pieces of a column; whole numbers beside fractions become fractions, text wins."""
    import pyarrow as pa

    plain = [decoded(p) if pa.types.is_dictionary(p.type) else p for p in pieces]
    kinds = {piece.type for piece in plain if piece.null_count < len(piece)}
    if any(map(is_text, kinds)) and not all(map(is_text, kinds)):
        plain = [piece.cast(pa.large_string()) for piece in plain]
    parts = [pa.table([piece], ["column"]) for piece in plain]
    return pa.concat_tables(parts, promote_options="permissive").column(0)


def to_arrow(name: str, column: Any, source: Source = NOWHERE) -> Column:
    """Make a column one plain Arrow array; what it cannot hold is refused.

    >>> to_arrow("task", ["b", "a", None, ""]).to_pylist()
    ['b', 'a', None, None]
    >>> to_arrow("task", np.array([1.0, np.nan])).to_pylist()
    [1, None]
    """
    import pyarrow as pa

    if isinstance(column, Ids):
        column = column.values
    kind = type(column).__module__.partition(".")[0]
    if kind == "polars" and str(column.dtype) != "Object":
        import polars as pl

        # Without views of text, which Arrow before 18 cannot cast.
        column = column.to_arrow(compat_level=pl.CompatLevel.oldest())
    elif kind not in ("pandas", "polars") and hasattr(column, "__arrow_c_stream__"):
        column = pa.chunked_array(column)
    if isinstance(column, pa.Scalar):
        column = pa.array([column.as_py()])
    if not is_arrow(column):
        column = _from_values(name, column, source)
    return _plain(name, column, source)


def arrays(columns: Mapping[str, Any], source: Source = NOWHERE) -> Table:
    """Make a table of columns by name."""
    values = list(columns.values())
    names = tuple(map(str, columns))
    return Table(names, lambda positions: [[values[i] for i in positions]], source)


def columns_of(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn objects into columns, None where an object lacks a key.

    >>> columns_of([{"task": "a"}, {"task": "b", "label": 1}])
    {'task': ['a', 'b'], 'label': [None, 1]}
    """
    keys = dict.fromkeys(key for record in records for key in record)
    return {key: [record.get(key) for record in records] for key in keys}


def table_of(source: Any, row_names: Sequence[str], n_needed: int) -> Table:
    """Make a table of a frame, columns by name, or rows.

    `row_names` name the parts of a bare row; the first `n_needed` of them must be there.
    """
    if isinstance(source, Mapping):
        return arrays(source)
    frame = _from_frame(source)
    if frame is not None:
        return frame
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        raise InputError("no-table", type=type(source).__name__)
    if isinstance(source, np.ndarray):
        _note_matrix(source)
    rows = source.tolist() if isinstance(source, np.ndarray) else list(source)
    if rows and all(isinstance(row, Mapping) for row in rows):
        return arrays(columns_of(rows))
    for number, row in enumerate(rows, start=1):
        is_row = isinstance(row, Sequence) and not isinstance(row, str | bytes)
        if not is_row or not n_needed <= len(row) <= len(row_names):
            parts = ", ".join(row_names[:n_needed])
            raise InputError("bad-row", row=number, parts=parts, value=row)
    width = max(map(len, rows), default=n_needed)
    padded = ((*row, *(None,) * (width - len(row))) for row in rows)
    columns = [list(column) for column in zip(*padded, strict=True)] or [[] for _ in range(width)]
    return arrays(dict(zip(row_names, columns, strict=False)))


def values_of(column: Any) -> list[Any]:
    """Return the values of a column of any kind as Python objects, lists for arrays in it."""
    if is_arrow(column):
        return list(column.to_pylist())
    values = column.to_list() if hasattr(column, "to_list") else list(column)
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]


def is_frame(source: Any) -> bool:
    """Return whether a source is a frame, of whatever kind."""
    attributes = ("collect_schema", "columns", "column_names", "schema")
    return any(hasattr(source, name) for name in attributes)


def is_column(value: object) -> bool:
    """Return whether a value is a whole column rather than one label."""
    if isinstance(value, list | np.ndarray | range) or hasattr(value, "__arrow_c_stream__"):
        return True
    return is_arrow(value) or type(value).__module__.partition(".")[0] == "pandas"


def stripped(table: Table, columns: Iterable[Column]) -> list[Column]:
    """Strip spaces around the values of a text file, and report how many had some."""
    import pyarrow.compute as pc

    found = list(columns)
    n_changed = 0
    for i, column in enumerate(found if table.has_header else []):
        if is_text(column.type):
            bare = pc.utf8_trim(column, characters=" ")  # line ends are in quotes, and meant
            n = pc.sum(pc.not_equal(bare, column)).as_py() or 0
            if n:
                found[i] = pc.if_else(pc.equal(bare, ""), None, bare)
                n_changed += n
    if n_changed:
        note("spaces-stripped", table=table.title, n=n_changed)
    return found


def needs_strip(table: Table, names: Iterable[Ids]) -> bool:
    """Return whether any id of a text file has spaces around it, without a copy of the ids."""
    import pyarrow.compute as pc

    texts = (each.values for each in names if table.has_header)
    return any(
        bool(pc.any(test(values, pattern=" ")).as_py())
        for values in texts
        if is_text(values.type)
        for test in (pc.starts_with, pc.ends_with)
    )


def like(known: Column, listed: Any, what: str) -> Column:
    """Give ids listed separately the type of those in the table."""
    import pyarrow as pa

    column = to_arrow(what, listed)
    if not is_arrow(known):  # of responses made of rows
        return column
    kind = getattr(known.type, "value_type", known.type)  # of a dictionary: its values
    try:
        return column.cast(kind)
    except (pa.ArrowException, OverflowError):
        raise InputError("other-type-of-ids", what=what, type=kind, ids=Ids(column)) from None


def _from_values(name: str, column: Any, source: Source) -> Column:
    """Make an Arrow array of Python values, of NumPy's or of pandas'."""
    import pyarrow as pa

    if isinstance(column, str | bytes) or not hasattr(column, "__iter__"):
        raise InputError("no-column", column=name, value=column)
    if getattr(column, "ndim", 1) != 1:
        raise InputError("dimensions", column=name, n=column.ndim)
    is_array = type(column).__module__.partition(".")[0] in ("numpy", "pandas")
    try:
        return pa.array(column if is_array else list(column), from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError, UnicodeEncodeError):
        pass  # values that are nothing in some library's way, or of several types
    values = [None if _is_nothing(value) else value for value in column]
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError, UnicodeEncodeError) as error:
        raise _unfit(name, values, source, error, is_frame=hasattr(column, "dtype")) from None


def _unfit(
    name: str, values: list[Any], source: Source, error: Exception, *, is_frame: bool
) -> InputError:
    """Say which values of a column Arrow cannot hold together."""
    if isinstance(error, UnicodeEncodeError):
        return half_character(error)
    first: dict[str, int] = {}
    for row, value in enumerate(values):
        if not is_missing(value):
            first.setdefault(type(value).__name__, row)
        if isinstance(value, list | tuple | dict | set):
            return _no_id(name, value, source, row)
        if len(first) == 2:
            (kind, row), (other, other_row) = first.items()
            return InputError(
                "mixed-types",
                column=name,
                where=source.where(row),
                value=values[row],
                type=kind,
                other_where=source.where(other_row),
                other=values[other_row],
                other_type=other,
                is_frame=is_frame,
            )
    row = next(iter(first.values()), 0)
    return InputError("unfit-values", column=name, value=values[row], reason=error)


def half_character(error: UnicodeEncodeError) -> InputError:
    """Describe text that UTF-8 cannot hold."""
    text = error.object[max(0, error.start - 30) : error.start + 30]
    return InputError("half-character", text=text)


def _no_id(name: str, value: Any, source: Source, row: int) -> InputError:
    return InputError("no-id", column=name, value=value, where=source.where(row))


def _is_nothing(value: Any) -> bool:
    """Return whether a value is None, pandas' NA, or some library's NaN."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.generic) and bool(value != value)


def _plain(name: str, column: Any, source: Source) -> Column:
    """Undo encodings, join chunks, and make NaN and empty text null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(name, decoded(column), source)
    if pa.types.is_run_end_encoded(kind):
        return _plain(name, pc.run_end_decode(column), source)
    if isinstance(kind, pa.BaseExtensionType):
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.array(texts, pa.string())
    if pa.types.is_nested(kind):
        values = column.to_pylist()
        row = next((i for i, value in enumerate(values) if value is not None), None)
        if row is None:
            return pa.nulls(len(values), pa.string())
        raise _no_id(name, values[row], source, row)
    column = _one_chunk(_as_sortable(column))
    if pa.types.is_floating(column.type):
        return _whole(pc.if_else(pc.is_nan(column), None, column))
    if is_text(column.type):
        is_empty = pc.equal(column, "")
        return pc.if_else(is_empty, None, column) if pc.any(is_empty).as_py() else column
    return column


def _whole(column: Any) -> Any:
    """Make whole numbers of floats where all are: pandas keeps ids beside a gap as 1.0, 2.0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return column
    is_whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), EXACT))
    return column.cast(pa.int64()) if pc.all(is_whole).as_py() else column


def decoded(column: Any) -> Any:
    """Replace codes by values; by hand, as Arrow cannot cast every type of dictionary."""
    import pyarrow as pa

    kind = _sortable(column.type.value_type)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    values = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in chunks]
    return pa.chunked_array(values, type=kind)


def _as_sortable(column: Any) -> Any:
    import pyarrow as pa

    kind = _sortable(column.type)
    try:
        return column.cast(kind)
    except pa.ArrowNotImplementedError:  # string views, before pyarrow 18
        return pa.array(column.to_pylist(), kind)


def _sortable(kind: Any) -> Any:
    """Replace a type that Arrow cannot encode or sort by one that it can."""
    import pyarrow as pa

    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    return pa.float32() if pa.types.is_float16(kind) else kind


def _one_chunk(column: Any) -> Any:
    import pyarrow as pa

    if isinstance(column, pa.Array):
        return column
    if pa.types.is_string(column.type) and column.nbytes > INT32_MAX:
        column = column.cast(pa.large_string())
    return column.combine_chunks()


def _from_frame(source: Any) -> Table | None:
    """Make a table of a frame of any kind; None where it is not a frame."""
    kind = type(source).__module__.partition(".")[0]
    if kind == "datasets":
        source = _from_dataset(source)
    if kind == "pandas" and hasattr(source, "columns"):
        return _from_pandas(source)
    if kind == "polars" and hasattr(source, "collect_schema"):
        frame = source.collect() if hasattr(source, "collect") else source
        names = tuple(frame.columns)
        return Table(names, lambda places: [[frame.to_series(i) for i in places]], frame="polars")
    if not hasattr(source, "__arrow_c_stream__"):
        return None
    import pyarrow as pa

    try:
        table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError("no-frame", type=type(source).__name__, reason=error) from None
    return Table(tuple(table.column_names), lambda places: [[table.column(i) for i in places]])


def _from_dataset(source: Any) -> Any:
    """Return a dataset of Hugging Face as an Arrow table with names of classes."""
    if hasattr(source, "keys"):
        raise InputError("several-splits", splits=list(source.keys()))
    if not hasattr(source, "with_format") or not hasattr(source, "__len__"):
        raise InputError("dataset-stream")
    return with_class_names(source.with_format("arrow")[:], class_names(source))


def class_names(source: Any) -> dict[str, list[str]]:
    """Return the names of classes by column, which Hugging Face keeps beside the numbers.

    `source` is one of its datasets, or the schema of a Parquet file; anything else has none.
    """
    metadata = getattr(source, "metadata", None)
    if isinstance(metadata, Mapping) and metadata.get(b"huggingface"):
        try:
            features = json.loads(metadata[b"huggingface"])["info"]["features"]
        except (ValueError, KeyError, TypeError):
            return {}
        dicts = ((key, each) for key, each in features.items() if isinstance(each, dict))
        inner = {key: each.get("feature", each) for key, each in dicts}
        return {
            key: list(each["names"])
            for key, each in inner.items()
            if isinstance(each, dict) and each.get("_type") == "ClassLabel" and each.get("names")
        }
    if type(source).__module__.partition(".")[0] != "datasets":
        return {}
    named = (getattr(source, "features", None) or {}).items()
    found = {key: getattr(getattr(each, "feature", each), "names", None) for key, each in named}
    return {key: list(names) for key, names in found.items() if names}


def with_class_names(table: Any, names: Mapping[str, list[str]]) -> Any:
    """Replace the numbers of classes by their names, also inside lists; -1 is no label.

    A column of them becomes an ordered dictionary, which keeps the order and unused classes.
    """
    import pyarrow as pa

    def named(value: Any, of: list[str]) -> Any:
        if isinstance(value, list):
            return [named(one, of) for one in value]
        if not isinstance(value, int) or value >= len(of):
            return value
        return of[value] if value >= 0 else None

    for i, column in enumerate(table.column_names):
        if column not in names:
            continue
        of = names[column]
        values = table.column(i).to_pylist()
        if any(isinstance(value, list) for value in values):
            made = pa.array([named(value, of) for value in values])
        else:
            codes = pa.array([None if v is None or v < 0 else v for v in values], pa.int32())
            made = pa.DictionaryArray.from_arrays(codes, pa.array(of, pa.string()), ordered=True)
        table = table.set_column(i, column, made)
    return table


def _from_pandas(frame: Any) -> Table:
    """Make a table of the columns and of the named levels of the index."""
    names = [str(name) for name in frame.columns]
    levels = {
        str(name): level
        for level, name in enumerate(frame.index.names)
        if name is not None and str(name) not in names
    }

    found = list(levels.values())

    def column(i: int) -> Any:
        own = i < len(names)
        return frame.iloc[:, i] if own else frame.index.get_level_values(found[i - len(names)])

    return Table((*names, *levels), lambda at: [[column(i) for i in at]], frame="pandas")


def _note_matrix(rows: np.ndarray[Any, Any]) -> None:
    """Report that a matrix of few whole numbers is read as rows of task, worker, label."""
    if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu" or not len(rows):
        return
    if all(len(np.unique(rows[:, i])) <= MATRIX_VALUES for i in range(3)):
        note("matrix-as-rows", shape=rows.shape)
