"""Turn `results.json` into the tables of README.md and docs/scales.md, and say what must hold.

python experiments/10_scales/report.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from common import ROOT, made, put, table  # noqa: E402

RESULTS = json.loads((HERE / "results.json").read_text("utf-8"))
BEFORE = json.loads((HERE / "before.json").read_text("utf-8"))


def three(row: dict[str, Any], name: str) -> str:
    """Write accuracy, absolute error and log-loss."""
    found = (row.get(f"{name} {what}".strip()) for what in ("accuracy", "mae", "loss"))
    return " / ".join(f"{value:.3f}" for value in found if value is not None)


def crowds() -> str:
    rows = [
        [
            title,
            three(row, "mean"),
            three(row, "vb"),
            f"**{three(row, 'scale')}**",
            f"{row['scale cover']:.3f}",
        ]
        for title, row in RESULTS["crowds"].items()
    ]
    n = min(row["draws"] for row in RESULTS["crowds"].values())
    head = ["crowd", "rounded mean", "VB", "scale", "90 % intervals cover"]
    words = f"Accuracy / absolute error / log-loss without gold, {n} draws of each crowd:\n\n"
    return words + table(head, rows)


def orders() -> str:
    rows = [
        [
            title,
            f"{row['taken']:.3f}",
            f"{row['shuffled']:.3f}",
            f"{row['accuracy of auto less VB, shuffled']:+.4f}",
        ]
        for title, row in RESULTS["orders"].items()
    ]
    head = ["crowd", "taken", "taken, levels shuffled", "accuracy of auto less VB, shuffled"]
    return table(head, rows)


def web() -> str:
    rows = [[name, three(row, "")] for name, row in RESULTS["web"].items()]
    return "Web, accuracy / absolute error / log-loss:\n\n" + table(["fit", "Web"], rows)


def gold() -> str:
    methods = {"line": "line", "auto": "Auto", "scale": "VB, scale", "auto_scale": "Auto, scale"}
    rows = []
    for title, row in RESULTS["gold"].items():
        before = BEFORE.get(title)
        cells = [three(row, name) for name in methods]
        rows.append([title, *cells, "–" if before is None else three(before, "")])
    head = ["set", *methods.values(), "Auto before the committee"]
    words = "Accuracy / absolute error / log-loss on tasks that are not gold, six draws:\n\n"
    return words + table(head, rows)


def care() -> str:
    rows = [
        [title, ", ".join(f"{name} {value:.1f}" for name, value in row.items())]
        for title, row in RESULTS["care"].items()
    ]
    return "care_asset, absolute error in points:\n\n" + table(["step, gold", "points off"], rows)


def of_gold(what: str, of: str) -> Any:
    return np.array([row[f"{what} {of}"] for row in RESULTS["gold"].values()])


def must_hold() -> list[tuple[str, Any, bool]]:
    """Return each line of the specification, what was measured, and whether it holds."""
    crowd, web, gold, care = (RESULTS[name] for name in ("crowds", "web", "gold", "care"))
    gain = [row["scale accuracy"] - row["mean accuracy"] for row in crowd.values()]
    loss = [row["scale loss"] - row["vb loss"] for row in crowd.values()]
    cover = [row["scale cover"] for name, row in crowd.items() if "shared" not in name]
    order = RESULTS["orders"]
    ordered = [row["taken"] for name, row in order.items() if name in REAL]
    shuffled = [row["shuffled"] for row in order.values()]
    apart = [row["accuracy of auto less VB, shuffled"] for row in order.values()]
    at = [title for title in gold if title in BEFORE]
    before = np.array([BEFORE[title]["mae"] for title in at])
    own, line = (
        np.array([gold[title][f"{name} mae"] for title in at]) for name in ("auto_scale", "line")
    )
    best = np.minimum(before.mean(), line.mean()) if at else np.nan
    kappa = np.array([gold[title]["auto_scale kappa"] for title in at]).mean() if at else np.nan
    of_line = np.array([gold[title]["line kappa"] for title in at]).mean() if at else np.nan
    of_before = np.array([BEFORE[title]["kappa"] for title in at]).mean() if at else np.nan
    taken = [name for name, row in RESULTS["taken"].items() if row["taken"]]
    seconds = web["scale"]["seconds"] / web["vb"]["seconds"]
    return [
        ("Web, all: accuracy >= .85", web["scale"]["accuracy"], web["scale"]["accuracy"] >= 0.85),
        (
            "Web, 90 %: accuracy >= .82",
            web["scale, 90 %"]["accuracy"],
            web["scale, 90 %"]["accuracy"] >= 0.82,
        ),
        *(
            (
                f"Web, {n} gold: Auto >= {least}",
                (x := gold[f"web, {n} gold"]["auto_scale accuracy"]),
                x >= least,
            )
            for n, least in ((50, 0.87), (100, 0.89))
        ),
        ("scale less rounded mean >= -.01", min(gain), min(gain) >= -0.01),
        ("its mean >= .04", float(np.mean(gain)), np.mean(gain) >= 0.04),
        ("log-loss less VB's < 0", max(loss), max(loss) < 0.0),
        ("intervals cover >= .88", min(cover), min(cover) >= 0.88),
        ("orders taken >= .95", min(ordered), min(ordered) >= 0.95),
        ("shuffled taken <= .05", max(shuffled), max(shuffled) <= 0.05),
        ("auto less VB, shuffled >= -.01", min(apart), min(apart) >= -0.01),
        ("taken of 16 real sets: Web", taken, taken == ["web"]),
        *(
            (
                f"lenient, 50 gold, {name}: error <= .11",
                (x := gold["lenient, 50 gold"][f"{key} mae"]),
                x <= 0.11,
            )
            for name, key in (("VB", "scale"), ("Auto", "auto_scale"))
        ),
        (
            "care_asset, 50 gold: error <= 26.5",
            care["20, 50 gold"]["median"],
            care["20, 50 gold"]["median"] <= 26.5,
        ),
        (
            "care_asset, no gold: error <= 33.96",
            care["20, no gold"]["median"],
            care["20, no gold"]["median"] <= 33.96,
        ),
        (
            f"Auto's error <= {best:.3f} + .01",
            own.mean() if at else np.nan,
            own.mean() <= best + 0.01,
        ),
        (f"its kappa >= {max(of_line, of_before):.3f}", kappa, kappa >= max(of_line, of_before)),
        (
            "600 links: accuracy >= .88",
            web["scale, 600 links"]["accuracy"],
            web["scale, 600 links"]["accuracy"] >= 0.88,
        ),
        ("none broken", web["scale, 600 links"]["broken"], not web["scale, 600 links"]["broken"]),
        ("time of VB <= 6", seconds, seconds <= 6.0),
    ]


REAL = (
    "200 x 4",
    "compressed, 200 x 4",
    "noisy, 200 x 4",
    "600 tasks, 40 workers",
    "K = 10, 200 x 5",
    "K = 6, 200 x 4",
)


def main() -> None:
    about = f"*{made(RESULTS['about'])}.*\n"
    parts = [about, crowds(), web(), gold(), care(), orders()]
    for words, value, holds in must_hold():
        shown = f"{value:.4f}" if isinstance(value, float) else value
        print("holds   " if holds else "FAILS   ", words, shown)
    lines = [
        [
            words,
            f"{value:.3f}" if isinstance(value, float) else str(value),
            "yes" if holds else "no",
        ]
        for words, value, holds in must_hold()
    ]
    parts.append("What was asked:\n\n" + table(["line", "measured", "holds"], lines))
    put(HERE / "README.md", "\n".join(parts), __file__)
    put(ROOT / "docs" / "scales.md", "\n".join([crowds(), web()]), __file__)


if __name__ == "__main__":
    main()
