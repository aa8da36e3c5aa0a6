"""Draw docs/figures/asking.svg: macro-F against questions asked, ten datasets."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from curves import CLEAN, DATASETS, NAMES, ROOT, Curves

mpl.use("svg")
from matplotlib import pyplot as plt

OUT = ROOT / "docs" / "figures" / "asking.svg"
METHODS = {  # label, colour (safe for the colour-blind), line
    "random": ("random pairs", "#999999", ":"),
    "bvsb_paper": ("BVSB, paper's VB-ILC", "#d55e00", "--"),
    "labels_adaptive": ("labels, adaptively", "#009e73", "-."),
    "adaptive": ("adaptive links", "#0072b2", "-"),
}
STYLE = {
    "svg.hashsalt": "tiebreak",
    "svg.fonttype": "none",
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(curves: Curves) -> None:
    with mpl.rc_context(STYLE):
        sheet, axes = plt.subplots(2, 5, figsize=(11.0, 5.0), constrained_layout=True)
        for panel, dataset in zip(axes.flat, DATASETS, strict=True):
            draw_dataset(panel, curves, dataset)
        for panel in axes[:, 0]:
            panel.set_ylabel("macro-F")
        for panel in axes[1]:
            panel.set_xlabel("questions, % of gold tasks")
        lines, labels = axes.flat[0].get_legend_handles_labels()
        sheet.legend(lines, labels, loc="outside lower center", ncol=4, frameon=False)
        OUT.parent.mkdir(parents=True, exist_ok=True)
        sheet.savefig(OUT, metadata={"Date": None})
    text = OUT.read_text("utf-8")
    OUT.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", "utf-8")
    print(f"wrote {OUT.relative_to(ROOT)}")


def draw_dataset(panel: Any, curves: Curves, dataset: str) -> None:
    for method, (label, colour, style) in METHODS.items():
        n, scores = curves.curve(dataset, CLEAN, method)
        if len(n):
            share = 100.0 * n / curves.n_gold(dataset)
            panel.plot(share, scores.mean(axis=0), style, color=colour, lw=1.4, label=label)
    panel.set(title=NAMES[dataset], xlim=(0, 51))
