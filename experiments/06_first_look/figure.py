"""Draw docs/figures/first_look.svg: the share of wrong labels on ten real crowds."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from common import NAMES, ROOT, STYLE, Cells, pyplot, save

OUT = ROOT / "docs" / "figures" / "first_look.svg"
METHODS = {  # colours are safe for the colour-blind
    "majority": ("majority vote", "#999999"),
    "tiebreak": ("tiebreak", "#56b4e9"),
    "with links": ("tiebreak, with links", "#0072b2"),
}


def main() -> None:
    kept = Cells(Path(__file__).parent)
    names = sorted(kept.cells, key=lambda name: kept.cells[name]["majority"])
    plt = pyplot()
    with plt.rc_context(STYLE):
        sheet, panel = plt.subplots(figsize=(6.2, 2.9), constrained_layout=True)
        for row, name in enumerate(names):
            shares = [100.0 * kept.cells[name][method] for method in METHODS]
            panel.plot([min(shares), max(shares)], [row, row], color="#dddddd", lw=1.2, zorder=1)
        for method, (label, colour) in METHODS.items():
            shares = [100.0 * kept.cells[name][method] for name in names]
            panel.scatter(shares, range(len(names)), s=26, color=colour, label=label, zorder=2)
        panel.set_yticks(range(len(names)), [NAMES[name] for name in names])
        panel.set(xlabel="labels that are wrong, %", xlim=(0, None))
        panel.legend(loc="lower right", frameon=False)
        save(sheet, OUT)


if __name__ == "__main__":
    main()
