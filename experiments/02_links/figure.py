"""Draw links_wrong.svg: macro-F against the share of wrong links, ten datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import NAMES, draw_datasets
from results import CLEAN, DATASETS, SIZES, WRONG, Results

OUT = Path(__file__).parent / "links_wrong.svg"
METHODS = {  # label, colour (safe for the colour-blind), line and marker
    "grid": ("grid (the paper)", "#d55e00", "s--"),
    "soft": ('soft: error="learn"', "#0072b2", "o-"),
}


def draw(results: Results) -> None:
    draw_datasets(
        DATASETS, lambda panel, name: draw_dataset(panel, results, name), "wrong links, %", OUT
    )


def draw_dataset(panel: Any, results: Results, dataset: str) -> None:
    """Draw one dataset with as many links as tasks of gold."""
    plain = results.mean("macro_f", "vb", dataset, SIZES[-1], CLEAN)
    panel.axhline(plain, color="black", lw=1.0, ls=":", label="VB, no links")
    for method, (label, colour, style) in METHODS.items():
        points = [
            (100.0 * wrong, *mean_and_bar(results, method, dataset, wrong))
            for wrong in (CLEAN, *WRONG)
        ]
        share, mean, bar = np.array(points).T
        run = ~np.isnan(mean)
        panel.errorbar(
            share[run], mean[run], bar[run], fmt=style, color=colour, ms=4, lw=1.3, label=label
        )
    panel.set(xticks=[0, 5, 10, 20], xlim=(-1, 21), title=NAMES[dataset])
    if not any(line.get_xdata().size for line in panel.lines[1:]):
        panel.set_yticks([])
        panel.annotate("not run", (0.5, 0.5), xycoords="axes fraction", ha="center")


def mean_and_bar(results: Results, method: str, dataset: str, wrong: float) -> tuple[float, float]:
    """Return the mean over seeds and two standard errors of it."""
    values = results.of("macro_f", method, dataset, SIZES[-1], wrong)
    if not len(values):
        return np.nan, np.nan
    return float(values.mean()), float(2.0 * values.std(ddof=1) / np.sqrt(len(values)))
