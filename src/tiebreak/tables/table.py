"""Table: named columns from anywhere. Each column becomes an Arrow array here, once.

After this border nobody asks of what kind a column is: missing values (None, NaN, empty text) are
null, chunks are joined, and whole numbers that pandas keeps as 1.0, 2.0 beside a gap are whole
again. Only a dictionary may stay one: an ordered one keeps the order of classes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiebreak.data.ids import INT32_MAX, Column, Ids, arrow, is_arrow, is_missing, is_text
from tiebreak.errors import InputError, note
from tiebreak.tables.source import NoRowsError
from tiebreak.wording import NOWHERE, Source

EXACT = 2.0**53  # below, floats hold every whole number
MATRIX_VALUES = 20  # distinct whole numbers, at most, in each column of a matrix of labels
Columns = Sequence[Column]  # Arrow arrays of equal length


@dataclass(frozen=True, slots=True)
class Table:
    """Columns by position, loaded only when asked for: there may be many that nobody needs.

    `load` gives some columns as Arrow arrays, in one piece or several, each time from the start.
    `frame` is the caller's kind of table. `has_header`: the names were the first line of a text
    file, so that they may be a row of data where the header was forgotten.
    """

    names: tuple[str, ...]
    load: Callable[[Sequence[int]], Iterable[Columns]]
    source: Source = NOWHERE
    frame: str = "pyarrow"
    has_header: bool = False
    raw: Callable[[int], Any] | None = None  # a column of a table in memory as it was given

    @property
    def title(self) -> str:
        """How messages call this table."""
        return self.source.name or "The table"

    def batches(self, positions: Sequence[int]) -> Iterator[Columns]:
        """Yield some columns piece by piece, as the source has them; there is at least one row."""
        n_rows = 0
        for columns in self.load(positions):
            lengths = {self.names[i]: len(each) for i, each in zip(positions, columns, strict=True)}
            if len(set(lengths.values())) > 1:
                raise InputError("unequal-columns", table=self.title, lengths=lengths)
            for i, column in zip(positions, columns, strict=True):
                refuse_lists(self.names[i], column, self.source, n_rows)
            n_rows += len(columns[0])
            yield columns
        if not n_rows:
            raise NoRowsError("no-rows", table=self.title)

    def read(self, positions: Sequence[int], *, allow_empty: bool = False) -> list[Column]:
        """Load some columns as one plain array each; at least one row, unless allowed."""
        import pyarrow as pa

        try:
            pieces = zip(*self.batches(positions), strict=True)
            return [_joined(column) for column in pieces]
        except NoRowsError:
            if not allow_empty:
                raise
            return [pa.array([], pa.string()) for _ in positions]

    def values(self, position: int, n_rows: int | None = None) -> list[Any]:
        """Return a column as Python values, lists among them; of one in memory the first few."""
        if self.raw is None:
            return [value for piece in self.load([position]) for value in piece[0].to_pylist()]
        column = self.raw(position)[:n_rows]
        to_list = getattr(column, "to_pylist", None) or getattr(column, "to_list", None)
        values = to_list() if to_list is not None else list(column)
        return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]


def in_order(column: Any, order: list[str]) -> Any:
    """Make an ordered dictionary of a column of text; values not in the order come after it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pa.array(order, column.type)
    more = column.filter(pc.invert(pc.is_in(column, values))).unique().drop_null()
    values = pa.concat_arrays([values, more])
    return pa.DictionaryArray.from_arrays(pc.index_in(column, values), values, ordered=True)


def arrays(
    columns: Mapping[str, Any], source: Source = NOWHERE, *, frame: str = "pyarrow"
) -> Table:
    """Make a table of columns by name, of whatever kind."""
    values = list(columns.values())
    return _lazy(map(str, columns), values.__getitem__, source, frame)


