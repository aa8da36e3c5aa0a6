"""Notes and warnings point at the line of the caller, however deep they arise."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tiebreak as tb

TWICE = [("a", "u", "x"), ("a", "u", "y"), ("b", "v", "y"), ("b", "u", "x")]
CROWD = tb.simulate.crowd(30, 5, 2, random_state=0)


def line_of(call: Callable[[], Any]) -> int:
    return inspect.getsourcelines(call)[1]


CALLS: list[Callable[[], Any]] = [
    lambda: tb.Responses.from_rows(TWICE),
    lambda: tb.VariationalBayes().fit(TWICE),
    lambda: tb.MajorityVote().fit(TWICE),
    lambda: tb.VariationalBayes(max_iter=1).fit(CROWD.responses),
    lambda: tb.GibbsSampler(n_warmup=0, n_draws=4, random_state=0).fit(CROWD.responses),
]


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_a_note_points_at_the_line_that_called(call: Callable[[], Any]) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert found
    for each in found:
        assert (Path(each.filename), each.lineno) == (Path(__file__), line_of(call))


def test_a_file_that_is_read_notes_at_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("task,worker,label\na,u,x\na,u,y\nb,v,y\n")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        tb.read_responses(path)
    assert {Path(each.filename) for each in found} == {Path(__file__)}
