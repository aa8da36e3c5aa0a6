"""Turn `results.json` into the tables of docs/juries-results.md.

python experiments/07_juries/report.py

Tables stand between two marks in the page; the words around them are kept.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import NAMES, ROOT, Cells, made, put, read_config, signed, table

HERE = Path(__file__).parent
CONFIG = read_config(HERE)
TITLES = {
    "mv": "MV",
    "vb_once": "VB, gold once",
    "vb": "VB",
    "best": "best worker",
    "pool": "pool",
    "auto": "auto",
}
RIVALS = ("mv", "vb_once", "vb", "best", "pool")  # auto is compared with the best of these
JURIES = {name: name.replace("llmbar_six", "llmbar, six judges") for name in CONFIG["juries"]}
MEMBERS = ("vb", "pool", "best worker", "best+crowd", "mv")
SIX = "llmbar_six"  # a part of a jury: not in the mean
SIMULATED = {
    "sim_apart": "each errs alone",
    "sim_together": "errors shared on half of the tasks",
    "sim_star": "… and one judge is right on .92",
    "sim_herd": "eleven are wrong together on .45, one judge is not",
}


def main() -> None:
    cells = Cells(HERE)
    about = cells.about
    text = "\n".join(
        [
            f"*{made(about)}; {about['seeds']} draws of gold from number "
            f"{about['first_seed']} on.*\n",
            "### The weight of gold\n",
            'Accuracy of VB with `gold_weight="auto"` less that with weight 1, on tasks that are\n'
            "not gold.\n",
            weights(cells, NAMES),
            weights(cells, JURIES),
            "### Methods on juries\n",
            "Accuracy / log-loss (probabilities are at least 1e-4) on tasks that are not gold.\n",
            methods(cells, JURIES),
            "### Auto on crowds, 50 gold labels\n",
            methods(cells, NAMES, sizes=[50]),
            "### Simulated juries\n",
            "Twelve judges, 800 tasks, three classes; no constant but the counts of auto was "
            "chosen with them in view, on other draws of gold.\n",
            methods(cells, SIMULATED, sizes=[50, 100]),
            "### How much each method counts in auto\n",
            "Mean weights over the draws; the time of one comparison, on one thread of a machine\n"
            "that had other work to do.\n",
            weights_of_methods(cells),
        ]
    )
    put(ROOT / "docs" / "juries-results.md", text, __file__)


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


def methods(cells: Cells, names: dict[str, str], sizes: list[int] | None = None) -> str:
    rows = []
    for dataset, title in names.items():
        for size in sizes or CONFIG["sizes"]:
            if not len(of(cells, dataset, size, "vb", "accuracy")):
                rows.append([title, str(size), *("not run" for _ in TITLES), ""])
                continue
            rows.append([title, str(size), *(figure(cells, dataset, size, m) for m in TITLES)])
            rows[-1].append(behind(cells, dataset, size))
    rows += means(cells, names, sizes or CONFIG["sizes"])
    return table(["", "gold", *TITLES.values(), "auto less best other"], rows)


def figure(cells: Cells, dataset: str, size: int, method: str) -> str:
    accuracy = of(cells, dataset, size, method, "accuracy")
    loss = of(cells, dataset, size, method, "log_loss")
    return f"{accuracy.mean():.3f} / {loss.mean():.3f}" if len(accuracy) else "–"


def behind(cells: Cells, dataset: str, size: int) -> str:
    auto = of(cells, dataset, size, "auto", "accuracy")
    if not len(auto):
        return "–"
    best = max(of(cells, dataset, size, m, "accuracy").mean() for m in RIVALS)
    return signed(float(auto.mean() - best))


def means(cells: Cells, names: dict[str, str], sizes: list[int]) -> list[list[str]]:
    """Return the mean over datasets on which all methods were run; parts of juries left out."""
    rows = []
    for size in sizes:
        whole = [
            dataset
            for dataset in names
            if dataset != SIX and len(of(cells, dataset, size, "auto", "accuracy"))
        ]
        if not whole:
            continue
        row = [f"**mean of {len(whole)}**", str(size)]
        for method in TITLES:
            pair = [
                float(np.mean([of(cells, d, size, method, what).mean() for d in whole]))
                for what in ("accuracy", "log_loss")
            ]
            row.append(f"{pair[0]:.3f} / {pair[1]:.3f}")
        rows.append([*row, ""])
    return rows


def weights_of_methods(cells: Cells) -> str:
    rows = []
    titles = {**JURIES, **NAMES, **SIMULATED}
    for dataset, title in titles.items():
        for size in CONFIG["sizes"]:
            found = cells.cells.get(f"{dataset} {size}", {}).get("auto")
            if found is None:
                continue
            named = dict(found["weights"])
            plain = [f"{named.pop(name, 0.0):.2f}" for name in MEMBERS]
            other = "–"
            if named:
                ((name, weight),) = named.items()
                other = f"{weight:.2f} ({name})"
            rows.append([title, str(size), *plain, other, f"{found['seconds']:.1f} s"])
    names = ["VB", "pool", "best worker", "best worker and crowd", "votes", "other worker model"]
    head = ["", "gold", *names, "time"]
    return table(head, rows)


if __name__ == "__main__":
    main()
