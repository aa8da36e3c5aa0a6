"""Columns of links: from what the user gave to codes, and back."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak import ids
from tiebreak.errors import LinkError
from tiebreak.ids import MISSING, Codes, Column, Ids
from tiebreak.source import Source

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

KINDS: dict[Hashable, bool] = {True: True, False: False, "must": True, "cannot": False}


def check_lengths(**columns: Column | None) -> None:
    """Refuse columns that are not equally long."""
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        raise LinkError(f"The columns of links must be equally long; got {lengths}.")


def encode_ends(left: Column, right: Column, source: Source) -> tuple[Codes, Codes, Ids]:
    """Turn both columns of ids into codes of one list of tasks, in order of first appearance."""
    try:
        left_code, tasks = ids.encode(left)
        right_code, others = ids.encode(right)
        _refuse_nameless("left", left_code, source)
        _refuse_nameless("right", right_code, source)
        tasks = ids.merge(tasks, others)
    except (TypeError, ValueError) as error:
        if isinstance(error, LinkError):
            raise
        raise LinkError(f"The ids of left and right cannot be used together: {error}.") from None
    ends = np.column_stack([left_code, tasks.codes(others)[right_code]]).ravel()
    found, first, inverse = np.unique(ends, return_index=True, return_inverse=True)
    order = np.argsort(first)
    new = np.empty(len(found), dtype=np.int32)
    new[order] = np.arange(len(found), dtype=np.int32)
    code = new[inverse].reshape(-1, 2)
    return code[:, 0].copy(), code[:, 1].copy(), Ids(tasks.take(found[order]))


def read_kinds(link: Column, source: Source) -> Bools:
    """Return True for must, False for cannot."""
    values = _as_array(link)
    if values.dtype == bool:
        return values.copy()
    kinds = [_kind(value) for value in values.tolist()]
    wrong = [row for row, kind in enumerate(kinds) if kind is None]
    if wrong:
        shown = "; ".join(f"{values[row]!r} ({source.where(row)})" for row in wrong[:3])
        raise LinkError(
            f"{len(wrong):,} links are neither must nor cannot: {shown}. "
            "Write must or cannot (True or False)."
        )
    return np.array(kinds, dtype=bool)


def read_weights(weight: Column, source: Source) -> Floats | None:
    """Return weights, nan where none is given; None where no link has one."""
    values = _as_array(weight)
    try:
        weights = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.array([_number(value) for value in values.tolist()])
    wrong = np.flatnonzero((weights <= 0.0) | np.isinf(weights))
    if len(wrong):
        shown = "; ".join(f"{values[row]!r} ({source.where(int(row))})" for row in wrong[:3])
        raise LinkError(
            f"{len(wrong):,} weights of links are not numbers above 0: {shown}.\n"
            "A weight is the log-odds that the link is right; the column link says must or cannot. "
            "Leave it empty for a link that holds for sure."
        )
    return None if np.isnan(weights).all() else weights


def encode_sources(who: Column) -> tuple[Codes | None, Ids | None]:
    """Turn the column that says where links come from into codes, -1 where it is empty."""
    try:
        codes, sources = ids.encode(who)
    except TypeError as error:
        raise LinkError(f"A value of who cannot be used as a name: {error}.") from None
    return (codes, sources) if len(sources) else (None, None)


def recode_sources(who: Codes | None, old: Ids | None, new: Ids, n_links: int) -> Codes:
    """Translate codes of one list of sources into those of another."""
    if who is None or old is None:
        return np.full(n_links, MISSING, dtype=np.int32)
    return np.where(who == MISSING, MISSING, new.codes(old)[who]).astype(np.int32)


def show_weights(weight: Floats) -> Column:
    """Return weights as a column, empty where none is given."""
    if not np.isnan(weight).any():
        return weight
    return [None if value != value else value for value in weight.tolist()]


def show_sources(sources: Ids, who: Codes) -> Column:
    """Return sources as a column, empty where none is given."""
    if (who != MISSING).all():
        return sources.take(who)
    return [None if code == MISSING else sources[code] for code in who.tolist()]


def _as_array(column: Column) -> npt.NDArray[Any]:
    """Return a column as an array whose values are as given."""
    if ids.is_arrow(column) or hasattr(column, "__array__"):
        return np.asarray(column)
    return np.fromiter(column, dtype=object, count=len(column))


def _kind(value: Hashable) -> bool | None:
    try:
        return KINDS.get(value)
    except TypeError:  # a list, for instance, is no word
        return None


def _number(value: object) -> float:
    """Return a number, nan for nothing, and 0, which no weight may be, for anything else."""
    if ids.is_missing(value):
        return np.nan
    try:
        return float(value)  # type: ignore[arg-type]  # what cannot be read is caught
    except (TypeError, ValueError):
        return 0.0


def _refuse_nameless(side: str, codes: Codes, source: Source) -> None:
    nameless = np.flatnonzero(codes == MISSING)
    if len(nameless):
        places = "; ".join(source.where(int(row)) for row in nameless[:3])
        raise LinkError(
            f"{len(nameless):,} links name no task on the {side} ({places}). "
            "Fill in the task or remove the row."
        )
