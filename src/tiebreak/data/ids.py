"""Ids: the names of tasks, workers and classes. Elsewhere arrays hold their codes, 0, 1, 2 …

Ids are Arrow arrays of one type: text, numbers, dates. Codes count up in order of first appearance.

    column   b a null b      codes   0 1 -1 0      ids   b a
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from tiebreak.errors import InputError
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.wording import Source, first_few

if TYPE_CHECKING:
    import pyarrow as pa

Column = Any  # an Arrow array, or what `arrow` makes one of
Hashes = npt.NDArray[np.uint64]

MISSING = -1
SEPARATOR = " | "  # between the parts of a composed id
ONE_ZERO = re.compile(r"[+-]?[0-9]+\.0")  # a whole number in a column with gaps, as tools write it
WHOLE = re.compile(r"[+-]?[0-9]+\.0+")
INT32_MAX = np.iinfo(np.int32).max
SHOWN_VALUES = 3
LOOKED_AT = 1 << 16  # rows, in a cache
HASHED_TOGETHER = 1 << 18  # ids; their bytes take 16 times as much memory while they are hashed
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Ids(Sequence[Hashable]):
    """Ids in a fixed order; code i stands for ids[i]. `values` is the Arrow array of them.

    >>> Ids(["x", "y"]).codes(["y", "z", "x"]).tolist()
    [1, -1, 0]
    """

    __slots__ = ("values",)

    def __init__(self, values: Column = ()) -> None:
        self.values: Any = arrow(values)

    @overload
    def __getitem__(self, i: int) -> Hashable: ...
    @overload
    def __getitem__(self, i: slice) -> Ids: ...
    def __getitem__(self, i: int | slice) -> Hashable | Ids:
        found = self.values[i]
        return Ids(found) if isinstance(i, slice) else found.as_py()

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.values.to_pylist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Ids) and other.values.type == self.values.type:
            return bool(self.values.equals(other.values))
        if isinstance(other, Sequence) and not isinstance(other, str):
            return list(self) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # compared by content

    def __repr__(self) -> str:
        shown = [repr(name) for name in self[:7]]  # one more than is shown
        return f"Ids([{first_few(shown, 6)}], n={len(self)})"

    def __reduce__(self) -> tuple[type[Ids], tuple[Column]]:
        return Ids, (self.values,)

    def codes(self, values: Column) -> Codes:
        """Return the code of each value, -1 where it is not among these ids.

        Text and numbers are compared as text where one side is text (a CSV file beside a typed
        table), so that task "7" of a file is task 7 of a frame.
        """
        import pyarrow.compute as pc

        asked = arrow(values)
        if asked is self.values:
            return np.arange(len(self), dtype=np.int32)
        known, asked = _comparable(self.values, asked)
        if len(asked) == 1 and asked.is_valid()[0].as_py():  # a table of all ids would take longer
            found = pc.index_in(known, value_set=asked).is_valid().index(True)
            return np.array([found.as_py()], dtype=np.int32)
        found = pc.index_in(asked, value_set=known).fill_null(MISSING)
        return np.asarray(found, dtype=np.int32)

    def take(self, codes: npt.NDArray[Any]) -> Ids:
        """Return the id of each code."""
        return Ids(self.values.take(arrow(codes)))

    def sorted(self) -> tuple[Ids, Codes]:
        """Return these ids in their order and, for each code, its new code."""
        import pyarrow.compute as pc

        order = np.asarray(pc.sort_indices(self.values), dtype=np.int64)
        new = np.empty(len(self), dtype=np.int32)
        new[order] = np.arange(len(self), dtype=np.int32)
        return self.take(order), new

    def merge(self, others: Ids) -> Ids:
        """Append those of `others` that are not among these, in their order."""
        new = np.flatnonzero(self.codes(others) == MISSING)
        return concatenate([self, others.take(new)]) if len(new) else self


def arrow(values: Column) -> pa.Array:
    """Return values as one Arrow array; None, NaN and what libraries have for nothing are missing.

    Tuples, and values of several types, are refused.
    """
    import pyarrow as pa

    if isinstance(values, Ids):
        return values.values
    if isinstance(values, pa.Array):
        return values
    made = values if isinstance(values, pa.ChunkedArray) else _from_values(values)
    if isinstance(made, pa.ChunkedArray):
        if pa.types.is_string(made.type) and made.nbytes > INT32_MAX:
            made = made.cast(pa.large_string())
        made = made.combine_chunks()
    return made.cast(pa.string()) if pa.types.is_null(made.type) else made


def _from_values(values: Column) -> Any:
    """Make an array of Python values, of NumPy's or of pandas'."""
    import pyarrow as pa

    given = values if hasattr(values, "__array__") else list(values)
    unfit = (pa.ArrowException, OverflowError, TypeError, ValueError)
    try:
        made = pa.array(given, from_pandas=True)
    except unfit:  # values that are nothing in some library's way, or of several types
        given = [None if _is_nothing(value) else value for value in given]
        try:
            made = pa.array(given)
        except unfit as error:
            raise InputError("mixed-ids", ids=given, reason=error) from None
    if pa.types.is_nested(made.type):
        given = [None if _is_nothing(value) else value for value in given]
        raise InputError("mixed-ids", ids=given, reason=f"they are read as {made.type}")
    return made


def _is_nothing(value: Any) -> bool:
    """Tell whether a value is None, pandas' NA, or some library's NaN."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.generic) and bool(value != value)


