"""A real browser for tests: the system's chromium, driven by playwright, with the network off.

Reports and pages are opened in it, light and dark; axe-core, from npm, looks for what a person who
cannot see or use a mouse would trip over. Where one of the three is missing, tests marked `browser`
are skipped, and the summary says how many.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = "TIEBREAK_CHROMIUM"  # where chromium is, if it is not on the PATH
AXE = "TIEBREAK_AXE"  # where axe.min.js is, if .ci/run did not put it into .venv
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LEVELS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def chromium_path() -> str | None:
    """Return where chromium is, None where there is none."""
    named = os.environ.get(CHROMIUM)
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


def axe_path() -> Path | None:
    """Return where axe.min.js is, None where there is none."""
    named = os.environ.get(AXE)
    path = Path(named) if named else ROOT / ".venv" / "share" / "axe.min.js"
    return path if path.is_file() else None


def what_is_missing(*, needs_axe: bool) -> str | None:
    """Say what a test in a browser would need and does not find; None: nothing."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    if chromium_path() is None:
        return f"no chromium on the PATH, and {CHROMIUM} names none"
    if needs_axe and axe_path() is None:
        return f"no axe.min.js in .venv/share, and {AXE} names none"
    return None


@contextmanager
def launched() -> Iterator[Any]:
    """Start a browser, and end it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_path(),
            args=["--no-sandbox", "--disable-dev-shm-usage"],  # root in a container has neither
        )
        yield browser
        browser.close()


def violations(page: Any) -> list[str]:
    """Return what axe-core finds wrong with a page; its context must have `bypass_csp=True`."""
    path = axe_path()
    assert path is not None
    page.add_script_tag(path=str(path))
    found = page.evaluate(
        "tags => axe.run(document, {runOnly: {type: 'tag', values: tags}})", list(LEVELS)
    )
    return [
        f"{each['id']}: {each['help']} ({node['target']})"
        for each in found["violations"]
        for node in each["nodes"]
    ]
