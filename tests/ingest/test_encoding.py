"""Columns of Arrow are given the codes that a dictionary would give, at once or in batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tiebreak.data import Builder, Responses, building, ids

texts = st.text(max_size=20) | st.sampled_from(["", "12345678", "123456789"])
wholes = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 40)


def expected(values: list[Any]) -> tuple[list[int], list[Any]]:
    index: dict[Any, int] = {}
    missing = (None, "")
    codes = [-1 if v in missing else index.setdefault(v, len(index)) for v in values]
    return codes, list(index)


def coded(batches: list[pa.Array], n_together: int) -> tuple[list[int], list[Any]]:
    """Code batch by batch; codes are settled after some batches, as builders do."""
    coder = ids.Encoder()
    codes: list[int] = []
    for at in range(0, len(batches), n_together):
        some = batches[at : at + n_together]
        assert [coder.add(batch) for batch in some] == [len(batch) for batch in some]
        codes += coder.settle().tolist()
    assert len(coder) == len(coder.names())
    return codes, list(coder.names())


@given(
    st.lists(st.lists(st.none() | texts, max_size=30), min_size=1, max_size=4),
    st.integers(1, 3),
    st.booleans(),
)
@example([["a"] * 9 + ["b"], ["b", "c", None, "", "a"], ["d"]], 2, True)
@settings(deadline=None)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_text_is_coded_as_by_a_dictionary(
    kind: pa.DataType, batches: list[list[Any]], n_together: int, by_dictionary: bool
) -> None:
    arrays = [pa.array(["slice", *batch], kind)[1:] for batch in batches]
    given = [array.dictionary_encode() for array in arrays] if by_dictionary else arrays
    assert coded(given, n_together) == expected([value for batch in batches for value in batch])


@given(
    st.lists(st.lists(st.none() | wholes, max_size=30), min_size=1, max_size=4),
    st.integers(1, 3),
)
@settings(deadline=None)
def test_whole_numbers_are_coded_as_by_a_dictionary(
    batches: list[list[Any]], n_together: int
) -> None:
    arrays = [pa.array([0, *batch], pa.int64())[1:] for batch in batches]
    assert coded(arrays, n_together) == expected([value for batch in batches for value in batch])


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.uint64(), pa.string(), pa.large_string()],
    ids=str,
)
def test_ids_keep_their_type(kind: pa.DataType) -> None:
    column = pa.array([100, 7, 100, 0], pa.int64()).cast(kind)
    codes, names = ids.encode(column)
    assert codes.tolist() == [0, 1, 0, 2]
    assert names.values.type == kind
    assert names.values.equals(column.take([0, 1, 3]))


def test_the_largest_numbers_of_64_bits_are_ids_too() -> None:
    column = pa.array([2**64 - 1, 0, 2**64 - 1], pa.uint64())
    assert coded([column], 1) == ([0, 1, 0], [2**64 - 1, 0])


def test_a_dictionary_that_names_an_id_twice_gives_it_one_code() -> None:
    indices = pa.array([2, 1, None, 0, 3], pa.int8())
    column = pa.DictionaryArray.from_arrays(indices, ["a", "b", "a", "unused", ""][:4])
    codes, names = ids.encode(column)
    assert codes.tolist() == [0, 1, -1, 0, 2]
    assert list(names) == ["a", "b", "unused"]


@pytest.mark.filterwarnings("ignore::tiebreak.errors.InputNote")
def test_pieces_of_a_long_table_share_their_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "TOGETHER", 1_000)
    rng = np.random.default_rng(0)
    n = 20_500
    task = pa.array([f"t{i}" for i in rng.integers(0, 3_000, n)])
    worker = pa.array([f"w{i % 37}" for i in range(n)])
    label = pa.array([f"c{i}" if i else None for i in rng.integers(0, 4, n)])
    builder = Builder("count")
    for at in range(0, n, 300):
        batch = slice(at, at + 300)
        builder.add(task[batch], worker[batch].dictionary_encode(), label[batch])
    made = builder.finish()
    whole = Responses.from_columns(task, worker, label, repeats="count")
    assert np.array_equal(made.start, whole.start)
    assert np.array_equal(made.code, whole.code)
    assert (made.tasks, made.workers, made.n_empty) == (whole.tasks, whole.workers, whole.n_empty)