def _lazy(
    names: Iterable[str],
    column_at: Callable[[int], Any],
    source: Source = NOWHERE,
    frame: str = "pyarrow",
) -> Table:
    """Make a table of columns in memory, each of which becomes an Arrow array when it is read."""

    def load(positions: Sequence[int]) -> Iterator[Columns]:
        yield [to_arrow(known[i], column_at(i), source) for i in positions]

    known = tuple(names)
    return Table(known, load, source, frame, raw=column_at)


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
    frame = _of_frame(source)
    if frame is not None:
        return frame
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        raise InputError("no-table", type=type(source).__name__)
    array = source if isinstance(source, np.ndarray) else np.empty(0)
    is_three = array.dtype.kind in "iu" and array.shape[1:] == (3,) and len(array) > 0
    if is_three and all(len(np.unique(each)) <= MATRIX_VALUES for each in array.T):
        note("matrix-as-rows", shape=array.shape)
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


def is_frame(source: Any) -> bool:
    """Return whether a source is a frame, of whatever kind."""
    attributes = ("collect_schema", "columns", "column_names", "schema")
    return any(hasattr(source, name) for name in attributes)


def is_column(value: object) -> bool:
    """Return whether a value is a whole column rather than one label."""
    if isinstance(value, list | np.ndarray | range | Ids) or hasattr(value, "__arrow_c_stream__"):
        return True
    return is_arrow(value) or type(value).__module__.partition(".")[0] == "pandas"


