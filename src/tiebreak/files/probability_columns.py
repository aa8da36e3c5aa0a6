"""Probability columns: one probability per class, beside the labels of a file."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.errors import InputError
from tiebreak.files.columns import PREFIX
from tiebreak.files.response_table import probability_columns
from tiebreak.files.table import Table
from tiebreak.ids import MISSING, Column, Ids, is_arrow
from tiebreak.ids.numbers import as_numbers, offenders
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.responses import sorted_classes
from tiebreak.wording import Source, agreeing, counted

SUM_TOLERANCE = 1e-3  # files keep three digits or more


class Classes(NamedTuple):
    """The sorted classes of a file, the code of each label used, and (n_tasks, n_classes)."""

    names: Ids
    code_of_used: Codes
    probabilities: Floats | None


def read_classes(table: Table, used: Ids) -> Classes:
    """Find the classes: those of the probability columns, else those that some label uses."""
    positions = probability_columns(table)
    if not positions:
        classes, new_code = sorted_classes(used)
        return Classes(classes, new_code, None)
    texts = [table.names[i][len(PREFIX) :] for i in positions]
    classes, new_code = sorted_classes(_typed_like(used, texts))
    codes = classes.codes(used)
    without = np.flatnonzero(codes == MISSING)
    if len(without):
        raise InputError(
            f"{table.title}: label {used[int(without[0])]!r} has no column "
            f"{PREFIX}{used[int(without[0])]}. Add it, or remove all {PREFIX}… columns."
        )
    probabilities = np.empty((0, 0))
    for at, i, column in zip(new_code, positions, table.read(positions), strict=True):
        numbers = as_probabilities(table.names[i], column, table.source)
        if not probabilities.size:
            probabilities = np.empty((len(numbers), len(classes)))
        probabilities[:, at] = numbers
    refuse_odd_sums(probabilities, table)
    return Classes(classes, codes, probabilities)


def refuse_odd_sums(probabilities: Floats, table: Table) -> None:
    """Refuse rows whose class probabilities do not sum to 1."""
    sums = probabilities.sum(axis=1)
    rows = np.flatnonzero(np.abs(sums - 1.0) > SUM_TOLERANCE)
    if len(rows):
        first = int(rows[0])
        raise InputError(
            f"{table.title}: class probabilities of {counted(len(rows), 'row')} do not sum to 1 "
            f"({table.source.where(first)}: {sums[first]:.6g}). Correct them, or remove all "
            f"{PREFIX}… columns."
        )


def as_probabilities(name: str, column: Column, source: Source) -> Floats:
    """Return probabilities as numbers; what is missing or outside 0 to 1 is refused."""
    numbers, _ = as_numbers(column)
    rows = np.flatnonzero(~((numbers >= 0) & (numbers <= 1)))
    n = len(rows)
    if n:
        raise InputError(
            f"{counted(n, 'value')} of {name} {agreeing(n, 'are')} not between 0 and 1: "
            f"{offenders(rows, column, source)}. Correct them, or remove the column."
        )
    return numbers


def _typed_like(used: Ids, texts: list[str]) -> Ids:
    """Give classes that stand in column names, hence as text, the type of the labels."""
    by_text = {str(value): value for value in used}
    column: Column = used.values
    if is_arrow(column):
        import pyarrow as pa

        try:
            return Ids(pa.array(texts).cast(column.type))
        except pa.ArrowException:
            pass  # a type that cannot be read from text: known classes get their values back
    return Ids([by_text.get(text, text) for text in texts])
