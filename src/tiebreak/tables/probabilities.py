"""Probability columns: one probability per class, beside labels, or as soft votes in their place.

    task  worker  probability_no  probability_yes
    a     gpt     0.03            0.97

A soft vote is a vote for its likeliest class, and counts for what the worker's probabilities are
worth by how others voted (`data/confidence.py`), never for the number as it is. (Votes shared
out among classes were tried: a crowd of them teaches a confusion matrix that all answers mean
nothing, and the fit collapses.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tiebreak.data import Responses, ids
from tiebreak.data.ids import MISSING, Column, Ids, as_numbers, offenders
from tiebreak.data.runs import Extras, weigh
from tiebreak.errors import InputError, note
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.tables.columns import LABEL, PREFIX, VOTERS, find_columns, squashed
from tiebreak.tables.table import Table, read_stripped
from tiebreak.wording import Source

SUM_TOLERANCE = 1e-3  # files keep three digits or more
EVEN = 1e-9


def probability_columns(table: Table) -> list[int]:
    """Return which columns hold the probability of a class."""
    return [i for i, name in enumerate(table.names) if name.casefold().startswith(PREFIX)]


def has_soft_votes(table: Table, columns: Mapping[str, object]) -> bool:
    """Return whether a table has a probability for each class, and no label."""
    if len(probability_columns(table)) < 2 or "label" in columns:
        return False
    words = {LABEL.name, *LABEL.others}
    return not any(squashed(name) in words for name in table.names)


def read_soft_votes(table: Table, columns: Mapping[str, object]) -> Responses:
    """Read soft votes as weighted responses."""
    found = find_columns(table, VOTERS, columns)
    read = read_stripped(table, [found["task"], found["worker"]])
    (task, tasks), (worker, workers) = (
        complete(what, column, table) for what, column in zip(found, read, strict=True)
    )
    positions = probability_columns(table)
    names = Ids([table.names[i][len(PREFIX) :] for i in positions])
    classes, new_code = names.sorted()
    probability = _read(table, positions, new_code)
    note("soft-votes", table=table.title, n=len(classes))
    label = probability.argmax(axis=1).astype(np.int32)
    top = probability[np.arange(len(label)), label]
    rows = np.flatnonzero(top > 1.0 / len(classes) + EVEN)  # an even vote is no vote
    code = worker[rows].astype(np.int64) * len(classes) + label[rows]
    rows = rows[np.lexsort((code, task[rows]))]
    made = Responses.from_codes(task[rows], worker[rows], label[rows], tasks, workers, classes)
    return replace(weigh(made, Extras(confidence=top[rows])), frame=table.frame)


def read_classes(table: Table, used: Ids) -> tuple[Ids, Codes, Floats | None]:
    """Find the classes: those of the probability columns, else those that some label uses.

    Return them sorted, the code of each label used, and probabilities, (n_tasks, n_classes).
    """
    positions = probability_columns(table)
    if not positions:
        return *used.sorted(), None
    texts = [table.names[i][len(PREFIX) :] for i in positions]
    classes, new_code = _typed_like(used, texts).sorted()
    codes = classes.codes(used)
    without = np.flatnonzero(codes == MISSING)
    if len(without):
        raise InputError("no-column-of-class", table=table.title, label=used[int(without[0])])
    return classes, codes, _read(table, positions, new_code)


def as_probabilities(name: str, column: Column, source: Source) -> Floats:
    """Return probabilities as numbers; what is missing or outside 0 to 1 is refused."""
    numbers, _ = as_numbers(column)
    rows = np.flatnonzero(~((numbers >= 0) & (numbers <= 1)))
    if len(rows):
        shown = offenders(rows, column, source)
        raise InputError("no-probability", column=name, n=len(rows), shown=shown)
    return numbers


def complete(what: str, column: Column, table: Table) -> tuple[Codes, Ids]:
    """Encode a column in which no value may be missing."""
    codes, found = ids.encode(column)
    rows = np.flatnonzero(codes == MISSING)
    if len(rows):
        where = table.source.where(int(rows[0]))
        raise InputError("value-missing", table=table.title, n=len(rows), what=what, where=where)
    return codes, found


def _read(table: Table, positions: list[int], new_code: Codes) -> Floats:
    """Read columns of probabilities, (n_rows, n_classes), by the code of each class."""
    columns = table.read(positions)
    found = np.empty((len(columns[0]), len(columns)))
    for at, i, column in zip(new_code, positions, columns, strict=True):
        found[:, at] = as_probabilities(table.names[i], column, table.source)
    sums = found.sum(axis=1)
    rows = np.flatnonzero(np.abs(sums - 1.0) > SUM_TOLERANCE)
    if len(rows):
        first = int(rows[0])
        where = table.source.where(first)
        raise InputError("odd-sums", table=table.title, n=len(rows), where=where, sum=sums[first])
    return found


def _typed_like(used: Ids, texts: list[str]) -> Ids:
    """Give classes that stand in column names, hence as text, the type of the labels."""
    by_text = {str(value): value for value in used}
    import pyarrow as pa

    try:
        return Ids(pa.array(texts).cast(used.values.type))
    except pa.ArrowException:
        pass  # a type that cannot be read from text: known classes get their values back
    return Ids([by_text.get(text, text) for text in texts])