def stripped(table: Table, columns: Columns) -> tuple[list[Column], int]:
    """Strip spaces around the values of a text file; return also how many had some."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = list(columns)
    n_changed = 0
    for i, column in enumerate(found if table.has_header else []):
        texts = getattr(column, "dictionary", column)
        if not is_text(texts.type):
            continue
        is_spaced = pc.or_(*(f(texts, pattern=" ") for f in (pc.starts_with, pc.ends_with)))
        if pc.any(is_spaced).as_py():
            bare = pc.utf8_trim(texts, characters=" ")  # line ends are in quotes, and meant
            found[i] = bare = pc.if_else(pc.equal(bare, ""), None, bare)
            if texts is not column:
                found[i] = pa.DictionaryArray.from_arrays(column.indices, bare)
                is_spaced = is_spaced.take(column.indices)
            n_changed += pc.sum(is_spaced).as_py()
    return found, n_changed


def read_stripped(
    table: Table, positions: Sequence[int], *, allow_empty: bool = False
) -> list[Column]:
    """Load some columns, without spaces around the values of a text file, which is reported."""
    found, n_spaced = stripped(table, table.read(positions, allow_empty=allow_empty))
    if n_spaced:
        note("spaces-stripped", table=table.title, n=n_spaced)
    return found


def like(known: Ids, listed: Any, what: str) -> Column:
    """Give ids listed separately the type of those in the table."""
    import pyarrow as pa

    column = to_arrow(what, listed)
    try:
        return column.cast(known.values.type)
    except (pa.ArrowException, OverflowError):
        kind = known.values.type
        raise InputError("other-type-of-ids", what=what, type=kind, ids=Ids(column)) from None


# Any column as an Arrow array


def to_arrow(name: str, column: Any, source: Source = NOWHERE) -> Column:
    """Make a column one Arrow array; what it cannot hold is refused, and so are lists.

    >>> to_arrow("task", ["b", "a", None, ""]).to_pylist()
    ['b', 'a', None, None]
    >>> to_arrow("task", np.array([1.0, np.nan])).to_pylist()
    [1, None]
    """
    import pyarrow as pa

    kind = type(column).__module__.partition(".")[0]
    if kind == "polars" and str(column.dtype) != "Object":
        import polars as pl

        # Without views of text, which Arrow before 18 cannot cast.
        column = column.to_arrow(compat_level=pl.CompatLevel.oldest())
    elif kind not in ("pandas", "polars") and hasattr(column, "__arrow_c_stream__"):
        column = pa.chunked_array(column)
    is_one = isinstance(column, str | bytes) or not hasattr(column, "__iter__")
    if is_one or getattr(column, "ndim", 1) != 1:
        raise InputError("no-column", column=name, value=column)
    try:
        made = plain(arrow(column))
    except InputError as refused:
        why: dict[str, Any] = refused.fields
        raise _unfit(name, source, is_frame=hasattr(column, "dtype"), **why) from None
    refuse_lists(name, made, source)
    return made


def refuse_lists(name: str, column: Column, source: Source, n_before: int = 0) -> None:
    """Refuse a column of lists or objects as one of ids, labels or numbers."""
    import pyarrow as pa

    if pa.types.is_nested(column.type) and column.null_count < len(column):
        row, value = next((i, v) for i, v in enumerate(column.to_pylist()) if v is not None)
        raise InputError("no-id", column=name, value=value, where=source.where(n_before + row))


def _unfit(
    name: str, source: Source, *, ids: list[Any], reason: object, is_frame: bool
) -> InputError:
    """Say which values of a column Arrow cannot hold together."""
    if isinstance(reason, UnicodeEncodeError):
        return half_character(reason)
    first: dict[type, int] = {}
    for row, value in enumerate(ids):
        if isinstance(value, list | tuple | dict | set | np.ndarray):
            return InputError("no-id", column=name, value=value, where=source.where(row))
        if not is_missing(value):
            first.setdefault(type(value), row)
    if len(first) < 2:
        row = next(iter(first.values()), 0)
        return InputError("unfit-values", column=name, value=ids[row], reason=reason)
    (kind, row), (other_kind, other_row) = list(first.items())[:2]
    one = {"where": source.where(row), "value": ids[row], "type": kind.__name__}
    other = {"other": ids[other_row], "other_type": other_kind.__name__}
    other["other_where"] = source.where(other_row)
    return InputError("mixed-types", column=name, is_frame=is_frame, **one, **other)


def half_character(error: UnicodeEncodeError) -> InputError:
    """Describe text that UTF-8 cannot hold."""
    text = error.object[max(0, error.start - 30) : error.start + 30]
    return InputError("half-character", text=text)


def plain(column: Any) -> Column:
    """Undo encodings, join chunks, and make NaN and empty text null.

    Ordered dictionaries stay; their values are plain.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = arrow(column)
        values = plain(column.dictionary)
        if kind.ordered:
            codes = column.indices.cast(pa.int32())
            return pa.DictionaryArray.from_arrays(codes, values, ordered=True)
        if is_text(values.type) and len(column) * values.nbytes > INT32_MAX * len(values):
            values = values.cast(pa.large_string())
        return plain(values.take(column.indices))
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(column))
    if isinstance(kind, pa.BaseExtensionType):
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.array(texts, pa.string())
    column = arrow(_sortable(column))
    if pa.types.is_floating(column.type):
        return _whole(pc.if_else(pc.is_nan(column), None, column))
    if is_text(column.type):
        is_empty = pc.equal(column, "")
        return pc.if_else(is_empty, None, column) if pc.any(is_empty).as_py() else column
    return column


def _joined(pieces: Columns) -> Column:
    """Join pieces of a column; whole numbers beside fractions become fractions, text wins."""
    import pyarrow as pa

    are_coded = [pa.types.is_dictionary(piece.type) for piece in pieces]
    values = [
        piece.dictionary.take(piece.indices) if is_coded else piece
        for piece, is_coded in zip(pieces, are_coded, strict=True)
    ]
    kinds = {piece.type for piece in values if piece.null_count < len(piece)}
    if any(map(is_text, kinds)) and not all(map(is_text, kinds)):
        values = [piece.cast(pa.large_string()) for piece in values]
    parts = [pa.table([piece], ["column"]) for piece in values]
    return plain(pa.concat_tables(parts, promote_options="permissive").column(0))


