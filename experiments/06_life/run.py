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
from common import NAMES, RESULTS, read_config

from tiebreak.reproduce.runner import made_on

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
        kept[name] = _rounded({"made": made_on(), "found": found})
        lines = ",\n".join(f"{json.dumps(key)}: {_lines(kept[key])}" for key in sorted(kept))
        path.write_text(f"{{\n{lines}\n}}\n", "utf-8")
        print(f"{name}: done", flush=True)


def _lines(part: dict[str, Any]) -> str:
    rows = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in part["found"].items())
    found = ",\n".join(rows)
    return f'{{"made": {json.dumps(part["made"])}, "found": {{\n{found}\n}}}}'


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
