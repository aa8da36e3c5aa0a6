"""Measure a model that lives on: streams beside fits, updates, predictions, speed, memory.

    python experiments/06_life/run.py [part …]

Each part is kept in `results.json` as it ends; `report.py` turns that file into the tables of
docs/life.md. The ten datasets lie in the folder that TIEBREAK_DATA names.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parent))

import passes
import times
from common import NAMES, RESULTS, read_config, rounded, write_parts

from tiebreak.research.paper.runner import made_on

HERE = Path(__file__).parent
DATASETS = list(NAMES)
PARTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "one_pass": lambda config: passes.one_pass(config, DATASETS),
    "fit_of_most": lambda config: passes.fit_of_most(config, DATASETS),
    "simulated": passes.simulated,
    "beyond": passes.beyond,
    "counts": lambda _: passes.counts(DATASETS),
    "update": times.update,
    "predict": times.predict,
    "stream": times.stream,
    "lines": times.lines,
}


def main() -> None:
    config = read_config(HERE)
    path = HERE / RESULTS
    for name in sys.argv[1:] or PARTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = PARTS[name](config)
        kept = json.loads(path.read_text("utf-8")) if path.exists() else {}
        kept[name] = {"made": made_on(), "found": rounded(found, lambda x: float(f"{x:.6g}"))}
        write_parts(path, {key: _lines(part) for key, part in kept.items()})
        print(f"{name}: done", flush=True)


def _lines(part: dict[str, Any]) -> str:
    rows = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in part["found"].items())
    found = ",\n".join(rows)
    return f'{{"made": {json.dumps(part["made"])}, "found": {{\n{found}\n}}}}'


if __name__ == "__main__":
    main()