def _whole(column: Any) -> Any:
    """Make whole numbers of floats where all are: pandas keeps ids beside a gap as 1.0, 2.0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return column
    is_whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), EXACT))
    return column.cast(pa.int64()) if pc.all(is_whole).as_py() else column


def _sortable(column: Any) -> Any:
    """Give a column a type that Arrow can encode and sort."""
    import pyarrow as pa

    others = {
        pa.null(): pa.string(),
        pa.string_view(): pa.large_string(),
        pa.binary_view(): pa.large_binary(),
        pa.float16(): pa.float32(),
    }
    kind = others.get(column.type, column.type)
    try:
        return column.cast(kind)
    except pa.ArrowNotImplementedError:  # string views, before pyarrow 18
        return pa.array(column.to_pylist(), kind)


# Frames


def _of_frame(source: Any) -> Table | None:
    """Make a table of a frame of any kind; None where it is not a frame."""
    import pyarrow as pa

    kind = type(source).__module__.partition(".")[0]
    if kind == "pandas" and hasattr(source, "columns"):
        return _of_pandas(source)
    if kind == "polars" and hasattr(source, "collect_schema"):
        frame = source.collect() if hasattr(source, "collect") else source
        return _lazy(frame.columns, frame.to_series, frame="polars")
    try:
        if kind == "datasets":
            table = _of_dataset(source)
        elif hasattr(source, "__arrow_c_stream__"):
            table = pa.table(source)
        else:
            return None
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError("no-frame", type=type(source).__name__, reason=error) from None
    return _lazy(table.column_names, table.column)


def _of_pandas(frame: Any) -> Table:
    """Make a table of the columns and of the named levels of the index."""
    names = [str(name) for name in frame.columns]
    levels = [level for level in frame.index.names if level is not None and str(level) not in names]

    def column(i: int) -> Any:
        if i < len(names):
            return frame.iloc[:, i]
        return frame.index.get_level_values(levels[i - len(names)])

    return _lazy([*names, *map(str, levels)], column, frame="pandas")


def _of_dataset(source: Any) -> Any:
    """Return a dataset of Hugging Face as an Arrow table with names of classes."""
    if hasattr(source, "keys"):
        splits = ", ".join(map(repr, source.keys()))
        raise TypeError(f"it has several splits, {splits}: pass one of them")
    if not hasattr(source, "with_format") or not hasattr(source, "__len__"):
        raise TypeError("it is a stream: load it whole, or write it to Parquet")
    return with_class_names(source.with_format("arrow")[:], class_names(source))


def class_names(source: Any) -> dict[str, list[str]]:
    """Return the names of classes by column, which Hugging Face keeps beside the numbers.

    `source` is one of its datasets, or the schema of a Parquet file; anything else has none.
    """
    features: Any = {}
    if type(source).__module__.partition(".")[0] == "datasets":
        features = source.features.to_dict()
    else:
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            features = json.loads(source.metadata[b"huggingface"])["info"]["features"]
    found = {}
    for column, kind in features.items():
        of_each = kind.get("feature", kind) if isinstance(kind, dict) else None  # of a list
        if isinstance(of_each, dict) and of_each.get("_type") == "ClassLabel":
            found[column] = list(of_each.get("names") or ())
    return {column: names for column, names in found.items() if names}


def with_class_names(table: Any, names: Mapping[str, list[str]]) -> Any:
    """Replace the numbers of classes by their names, also inside lists; -1 is no label.

    A column of them becomes an ordered dictionary, which keeps the order and unused classes.
    """
    import pyarrow as pa

    def named(value: Any) -> Any:
        if isinstance(value, list):
            return [named(one) for one in value]
        if not isinstance(value, int) or value >= len(of):
            return value
        return of[value] if value >= 0 else None

    for name, of in names.items():
        if name in table.column_names:
            made = pa.array([named(value) for value in table.column(name).to_pylist()])
            if not pa.types.is_nested(made.type):
                made = in_order(made.cast(pa.string()), of)
            table = table.set_column(table.column_names.index(name), name, made)
    return table
