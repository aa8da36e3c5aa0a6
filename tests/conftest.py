"""What all tests share: fixed seeds, the folders of real data, which tests are quick."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser
import pytest
from hypothesis import settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Of a job in the background; commands that tests start would not see Ctrl-C either.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("tiebreak", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("tiebreak")

TESTS = Path(__file__).parent
DATA = "TIEBREAK_DATA"
JURIES = "TIEBREAK_JURIES"
SETS = "TIEBREAK_SETS"
IS_DATA = ("tiebreak", "data")  # travels with every report, also from a worker of xdist
IS_BROWSER = ("tiebreak", "browser")
IS_DASK = ("tiebreak", "dask")
HAS_DASK = importlib.util.find_spec("distributed") is not None

# What `make quick` runs, beside the examples in docstrings: every room, nothing that compiles.
QUICK = {
    *("test_docs.py", "test_evaluate.py", "test_ids.py", "test_simulate.py"),
    *("ask/test_contradictions.py", "ask/test_log.py"),
    *("cli/test_columns_option.py", "cli/test_evaluate_command.py"),
    *("tables/test_columns.py", "tables/test_read_labels.py", "tables/test_read_links.py"),
    *("tables/formats/test_every_format.py", "tables/formats/test_json_stream.py"),
    *("tables/test_round_trips.py", "tables/test_sources.py", "tables/test_wrong_files.py"),
    *("inference/test_estimators.py", "inference/test_golden.py"),
    "kernels/test_threads.py",
    *("links/test_links.py", "links/test_parity.py"),
    "research/paper/test_claims.py",
    *("selection/test_draws.py", "selection/test_value.py"),
    *("research/theory/test_bounds.py", "research/theory/test_golden.py"),
}

# What `make test` leaves to `make test-all`: kills, clusters, browsers, notebooks, servers, kernels
# and many drawn examples. Files, or folders with a slash at their end.
SLOW = (
    *("cluster/", "gpu/", "kernels/", "research/", "stream/", "golden/"),
    "bench/test_baselines.py",
    *("ask/test_console.py", "ask/test_durability.py", "ask/test_reopened.py"),
    *("cli/test_cluster_command.py", "cli/test_warm.py", "cli/test_no_surprise.py"),
    *("datasets/test_fetch.py", "kept/test_two_writers.py", "kept/test_update.py"),
    *("inference/test_invariance.py", "inference/test_modes.py"),
    *("inference/test_weights.py", "inference/test_worker_models.py"),
    *("page/test_attacks.py", "page/test_in_browser.py", "page/test_many_people.py"),
    *("page/test_strangers.py", "report/test_report_in_browser.py"),
    *("tables/formats/test_bad_records.py", "tables/test_round_trips.py"),
    *("test_benchmarks.py", "test_judges_page.py", "test_life_page.py", "test_tutorial.py"),
    "test_odd_arguments.py",
)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real datasets; only tests marked `data` may ask for it."""
    return Path(os.environ[DATA])


@pytest.fixture(scope="session")
def juries_dir() -> Path:
    """Return the folder of real juries; only tests marked `data` may ask for it."""
    return Path(os.environ[JURIES])


@pytest.fixture(scope="session")
def sets_dir() -> Path:
    """Return the folder of data for single capabilities; only tests marked `data` may ask."""
    return Path(os.environ[SETS])


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Return a running browser; only tests marked `browser` may ask for it."""
    with browser.launched() as started:
        yield started


def pytest_configure() -> None:
    for name in (DATA, JURIES, SETS):
        folder = os.environ.get(name)
        if folder and not Path(folder).is_dir():
            raise pytest.UsageError(f"{name} is set, but it names no folder. Correct or unset it.")
    missing = [name for name in (*QUICK, *SLOW) if not (TESTS / name).exists()]
    if missing:
        raise pytest.UsageError(f"A list in tests/conftest.py names no file: {sorted(missing)}.")


@pytest.hookimpl(tryfirst=True)  # before -m looks at markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_quick(item):
            item.add_marker(pytest.mark.quick)
        if _is_slow(item):
            item.add_marker(pytest.mark.slow)
        if (marker := item.get_closest_marker("browser")) is not None:
            item.user_properties.append(IS_BROWSER)
            missing = browser.what_is_missing(needs_axe="axe" in marker.args)
            if missing is not None:
                item.add_marker(pytest.mark.skip(reason=missing))
        if item.get_closest_marker("dask") is not None:
            item.user_properties.append(IS_DASK)
            if not HAS_DASK:
                item.add_marker(pytest.mark.skip(reason="the extra dask is not installed"))
        if item.get_closest_marker("data") is None:
            continue
        item.user_properties.append(IS_DATA)
        fixtures = getattr(item, "fixturenames", ())
        needed = [JURIES] if "juries_dir" in fixtures else [DATA]
        needed += [SETS] if "sets_dir" in fixtures else []
        for name in needed:
            if not os.environ.get(name):
                item.add_marker(pytest.mark.skip(reason=f"{name} names no folder"))


def _is_slow(item: pytest.Item) -> bool:
    """Say whether a test is of the larger tier."""
    if item.get_closest_marker("browser") is not None or item.get_closest_marker("dask"):
        return True
    if TESTS not in item.path.parents:
        return False
    path = item.path.relative_to(TESTS).as_posix()
    return any(path == each or (each[-1] == "/" and path.startswith(each)) for each in SLOW)


def _is_quick(item: pytest.Item) -> bool:
    """Say whether a test is an example, or of a quick file, without data and compiled code."""
    if isinstance(item, pytest.DoctestItem):
        return True
    is_listed = TESTS in item.path.parents and item.path.relative_to(TESTS).as_posix() in QUICK
    needs_data = item.get_closest_marker("data") is not None
    return is_listed and not needs_data and "numba" not in item.name


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    ran, skipped = _counts(terminalreporter, IS_BROWSER)
    missing = browser.what_is_missing(needs_axe=True) or "playwright, chromium and axe-core found"
    terminalreporter.line(f"browser tests: {ran} ran, {skipped} skipped ({missing})")
    ran, skipped = _counts(terminalreporter, IS_DASK)
    found = "found" if HAS_DASK else "the extra dask is not installed"
    terminalreporter.line(f"dask tests: {ran} ran, {skipped} skipped ({found})")
    ran, skipped = _counts(terminalreporter, IS_DATA)
    is_set = ", ".join(
        f"{name} is {'set' if os.environ.get(name) else 'not set'}" for name in (DATA, JURIES)
    )
    terminalreporter.line(f"data tests: {ran} ran, {skipped} skipped ({is_set})")


def _counts(reporter: pytest.TerminalReporter, kind: tuple[str, str]) -> tuple[int, int]:
    """Count the tests of a kind that ran, and those that were skipped."""
    ran = skipped = 0
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in reporter.getreports(outcome):
            properties = getattr(report, "user_properties", ())  # none where collecting failed
            if kind in map(tuple, properties):
                ran += outcome != "skipped"
                skipped += outcome == "skipped"
    return ran, skipped
