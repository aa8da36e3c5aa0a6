"""What all tests share: fixed seeds, the folder of real datasets, how many tests used it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("tiebreak", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("tiebreak")

DATA = "TIEBREAK_DATA"
NO_DATA = f"{DATA} names no folder of datasets"
IS_DATA = ("tiebreak", "data")  # travels with every report, also from a worker of xdist


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real datasets; only tests marked `data` may ask for it."""
    return Path(os.environ[DATA])


def pytest_configure() -> None:
    folder = os.environ.get(DATA)
    if folder and not Path(folder).is_dir():
        raise pytest.UsageError(f"{DATA} is set, but it names no folder. Correct or unset it.")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    has_data = bool(os.environ.get(DATA))
    for item in items:
        if item.get_closest_marker("data") is None:
            continue
        item.user_properties.append(IS_DATA)
        if not has_data:
            item.add_marker(pytest.mark.skip(reason=NO_DATA))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    ran = skipped = 0
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.getreports(outcome):
            properties = getattr(report, "user_properties", ())  # none where collecting failed
            if IS_DATA in map(tuple, properties):
                ran += outcome != "skipped"
                skipped += outcome == "skipped"
    is_set = "set" if os.environ.get(DATA) else "not set"
    terminalreporter.line(f"data tests: {ran} ran, {skipped} skipped ({DATA} is {is_set})")
