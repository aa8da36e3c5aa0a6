"""Draw asking.svg: macro-F against what was spent, ten datasets, a label costs 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import draw_datasets, mean
from curves import BUDGETS, REAL, TITLES, Curves

OUT = Path(__file__).parent / "asking.svg"
COST = 2.0


def draw(curves: Curves) -> None:
    draw_datasets(
        REAL,
        lambda panel, name: draw_dataset(panel, curves, name),
        "cost, % of gold tasks",
        OUT,
    )


def draw_dataset(panel: Any, curves: Curves, dataset: str) -> None:
    share = [0.0, *(100.0 * budget for budget in BUDGETS)]
    found = {  # label: scores, colour (safe for the colour-blind), line
        "labels, by margin": ([curves.labels(dataset, COST, b) for b in BUDGETS], "#009e73", "-."),
        "links": ([curves.at(dataset, "links", b) for b in BUDGETS], "#d55e00", "--"),
        "mix": ([curves.mix(dataset, COST, b) for b in BUDGETS], "#0072b2", "-"),
    }
    for label, (scores, colour, style) in found.items():
        means = [curves.plain(dataset), *map(mean, scores)]
        if not np.isnan(means).any():
            panel.plot(share, means, style, color=colour, lw=1.4, label=label)
    panel.set(title=TITLES[dataset], xlim=(0, 51))