def concatenate(columns: Sequence[Ids]) -> Ids:
    """Put ids one after the other, as the type of the first that are there.

    >>> concatenate([Ids(["a"]), Ids(["b", "c"])])
    Ids(['a', 'b', 'c'], n=3)
    """
    import pyarrow as pa

    given = [each for each in columns if len(each)] or list(columns[:1])
    kind = given[0].values.type
    if is_text(kind) and sum(each.values.nbytes for each in given) > INT32_MAX:
        kind = pa.large_string()
    parts = []
    for each in given:
        try:
            parts.append(each.values.cast(kind))
        except pa.ArrowException:
            first = given[0][0]
            raise InputError("other-type-of-id", id=each[0], type=str(kind), first=first) from None
    return Ids(pa.concat_arrays(parts))


def span(names: Ids) -> tuple[Any, Any] | None:
    """Return the first and the last id in their order; None where their type has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        found = pc.min_max(names.values)
    except pa.ArrowNotImplementedError:
        return None
    return found["min"].as_py(), found["max"].as_py()


class Encoder:
    """Codes columns batch by batch; the same id has the same code in every batch.

    Arrow encodes each batch apart and keeps no table between calls. So batches wait, each in codes
    of names of its own, until `settle` encodes the names of all, those settled before first:

        batch      b a b    c b      names    b a | c b
        waiting    0 1 0    0 1      final    0 1   2 0

    After a batch in which most values differ (tasks in any order) the next waits as it is: to
    encode it alone would save nothing.
    """

    def __init__(self) -> None:
        self.n_waiting = 0  # names
        self._settled: pa.Array | None = None
        self._waiting: list[tuple[Codes, pa.Array]] = []
        self._is_distinct = True  # in each batch; the caller's own dictionaries may not be
        self._is_varied = False  # most values of the last batch differ
        self._kind: pa.DataType | None = None  # of the first batch; numbers are widened

    def __len__(self) -> int:
        """Return how many ids are settled."""
        return 0 if self._settled is None else len(self._settled)

    def names(self) -> Ids:
        """Return the ids that are settled, by code."""
        return Ids(() if self._settled is None else self._settled)

    def add(self, column: Column) -> int:
        """Take a batch; return how many rows it has."""
        import pyarrow as pa

        given = arrow(column)
        is_coded = pa.types.is_dictionary(given.type)
        if self._is_varied and not is_coded:
            self._is_distinct = False
            codes, names = np.arange(len(given), dtype=np.int32), given
        else:
            values = given if is_coded else given.dictionary_encode()
            codes, names = np.asarray(values.indices.fill_null(MISSING)), values.dictionary
            self._is_varied = 2 * len(names) > len(codes) > 0
        if is_coded:  # perhaps not in order of first appearance, or with names that no row uses
            self._is_distinct = False
            if not _in_order(codes, len(names)):
                used = np.asarray(values.indices.unique().drop_null())
                code_of = np.full(len(names) + 1, MISSING, dtype=np.int32)  # one for nothing
                code_of[used] = np.arange(len(used), dtype=np.int32)
                codes, names = code_of.take(codes, mode="wrap"), names.take(pa.array(used))
        if self._kind is None:
            self._kind = None if pa.types.is_null(names.type) else names.type
        elif not (is_text(self._kind) and is_text(names.type)):  # of any width
            self._kind = _wider(self._kind, names.type)
            names = names.cast(self._kind)
        narrowest = np.min_scalar_type(-1 - len(names))  # that holds all codes and −1
        self._waiting.append((codes.astype(narrowest, copy=False), names))
        self.n_waiting += len(names)
        return len(codes)

    def settle(self) -> Codes:
        """Return the final codes, −1 for nothing, of the rows that wait."""
        import pyarrow as pa

        waiting, self._waiting = self._waiting, []
        self.n_waiting = 0
        parts = [*([] if self._settled is None else [self._settled]), *(n for _, n in waiting)]
        kind = self._kind or pa.string()
        if is_text(kind) and sum(part.nbytes for part in parts) > INT32_MAX:
            kind = pa.large_string()
        joined = _without_empty(pa.concat_arrays([part.cast(kind) for part in parts]))
        if len(parts) == 1 and self._is_distinct and not joined.null_count:
            self._settled = joined
            return waiting[0][0]
        encoded = joined.dictionary_encode()
        self._settled = encoded.dictionary
        n_rows, n_names = sum(len(batch) for batch, _ in waiting), len(joined)
        codes = np.empty(n_rows, dtype=np.min_scalar_type(-1 - len(self)))
        final = np.asarray(encoded.indices.fill_null(MISSING)).astype(codes.dtype)
        while waiting:  # from the last, so that each is given back
            batch, names = waiting.pop()
            own = np.append(final[n_names - len(names) : n_names], codes.dtype.type(MISSING))
            own.take(batch, out=codes[n_rows - len(batch) : n_rows], mode="wrap")  # −1: the last
            n_rows, n_names = n_rows - len(batch), n_names - len(names)
        return codes


def encode(column: Column) -> tuple[Codes, Ids]:
    """Turn a column into codes, -1 where a value is missing, and its ids.

    >>> codes, found = encode(["b", "a", None, "b"])
    >>> codes.tolist(), found
    ([0, 1, -1, 0], Ids(['b', 'a'], n=2))
    """
    encoder = Encoder()
    encoder.add(column)
    return encoder.settle().astype(np.int32, copy=False), encoder.names()


def _in_order(codes: Codes, n_names: int) -> bool:
    """Tell whether all names are used, and first in their order: some rows mostly show it."""
    n_seen = 0
    for at in range(0, len(codes), LOOKED_AT):
        newest = np.maximum.accumulate(np.append(np.int32(n_seen - 1), codes[at : at + LOOKED_AT]))
        n_seen = int(newest[-1]) + 1
        if (np.diff(newest) > 1).any():
            return False
        if n_seen == n_names:
            break
    return n_seen == n_names


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type of number that holds those of both; the first where one is none."""
    import pyarrow as pa

    is_float = [pa.types.is_floating(kind) for kind in (one, other)]
    is_whole = [pa.types.is_integer(kind) for kind in (one, other)]
    if one == other or not all(map(any, zip(is_float, is_whole, strict=True))):
        return one
    return pa.float64() if any(is_float) else pa.int64()


