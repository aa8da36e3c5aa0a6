"""Responses on some tasks, and in the codes of more classes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.data import Ids, Responses

Rows = list[tuple[int, int, str]]
CROWDS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 4), st.sampled_from("xyz")), min_size=1
)


def rows_of(crowd: Responses) -> list[tuple[object, ...]]:
    """Return (task, worker, label, weight) of each response."""
    weight = np.ones(crowd.n_responses) if crowd.weight is None else crowd.weight
    names = (
        crowd.tasks.take(crowd.task_of_each()),
        crowd.workers.take(crowd.worker_of_each()),
        crowd.classes.take(crowd.label_of_each()),
    )
    return list(zip(*names, weight.tolist(), strict=True))


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@given(CROWDS, st.randoms(use_true_random=False), st.booleans())
def test_tasks_keep_all_that_was_said_of_them(rows: Rows, chance: Random, heavy: bool) -> None:
    crowd = Responses.from_rows(rows)
    if heavy:
        weight = np.linspace(0.5, 2.0, crowd.n_responses)
        codes = (crowd.task_of_each(), crowd.worker_of_each(), crowd.label_of_each())
        crowd = Responses.from_codes(
            *codes, crowd.tasks, crowd.workers, crowd.classes, weight=weight
        )
    chosen = [task for task in range(crowd.n_tasks) if chance.random() < 0.5]
    chance.shuffle(chosen)
    part = crowd.on_tasks(np.array(chosen, dtype=np.int64))
    names = [crowd.tasks[task] for task in chosen]
    assert list(part.tasks) == names
    expected = [row for name in names for row in rows_of(crowd) if row[0] == name]
    assert rows_of(part) == expected


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
@given(CROWDS)
def test_more_classes_change_no_response(rows: Rows) -> None:
    crowd = Responses.from_rows(rows)
    wider = crowd.in_classes(Ids("wxyz"))
    assert list(wider.classes) == list("wxyz")
    assert rows_of(wider) == rows_of(crowd)
    assert crowd.in_classes(crowd.classes) is crowd
