"""Cold compiles: said once, also in a pipe, and done ahead by tiebreak.warm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tiebreak as tb
from tiebreak.errors import on_first_compile, tell_listeners


def _run(folder: Path, *arguments: str) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


def test_listeners_are_told_once() -> None:
    told: list[int] = []
    with on_first_compile(lambda: told.append(1)):
        tell_listeners()
        tell_listeners()
    tell_listeners()
    assert told == [1]


@pytest.fixture(scope="module")
def warmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warm")
    crowd = tb.simulate.crowd(50_000, 30, 4, responses_per_task=5, random_state=0)
    crowd.responses.write(folder / "r.csv")
    tb.simulate.links(crowd.gold, 3_000, random_state=0).write(folder / "k.csv")
    return folder


def test_the_first_large_fit_says_that_it_compiles_and_none_after_warm(warmed: Path) -> None:
    fuse = ("tiebreak", "fuse", "r.csv", "-o", "l.csv")
    assert _run(warmed, *fuse).count("compiling, once") == 1
    assert "compiling" not in _run(warmed, *fuse)
    _run(warmed, "tiebreak.warm", "4")
    assert "compiling" not in _run(warmed, *fuse, "--links", "k.csv")
    assert "compiling" not in _run(warmed, *fuse, "--links", "k.csv", "--set", "link_error=learn")
    assert "compiling" not in _run(warmed, *fuse, "--method", "ds")
