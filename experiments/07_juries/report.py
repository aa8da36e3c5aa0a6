"""Turn `results.json` into the tables of README.md.

python experiments/07_juries/report.py

Tables stand between two marks in the page; the words around them are kept.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import NAMES, Cells, made, put, read_config, signed, table

HERE = Path(__file__).parent
CONFIG = read_config(HERE)
JURIES = {name: name.replace("llmbar_six", "llmbar, six judges") for name in CONFIG["juries"]}
SIX = "llmbar_six"  # a part of a jury: not in the mean


def main() -> None:
    cells = Cells(HERE)
    about = cells.about
    text = "\n".join(
        [
            f"*{made(about)}; {about['seeds']} draws of gold from number "
            f"{about['first_seed']} on.*\n",
            'Accuracy of VB with `gold_weight="auto"` less that with weight 1, on tasks that are\n'
            "not gold.\n",
            weights(cells, NAMES),
            weights(cells, JURIES),
        ]
    )
    put(HERE / "README.md", text, __file__)


def of(cells: Cells, dataset: str, size: int, method: str, what: str) -> Any:
    cell = cells.cells.get(f"{dataset} {size}", {})
    return np.array(cell.get(method, {}).get(what, []))


def weights(cells: Cells, names: dict[str, str]) -> str:
    rows = []
    by_size: dict[int, list[float]] = {size: [] for size in CONFIG["sizes"]}
    for dataset, title in names.items():
        row = [title]
        for size in CONFIG["sizes"]:
            gain = of(cells, dataset, size, "vb", "accuracy")
            once = of(cells, dataset, size, "vb_once", "accuracy")
            if not len(gain):
                row.append("not run")
                continue
            apart = gain - once
            row.append(f"{signed(apart.mean())} ± {apart.std(ddof=1) / np.sqrt(len(apart)):.4f}")
            if dataset != SIX:
                by_size[size].append(float(apart.mean()))
        rows.append(row)
    rows.append(["**mean**", *(signed(float(np.mean(v))) if v else "–" for v in by_size.values())])
    return table(["", *(f"{size} gold" for size in CONFIG["sizes"])], rows)


if __name__ == "__main__":
    main()
