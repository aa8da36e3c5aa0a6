"""Tables of one value per task: which system it is about, with which chance it was drawn."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from tiebreak.errors import InputError
from tiebreak.files.columns import SELECTION, SYSTEMS, Schema, find_columns
from tiebreak.files.sources import as_table, is_column
from tiebreak.files.table import stripped
from tiebreak.ids import Column, as_list
from tiebreak.ids.numbers import as_numbers, offenders


def read_systems(
    source: Any, *, columns: Mapping[str, object] | None = None
) -> dict[Hashable, str]:
    """Read which system each task is about: columns task and system, or a mapping.

    >>> read_systems({"a": "new", "b": "old"})
    {'a': 'new', 'b': 'old'}
    """
    tasks, values, _ = _load(source, SYSTEMS, columns)
    rows = zip(as_list(tasks), as_list(values), strict=True)
    return {task: str(system) for task, system in rows if system is not None}


def read_selection(
    source: Any, *, columns: Mapping[str, object] | None = None
) -> dict[Hashable, float]:
    """Read with which chance each task was drawn to be labelled: above 0, up to 1.

    >>> read_selection([("a", 0.5), ("b", 1)])
    {'a': 0.5, 'b': 1.0}
    """
    tasks, values, table = _load(source, SELECTION, columns)
    numbers, _ = as_numbers(values)
    wrong = np.flatnonzero(~((numbers > 0.0) & (numbers <= 1.0)))
    if len(wrong):
        raise InputError(
            f"{len(wrong):,} chances of being drawn are not above 0 and at most 1: "
            f"{offenders(wrong, values, table.source)}."
        )
    return dict(zip(as_list(tasks), numbers.tolist(), strict=True))


def _load(
    source: Any, schema: Schema, columns: Mapping[str, object] | None
) -> tuple[Column, Column, Any]:
    if isinstance(source, Mapping) and not any(is_column(each) for each in source.values()):
        source = {schema.names[0]: list(source), schema.names[1]: list(source.values())}
    table = as_table(source, schema.names, len(schema.needed), None)
    positions = find_columns(table, schema, columns)
    task, value = stripped(table, table.read(list(positions.values())))
    return task, value, table
