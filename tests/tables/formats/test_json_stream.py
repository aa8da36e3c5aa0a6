"""JSON record by record: any chunk size gives what `json.loads` gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables.said import refused

from tiebreak.errors import InputError
from tiebreak.tables import json_stream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(st.text(), VALUES, max_size=4), min_size=1, max_size=6)


def _values(data: bytes, chunk: int) -> list[Any]:
    return [value for _, value in json_stream.json_values(memoryview(data), "x.json", chunk)]


@given(records=RECORDS, chunk=st.integers(1, 40), is_ascii=st.booleans())
def test_lists_of_any_chunks(records: list[Any], chunk: int, is_ascii: bool) -> None:
    text = json.dumps(records, ensure_ascii=is_ascii, indent=1)
    data = text.encode("utf-8", "surrogatepass")
    assert _values(data, chunk) == records


@given(records=RECORDS, chunk=st.integers(1, 40))
def test_lines_of_any_chunks(records: list[Any], chunk: int) -> None:
    data = "\n".join(json.dumps(record) for record in records).encode()
    assert _values(data, chunk) == records


@given(records=RECORDS, cut=st.floats(0.0, 0.99))
def test_a_cut_list_is_never_read_as_a_whole_one(records: list[Any], cut: float) -> None:
    data = json.dumps(records).encode()
    shorter = data[: 1 + int((len(data) - 2) * cut)]
    with pytest.raises(InputError) as caught:
        _values(shorter, 1 << 20)
    assert caught.value.fields["file"] == "x.json"


def test_a_broken_record_does_not_read_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b'[{"a": 1}, {"a" 2}, ' + b'{"a": 3}, ' * 200_000 + b'{"a": 4}]'
    with refused("bad-json", record=2, line=1):
        _values(data, 1 << 10)
