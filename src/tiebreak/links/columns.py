"""Columns of links: from what the user gave to codes, and back."""

from __future__ import annotations

import numpy as np

from tiebreak import ids
from tiebreak.errors import LinkError
from tiebreak.ids import MISSING, Column, Ids
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.source import Source


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
        _refuse_missing_ids("left", left_code, source)
        _refuse_missing_ids("right", right_code, source)
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


def _refuse_missing_ids(side: str, codes: Codes, source: Source) -> None:
    missing = np.flatnonzero(codes == MISSING)
    if len(missing):
        places = "; ".join(source.where(int(row)) for row in missing[:3])
        raise LinkError(
            f"{len(missing):,} links have no task id on the {side} ({places}). "
            "Fill in the task or remove the row."
        )
