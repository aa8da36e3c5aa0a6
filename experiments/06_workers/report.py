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

import numpy as np
from common import NAMES, RESULTS, ROOT, table

HERE = Path(__file__).parent
BEGIN = "<!-- tables: begin (experiments/06_workers/report.py) -->"
END = "<!-- tables: end -->"
CALIBRATED = 0.05  # calibration error up to which a promise is judged
POINTS = 0.02  # by which accuracy may fall short of what was promised
RATES = ("0.1", "0.2", "0.3", "0.5")


def main() -> None:
    kept = json.loads((HERE / RESULTS).read_text("utf-8"))
    put(ROOT / "docs" / "workers.md", workers(kept))
    put(ROOT / "docs" / "decide.md", decisions(kept))


def put(page: Path, tables: str) -> None:
    """Replace what stands between the marks."""
    text = page.read_text("utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{after}", "utf-8")
    print(f"wrote {page.relative_to(ROOT)}")


def made(kept: dict[str, Any]) -> str:
    about = kept["about"]
    return f"Made on {about['date']}, {about['machine']}, Python {about['python']}.\n"


def workers(kept: dict[str, Any]) -> str:
    parts = [
        made(kept),
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
        made(kept),
        "### Missing the rarest class costs ten\n",
        "Any other error costs one. Mean cost of a task with a known class, as expected and as it\n"
        "came out, of the decisions and of the likeliest classes:\n",
        costs(kept["costs"]),
        "How probable the rarest class was → how often it came, by whether it is the label:\n",
        rarest(kept["costs"]),
        "The share of that class, as believed and as it is; and realised cost, decided /\n"
        "likeliest: as above, with probabilities as the model says, with the shares of classes\n"
        "known (`class_prior=`), with 100 known labels (in how many of four draws decisions cost\n"
        'less), and by the worker model that `worker_model="auto"` takes. The rarest class is the\n'
        "one that each model believes to be:\n",
        other_costs(kept["costs"]),
        "### Leaving tasks open\n",
        "Accuracy as expected over all scales, and the low end of its interval (`expected` and\n"
        "`low` of `estimate_accuracy`) → realised, among the tasks that are not left open, by the\n"
        "share that is; in bold where it falls short of what is expected by more than two points.\n"
        "Without gold:\n",
        abstaining(kept["abstaining"], "none"),
        judged(kept["abstaining"], "none"),
        'Without gold, by the worker model that responses speak for (`worker_model="auto"`):\n',
        abstaining(kept["abstaining"], "auto"),
        judged(kept["abstaining"], "auto"),
        "With 100 known labels (half of them on small datasets), mean over four draws, scored on\n"
        "the others:\n",
        abstaining(kept["abstaining"], "gold"),
        judged(kept["abstaining"], "gold"),
        "Simulated: 1,000 tasks, 30 workers, 5 responses a task, 20 crowds of each kind, with\n"
        "none, a fifth and half of the tasks left open. *Shared*: how often a task has one wrong\n"
        "class that all who err give. How often accuracy is above the low end, within two points\n"
        "of it, within the interval of 90 %, and at most two points below what is expected:\n",
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
    _, low, _, came, expected = found
    if came is None or expected is None:
        return "–"  # no task of those that are scored is left
    text = f"{expected:.3f} ({low:.3f}) → {came:.3f}"
    return f"**{text}**" if came < expected - POINTS else text


def judged(rows: dict[str, Any], key: str) -> str:
    """Say how many promises were kept, where probabilities are calibrated and on all datasets."""
    every = [row[key] for row in rows.values()]
    good = [each for each in every if each["ece10"] <= CALIBRATED]
    return (
        f"Realised accuracy is at most two points below what is promised: {_kept(good)} where\n"
        f"the calibration error is at most {CALIBRATED:g} ({len(good)} datasets), {_kept(every)}\n"
        "on all.\n"
    )


def _kept(found: list[dict[str, Any]]) -> str:
    """Count promises that are kept: the expected accuracy, the low end, the word."""
    rates = [each[rate] for each in found for rate in RATES if each[rate][0] is not None]
    by_word, by_low, by_expected = (
        sum(each[3] >= each[column] - POINTS for each in rates) for column in (0, 1, 4)
    )
    n = len(rates)
    return (
        f"{by_expected} of {n} by what is expected ({by_word} by probabilities at their word, "
        f"{by_low} by the low end)"
    )


def promises(rows: dict[str, Any]) -> str:
    body = []
    for name, found in rows.items():
        stated, low, high, came, expected = np.array(found).T
        body.append(
            [
                name,
                f"{stated.mean():.3f}",
                f"{expected.mean():.3f} ({low.mean():.3f} to {high.mean():.3f})",
                f"{came.mean():.3f}",
                f"{(came >= low).mean():.2f}",
                f"{(came >= low - POINTS).mean():.2f}",
                f"{((came >= low) & (came <= high)).mean():.2f}",
                f"{(came >= expected - POINTS).mean():.2f}",
            ]
        )
    head = ("", "word", "expected", "realised", "above low", "within two points", "in interval",
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
