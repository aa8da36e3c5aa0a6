"""Turn `results.json` into the tables of docs/judges.md, and its picture.

python experiments/08_panels/report.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from common import RESULTS, ROOT, STYLE, put, pyplot, save, table

HERE = Path(__file__).parent
PICTURE = ROOT / "docs" / "figures" / "judges.svg"


def main() -> None:
    kept = json.loads((HERE / RESULTS).read_text("utf-8"))
    put(ROOT / "docs" / "judges.md", tables(kept), __file__)
    draw(kept["shared"])


def tables(kept: dict[str, Any]) -> str:
    parts = [
        f"Made on {kept['made']['date']} ({kept['made']['machine']}) by "
        "`experiments/08_panels/run.py`.\n",
        "### Runs and orders\n",
        "Accuracy / log-loss without gold, `dependence=0.5`, files as they are.\n",
        runs(kept["runs"]),
        "### One discount for a family\n",
        "Accuracy / log-loss with `tb.judges.share_discount`: no gain in accuracy, a loss on "
        "llmbar, so that it is not used unless you ask for it.\n",
        groups(kept["groups"]),
        "### Shared errors from 50 labels\n",
        "Means over 100 draws of 50 known labels; *holds*: how often the interval of 95 % "
        "holds the value from all gold.\n",
        shared(kept["shared"]),
        "### Intervals of rates\n",
        "How often intervals of 90 % hold the true share (and their mean width). *ppi* and *gold*: "
        "1,000 draws of gold, and 20 simulated juries of each kind, 50 draws each: known within "
        ".01; the two others, which take long: 60 draws, and 5 of each simulated jury, within .04. "
        "*unequal* is the sample that `tiebreak judges panel --sample` draws. Means over classes; "
        "of tc_policy_en the four most frequent. Nothing was chosen on these draws or juries.\n",
        rates(kept["rates"]),
        "### Money\n",
        "A wrong label costs 1, a human's .1 and is right; 100 labels are known and paid for. "
        "Cost a task, six draws.\n",
        routing(kept["routing"]),
    ]
    return "\n".join(parts)


def pair(row: dict[str, float]) -> str:
    return f"{row['accuracy']:.3f} / {row['log_loss']:.3f}"


def runs(kept: dict[str, Any]) -> str:
    names = ("last", "vote", "count", "runs")
    head = ["", *(f"`{name}`" for name in names), "ρ of runs", "ρ of orders"]
    rows = []
    for jury, row in kept.items():
        with_order = jury == "llmbar"
        rho = "–" if with_order else f"{row['run_correlation']:.2f}"
        of_order = f"{row['order_correlation']:.2f}" if with_order else "–"
        rows.append([jury, *(pair(row[name]) for name in names), rho, of_order])
    return table(head, rows)


def groups(kept: dict[str, Any]) -> str:
    steps = ("0.0", "0.1", "0.3", "0.6", "1.0")
    head = ["", "families", *steps]
    rows = [[n, str(r["families"]), *(pair(r[step]) for step in steps)] for n, r in kept.items()]
    return table(head, rows)


def shared(kept: dict[str, Any]) -> str:
    head = ["", "judges", "worth", "φ, all gold", "φ, 50 labels", "holds φ", "holds worth"]
    rows = []
    for name, row in kept.items():
        mean, low, high = row["drawn"]
        rows.append(
            [
                name,
                f"{row['n_judges']:.1f}",
                f"{row['effective']:.2f}",
                f"{row['correlation']:.2f}",
                f"{mean:.2f} ({low:.2f} to {high:.2f})",
                f"{row['holds_correlation']:.2f}",
                f"{row['holds_effective']:.2f}",
            ]
        )
    return table(head, rows)


def rates(kept: dict[str, Any]) -> str:
    methods = ("ppi", "posterior", "rogan-gladen", "gold")
    head = ["", "known", *methods]
    rows = []
    for name, by_size in kept.items():
        for size, found in by_size.items():
            cells = []
            for method in methods:
                values = [each[method] for each in found if method in each]
                if not values:
                    cells.append("–")
                    continue
                hit, width = np.mean(values, axis=0)
                cells.append(f"{hit:.2f} ({width:.2f})")
            rows.append([name, size, *cells])
    return table(head, rows)


def routing(kept: dict[str, Any]) -> str:
    head = ["", "to a human", "accuracy", "cost", "all as they are", "three humans each", "saved"]
    rows = []
    for name, row in kept.items():
        saved = 1.0 - row["cost"] / row["cost_three_humans"]
        rows.append(
            [
                name,
                f"{row['to_human']:.0%}",
                f"{row['accuracy']:.3f}",
                f"{row['cost']:.3f}",
                f"{row['cost_all_done']:.3f}",
                f"{row['cost_three_humans']:.3f}",
                f"{saved:.0%}",
            ]
        )
    return table(head, rows)


def draw(kept: dict[str, Any]) -> None:
    """Draw what so many judges are worth."""
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(5.2, 2.2))
        names = list(kept)
        judges = [kept[name]["n_judges"] for name in names]
        worth = [kept[name]["effective"] for name in names]
        place = np.arange(len(names))
        axes.barh(place + 0.2, judges, 0.36, color="#c8d3e0", label="judges on a task")
        axes.barh(place - 0.2, worth, 0.36, color="#2b6cb0", label="worth, erring apart")
        for at, value in zip(place, worth, strict=True):
            axes.text(value * 1.08, at - 0.2, f"{value:.1f}", va="center")
        axes.set_xscale("log")
        axes.set_yticks(place, names)
        axes.invert_yaxis()
        axes.legend(frameon=False, loc="lower right")
        figure.tight_layout()
        save(figure, PICTURE)


if __name__ == "__main__":
    main()
