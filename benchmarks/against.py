"""Beside earlier code: times of our own work by the code of a commit and by today's, in turn.

    python -m benchmarks.against frozen                      all, five rounds
    python -m benchmarks.against frozen sweep refit --rounds 9 --threads 1

Each round runs `benchmarks.tasks_to_time` under both codes, each in a worktree and a process of
its own, so that both meet the same state of the machine; `docs/performance.md` shows the medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.measure import about, keep
from benchmarks.tasks_to_time import EVERY, prepare

SCRIPT = Path(__file__).with_name("tasks_to_time.py")


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "code")
        add = ["git", "worktree", "add", "--quiet", "--detach", str(made), commit]
        subprocess.run(add, check=True)
        try:
            yield made
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(made)], check=True)


def measured(code: Path, name: str, data: Path, n_threads: int) -> dict[str, float]:
    """Time one piece of work by a checked-out commit; return seconds or bytes by name."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(SCRIPT), name, str(data), str(n_threads)],
        env=os.environ | {"PYTHONPATH": str(code / "src"), "NUMBA_NUM_THREADS": str(n_threads)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return {key: float(value) for key, value in json.loads(done.stdout).items()}


def main() -> None:
    """Measure both codes in turn, and write the page."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("commit")
    options.add_argument("names", nargs="*", help=f"of {', '.join(EVERY)}")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--threads", type=int, default=2)
    chosen = options.parse_args()
    names = chosen.names or list(EVERY)
    if set(names) - set(EVERY):
        options.error(f"names are of {', '.join(EVERY)}")
    rows: list[dict[str, Any]] = []
    with (
        worktree(chosen.commit) as earlier,
        worktree("HEAD") as today,
        tempfile.TemporaryDirectory() as folder,
    ):
        prepare(Path(folder), names)
        for name in names:
            found: dict[str, list[tuple[float, float]]] = defaultdict(list)
            for number in range(chosen.rounds + 1):
                before, now = (
                    measured(code, name, Path(folder), chosen.threads) for code in (earlier, today)
                )
                for what in before if number else ():  # the first round compiles
                    found[what].append((before[what], now[what]))
            for what, pairs in found.items():
                rows.append(
                    {
                        "what": what,
                        "earlier": statistics.median(pair[0] for pair in pairs),
                        "now": statistics.median(pair[1] for pair in pairs),
                        "ratio": round(statistics.median(b / a for a, b in pairs), 3),
                        "ratios": [round(b / a, 3) for a, b in pairs],
                    }
                )
                print(json.dumps(rows[-1]), flush=True)
    result = {"earlier_commit": chosen.commit, "rounds": chosen.rounds, "threads": chosen.threads}
    stored = "against" if chosen.threads != 1 else "against_one_thread"
    keep(
        stored,
        {"what": "our own times by earlier code and today's", **result, "rows": rows} | about(),
    )
    report.write()


if __name__ == "__main__":
    main()
