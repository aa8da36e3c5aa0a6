"""Beside earlier code: ratios of `make bench` by the code of a commit and by today's, in turn.

    python -m benchmarks.against 4ae3703                      all, three rounds
    python -m benchmarks.against 4ae3703 sweep ids --rounds 5

A ratio that was stored another day met another state of the machine: crowd-kit alone took 191 ns a
response one day and 149 the next. So each round runs both codes, each with its own benchmarks, in
a worktree of its own, and `docs/performance.md` shows the medians side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import report
from benchmarks.__main__ import EVERY
from benchmarks.measure import RESULTS, about, keep


class Ratio(NamedTuple):
    """One ratio of a result."""

    result: str
    what: str
    find: Callable[[dict[str, Any]], float]
    is_gain: bool = True  # more is better; else it is a cost
    earlier: Callable[[dict[str, Any]], float] | None = None  # where its name has changed since


def _in_row(at: int, *names: str) -> Callable[[dict[str, Any]], float]:
    def find(result: dict[str, Any]) -> float:
        found = result["rows"][at]
        for name in names:
            found = found[name]
        return float(found)

    return find


def _milliseconds(at: int, name: str) -> Callable[[dict[str, Any]], float]:
    """Return the median time of a row; its first round loads and compiles."""
    return lambda result: round(1e3 * statistics.median(result["rows"][at][name][1:]), 2)


RATIOS = (
    Ratio("sweep", "crowd-kit / tiebreak, 2 classes", _in_row(0, "times_crowd_kit")),
    Ratio("sweep", "crowd-kit / tiebreak, 4 classes", _in_row(1, "times_crowd_kit")),
    Ratio("linked_sweep", "with / without links, 5e6", _in_row(0, "sweep", "ratio"), False),
    Ratio("linked_sweep", "with / without links, 1e7", _in_row(1, "sweep", "ratio"), False),
    Ratio("asking", "refit / first fit, 2 classes", _in_row(0, "refit_share"), False),
    Ratio("asking", "refit / first fit, 4 classes", _in_row(1, "refit_share"), False),
    Ratio("asking", "refit / first fit, 10 classes", _in_row(2, "refit_share"), False),
    *(
        Ratio(
            "asking",
            f"refit / first fit, uncalibrated, {n_classes} classes",
            _in_row(at, "uncalibrated_refit_share"),
            False,
            _in_row(at, "refit_share"),  # calibration came later
        )
        for at, n_classes in enumerate((2, 4, 10))
    ),
    Ratio("asking", "first fit, 2 classes, ms", _milliseconds(0, "first_fit_seconds"), False),
    Ratio("asking", "refit, 2 classes, ms", _milliseconds(0, "refit_seconds"), False),
    Ratio("asking", "first fit, 4 classes, ms", _milliseconds(1, "first_fit_seconds"), False),
    Ratio("asking", "refit, 4 classes, ms", _milliseconds(1, "refit_seconds"), False),
    Ratio("asking", "first fit, 10 classes, ms", _milliseconds(2, "first_fit_seconds"), False),
    Ratio("asking", "refit, 10 classes, ms", _milliseconds(2, "refit_seconds"), False),
    Ratio("frame", "crowd-kit / tiebreak, frame to labels", lambda r: r["fit"]["ratio"]),
)
NAMES = tuple(dict.fromkeys(ratio.result for ratio in RATIOS))


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


def measured(code: Path, name: str) -> dict[str, Any]:
    """Run one benchmark of a checked-out commit; return its result."""
    path = os.pathsep.join([str(code / "src"), str(code)])
    subprocess.run(
        [sys.executable, "-m", EVERY[name]],
        cwd=code,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    result: dict[str, Any] = json.loads((code / f"benchmarks/results/{name}.json").read_text())
    return result


def row_of(ratio: Ratio, earlier: list[float], now: list[float]) -> dict[str, Any]:
    """Return a ratio by both codes; `change` above 0: today's code does better."""
    change = statistics.median(now) / statistics.median(earlier)
    return {
        "result": ratio.result,
        "what": ratio.what,
        "is_gain": ratio.is_gain,
        "earlier": earlier,
        "now": now,
        "change": round((change if ratio.is_gain else 1 / change) - 1, 3),
    }


def kept_rows(commit: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what an earlier run against the same commit found of other benchmarks."""
    path = RESULTS / "against.json"
    stored = json.loads(path.read_text()) if path.exists() else {"earlier_commit": "", "rows": []}
    if stored["earlier_commit"] != commit:
        return []
    return [row for row in stored["rows"] if row["result"] not in names]


def main() -> None:
    """Measure both codes in turn, and write the page."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("commit")
    options.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}")
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    names = chosen.names or NAMES
    found: dict[Ratio, tuple[list[float], list[float]]] = {
        ratio: ([], []) for ratio in RATIOS if ratio.result in names
    }
    if set(names) - set(NAMES):
        options.error(f"names are of {', '.join(NAMES)}")
    with worktree(chosen.commit) as earlier, worktree("HEAD") as today:
        for number in range(chosen.rounds):
            for name in names:
                by_code = [measured(code, name) for code in (earlier, today)]
                for ratio, (before, now) in found.items():
                    if ratio.result == name:
                        before.append((ratio.earlier or ratio.find)(by_code[0]))
                        now.append(ratio.find(by_code[1]))
            print(f"round {number + 1} of {chosen.rounds} is done", file=sys.stderr, flush=True)
    result = {
        "what": "ratios of benchmarks by earlier code and by today's, in turn",
        "earlier_commit": chosen.commit,
        "rounds": chosen.rounds,
        "rows": [
            *kept_rows(chosen.commit, names),
            *(row_of(ratio, before, now) for ratio, (before, now) in found.items()),
        ],
    }
    keep("against", result | about("crowd-kit", "pandas"))
    report.write()


if __name__ == "__main__":
    main()
