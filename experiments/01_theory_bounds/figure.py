"""Draw theory_bounds.svg from results.json.

python experiments/01_theory_bounds/figure.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from common import STYLE, pyplot, save

HERE = Path(__file__).parent
OUT = HERE / "theory_bounds.svg"
NAMES = {
    "label_error": ("labels", "#0072b2"),
    "class_prior_error": ("class prior", "#d55e00"),
    "confusion_error": ("confusions", "#009e73"),
}


def main() -> None:
    results = json.loads((HERE / "results.json").read_text())
    plt = pyplot()
    with plt.rc_context({**STYLE, "font.size": 9}):
        figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.2), constrained_layout=True)
        draw_errors(axes[0], results, ["label_error"])
        axes[0].set(yscale="log", ylabel="largest error", title="labels")
        draw_errors(axes[1], results, ["confusion_error", "class_prior_error"])
        axes[1].set(ylim=0, title="workers and class prior")
        draw_workers(axes[2], results)
        save(figure, OUT)


def draw_errors(axes: Any, results: dict[str, Any], keys: list[str]) -> None:
    """Draw bounds as lines with squares, observed errors as a band up to the worst trial."""
    for key in keys:
        name, colour = NAMES[key]
        bound = np.array(results["bounds"][key])
        seen = np.array(results["observed"][key])
        iteration = np.arange(1, len(bound) + 1)
        axes.plot(iteration, bound, "s-", color=colour, label=f"{name}: bound")
        axes.fill_between(iteration, seen.min(axis=0), seen.max(axis=0), color=colour, alpha=0.25)
        worst = f"{name}: worst of {len(seen)} trials"
        axes.plot(iteration, seen.max(axis=0), "o:", color=colour, label=worst)
    axes.set(xlabel="iteration", xticks=iteration)
    axes.legend(fontsize=7, frameon=False, loc="center", bbox_to_anchor=(0.55, 0.55))


def draw_workers(axes: Any, results: dict[str, Any]) -> None:
    """Draw how surely the sharp bounds prove every label right, against the number of workers."""
    rows = results["by_workers"]
    workers, sure = zip(*((r["n_workers"], r["probability_all_right"]) for r in rows), strict=True)
    axes.plot(workers, sure, "s-", markersize=4, color=NAMES["label_error"][1])
    silent = [n for n, probability in zip(workers, sure, strict=True) if probability == 0]
    axes.annotate(
        "vacuous", (np.mean(silent), 0.0), xytext=(0, 6), textcoords="offset points", ha="center"
    )
    axes.set(ylim=(-0.04, 1.04), xlabel="workers", title="every label proved right")
    axes.set_ylabel("with probability at least")


if __name__ == "__main__":
    main()
