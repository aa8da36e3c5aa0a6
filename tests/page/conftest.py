"""Jobs to serve: the demo's messages, and one in whose every name a script hides."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from page.served import Server, serving

from tiebreak import demo, tables

HOSTILE = "<script>window.hurt = true; alert(1)</script><img src=x onerror='window.hurt = true'>"
MISSING = (
    importlib.util.find_spec("starlette") is None or importlib.util.find_spec("uvicorn") is None
)


def write_hostile(path: Path) -> None:
    """Write responses in whose every name a script hides."""
    rows = [(t, w, (t * w) % 3) for t in range(9) for w in range(5)]
    columns = [[f"{row[k]}{HOSTILE}" for row in rows] for k in range(3)]
    tables.write_table(path, dict(zip(("task", "worker", "label"), columns, strict=True)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if MISSING:
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="the extra page is not installed"))


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of the demo."""
    folder = tmp_path_factory.mktemp("messages")
    demo.write(demo.run(), folder)
    return folder


@pytest.fixture(scope="module")
def server(messages: Path) -> Iterator[Server]:
    """Return a server that all tests of a module share."""
    (messages / "media").mkdir()
    (messages / "media" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (messages / "secret.png").write_bytes(b"secret")
    (messages / "media" / "out.png").symlink_to(messages / "secret.png")
    (messages / "media" / "etc").symlink_to("/etc")
    arguments = ("responses.csv", "--session", "shared.db", "--texts", "texts.csv")
    with serving(messages, *arguments, "--media", "media") as running:
        yield running
