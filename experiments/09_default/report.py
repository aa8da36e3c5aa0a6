"""Write the figures of docs/default.md, and say which lines of what must hold do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "default.md"
BEGIN = "<!-- figures: experiments/09_default -->"
END = "<!-- end -->"
GROUPS = {
    "sets": "ten datasets",
    "juries": "six juries",
    "panels": "panels of 3 to 20 of their judges",
    "thinned": "ten datasets, 2 to 5 responses a task",
    "others": "five crowds that nothing was chosen on",
}
SIZES = (10, 25, 50, 100)
Row = dict[str, Any]


def gains(rows: list[Row], method: str) -> Any:
    return np.array([row[method] - row["vote"] for row in rows])


def mean(rows: list[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


def group_table(results: dict[str, list[Row]]) -> list[str]:
    lines = [
        "Accuracy less that of the vote, mean and worst unit; log-loss:",
        "",
        "| crowds | units | `Auto` | careful | `VariationalBayes` | `DawidSkene` | kinds | "
        "log-loss `Auto` | log-loss VB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for part, title in GROUPS.items():
        rows = results[part]
        cells = [
            f"{gains(rows, method).mean():+.4f}, {gains(rows, method).min():+.3f}"
            for method in ("auto", "careful", "vb", "ds", "kinds")
        ]
        losses = [f"{mean(rows, f'{name}_loss'):.3f}" for name in ("auto", "vb")]
        lines.append(f"| {title} | {len(rows)} | {' | '.join(cells + losses)} |")
    return lines


def set_table(results: dict[str, list[Row]]) -> list[str]:
    methods = ("vote", "auto", "careful", "vb", "ds", "kinds")
    lines = [
        "Accuracy on each:",
        "",
        "| | vote | `Auto` | careful | `VariationalBayes` | `DawidSkene` | kinds | labels that "
        "differ from the vote |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in results["sets"] + results["juries"] + results["others"]:
        cells = [f"{row[method]:.3f}" for method in methods]
        lines.append(f"| {row['unit']} | {' | '.join(cells)} | {row['n_differ']:,} |")
    means = [f"{mean(results['sets'], method):.3f}" for method in methods]
    return [*lines, f"| mean of the ten | {' | '.join(means)} | |"]


def gold_table(results: dict[str, list[Row]], before: list[Row]) -> list[str]:
    lines = [
        "Known labels, accuracy / log-loss on tasks that are not known, three draws:",
        "",
        "| known | six juries | the `Auto` before, same draws | datasets |",
        "|---|---|---|---|",
    ]
    of = {
        kind: [row for row in results["gold"] if row["kind"] == kind] for kind in ("juries", "sets")
    }
    for size in SIZES:
        cells = []
        for rows in (of["juries"], before, of["sets"]):
            there = [row for row in rows if f"auto_{size}" in row]
            cells.append(
                f"{mean(there, f'auto_{size}'):.3f} / {mean(there, f'auto_{size}_loss'):.3f}"
            )
        lines.append(f"| {size} | {' | '.join(cells)} |")
    return lines


def link_table(results: dict[str, list[Row]]) -> list[str]:
    rows = [row for row in results["links"] if row["unit"] != "llmbar"]
    lines = [
        f"Links, mean of {len(rows)} datasets and juries (without llmbar); without links "
        f"{mean(rows, 'plain'):.3f}:",
        "",
        "| tasks with links | wrong links | `Auto` | `VariationalBayes` | log-loss `Auto` | "
        "log-loss VB |",
        "|---|---|---|---|---|---|",
    ]
    for share in (0.04, 0.2, 0.8):
        for wrong in (0.0, 0.1):
            names = ("auto", "vb", "auto_loss", "vb_loss")
            cells = [f"{mean(rows, f'{name}_{share}_{wrong}'):.3f}" for name in names]
            lines.append(f"| {share:.0%} | {wrong:.0%} | {' | '.join(cells)} |")
    return lines


def omega_table(results: dict[str, list[Row]]) -> list[str]:
    rows = [row for row in results["omega"] if row["unit"] != "llmbar"]
    (llmbar,) = [row for row in results["omega"] if row["unit"] == "llmbar"]
    lines = [
        f"The weight ω of kinds, true links, accuracy / log-loss, mean of the same {len(rows)}; "
        "llmbar in brackets:",
        "",
        "| tasks with links | ω = 1 | the line between | ω = 3 |",
        "|---|---|---|---|",
    ]
    for share in (0.04, 0.2, 0.8):
        cells = [
            f"{mean(rows, f'{name}_{share}'):.4f} / {mean(rows, f'{name}_{share}_loss'):.3f} "
            f"({llmbar[f'{name}_{share}']:.3f})"
            for name in ("one", "line", "three")
        ]
        lines.append(f"| {share:.0%} | {' | '.join(cells)} |")
    return lines


def session_table(rows: list[Row]) -> list[str]:
    lines = [
        "Sessions, macro-F over all rounds, labelled from the same answers; the last column is the "
        "lowest difference of a dataset:",
        "",
        "| asked | datasets | `VariationalBayes` | `Auto` | difference | worst |",
        "|---|---|---|---|---|---|",
    ]
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        of_vb, of_auto = mean(own, "vb"), mean(own, "auto")
        worst = min(own, key=lambda row: row["auto"] - row["vb"])
        lines.append(
            f"| {method} | {len(own)} | {of_vb:.4f} | {of_auto:.4f} | {of_auto - of_vb:+.4f} | "
            f"{worst['auto'] - worst['vb']:+.4f} ({worst['unit']}) |"
        )
    return lines


def simulated_line(results: dict[str, list[Row]]) -> str:
    said = []
    for kind, title in (
        ("easy", "right .6 to .95 of the time"),
        ("prior", "drawn from VB's prior"),
    ):
        rows = [row for row in results["simulated"] if row["unit"].startswith(kind)]
        lost = mean(rows, "vb") - mean(rows, "auto")
        over = mean(rows, "auto") - mean(rows, "vote")
        careful = mean(rows, "vb") - mean(rows, "careful")
        said.append(
            f"workers {title}: {lost:.4f} below `VariationalBayes` (careful {careful:.4f}), "
            f"{over:+.4f} beside the vote"
        )
    return f"On 40 simulated crowds each, {'; '.join(said)}."


def checks(results: dict[str, list[Row]], before: list[Row]) -> list[tuple[str, bool]]:
    """Return what must hold, with the figures, and whether it does."""
    found: list[tuple[str, bool]] = []

    def line(text: str, holds: object) -> None:
        found.append((text, bool(holds)))

    for part, least, worst in (
        ("sets", 0.038, -0.03),
        ("juries", 0.005, -0.005),
        ("panels", 0.0, -0.03),
        ("thinned", 0.028, -0.035),
    ):
        gain = gains(results[part], "auto")
        text = f"{part}: mean {gain.mean():+.4f} (≥ {least:+}), worst {gain.min():+.4f} (≥ {worst})"
        line(text, gain.mean() >= least and gain.min() >= worst)
    for part, most in (("sets", 0.48), ("juries", 0.87), ("thinned", 0.60)):
        loss = mean(results[part], "auto_loss")
        line(f"{part}: log-loss {loss:.3f} (≤ {most})", loss <= most)
    for part in GROUPS:
        of_auto, of_vb = (mean(results[part], f"{name}_loss") for name in ("auto", "vb"))
        line(f"{part}: log-loss {of_auto:.3f} (< calibrated VB's {of_vb:.3f})", of_auto < of_vb)
    easy = [row for row in results["simulated"] if row["unit"].startswith("easy")]
    lost = mean(easy, "vb") - mean(easy, "auto")
    line(f"simulated: {lost:.4f} below VB (≤ .005)", lost <= 0.005)
    worst = max(row["worst"] for row in results["orders"])
    n_other = sum(row["labels_that_differ"] for row in results["orders"])
    line(
        f"orders: probabilities within {worst:.1e} (1e-9), {n_other} labels",
        worst <= 1e-9 > n_other,
    )
    cost = max(row["auto_s"] / row["vb_s"] for row in results["sets"])
    line(f"cost: at most {cost:.1f} plain fits (≤ 4)", cost <= 4.0)
    juries = [row for row in results["gold"] if row["kind"] == "juries"]
    for size in (25, 50, 100):
        now, then = (mean(rows, f"auto_{size}") for rows in (juries, before))
        loss, old = (mean(rows, f"auto_{size}_loss") for rows in (juries, before))
        text = f"gold {size}: {now:.4f} / {loss:.4f}, before {then:.4f} / {old:.4f}"
        line(f"{text} (−.005, +.01)", now >= then - 0.005 and loss <= old + 0.01)
    most = max(max(row["most"].values()) for row in results["first_labels"])
    share = np.mean([row["above_.2"] for row in results["first_labels"]])
    line(f"first ten labels: move at most {most:.2f} (≤ .2); {share:.1%} move more", most <= 0.2)
    rows = [row for row in results["links"] if row["unit"] != "llmbar"]
    broken = sum(row[f"auto_broken_{share}_0.0"] for row in rows for share in (0.04, 0.2, 0.8))
    line(f"links: {broken:g} broken (0)", broken == 0)
    lead = mean(rows, "auto_0.2_0.0") - mean(rows, "vb_0.2_0.0")
    line(f"links on 20 %: {lead:+.4f} beside VB (≥ −.005)", lead >= -0.005)
    for share in (0.04, 0.2, 0.8):
        lead = mean(rows, f"auto_{share}_0.1") - mean(rows, "plain")
        line(f"10 % wrong links on {share:.0%}: {lead:+.4f} (≥ −.005)", lead >= -0.005)
    both = results["sets"] + results["juries"]
    expected, came = (sum(row[name] for row in both) for name in ("expected_right", "came_true"))
    line(
        f"expected_right {expected:.0f}, came true {came:.0f} (within a factor of 2)",
        came / 2.0 <= expected <= 2.0 * came,
    )
    return found


def main() -> None:
    results = json.loads((HERE / "results.json").read_text("utf-8"))
    before = json.loads((HERE / "before.json").read_text("utf-8"))
    for text, holds in checks(results, before):
        print("holds " if holds else "FAILS ", text)
    if not PAGE.exists():
        return
    parts = [
        ["Made by `experiments/09_default/run.py` and `sessions.py`."],
        group_table(results),
        set_table(results),
        [simulated_line(results)],
        gold_table(results, before),
        link_table(results),
        omega_table(results),
        session_table(json.loads((HERE / "sessions.json").read_text("utf-8"))),
    ]
    figures = "\n\n".join("\n".join(lines) for lines in parts)
    page = PAGE.read_text("utf-8")
    head, rest = page.split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n\n{figures}\n\n{END}{rest.split(END)[1]}", "utf-8")


if __name__ == "__main__":
    main()
