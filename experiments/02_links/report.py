"""Turn `results.json` into experiments/02_links/results.md and links_wrong.svg.

python experiments/02_links/report.py

Every number and every verdict on that page is computed here. What was not run is shown as missing.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import figure
import numpy as np
from common import NAMES, ROOT, Difference, percent, table
from results import CLEAN, DATASETS, SIZES, WRONG, Results
from verdicts import HARD_WRONG, MUSIC, MUSIC_SLACK, SLACK, is_kept, verdicts

PAGE = ROOT / "experiments" / "02_links" / "results.md"

OPENING = """\
# Links: what was measured

Made by `python experiments/02_links/report.py`; do not edit. Collected on {date}, on
{machine}, from {fits} fits that took {hours} hours of one core.
[The experiment](README.md) says how to repeat this, [Links](../../docs/links.md)
what the words mean.

On ten real datasets, links were drawn at random between tasks of gold: as many as
{sizes} of these tasks, {seeds} draws of each. Every method sees the same links,
and all tasks of gold are scored. Compared are

| name | what it is |
|---|---|
| VB | plain variational Bayes, no links |
| grid | the paper's VB-ILC: mean field, in parallel, the best of twelve strengths |
| hard | the default: exact, hard links, honest probabilities |
| uncalibrated | the same with probabilities as the model says |
| soft | exact, error rates learnt: `ExactLinkOptions(error="learn")` |

The grid drops cannot-links that contradict must-links. A figure is the mean over draws; "±" is one
standard error of a paired difference over draws.

Learnt error rates have one prior for all crowds, Beta(2, 8), chosen on simulated links
([Modes](../04_modes/results.md)) and on none of these datasets. The draws scored here begin at
seed {first_seed}; earlier versions of soft were chosen on draws below 260.
"""


def main() -> None:
    results = Results()
    PAGE.write_text(page(results), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    figure.draw(results)


def page(results: Results) -> str:
    about = results.about
    seconds = [each for cell in results.cells.values() for each in cell["seconds"]]
    opening = OPENING.format(
        date=about["date"],
        machine=machine(about),
        fits=f"{len(seconds):,}",
        hours=f"{sum(seconds) / 3600.0:.1f}",
        seeds=about["seeds"],
        first_seed=about["first_seed"],
        sizes=", ".join(map(percent, SIZES)),
    )
    sections = [opening, missing(results), verdict_section(results), clean_section(results)]
    sections += [wrong_section(results), calibration_section(results)]
    return "\n".join(section for section in sections if section)


def machine(about: dict[str, str]) -> str:
    python = f", Python {about['python']}" if "python" in about else ""
    return f"{about['machine']}{python}"


def missing(results: Results) -> str:
    done, wanted = results.n_cells()
    if done == wanted:
        return ""
    count = f"{done:,} of {wanted:,} cells were run"
    return f"**Not finished: {count}.** A missing number is shown as –.\n"


def verdict_section(results: Results) -> str:
    rows = [(v.claim, v.found, v.word) for v in verdicts(results)]
    return "## Verdicts\n\n" + table(("claim", "found", "verdict"), rows)


# Clean links


def clean_section(results: Results) -> str:
    head = ("dataset", "links", "VB", "grid", "hard", "hard − grid")
    head += ("log loss: grid", "uncalibrated", "hard", "broken by hard", "time: hard / grid")
    rows = [clean_row(results, dataset, size) for dataset in DATASETS for size in SIZES]
    words = (
        "All links are right. Macro-F, then log loss. *Broken*: links that labels of hard break,\n"
        "in all draws together. *Time*: the median processor time of a fit over that of the grid.\n"
        "The first fits of a process also load compiled code: hence medians.\n"
    )
    return "\n".join(["## Clean links\n", words, table(head, rows)])


def clean_row(results: Results, dataset: str, size: float) -> list[str]:
    cell = dataset, size, CLEAN
    f = [results.mean("macro_f", method, *cell) for method in ("vb", "grid", "hard")]
    loss = [results.mean("log_loss", m, *cell) for m in ("grid", "hard_uncalibrated", "hard")]
    broken = results.of("violated", "hard", *cell)
    seconds = [results.of("seconds", method, *cell) for method in ("hard", "grid")]
    ratio = np.nan
    if all(len(each) for each in seconds):
        ratio = float(np.median(seconds[0]) / np.median(seconds[1]))
    return [
        NAMES[dataset],
        percent(size),
        *map(number, f),
        shown(results.difference("macro_f", "hard", "grid", *cell)),
        *map(number, loss),
        f"{int(broken.sum())}" if len(broken) else "–",
        "–" if np.isnan(ratio) else f"{ratio:.2f}",
    ]


# Wrong links


def wrong_section(results: Results) -> str:
    head = ("dataset", "links", "VB", "grid", "soft", "soft − VB", "soft − grid")
    head += ("dropped by grid", "verdict")
    parts = [
        "## Wrong links\n",
        "Each link says the opposite of the truth with the probability given. Macro-F.\n"
        "*Dropped*: cannot-links that contradict must-links, mean over draws.\n"
        f"*Verdict*: soft is below neither VB nor the grid by more than the larger of {SLACK} and\n"
        f"two standard errors. Music has a rule of its own: not more than {MUSIC_SLACK} below VB;\n"
        f"above {percent(HARD_WRONG)} wrong links it is only reported.\n",
        f"![Macro-F against the share of wrong links]({figure.OUT.name})\n",
        f"*As many links as gold tasks ({percent(SIZES[-1])}). Bars: two standard errors.*\n",
    ]
    for wrong in WRONG:
        rows = [wrong_row(results, dataset, size, wrong) for dataset in DATASETS for size in SIZES]
        parts += [f"### {percent(wrong)} wrong\n", table(head, rows)]
    return "\n".join(parts)


def wrong_row(results: Results, dataset: str, size: float, wrong: float) -> list[str]:
    cell = dataset, size, wrong
    f = [results.mean("macro_f", method, *cell) for method in ("vb", "grid", "soft")]
    dropped = results.mean("dropped", "grid", *cell)
    kept = is_kept(results, *cell)
    only_reported = dataset == MUSIC and wrong > HARD_WRONG
    words = {None: "–", True: "holds", False: "**fails**"}
    return [
        NAMES[dataset],
        percent(size),
        *map(number, f),
        shown(results.difference("macro_f", "soft", "vb", *cell)),
        shown(results.difference("macro_f", "soft", "grid", *cell)),
        "–" if np.isnan(dropped) else f"{dropped:.1f}",
        "reported" if only_reported and kept is not None else words[kept],
    ]


# Temperature


def calibration_section(results: Results) -> str:
    head = ("dataset", "calibration error: uncalibrated", "hard", "macro-F: uncalibrated", "hard")
    rows = []
    for dataset in DATASETS:
        row = [NAMES[dataset]]
        row += [
            number(results.mean(name, method, dataset, SIZES[0], CLEAN))
            for name in ("calibration_error", "macro_f")
            for method in ("hard_uncalibrated", "hard")
        ]
        change = results.difference(
            "macro_f", "hard", "hard_uncalibrated", dataset, SIZES[0], CLEAN
        )
        rows.append([*row, shown(change)])
    words = f"{percent(SIZES[0])} clean links: what honest probabilities change of the default.\n"
    return "\n".join(["## Honest probabilities\n", words, table((*head, "change"), rows)])


# Words


def number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}"


def shown(difference: Difference) -> str:
    return "–" if np.isnan(difference.mean) else str(difference)


if __name__ == "__main__":
    main()
