"""Whoever writes a model file at the same time as somebody else loses nothing and mixes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fcntl", reason="needs fork and locks")

TESTS = Path(__file__).resolve().parent.parent
KINDS = ("save", "update", "stream")


def ended(folder: Path, kind: str, n_pairs: int) -> dict[str, int]:
    """Run pairs of processes; return how they ended."""
    done = subprocess.run(
        [sys.executable, "-m", "kept.two_writers", str(folder), kind, str(n_pairs)],
        cwd=TESTS, capture_output=True, text=True, check=False, timeout=3000,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    print(kind, found, done.stderr[-2000:])  # noqa: T201
    return found


def judge(found: dict[str, int], n_pairs: int, *, stream: bool) -> None:
    """Every pair is whole, every process ended well, and no file is left beside the model."""
    expected = {"whole": n_pairs, "exit 0": 2 * n_pairs}
    if stream:  # its events are sent twice
        expected = {"whole": 2 * n_pairs, "exit 0": 3 * n_pairs}
    assert {name: n for name, n in found.items() if n} == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_pairs_at_once_lose_and_mix_nothing(tmp_path: Path, kind: str) -> None:
    n_pairs = 10 if kind == "save" else 4
    judge(ended(tmp_path, kind, n_pairs), n_pairs, stream=kind == "stream")


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_five_hundred_pairs_at_once_lose_and_mix_nothing(tmp_path: Path, kind: str) -> None:
    judge(ended(tmp_path, kind, 500), 500, stream=kind == "stream")
