"""Soft votes: one probability per class in place of a label.

    task  worker  probability_no  probability_yes
    a     gpt     0.03            0.97

A row is a vote for its likeliest class, and counts for what the worker's probabilities are worth by
how others voted (`responses/confidence.py`), never for the number as it is. (Votes shared out among
classes were tried: a crowd of them teaches a confusion matrix that all answers mean nothing, and
the fit collapses.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tiebreak import ids
from tiebreak.errors import InputError, note
from tiebreak.files.columns import PREFIX, RESPONSES, TASK, WORKER, Schema, find_columns
from tiebreak.files.probability_columns import as_probabilities, refuse_odd_sums
from tiebreak.files.response_table import probability_columns
from tiebreak.files.table import Table, stripped
from tiebreak.ids import MISSING, Ids
from tiebreak.kernels.layout import Codes
from tiebreak.responses import Responses, sorted_classes
from tiebreak.responses.weighing import Extras, weigh
from tiebreak.wording import agreeing, counted

EVEN = 1e-9
WHO = Schema("soft votes", RESPONSES.error, (TASK, WORKER))


def read_soft_votes(table: Table, chosen: Mapping[str, object] | None) -> Responses:
    """Read soft votes as weighted responses."""
    found = find_columns(table, WHO, chosen)
    task, tasks = _ids(table, "task", found["task"])
    worker, workers = _ids(table, "worker", found["worker"])
    positions = probability_columns(table)
    names = Ids([table.names[i][len(PREFIX) :] for i in positions])
    classes, new_code = sorted_classes(names)
    probability = np.empty((len(task), len(positions)))
    for at, i, column in zip(new_code, positions, table.read(positions), strict=True):
        probability[:, at] = as_probabilities(table.names[i], column, table.source)
    refuse_odd_sums(probability, table)
    note(
        f"{table.title}: probabilities of {len(classes):,} classes are soft votes: a vote for the "
        "likeliest class, which counts as far as its probability predicts agreement with others."
    )
    label = probability.argmax(axis=1).astype(np.int32)
    top = probability[np.arange(len(label)), label]
    rows = np.flatnonzero(top > 1.0 / len(classes) + EVEN)  # an even vote is no vote
    rows = rows[
        np.lexsort((worker[rows].astype(np.int64) * len(classes) + label[rows], task[rows]))
    ]
    made = Responses.from_codes(task[rows], worker[rows], label[rows], tasks, workers, classes)
    return replace(weigh(made, Extras(confidence=top[rows])), frame=table.frame)


def _ids(table: Table, what: str, position: int) -> tuple[Codes, Ids]:
    (column,) = stripped(table, table.read([position]))
    codes, names = ids.encode(column)
    missing: Any = np.flatnonzero(codes == MISSING)
    n = len(missing)
    if n:
        raise InputError(
            f"{table.title}: {counted(n, 'row')} {agreeing(n, 'have')} no {what} "
            f"({table.source.where(int(missing[0]))}). Fill it in or remove the row."
        )
    return codes, names
