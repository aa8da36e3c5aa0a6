"""Public copies in our columns, ids and classes."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from public_copies import LABELS, TRUTHS, tiny

from tiebreak.datasets.convert import convert
from tiebreak.errors import FileError, InputNote
from tiebreak.responses import Responses


def rows_of(responses: Responses) -> list[tuple[str, str, str]]:
    columns = (
        (responses.tasks, responses.task_of_each()),
        (responses.workers, responses.worker_of_each()),
        (responses.classes, responses.label_of_each()),
    )
    return list(zip(*(names.take(codes) for names, codes in columns), strict=True))


def test_codes_become_classes_and_tasks_are_numbered_as_in_the_source() -> None:
    responses, gold = convert(tiny(), LABELS, TRUTHS)
    assert gold.to_dict() == {"1": "yes", "3": "no", "4": "yes"}
    assert list(responses.tasks) == ["1", "2", "3", "4"]
    assert list(responses.classes) == ["no", "yes"]
    assert ("2", "1", "no") in rows_of(responses)  # the row 1,1,0
    assert ("2", "3", "yes") in rows_of(responses)  # the row 1,3,1


def test_codes_are_classes_where_no_table_is_given() -> None:
    entry = tiny(b"item,worker,label\n0,7,no\n", b"item,truth\n0,yes\n",
                 n_tasks=1, n_workers=1, n_responses=1, n_gold=1)  # fmt: skip
    entry = entry._replace(copy=entry.copy._replace(classes={}, first_task=0))
    responses, gold = convert(entry, b"item,worker,label\n0,7,no\n", b"item,truth\n0,yes\n")
    assert rows_of(responses) == [("0", "7", "no")]
    assert gold.to_dict() == {"0": "yes"}


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)), min_size=1).filter(
        lambda rows: len({label for *_, label in rows}) == 2
    )
)
def test_of_repeated_answers_the_last_counts_as_everywhere(
    rows: list[tuple[int, int, int]],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNote)
        expected = Responses.from_rows(
            [(str(i + 1), str(w), ("no", "yes")[label]) for i, w, label in rows]
        )
    labels = "\n".join(["item,worker,label", *(f"{i},{w},{c}" for i, w, c in rows), ""]).encode()
    entry = tiny(labels, n_tasks=expected.n_tasks, n_workers=expected.n_workers,
                 n_responses=expected.n_responses)  # fmt: skip
    responses, _ = convert(entry, labels, TRUTHS)
    assert sorted(rows_of(responses)) == sorted(rows_of(expected))


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (b"task,worker,label\n0,0,1\n", "its header is"),
        (b"", "its header is"),
        (b"item,worker,label\n0,0,1\n0,0\n", "line 3 has not 3 fields"),
        (b"item,worker,label\n0,0,2\n", "label '2' is none of 0, 1"),
        (b"item,worker,label\nzero,0,1\n", "task 'zero' is not a number"),
    ],
)
def test_a_copy_that_is_not_as_the_catalogue_says_is_refused(labels: bytes, told: str) -> None:
    with pytest.raises(FileError, match=rf"label\.csv is not as the catalogue says: {told}"):
        convert(tiny(labels), labels, TRUTHS)


def test_a_copy_with_other_rows_than_the_catalogue_says_is_refused() -> None:
    entry = tiny()
    with pytest.raises(FileError, match="it has 162 rows, expected 161"):
        convert(entry, LABELS + b"3,3,1\n", TRUTHS)


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ({"n_tasks": 5}, r"4 tasks \(expected 5\)"),
        ({"n_workers": 39}, r"40 workers \(expected 39\)"),
        ({"n_classes": 3}, r"2 classes \(expected 3\)"),
        ({"n_responses": 161}, r"160 responses \(expected 161\)"),
        ({"n_gold": 4}, r"3 gold \(expected 4\)"),
    ],
)
def test_every_count_is_checked(fact: dict[str, Any], told: str) -> None:
    with pytest.raises(FileError, match=f"tiny has {told}"):
        convert(tiny(**fact), LABELS, TRUTHS)
