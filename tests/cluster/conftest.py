"""A running cluster of two processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cluster.clusters import local


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """Return a client of two workers; only tests marked `dask` may ask for it."""
    with local(2) as client:
        yield client