def _without_empty(names: pa.Array) -> pa.Array:
    """Make empty text missing."""
    import pyarrow.compute as pc

    if not is_text(names.type) or pc.min(pc.binary_length(names)).as_py() != 0:
        return names
    return pc.if_else(pc.equal(names, ""), None, names)


def _comparable(one: pa.Array, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Make arrays of one type, so that equal values are equal: as text where one side is text."""
    import pyarrow as pa

    if one.type == other.type:
        return one, other
    kinds = (one.type, other.type)
    if all(pa.types.is_integer(kind) and kind != pa.uint64() for kind in kinds):
        return one.cast(pa.int64()), other.cast(pa.int64())
    return as_text(one), as_text(other)


def as_text(values: pa.Array) -> pa.Array:
    """Write values as Python does: 1.0 is "1.0", a true one "True"."""
    import pyarrow as pa

    kind = getattr(values.type, "value_type", values.type)  # of a dictionary: its values
    if is_text(kind) or pa.types.is_integer(kind):
        return values.cast(pa.large_string())
    texts = [None if value is None else str(value) for value in values.to_pylist()]
    return pa.array(texts, pa.large_string())


def is_arrow(column: Column) -> bool:
    """Tell whether a column is an Arrow array, without importing pyarrow."""
    return type(column).__module__.startswith("pyarrow")


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type of Arrow is text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_missing(value: object) -> bool:
    """Tell whether a Python value stands for nothing: None, NaN or empty text."""
    return value is None or value == "" or (isinstance(value, float) and value != value)


# Names that people write in several ways


def fold(name: Hashable) -> Hashable:
    """Return what a name is compared by; what is not text stays.

    >>> fold(" New  York "), fold("ＮＥＷ york"), fold("2.0"), fold(3)
    ('new york', 'new york', '2', 3)
    """
    if not isinstance(name, str):
        return name
    text = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
    return text.partition(".")[0] if WHOLE.fullmatch(text) else text


def variants(names: Iterable[Hashable]) -> list[list[Hashable]]:
    """Return the groups of names that folding joins, of two or more.

    >>> variants(["cat", "dog", "Cat"])
    [['cat', 'Cat']]
    """
    groups: dict[Hashable, list[Hashable]] = {}
    for name in names:
        groups.setdefault(fold(name), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def difference(group: Iterable[Hashable]) -> str:
    """Say in what names that fold alike differ.

    >>> difference(["cat", "Cat"])
    'differ only in case, spaces or Unicode form'
    >>> difference(["1", "1.0"])
    'are the same number'
    """
    if any(WHOLE.fullmatch(str(name)) for name in group):
        return "are the same number"
    return "differ only in case, spaces or Unicode form"


def number_twins(names: Ids) -> list[tuple[Hashable, Hashable]]:
    """Return the pairs of ids that are one whole number, written in two ways.

    >>> number_twins(Ids(["1", "2", "1.0"])), number_twins(Ids(["v1", "v1.0"]))
    ([('1', '1.0')], [])
    """
    import pyarrow.compute as pc

    values = names.values
    if not is_text(values.type):
        return []
    has_zero = pc.ends_with(values, ".0")  # much faster than the expression, which few need
    longer = values.filter(has_zero)
    if not len(longer):
        return []  # as nearly always: looking up all ids takes as long as coding them
    longer = longer.filter(pc.match_substring_regex(longer, f"^{ONE_ZERO.pattern}$"))
    shorter = pc.utf8_slice_codeunits(longer, 0, -len(".0"))
    is_there = pc.is_in(shorter, value_set=values.filter(pc.invert(has_zero)))
    both = shorter.filter(is_there).to_pylist(), longer.filter(is_there).to_pylist()
    return list(zip(*both, strict=True))


def composed(parts: Sequence[Any]) -> str:
    r"""Make one id of several; a separator inside a part is marked, so that no two ids merge.

    >>> composed(("q1", 2)), composed(("a | b", "c"))
    ('q1 | 2', 'a \\| b | c')
    """
    return SEPARATOR.join(str(part).replace(SEPARATOR, " \\| ") for part in parts)


# Columns of numbers: weights, probabilities


def as_numbers(column: Column) -> tuple[Floats, Mask]:
    """Return a column as numbers (NaN where it is none), and where a value is given at all.

    >>> as_numbers(["1.5", None, "x"])
    (array([1.5, nan, nan]), array([ True, False,  True]))
    """
    import pyarrow as pa

    if isinstance(column, list | tuple):  # of several types, perhaps
        values = column
    else:
        typed = arrow(column)
        if not pa.types.is_boolean(typed.type):
            with contextlib.suppress(pa.ArrowException):  # not a number as Arrow writes it
                return np.asarray(typed.cast(pa.float64())), np.asarray(typed.is_valid())
        values = typed.to_pylist()
    is_given = np.array([not is_missing(value) for value in values], dtype=bool)
    return np.array([_number(value) for value in values], dtype=np.float64), is_given


def _number(value: object) -> float:
    if isinstance(value, bool):  # True is not a number, although Python counts it as 1
        return np.nan
    try:
        return float(value)  # type: ignore[arg-type]  # whatever is not a number raises
    except (TypeError, ValueError, OverflowError):
        return np.nan


def offenders(rows: Offsets, column: Column, source: Source) -> str:
    """Name the first few wrong values and their places."""
    shown = []
    for row in rows[:SHOWN_VALUES].tolist():
        value = column[row].as_py() if is_arrow(column) else column[row]
        shown.append(f"{'nothing' if is_missing(value) else repr(value)} ({source.where(row)})")
    return "; ".join(shown + ["…"] * (len(rows) > SHOWN_VALUES))


# Hashes


def hash_ids(names: Ids) -> Hashes:
    """Return a 64-bit hash of each id: the same on every machine, in every run.

    >>> hash_ids(Ids(["a", "b", "a"])).tolist()[0] == hash_ids(Ids(["a"])).tolist()[0]
    True
    """
    import pyarrow as pa

    if pa.types.is_integer(names.values.type):
        return mixed(np.asarray(names.values.cast(pa.int64(), safe=False)).view(np.uint64))
    text = as_text(names.values)
    hashes = np.empty(len(text), np.uint64)
    for at in range(0, len(text), HASHED_TOGETHER):
        part = text[at : at + HASHED_TOGETHER]
        offsets = np.frombuffer(part.buffers()[1], np.int64)[part.offset :][: len(part) + 1]
        raw = np.frombuffer(part.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        length = np.diff(offsets)
        start = offsets[:-1] - offsets[0]
        place = np.arange(len(raw)) - np.repeat(start, length)  # of a byte in its text
        power = np.cumprod(np.full(length.max() + 1, MULTIPLIER))[place]
        terms = (raw.astype(np.uint64) + np.uint64(1)) * power
        total = np.where(length > 0, np.add.reduceat(np.append(terms, np.uint64(0)), start), 0)
        hashes[at : at + HASHED_TOGETHER] = mixed(total + length.astype(np.uint64))
    return hashes


def mixed(x: Hashes) -> Hashes:
    """Spread bits evenly: the finaliser of splitmix64."""
    x = x + MULTIPLIER
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
