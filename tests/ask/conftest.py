"""Small crowds to ask about, and sessions that close themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tiebreak as tb
from tiebreak.simulate import Crowd

Open = Callable[..., tb.ask.Session]


@pytest.fixture
def crowd() -> Crowd:
    """Return forty tasks of two classes, by workers who err often."""
    return tb.simulate.crowd(40, 6, 2, accuracy=(0.6, 0.8), random_state=0)


@pytest.fixture
def truth(crowd: Crowd) -> dict[Any, Any]:
    """Return the class of every task."""
    return crowd.gold.to_dict()


@pytest.fixture
def open_session(tmp_path: Path, crowd: Crowd) -> Iterator[Open]:
    """Return a function that opens the session of this test, again and again.

    Pairs come at random where a test does not say otherwise: any open pair can be the next.
    """
    opened: list[tb.ask.Session] = []

    def open_it(responses: Any = None, **options: Any) -> tb.ask.Session:
        crowd_or_other = crowd.responses if responses is None else responses
        options = {"random_state": 0, "strategy": "random", **options}
        opened.append(tb.ask.Session(tmp_path / "session.db", crowd_or_other, **options))
        return opened[-1]

    yield open_it
    for session in opened:
        session.close()
