"""Ids: distinct ids, and how they are found, sorted, joined, folded and composed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np
import numpy.typing as npt

from tiebreak.errors import InputError
from tiebreak.kernels.layout import Codes
from tiebreak.wording import first_few

if TYPE_CHECKING:
    import pyarrow as pa

Column = Any  # an Arrow array, or a sequence of Python objects

MISSING = -1
SEPARATOR = " | "  # between the parts of a composed id
ONE_ZERO = re.compile(r"[+-]?[0-9]+\.0")  # a whole number in a column with gaps, as tools write it
WHOLE = re.compile(r"[+-]?[0-9]+\.0+")


class Ids(Sequence[Hashable]):
    """Distinct ids in a fixed order; code i stands for names[i].

    >>> Ids(("x", "y")).codes(["y", "z", "x"]).tolist()
    [1, -1, 0]
    """

    __slots__ = ("_index", "values")

    def __init__(self, values: Column) -> None:
        self.values: Column = values if is_arrow(values) else tuple(values)
        self._index: dict[Hashable, int] | None = None

    @overload
    def __getitem__(self, i: int) -> Hashable: ...
    @overload
    def __getitem__(self, i: slice) -> Ids: ...
    def __getitem__(self, i: int | slice) -> Hashable | Ids:
        if isinstance(i, slice):
            return Ids(self.values[i])
        value = self.values[i]
        return cast(Hashable, value.as_py() if is_arrow(self.values) else value)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.values.to_pylist() if is_arrow(self.values) else self.values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Ids) and other.values is self.values:
            return True
        if isinstance(other, Sequence) and not isinstance(other, str):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # compared by content

    def __repr__(self) -> str:
        shown = [repr(name) for name in self[:7]]  # one more than is shown
        return f"Ids([{first_few(shown, 6)}], n={len(self)})"

    def __reduce__(self) -> tuple[type[Ids], tuple[Column]]:
        return Ids, (self.values,)

    def codes(self, values: Column) -> Codes:
        """Return the code of each value, -1 where it is not among the names.

        Text and whole numbers are compared as text where one side is text (a CSV file beside a
        typed table), so that task "7" of a file is task 7 of a frame.
        """
        if isinstance(values, Ids):
            values = values.values
        if values is self.values:
            return np.arange(len(self), dtype=np.int32)
        if is_arrow(self.values) and is_arrow(values):
            return _arrow_codes(self.values, values)
        if self._index is None:
            self._index = {name: i for i, name in enumerate(self)}
        plain = as_list(values)
        index: dict[Hashable, int] = self._index
        if plain and index and _is_str(plain[0]) != _is_str(next(iter(index))):
            index = {str(name): i for name, i in index.items()}
            plain = [str(value) for value in plain]
        found = (index.get(value, MISSING) for value in plain)
        return np.fromiter(found, dtype=np.int32, count=len(plain))

    def _with(self, more: list[Hashable]) -> Ids:
        """Return these and more, which are new; an index that is there serves on."""
        made = Ids((*self, *more))
        if self._index is not None:
            made._index = self._index | {name: len(self) + i for i, name in enumerate(more)}
        return made

    def take(self, codes: npt.NDArray[Any]) -> Column:
        """Return the column of names for codes: an Arrow array or a list."""
        if is_arrow(self.values):
            return self.values.take(to_arrow(codes))
        return [self.values[i] for i in codes.tolist()]


def sort(names: Ids) -> tuple[Ids, Codes]:
    """Sort names; return them and, for each old code, its new code.

    Raises TypeError where the names cannot be compared with each other.
    """
    if is_arrow(names.values):
        import pyarrow.compute as pc

        order = np.asarray(pc.sort_indices(names.values), dtype=np.int64)
    else:
        plain: list[Any] = list(names)
        order = np.array(sorted(range(len(plain)), key=lambda i: plain[i]), dtype=np.int64)
    new = np.empty(len(names), dtype=np.int32)
    new[order] = np.arange(len(names), dtype=np.int32)
    return Ids(names.take(order)), new


def merge(first: Ids, others: Ids) -> Ids:
    """Append to `first` the names of `others` that it does not have, in their order."""
    new = np.flatnonzero(first.codes(others) == MISSING)
    if not len(new):
        return first
    extra = others.take(new)
    if not is_arrow(first.values):
        return first._with(as_list(extra))
    import pyarrow as pa

    try:
        like_first = extra if is_arrow(extra) else pa.array(extra, type=first.values.type)
        return Ids(pa.concat_arrays([first.values, like_first.cast(first.values.type)]))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise InputError(
            f"{as_list(extra)[0]!r} is not of type {first.values.type}, as {first[0]!r} and the "
            "others are. Give all of them as one type, for instance text."
        ) from None


def concatenate(columns: Sequence[Column]) -> Ids:
    """Put columns of distinct ids one after the other; all of one type where all are typed.

    >>> concatenate([["a"], ["b", "c"]])
    Ids(['a', 'b', 'c'], n=3)
    """
    if not all(is_arrow(column) for column in columns):
        return Ids([name for column in columns for name in as_list(column)])
    import pyarrow as pa

    like = next((column for column in columns if len(column)), columns[0])
    return Ids(pa.concat_arrays([column.cast(like.type) for column in columns]))


def span(names: Ids) -> tuple[Any, Any] | None:
    """Return the first and the last id in their order; None where no typed column has one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_arrow(names.values):
        return None
    try:
        found = pc.min_max(names.values)
    except pa.ArrowNotImplementedError:
        return None
    return found["min"].as_py(), found["max"].as_py()


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

    >>> number_twins(Ids(["1", "2", "1.0"])), number_twins(Ids([7, "7"]))
    ([('1', '1.0')], [(7, '7')])
    >>> number_twins(Ids(["v1", "v1.0"]))
    []
    """
    values = names.values
    if not is_arrow(values):
        known = set(values)
        pairs: list[tuple[Hashable, Hashable]]
        pairs = [(name, str(name)) for name in values if isinstance(name, int)]
        written = [name for name in values if isinstance(name, str) and ONE_ZERO.fullmatch(name)]
        pairs += [(name.removesuffix(".0"), name) for name in written]
        return [pair for pair in pairs if known.issuperset(pair)]
    if not is_text(values.type):
        return []
    import pyarrow.compute as pc

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


def is_missing(value: object) -> bool:
    """Tell whether a Python value stands for nothing: None, NaN or empty text."""
    return value is None or value == "" or (isinstance(value, float) and value != value)


def is_arrow(column: Column) -> bool:
    """Tell whether a column is an Arrow array, without importing pyarrow."""
    return type(column).__module__.startswith("pyarrow")


def as_list(column: Column) -> list[Any]:
    """Return a column as a list of Python values."""
    return list(column.to_pylist() if is_arrow(column) else column)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type of Arrow is text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_str(value: object) -> bool:
    return isinstance(value, str)


def to_arrow(codes: npt.NDArray[Any]) -> pa.Array:
    """Return numbers as an Arrow array."""
    import pyarrow as pa

    return pa.array(codes)


def _arrow_codes(names: Any, values: Any) -> Codes:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if values.type != names.type:
        names = _comparable(names)
        values = _comparable(values)
    if values.type != names.type:  # one side is text: compare both as text
        names = _as_text(names)
        values = _as_text(values)
    found = pc.index_in(values, value_set=names)
    codes: Codes = found.fill_null(MISSING).to_numpy().astype(np.int32, copy=False)
    return codes


def _comparable(values: Any) -> Any:
    """Widen whole numbers and text to one type each, so that equal values are equal."""
    import pyarrow as pa

    if pa.types.is_integer(values.type) and values.type != pa.uint64():
        return values.cast(pa.int64())
    if is_text(values.type):
        return values.cast(pa.large_string())
    return values


def _as_text(values: Any) -> Any:
    """Write values as Python does: 1.0 is "1.0", a true one "True"."""
    import pyarrow as pa

    if pa.types.is_large_string(values.type):
        return values
    if pa.types.is_integer(values.type):
        return values.cast(pa.large_string())
    plain = values.to_pylist()
    text = [None if value is None else str(value) for value in plain]
    return pa.array(text, pa.large_string())
