"""Measure whether fits with links and gold find the right mode; resumable.

    python experiments/04_modes/run.py [--methods a,b] [--datasets a,b] [--jobs 1] [--seeds 20]

Each case is a line of `runs.jsonl` beside this file (not kept in the repository). With --collect,
complete cells go to `results.json`, which is kept, and which `report.py` turns into results.md.
Methods that end in `_before` are those of the code before: `before.py` runs them.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from common import Experiment, read_config
from work import Case, Row, work

HERE = Path(__file__).parent
CONFIG = read_config(HERE)
REAL = [name for name in CONFIG["datasets"] if name != "simulated"]
WRONG = (0.0, 0.15, 0.3)
N_GOLD = (10, 20, 60)


def cases() -> list[Case]:
    found = []
    for method, n_seeds in CONFIG["methods"].items():
        for dataset, setting in settings_of(method):
            found += [Case(method, dataset, setting, seed) for seed in range(n_seeds)]
    return found


def settings_of(method: str) -> list[tuple[str, str]]:
    """Return the dataset and setting of each cell of a method."""
    if method == "inverted":
        return [("simulated", f"{n} gold") for n in N_GOLD] + [("simulated", "5 wrong gold")]
    if method == "links":
        return [
            ("simulated", f"{n_classes} {errs} {how} {wrong}")
            for n_classes in (2, 4, 10)
            for errs in ("apart", "together")
            for how in ("random", "chosen")
            for wrong in WRONG
        ]
    return [(name, "") for name in REAL]


def summary(rows: list[Row]) -> Row:
    """Keep what was measured, one list over seeds."""
    names = [name for name in rows[0] if name not in Case._fields]
    return {name: [row[name] for row in rows] for name in names}


def cell_of(case: Case) -> str:
    return "/".join([case.method, case.dataset, case.setting]).rstrip("/")


if __name__ == "__main__":
    Experiment(HERE, CONFIG, cases, work, cell_of, summary).main()
