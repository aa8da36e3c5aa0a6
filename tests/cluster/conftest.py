"""A running cluster of two processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """Return a client of two workers; only tests marked `dask` may ask for it."""
    from tiebreak.cli.cluster import connected

    with connected("local:2") as client:
        yield client
