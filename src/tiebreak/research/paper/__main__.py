"""Run the paper's experiments and judge its claims: python -m tiebreak.research.paper.

Stop it whenever you like: the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

import tiebreak as tb
from tiebreak.research import paper


def main(arguments: list[str] | None = None) -> int:
    """Run what is not finished, and write results.json and claims.md."""
    parser = argparse.ArgumentParser("python -m tiebreak.research.paper", description=__doc__)
    parser.add_argument("--datasets", metavar="A,B", help="which datasets; all ten if left out")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="Monte Carlo runs")
    parser.add_argument("--steps", type=int, default=8, metavar="N", help="steps of N_C after 0")
    parser.add_argument("-o", "--out", default="reproduction", metavar="DIR")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    options = parser.parse_args(arguments)
    folder = Path(options.out)
    names = options.datasets.split(",") if options.datasets else tb.datasets.names()
    try:
        plan = paper.Reproduction.of(list(dict.fromkeys(names)), options.runs, options.steps)
        folder.mkdir(parents=True, exist_ok=True)
        rows = paper.run(plan, folder, jobs=options.jobs, progress=_tell)
    except tb.TiebreakError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        return 130
    results = paper.gather(plan, rows)
    results.write(folder / "results.json")
    (folder / "claims.md").write_text(paper.as_markdown(results), "utf-8")
    words = Counter(verdict.word for verdict in paper.judge(results))
    told = ", ".join(f"{n} {word}" for word, n in words.items())
    print(f"claims: {told}; see {folder / 'claims.md'}", file=sys.stderr)  # noqa: T201
    return 0


def _tell(n_done: int, n_all: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{n_done:,} of {n_all:,}", end="", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
