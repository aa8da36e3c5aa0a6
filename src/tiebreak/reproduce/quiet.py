"""Quiet: fits whose every warning is expected and counted instead of said."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quietly() -> Iterator[None]:
    """Say nothing of sweeps that do not settle; the results count them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
