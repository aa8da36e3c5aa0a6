"""Compiled sorting by task gives what plain NumPy gives, whatever the parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak.kernels.ingest import reference, sort_by_task
from tiebreak.kernels.ingest.reference import ResponseRows

rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2)), max_size=60)


def parts_of(
    given_rows: list[tuple[int, int, int]], cuts: list[int], worker: type, label: type
) -> list[ResponseRows]:
    table = np.array(given_rows, dtype=np.int32).reshape(-1, 3)
    return [
        ResponseRows(piece[:, 0].copy(), piece[:, 1].astype(worker), piece[:, 2].astype(label))
        for piece in np.split(table, sorted(min(cut, len(table)) for cut in cuts))
    ]


@given(rows, st.lists(st.integers(0, 60), max_size=3), st.permutations(range(3)), st.booleans())
@settings(deadline=None)
@pytest.mark.parametrize(
    ("worker", "label"), [(np.uint16, np.uint8), (np.int32, np.int32)], ids=["narrow", "wide"]
)
def test_compiled_and_plain_sorting_agree(
    worker: type,
    label: type,
    given_rows: list[tuple[int, int, int]],
    cuts: list[int],
    new: list[int],
    keep_last: bool,
) -> None:
    new_label = np.array(new, dtype=np.int32)
    parts = parts_of(given_rows, cuts, worker, label)
    plain = reference.arrange(parts, 7, new_label, keep_last=keep_last)
    fast = sort_by_task.arrange(parts, 7, new_label, keep_last=keep_last)
    assert fast.start.tolist() == plain.start.tolist()
    assert fast.code.tolist() == plain.code.tolist()
    assert fast.n_repeats == plain.n_repeats
    assert parts == []  # used up, so that memory is free early


@given(rows)
def test_the_last_answer_of_a_worker_counts(given_rows: list[tuple[int, int, int]]) -> None:
    arranged = reference.arrange(
        parts_of(given_rows, [], np.int32, np.int32),
        7,
        np.arange(3, dtype=np.int32),
        keep_last=True,
    )
    last = {(task, worker): label for task, worker, label in given_rows}
    task = np.repeat(np.arange(7), np.diff(arranged.start))
    pairs = zip(task.tolist(), (arranged.code // 3).tolist(), strict=True)
    assert dict(zip(pairs, (arranged.code % 3).tolist(), strict=True)) == last
    assert arranged.n_repeats == len(given_rows) - len(last)


@pytest.mark.parametrize("keep_last", [False, True])
def test_a_task_with_many_responses_is_sorted_too(keep_last: bool) -> None:
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, n, 5000, dtype=np.int32) for n in (3, 900, 4)]
    same = np.arange(4, dtype=np.int32)
    plain = reference.arrange([ResponseRows(*columns)], 3, same, keep_last=keep_last)
    fast = sort_by_task.arrange([ResponseRows(*columns)], 3, same, keep_last=keep_last)
    assert plain.n_repeats > 0
    assert np.array_equal(fast.start, plain.start)
    assert np.array_equal(fast.code, plain.code)


@given(rows, st.sampled_from([1, 2**20, 2**45, 2**61]))
def test_rows_are_ordered_as_by_two_keys(
    given_rows: list[tuple[int, int, int]], factor: int
) -> None:
    table = np.array(given_rows, dtype=np.int64).reshape(-1, 3)
    task = table[:, 0].astype(np.int32)
    then = table[:, 1] * factor  # the larger ones leave no bits for tasks and rows
    assert reference.order_of_rows(task, then).tolist() == np.lexsort((then, task)).tolist()


def test_codes_beyond_32_bits_are_kept_whole() -> None:
    worker = np.array([0, 3_000], dtype=np.int32)
    part = ResponseRows(np.zeros(2, np.int32), worker, np.array([0, 999_999], np.int32))
    code = reference.arrange([part], 1, np.arange(1_000_000, dtype=np.int32), keep_last=True).code
    assert code.tolist() == [0, 3_000_999_999]
