"""Gold that contradicts the crowd: how sure labels are, and how often gold of real crowds does so.

TIEBREAK_DATA=… TIEBREAK_JURIES=… python experiments/07_juries/against.py    # makes against.json
python experiments/07_juries/against.py --report    # makes the tables of docs/juries-results.md
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1]))
import run as experiment
from common import NAMES, ROOT, made, put, table

import tiebreak as tb
from tiebreak.gold import GoldCodes
from tiebreak.inference import overturned
from tiebreak.inference.estimator import Estimator
from tiebreak.inference.inputs import read_and_check_inputs
from tiebreak.research.paper.runner import made_on

RESULTS = Path(__file__).parent / "against.json"
ESTIMATORS = {
    "DS": tb.DawidSkene,
    "VB": tb.VariationalBayes,
    "pool": tb.LogOpinionPool,
    "auto": tb.Auto,
}
CROWDS = {  # classes, and how many of them gold names one for the next
    "both of 2 classes": (2, 2),
    "all of 3 classes": (3, 3),
    "all of 4 classes": (4, 4),
    "2 of 4 classes": (4, 2),
}
SIZES = (5, 10, 50, 100)
SEEDS = range(100, 105)
DRAWS = range(200, 300)  # of real gold; constants were chosen on 10 to 29


def main() -> None:
    if "--report" in sys.argv:
        report()
        return
    kept = {"about": made_on(), "simulated": simulated(), "real": real()}
    lines = ",\n".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in kept.items())
    RESULTS.write_text(f"{{{lines}}}\n", "utf-8")


def simulated() -> list[dict[str, Any]]:
    """Fit crowds of six workers on 600 tasks, who are right on .8 to .9, to gold that is turned."""
    rows = []
    for title, (n_classes, n_moved) in CROWDS.items():
        for size in SIZES:
            for name, estimator in ESTIMATORS.items():
                of_seeds = [one(estimator, n_classes, n_moved, size, seed) for seed in SEEDS]
                means = {
                    key: round(float(np.mean([each[key] for each in of_seeds])), 4)
                    for key in of_seeds[0]
                }
                rows.append({"crowd": title, "gold": size, "method": name, **means})
            print(title, size, flush=True)
    return rows


def one(
    estimator: type[Any], n_classes: int, n_moved: int, size: int, seed: int
) -> dict[str, float]:
    """Return what labels of tasks that are not gold say, without and with the limit, and are."""
    crowd = tb.simulate.crowd(600, 6, n_classes, accuracy=(0.8, 0.9), random_state=seed)
    names = list(crowd.gold.classes)[:n_moved]
    to = dict(zip(names, names[1:] + names[:1], strict=True))
    truth = {task: to.get(label, label) for task, label in crowd.gold.to_dict().items()}
    known = dict(list(truth.items())[:size])
    free = estimator()
    with warnings.catch_warnings(action="ignore"):
        with patch.object(Estimator, "_heeds_gold", False):
            free.fit(crowd.responses, gold=known)
        inputs = read_and_check_inputs(crowd.responses, None, known)
        q, _ = overturned.limit(inputs, free.probabilities_, free.labels_.label)
    moved = np.array([task not in known and truth[task] in names for task in free.tasks_])
    best = free.labels_.best()
    right = np.array([best[task] == truth[task] for task in free.tasks_])
    limited = q[np.arange(len(q)), free.labels_.label]
    return {
        "before": float(free.labels_.probability[moved].mean()),
        "stated": float(limited[moved].mean()),
        "highest_before": float(free.labels_.probability[moved].max()),
        "highest": float(limited[moved].max()),
        "right": float(right[moved].mean()),
    }


def real() -> dict[str, list[int]]:
    """Count, by dataset, the draws of 25, 50 and 100 labels in which gold contradicts the votes."""
    experiment.prepare = lambda responses, gold: (responses, gold)  # nothing is fitted
    found = {}
    for name in experiment.CONFIG["datasets"]:
        responses, gold = experiment.load(name)
        tasks = overturned._lay_out(responses)
        known = gold.on(responses.tasks, responses.classes)
        answered = np.diff(responses.start)[known.task] > 0
        truth = GoldCodes(known.task[answered], known.label[answered])
        found[name] = [
            sum(contradicts(tasks, truth, responses.n_classes, size, seed) for seed in DRAWS)
            for size in experiment.CONFIG["sizes"]
        ]
    return found


def contradicts(tasks: Any, truth: GoldCodes, n_classes: int, size: int, seed: int) -> bool:
    n_gold = len(truth.task)
    rng = np.random.default_rng([seed, size])
    drawn = rng.choice(n_gold, min(size, n_gold // 2), replace=False)
    gold = GoldCodes(truth.task[drawn], truth.label[drawn])
    counts = overturned._count(tasks, gold, n_classes)
    return bool(overturned._contradicted(counts).any())


def report() -> None:
    kept = json.loads(RESULTS.read_text("utf-8"))
    rows = []
    for title in CROWDS:
        for size in SIZES:
            of_size = [
                each
                for each in kept["simulated"]
                if each["crowd"] == title and each["gold"] == size
            ]
            rows.append([title, str(size), *(_figure(each) for each in of_size)])
    touched = {name: counts for name, counts in kept["real"].items() if any(counts)}
    names = ", ".join(f"{NAMES.get(name, name)} {sum(counts)}" for name, counts in touched.items())
    n_draws = len(DRAWS) * len(experiment.CONFIG["sizes"])
    text = (
        f"*{made(kept['about'])}; five crowds of each kind.*\n\n"
        "Mean probability of labels on tasks of the classes that gold turns, as it would be → as "
        "it is / share of these labels that follow gold.\n\n"
        + table(["gold turns", "gold labels", *ESTIMATORS], rows)
        + f"\nReal gold, {n_draws} draws of 25, 50 and 100 labels from each of the "
        f"{len(kept['real'])} juries and crowds: it contradicts the votes in so many of them, and "
        f"in none of the others: {names or 'none'}.\n"
    )
    put(ROOT / "docs" / "juries-results.md", text, __file__, "against")


def _figure(each: dict[str, Any]) -> str:
    return f"{each['before']:.3f} → {each['stated']:.3f} / {each['right']:.3f}"


if __name__ == "__main__":
    main()
