"""Kernels without vector instructions, in a process where numba has moved its inside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tiebreak

HERE = Path(__file__).parent


def test_plain_loops_do_the_same_where_numba_has_moved(tmp_path: Path) -> None:
    """Kernels are compiled into a folder of their own: those with vectors must not be found."""
    paths = [HERE.parent, Path(tiebreak.__file__).parents[1]]
    more = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(
        [sys.executable, str(HERE / "plain_loops.py")],
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
