"""Small files of every format."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


@pytest.fixture
def data() -> Path:
    """Return the folder of small files, each as its tool writes it."""
    return DATA
