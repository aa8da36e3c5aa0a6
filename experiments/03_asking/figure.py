"""Draw docs/figures/asking.svg: macro-F against questions asked, ten datasets."""

from __future__ import annotations

from typing import Any

from common import NAMES, ROOT, draw_datasets
from curves import CLEAN, DATASETS, Curves

OUT = ROOT / "docs" / "figures" / "asking.svg"
METHODS = {  # label, colour (safe for the colour-blind), line
    "random": ("random pairs", "#999999", ":"),
    "bvsb_paper": ("BVSB, paper's VB-ILC", "#d55e00", "--"),
    "labels_adaptive": ("labels, adaptively", "#009e73", "-."),
    "adaptive": ("adaptive links", "#0072b2", "-"),
}


def draw(curves: Curves) -> None:
    draw_datasets(
        DATASETS,
        lambda panel, name: draw_dataset(panel, curves, name),
        "questions, % of gold tasks",
        OUT,
    )


def draw_dataset(panel: Any, curves: Curves, dataset: str) -> None:
    for method, (label, colour, style) in METHODS.items():
        n, scores = curves.curve(dataset, CLEAN, method)
        if len(n):
            share = 100.0 * n / curves.n_gold(dataset)
            panel.plot(share, scores.mean(axis=0), style, color=colour, lw=1.4, label=label)
    panel.set(title=NAMES[dataset], xlim=(0, 51))
