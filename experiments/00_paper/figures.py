"""Figures: macro-F, micro-F and broken links against N_C, as the paper draws them.

One figure for each dataset and experiment, as SVG. Lines are means over runs, shades their
95 % intervals. Colours are Okabe and Ito's, which colour-blind readers can tell apart; markers and
dashes tell the lines apart without colour.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from common import STYLE, save

from tiebreak.research.paper.claims import band
from tiebreak.research.paper.runs import METHODS, Floats, Measured, Results


class Line(NamedTuple):
    """How a method is drawn."""

    colour: str
    marker: str
    dashes: str
    width: float = 1.4


WIDE = 3.0  # below the others, so that equal lines are both seen

LINES = {
    "mv": Line("#7f7f7f", "", ":"),
    "ds": Line("#56b4e9", "", "-."),
    "vb": Line("#000000", "", "--"),
    "vb_lc": Line("#0072b2", "s", "-"),
    "vb_ilc": Line("#d55e00", "o", "-"),
    "vb_ilc_in_turn": Line("#e69f00", "v", "--"),
    "exact": Line("#009e73", "^", "-", WIDE),
    "vb_ilc_bvsb": Line("#cc79a7", "D", "-"),
    "exact_bvsb": Line("#009e73", "P", "--", WIDE),
    "vb_ilc_derived": Line("#d55e00", "o", "-"),
    "exact_derived": Line("#009e73", "^", "-", WIDE),
}
EXPERIMENTS: dict[str, tuple[str, Sequence[str]]] = {
    "same_number": (
        "the same number of random labels or links",
        ("mv", "ds", "vb", "vb_lc", "vb_ilc", "vb_ilc_in_turn", "exact"),
    ),
    "bvsb": (
        "links chosen by BVSB, and at random",
        ("mv", "ds", "vb", "vb_ilc", "vb_ilc_bvsb", "exact", "exact_bvsb"),
    ),
    "label_derived": (
        "links derived from the labels that VB-LC has",
        ("mv", "ds", "vb", "vb_lc", "vb_ilc_derived", "exact_derived"),
    ),
}


def draw_all(results: Results, folder: Path) -> int:
    """Draw every dataset and experiment into a folder; return how many figures."""
    for name, measured in results.datasets.items():
        for experiment in EXPERIMENTS:
            draw(measured, experiment, folder / f"{name}_{experiment}.svg")
    return len(results.datasets) * len(EXPERIMENTS)


def draw(measured: Measured, experiment: str, path: Path) -> None:
    """Draw one experiment on one dataset."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    what, methods = EXPERIMENTS[experiment]
    shown = [method for method in methods if measured.has(method)]
    with mpl.rc_context(STYLE | {"font.size": 9}):
        figure = Figure(figsize=(10.5, 3.8), layout="constrained")
        macro, micro, broken = figure.subplots(1, 3)
        for method in shown:
            _draw_line(macro, measured, method, measured.of(method, "macro_f"))
            _draw_line(micro, measured, method, measured.of(method, "micro_f"))
            if "n_links" in measured.figures[method]:
                _draw_line(broken, measured, method, 100.0 * measured.share_broken(method))
        for axes, title in ((macro, "macro-F"), (micro, "micro-F"), (broken, "broken links, %")):
            axes.set(xlabel="$N_C$, labels or links given", title=title)
        broken.set_ylim(bottom=0.0)
        figure.suptitle(f"{measured.title}: {what}", fontsize=10)
        figure.legend(
            *macro.get_legend_handles_labels(),
            loc="outside lower center",
            ncols=len(shown),
            fontsize=8,
            frameon=False,
        )
        save(figure, path)


def _draw_line(axes: Any, measured: Measured, method: str, values: Floats) -> None:
    line = LINES[method]
    mean, half = band(values)
    axes.plot(
        measured.n_given,
        mean,
        linestyle=line.dashes,
        marker=line.marker,
        color=line.colour,
        markersize=4,
        linewidth=line.width,
        zorder=2.0 if line.width < WIDE else 1.5,
        label=METHODS[method].title,
    )
    if np.isfinite(half).all():
        axes.fill_between(
            measured.n_given, mean - half, mean + half, color=line.colour, alpha=0.15, linewidth=0
        )
