"""Compiled tables give ids the codes that a dictionary would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tiebreak.data.ids import Ids, coder_for, encoding
from tiebreak.kernels.contract import COMPILED_INTAKE
from tiebreak.kernels.layout import Codes

texts = st.text(max_size=20) | st.sampled_from(["", "12345678", "123456789", "1234567812345678"])
wholes = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 40)


def expected(values: list[Any]) -> tuple[list[int], list[Any]]:
    index: dict[Any, int] = {}
    missing = (None, "")
    codes = [-1 if v in missing else index.setdefault(v, len(index)) for v in values]
    return codes, list(index)


def coded(batches: list[pa.Array]) -> tuple[list[int], list[Any]]:
    """Code batch by batch, as where there are many rows."""
    coder = coder_for(batches[0], COMPILED_INTAKE)
    codes = [code for batch in batches for code in coder.add(batch).tolist()]
    assert len(coder) == len(coder.names())
    return codes, list(coder.names())


def compiled_codes(column: pa.Array) -> tuple[Codes, Ids]:
    """Code a column at once, as where there are many rows."""
    coder = coder_for(column, COMPILED_INTAKE)
    return coder.add(column), coder.names()


@given(st.lists(st.lists(st.none() | texts, max_size=30), min_size=1, max_size=4))
@example([["a"] * 9 + ["b"], ["b", "c", None, "", "a"], ["d"]])  # few ids: by way of Arrow
@settings(deadline=None)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_text_is_coded_as_by_a_dictionary(kind: pa.DataType, batches: list[list[Any]]) -> None:
    arrays = [pa.array(["slice", *batch], kind)[1:] for batch in batches]
    assert coded(arrays) == expected([value for batch in batches for value in batch])


@given(st.lists(st.lists(st.none() | wholes, max_size=30), min_size=1, max_size=4))
@settings(deadline=None)
def test_whole_numbers_are_coded_as_by_a_dictionary(batches: list[list[Any]]) -> None:
    arrays = [pa.array([0, *batch], pa.int64())[1:] for batch in batches]
    assert coded(arrays) == expected([value for batch in batches for value in batch])


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.uint64(), pa.string(), pa.large_string()],
    ids=str,
)
def test_ids_keep_their_type(kind: pa.DataType) -> None:
    column = pa.array([100, 7, 100, 0], pa.int64()).cast(kind)
    coder = coder_for(column, COMPILED_INTAKE)
    assert coder.add(column).tolist() == [0, 1, 0, 2]
    assert coder.names().values.type == kind
    assert coder.names().values.equals(column.take([0, 1, 3]))


def test_the_largest_numbers_of_64_bits_are_ids_too() -> None:
    column = pa.array([2**64 - 1, 0, 2**64 - 1], pa.uint64())
    assert coded([column]) == ([0, 1, 0], [2**64 - 1, 0])


@pytest.mark.parametrize("step", [1, 8, 1 << 20, 1 << 33])
def test_many_numbers_make_the_table_grow(step: int) -> None:
    values = np.random.default_rng(0).permutation(np.repeat(np.arange(70_000), 3)) * step
    codes, names = compiled_codes(pa.array(values))
    plain = pa.array(values).dictionary_encode()
    assert np.array_equal(codes, plain.indices.to_numpy())
    assert names.values.equals(plain.dictionary)


@pytest.mark.parametrize("template", ["t{}", "task-{:08d}", "{:040d}", "{}-suffix-that-is-long"])
def test_many_texts_make_the_table_grow(template: str) -> None:
    values = np.random.default_rng(0).permutation(np.repeat(np.arange(70_000), 3))
    column = pa.array([template.format(value) for value in values])
    codes, names = compiled_codes(column)
    plain = column.dictionary_encode()
    assert np.array_equal(codes, plain.indices.to_numpy())
    assert names.values.equals(plain.dictionary)


def test_pieces_of_a_long_column_share_their_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "BATCH", 1000)
    column = pa.array([f"w{i % 37}" if i % 11 else None for i in range(20_500)])
    codes, names = compiled_codes(column)
    plain = column.dictionary_encode()
    assert np.array_equal(codes, plain.indices.fill_null(-1).to_numpy())
    assert names.values.equals(plain.dictionary)
