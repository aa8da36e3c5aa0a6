"""Columns of a panel of judges: order, confidence and group, brought beside its responses.

Responses are sorted by task and code when they are built. What a file says of each of them is read
a second time and sorted alike; equal rows may change places, which no sum notices.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tiebreak.errors import note
from tiebreak.files.response_table import ResponseColumns, joined
from tiebreak.files.table import Table, stripped
from tiebreak.ids import MISSING, Column, as_list, is_arrow
from tiebreak.ids.numbers import as_numbers
from tiebreak.kernels.layout import Codes, Floats
from tiebreak.responses import Responses
from tiebreak.responses.weighing import Extras, weigh

ROLES = ("order", "confidence", "group")
SCALES = (1.0, 5.0, 10.0, 100.0)  # what confidence may go up to


def weigh_panel(table: Table, found: ResponseColumns, responses: Responses) -> Responses:
    """Weigh responses by runs, and by the order and the confidence that the table tells."""
    roles = [role for role in ROLES if role in found.extras]
    if not roles:
        return weigh(responses)
    codes, columns = _read(table, found, responses, roles)
    task, worker, label = codes
    given = (task != MISSING) & (worker != MISSING) & (label != MISSING)
    rows = np.flatnonzero(given)
    code = worker[rows].astype(np.int64) * responses.n_classes + label[rows]
    rows = rows[np.lexsort((code, task[rows]))]
    order: Codes | None = None
    names: list[str] = []
    if "order" in columns:
        order, names = _order_codes(columns["order"])
        order = order[rows]
    confidence = None
    if "confidence" in columns:
        confidence = as_confidence(columns["confidence"], table)
        confidence = None if confidence is None else confidence[rows]
    groups = _groups(columns.get("group"), worker)
    return weigh(responses, Extras(order, names, confidence, groups))


def _read(
    table: Table, found: ResponseColumns, responses: Responses, roles: list[str]
) -> tuple[list[Codes], dict[str, list[Any]]]:
    """Return codes of task, worker and label of every row, and the values of other columns."""
    n_task = len(found.task)
    n_ids = n_task + len(found.worker)
    positions = [*found.task, *found.worker, found.label, *(found.extras[r] for r in roles)]
    parts: list[list[Codes]] = [[], [], []]
    values: dict[str, list[Any]] = {role: [] for role in roles}
    ids = (responses.tasks, responses.workers, responses.classes)
    for columns in table.batches(positions):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what was stripped is told when responses are built
            columns = stripped(table, columns)
        made = joined(columns[:n_task]), joined(columns[n_task:n_ids]), columns[n_ids]
        for part, names, column in zip(parts, ids, made, strict=True):
            part.append(_codes(names, column))
        for role, column in zip(roles, columns[n_ids + 1 :], strict=True):
            values[role] += as_list(column)
    return [np.concatenate(part) for part in parts], values


def _codes(names: Any, column: Column) -> Codes:
    if is_arrow(column) and "Dictionary" in type(column).__name__:
        column = column.dictionary_decode()
    return np.asarray(names.codes(column))


def _order_codes(values: list[Any]) -> tuple[Codes, list[str]]:
    texts = ["" if value is None else str(value) for value in values]
    names = sorted({text for text in texts if text})
    code = {text: i for i, text in enumerate(names)} | {"": MISSING}
    return np.array([code[text] for text in texts], dtype=np.int32), names


def as_confidence(values: Column, table: Table) -> Floats | None:
    """Return stated confidence between 0 and 1; None, with a note, where it is no such number.

    Scales up to 1, 5, 10 and 100 are known by the largest value.
    """
    numbers, _ = as_numbers(values)
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        note(f"{table.title}: column 'confidence' holds no number; it is not used.")
        return None
    scale = next((each for each in SCALES if known.max() <= each), None)
    if scale is None or known.min() < 0.0:
        note(
            f"{table.title}: 'confidence' goes from {known.min():g} to {known.max():g}, which is "
            "no scale from 0 to 1, 5, 10 or 100; it is not used."
        )
        return None
    return np.asarray(numbers / scale)


def _groups(values: list[Any] | None, worker: Codes) -> dict[int, str]:
    """Return the family of each worker: what the rows say, the first of them where they differ."""
    groups: dict[int, str] = {}
    for who, value in zip(worker.tolist(), values or (), strict=False):
        if who != MISSING and value is not None:
            groups.setdefault(who, str(value))
    return groups
