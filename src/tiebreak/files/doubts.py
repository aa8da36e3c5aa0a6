"""Doubts about what was read: said in notes, with the way out, before anything is inferred."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tiebreak.errors import note
from tiebreak.files.table import Table
from tiebreak.ids import Column, Ids, is_arrow
from tiebreak.ids.folding import variants
from tiebreak.responses import Responses
from tiebreak.wording import counted

NOTHING = frozenset({"na", "n/a", "nan", "null", "none", "nil", "#n/a"})
MANY_CLASSES = 50
FEW_TASKS = 10  # below, as many classes as tasks say nothing
SHOWN = 5
MATRIX_VALUES = 20  # distinct whole numbers, at most, in each column of a matrix of labels


def note_odd_classes(responses: Responses) -> None:
    """Say what is odd about the classes of responses."""
    classes = responses.classes
    n_classes = len(classes)
    if n_classes > MANY_CLASSES or (n_classes >= responses.n_tasks >= FEW_TASKS):
        note(
            f"There are {n_classes:,} classes for {responses.n_tasks:,} tasks: is this the label "
            "column? Text answers must be grouped into classes first."
        )
    if n_classes > MANY_CLASSES * MANY_CLASSES:
        return  # not labels at all: looking at each is of no use
    for group in variants(classes)[:SHOWN]:
        note(
            f"Labels {', '.join(map(repr, group))} differ only in case, spaces or Unicode form, "
            "and are different classes. Join them with --fold-labels "
            "(responses.with_folded_labels())."
        )
    empty = [name for name in classes if isinstance(name, str) and name.casefold() in NOTHING]
    for name in empty:
        note(
            f"The label {name!r} is read as a class of its own. If it means no answer, leave the "
            "field empty."
        )


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


def note_matrix(rows: np.ndarray[Any, Any]) -> None:
    """Say that a matrix of few whole numbers is read as rows of task, worker, label."""
    if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu" or not len(rows):
        return
    if all(len(np.unique(rows[:, i])) <= MATRIX_VALUES for i in range(3)):
        note(
            f"An array of shape {rows.shape} is read as rows of task, worker, label. If its "
            "columns are workers and its values labels, pass one row per answer."
        )


def _has_spaces(column: Column) -> bool:
    """Tell whether any text of a column begins or ends with a space."""
    if not is_arrow(column) or not _is_text(column.type):
        return False
    import pyarrow.compute as pc

    tests = (pc.starts_with, pc.ends_with)
    return any(bool(pc.any(test(column, pattern=" ")).as_py()) for test in tests)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _strip(column: Column) -> tuple[Column, int]:
    """Return a column of text without spaces around values, and how many had some."""
    if not is_arrow(column):
        return column, 0
    if not _is_text(column.type):
        return column, 0
    import pyarrow.compute as pc

    bare = pc.utf8_trim(column, characters=" ")  # line ends stand in quotes, and are meant
    n_changed = pc.sum(pc.not_equal(bare, column)).as_py() or 0
    if not n_changed:
        return column, 0
    return pc.if_else(pc.equal(bare, ""), None, bare), int(n_changed)
