"""Turn `results.json` into the tables of docs/workers.md and docs/decide.md.

python experiments/06_workers/report.py

Tables stand between two marks in each page; the words around them are kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parent))

import numpy as np
from common import NAMES, RESULTS, ROOT, made, put, table
from deciding import CALIBRATED, POINTS, QUANTILES, SHARED

from tiebreak.decide.decide import PROMISED_QUANTILE

HERE = Path(__file__).parent
RATES = ("0.1", "0.2", "0.3", "0.5")
WORD, LOW, HIGH, CAME, EXPECTED, PROMISED = range(6)  # of what is kept of a promise


def main() -> None:
    kept = json.loads((HERE / RESULTS).read_text("utf-8"))
    put(ROOT / "docs" / "workers.md", workers(kept), __file__)
    put(ROOT / "docs" / "decide.md", decisions(kept), __file__)


def workers(kept: dict[str, Any]) -> str:
    parts = [
        f"{made(kept['about'])}.\n",
        "### How often intervals of 90 % hold the truth\n",
        "150 tasks, 12 workers drawn from the prior, 40 crowds. The first figure is of the cells\n"
        "of confusion matrices, the second of accuracies.\n",
        coverage(kept["coverage"]),
        "With more workers, 1,500 tasks, five crowds of each kind:\n",
        many(kept["many_workers"]),
        "### Time\n",
        "Milliseconds of processor time, median over the same crowds; Gibbs with its defaults (4\n"
        "chains of 700 sweeps):\n",
        times(kept["coverage"]),
        "### Gibbs sampling on the ten datasets\n",
        "Beside variational Bayes without calibration, since Gibbs has none: two chains of 300\n"
        "sweeps. Log-loss is clipped at 1e-4. The last column is what the table of workers costs\n"
        "beside the fit, in milliseconds.\n",
        gibbs(kept["datasets"]),
        "What the workers of the ten datasets are called:\n",
        words(kept["datasets"]),
    ]
    return "\n".join(parts)


def coverage(rows: dict[str, Any]) -> str:
    columns = (("vb", "VB as it is"), ("corrected", "the table"), ("gibbs", "Gibbs"),
               ("ds", "Dawid-Skene"))  # fmt: skip
    body = [
        [name, *(f"{row[key]['cells']:.3f} / {row[key]['accuracy']:.3f}" for key, _ in columns),
         f"{row['unmixed']}"]
        for name, row in rows.items()
    ]  # fmt: skip
    return table(("", *(title for _, title in columns), "Gibbs not mixed, of 40"), body)


def many(rows: dict[str, Any]) -> str:
    body = [
        [
            name,
            *(
                f"{row[key]['cells']:.3f} / {row[key]['accuracy']:.3f}"
                for key in ("vb", "corrected")
            ),
            f"{row['ms']['fit']:.0f}",
            f"{row['ms']['table']:.0f}",
        ]
        for name, row in rows.items()
    ]
    return table(("", "VB as it is", "the table", "fit, ms", "table, ms"), body)


def times(rows: dict[str, Any]) -> str:
    body = [
        [name, *(f"{row['ms'][key]:.1f}" for key in ("fit", "table", "gibbs"))]
        for name, row in rows.items()
    ]
    return table(("", "fit", "table of workers", "Gibbs"), body)


def gibbs(rows: dict[str, Any]) -> str:
    body = []
    for name, row in rows.items():
        cells = [
            f"{row['vb'][key]:.3f} → {row['gibbs'][key]:.3f}"
            for key in ("accuracy", "f", "log_loss")
        ]
        seconds = row["seconds"]
        times = f"{1e3 * seconds['table']:.0f} / {1e3 * seconds['fit']:.0f}"
        body.append([NAMES[name], *cells, f"{row['r_hat']:.2f}", f"{seconds['gibbs']:.1f}", times])
    means = [
        f"{_mean(rows, 'vb', key):.3f} → **{_mean(rows, 'gibbs', key):.3f}**"
        for key in ("accuracy", "f", "log_loss")
    ]
    body.append(["**mean**", *means, "", "", ""])
    head = ("", "accuracy", "macro-F", "log-loss", "R-hat", "Gibbs, s", "table / fit, ms")
    return table(head, body)


def _mean(rows: dict[str, Any], method: str, key: str) -> float:
    return float(np.mean([row[method][key] for row in rows.values()]))


def words(rows: dict[str, Any]) -> str:
    every = sorted({word for row in rows.values() for word in row["verdicts"]})
    body = [
        [NAMES[name], *(str(row["verdicts"].get(word, 0)) for word in every)]
        for name, row in rows.items()
    ]
    return table(("", *every), body)


def decisions(kept: dict[str, Any]) -> str:
    parts = [
        f"{made(kept['about'])}.\n",
        "### Missing the rarest class costs ten\n",
        "Any other error costs one. Mean cost of a task with a known class, as expected and as it\n"
        "came out, of the decisions and of the likeliest classes:\n",
        costs(kept["costs"]),
        "How probable the rarest class was → how often it came, by whether it is the label:\n",
        rarest(kept["costs"]),
        "The share of that class, as believed and as it is; and realised cost, decided /\n"
        "likeliest: as above, with probabilities as the model says, with the shares of classes\n"
        "known (`class_prior=`), with 100 known labels (in how many of four draws decisions cost\n"
        "less), and by the worker model with the largest bound. The rarest class is the\n"
        "one that each model believes to be:\n",
        other_costs(kept["costs"]),
        "### Leaving tasks open\n",
        "Accuracy as it is promised and, in brackets, as expected (`promised` and `expected` of\n"
        "`estimate_accuracy`) → realised, among the tasks that are not left open, by the share\n"
        "that is; in bold where it falls short of what is promised by more than two points.\n"
        "Without gold:\n",
        abstaining(kept["abstaining"], "none"),
        judged(each_of(kept["abstaining"], "none")),
        "Without gold, by the worker model with the largest bound:\n",
        abstaining(kept["abstaining"], "auto"),
        judged(each_of(kept["abstaining"], "auto")),
        "With 100 known labels (half of them on small datasets), mean over four draws, scored on\n"
        "the others:\n",
        abstaining(kept["abstaining"], "gold"),
        judged(each_of(kept["abstaining"], "gold")),
        "The same of single draws, which have the luck of 100 labels in them:\n",
        judged(draws_of(kept["abstaining"])),
        "**Where the quantile was chosen.** Simulated: 1,000 tasks, 30 workers, two and four\n"
        "classes, 3, 5 and 10 responses a task, workers right in 0.5 to 0.9 and in 0.4 to 0.8,\n"
        "five crowds of each kind, a tenth to half of the tasks left open. *Shared*: how often a\n"
        "task has one wrong class that all who err give, 0 to 0.5. How many promises are kept\n"
        "within two points where the calibration error is at most 0.05 (of all); and by how much\n"
        "realised accuracy is above what is promised, in the mean:\n",
        quantiles(kept["quantiles"]),
        f"The same at {100 * PROMISED_QUANTILE:.0f} %, by how much errors are shared:\n",
        quantile_by_shared(kept["quantiles"]),
        "**Other crowds.** Simulated: 1,000 tasks, 30 workers, 5 responses a task, 20 crowds of\n"
        "each kind, with none, a fifth and half of the tasks left open. How often accuracy is at\n"
        "most two points below what is promised, above the low end, within the interval of 90 %,\n"
        "and at most two points below what is expected:\n",
        promises(kept["promises"]),
        "### What two more votes do\n",
        "Fitted to half of the votes of each dataset; then two more votes of each task, by those\n"
        "who gave them. Share of wrong labels: expected now, expected after two more by the plan,\n"
        "expected after the fit with them; and what was wrong by gold before and after.\n",
        more_votes(kept["more_votes"]),
    ]
    return "\n".join(parts)


def costs(rows: dict[str, Any]) -> str:
    body = []
    for name, row in rows.items():
        ours = row["decided"]
        theirs = row["argmax"]
        best = "**" if ours["realised"] <= theirs["realised"] else ""
        body.append(
            [
                NAMES[name],
                f"{ours['expected']:.3f}",
                f"{best}{ours['realised']:.3f}{best}",
                f"{theirs['expected']:.3f}",
                f"{theirs['realised']:.3f}",
                f"{100 * row['changed']:.0f} %",
            ]
        )
    means = [
        f"{np.mean([row[who][what] for row in rows.values()]):.3f}"
        for who in ("decided", "argmax")
        for what in ("expected", "realised")
    ]
    body.append(["**mean**", *means, ""])
    head = ("", "decided, expected", "realised", "likeliest, expected", "realised", "changed")
    return table(head, body)


def rarest(rows: dict[str, Any]) -> str:
    keys = ("labelled so", "labelled otherwise")
    body = []
    for name, row in rows.items():
        cells = []
        for stated, came, n in (row["rarest"][key] for key in keys):
            cells.append("–" if stated is None else f"{stated:.3f} → {came:.3f} ({n:,} tasks)")
        body.append([NAMES[name], *cells])
    return table(("", *keys), body)


def other_costs(rows: dict[str, Any]) -> str:
    body = []
    for name, row in rows.items():
        cells = [
            f"{each['decided']['realised']:.3f} / {each['argmax']['realised']:.3f}"
            for each in (row, row["unscaled"], row["shares"], row["auto"])
        ]
        decided, likeliest = np.mean(row["gold"], axis=0)
        n_less = sum(one <= other for one, other in row["gold"])
        share = f"{row['share'][0]:.2f}, {row['share'][1]:.2f}"
        cells.insert(3, f"{decided:.3f} / {likeliest:.3f} ({n_less})")
        body.append([NAMES[name], share, *cells])
    head = ("", "share", "as it is", '`calibrate="none"`', "shares known", "100 labels", "`auto`")
    return table(head, body)


def abstaining(rows: dict[str, Any], key: str) -> str:
    body = []
    for name, row in rows.items():
        found = row[key]
        cells = [_promise(found[rate]) for rate in ("0", *RATES)]
        took = f"{NAMES[name]}, {found['model']}" if "model" in found else NAMES[name]
        body.append([took, f"{found['ece10']:.3f}", *cells])
    head = ("", "calibration error", "0 %", "10 %", "20 %", "30 %", "50 %")
    return table(head, body)


def _promise(found: list[float | None]) -> str:
    came = found[CAME]
    expected = found[EXPECTED]
    promised = found[PROMISED]
    if came is None or expected is None or promised is None:
        return "–"  # no task of those that are scored is left
    text = f"{promised:.3f} ({expected:.3f}) → {came:.3f}"
    return f"**{text}**" if came < promised - POINTS else text


def each_of(rows: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [row[key] for row in rows.values()]


def draws_of(rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [draw for row in rows.values() for draw in row["draws"].values()]


def judged(every: list[dict[str, Any]]) -> str:
    """Say how many promises were kept, where probabilities are calibrated and on all datasets."""
    calibrated = [each for each in every if each["ece10"] <= CALIBRATED]
    body = []
    columns = (("promised", PROMISED), ("expected", EXPECTED), ("low end", LOW), ("word", WORD))
    for name, column in columns:
        body.append([name, *(_kept(some, column) for some in (calibrated, every))])
    head = ("kept within two points, and by how much it is exceeded in the mean",
            f"calibration error at most {CALIBRATED:g}", "all")  # fmt: skip
    return table(head, body)


def _kept(found: list[dict[str, Any]], column: int) -> str:
    """Count promises that are kept, and say how far they are off in the mean."""
    cells = [each[rate] for each in found for rate in RATES if each[rate][CAME] is not None]
    over = np.array([cell[CAME] - cell[column] for cell in cells])
    text = f"{(over >= -POINTS).sum()} of {len(over)}, {signed(over.mean())}"
    return f"**{text}**" if column == PROMISED else text


def signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def quantiles(rows: dict[str, Any]) -> str:
    body = []
    for at, quantile in enumerate(QUANTILES):
        cells = []
        for gold in ("0", "100"):
            own = [rows[f"gold {gold}, shared {shared:g}"] for shared in SHARED]
            cells += _at_quantile([row["calibrated"] for row in own], at)
            cells += _at_quantile([row["all"] for row in own], at)
        mark = "**" if quantile == PROMISED_QUANTILE else ""
        body.append([f"{mark}{100 * quantile:.0f} %{mark}", *cells])
    head = ("quantile", "no gold: kept", "exceeded by", "kept, all", "exceeded by",
            "100 gold: kept", "exceeded by", "kept, all", "exceeded by")  # fmt: skip
    return table(head, body)


def quantile_by_shared(rows: dict[str, Any]) -> str:
    at = QUANTILES.index(PROMISED_QUANTILE)
    body = []
    for shared in SHARED:
        cells = []
        for gold in ("0", "100"):
            row = rows[f"gold {gold}, shared {shared:g}"]
            for among in ("calibrated", "all"):
                n = row[among]["n"]
                share, over = _at_quantile([row[among]], at)
                cells.append(f"{share} of {n}, {over}" if n else "–")
        body.append([f"{shared:g}", *cells])
    head = ("shared", "no gold, calibrated", "no gold, all", "100 gold, calibrated",
            "100 gold, all")  # fmt: skip
    return table(head, body)


def _at_quantile(rows: list[dict[str, Any]], at: int) -> list[str]:
    """Return the share of promises that are kept, and what they leave over, of several kinds."""
    n = sum(row["n"] for row in rows)
    if not n:
        return ["–", "–"]
    kept = sum(row["kept"][at] for row in rows) / n
    over = sum(row["n"] * row["gap"][at] for row in rows) / n
    return [f"{kept:.3f}", signed(over)]


def promises(rows: dict[str, Any]) -> str:
    body = []
    for name, found in rows.items():
        word, low, high, came, expected, promised = np.array(found).T
        body.append(
            [
                name,
                f"{promised.mean():.3f}",
                f"{word.mean():.3f}",
                f"{expected.mean():.3f} ({low.mean():.3f} to {high.mean():.3f})",
                f"{came.mean():.3f}",
                f"{(came >= promised - POINTS).mean():.2f}",
                f"{(came >= low).mean():.2f}",
                f"{((came >= low) & (came <= high)).mean():.2f}",
                f"{(came >= expected - POINTS).mean():.2f}",
            ]
        )
    head = ("", "promised", "word", "expected", "realised", "kept", "above low", "in interval",
            "as expected")  # fmt: skip
    return table(head, body)


def more_votes(rows: dict[str, Any]) -> str:
    keys = ("now", "planned", "came", "wrong_now", "wrong_after")
    body = [
        [NAMES[name], str(row["votes"]), *(f"{row[key]:.3f}" for key in keys)]
        for name, row in rows.items()
    ]
    means = [f"{np.mean([row[key] for row in rows.values()]):.3f}" for key in keys]
    body.append(["**mean**", "", *means])
    head = ("", "votes before", "now", "planned", "came", "wrong before", "wrong after")
    return table(head, body)


if __name__ == "__main__":
    main()
