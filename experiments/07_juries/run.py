"""Run experiment 07: gold on juries and crowds, by every method.

TIEBREAK_DATA=… TIEBREAK_JURIES=… python experiments/07_juries/run.py [--methods …] [--collect]
"""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from common import Experiment, read_config

FOLDER = Path(__file__).parent
CONFIG = read_config(FOLDER)
FLOOR = 1e-4  # of probabilities, in log-loss
SIX = "Vanilla_NoRules"  # the prompt of the six judges of llmbar, or the first that a model has


class Case(NamedTuple):
    dataset: str
    method: str
    size: int
    seed: int


class Loaded(NamedTuple):
    responses: Any
    task: Any  # of gold, those with responses
    label: Any


@cache
def load(name: str) -> Loaded:
    import tiebreak as tb

    root = Path(os.environ["TIEBREAK_JURIES" if name in CONFIG["juries"] else "TIEBREAK_DATA"])
    folder = root / name.split("_orders")[0].split("_six")[0]
    gold = tb.read_gold(folder / "gold.csv")
    with warnings.catch_warnings(action="ignore"):
        if name in ("llmbar", "llmbar_six"):
            responses = tb.Responses.from_rows(last_rows(folder, only_six=name == "llmbar_six"))
        else:
            responses = tb.read_responses(folder / "responses.csv")
    responses = responses.with_classes(gold.classes)
    known = gold.on(responses.tasks, responses.classes)
    answered = np.diff(responses.start)[known.task] > 0
    return Loaded(responses, known.task[answered], known.label[answered])


def last_rows(folder: Path, *, only_six: bool) -> list[tuple[str, str, str]]:
    """Return the last verdict of each judge on each task, whatever the order: repeats="last"."""
    with (folder / "responses.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    judges = {row["worker"] for row in rows}
    if only_six:
        judges = set(six_of(judges))
    last = {(row["task"], row["worker"]): row["label"] for row in rows if row["worker"] in judges}
    return [(task, worker, label) for (task, worker), label in last.items()]


def six_of(judges: set[str]) -> list[str]:
    """Return one judge of each model: the same prompt where the model has it."""
    by_model: dict[str, list[str]] = {}
    for judge in sorted(judges):
        by_model.setdefault(judge.split("/")[0], []).append(judge)
    return [
        next((judge for judge in of if judge.endswith(f"/{SIX}")), of[0])
        for of in by_model.values()
    ]


def cases() -> list[Case]:
    seeds = range(CONFIG["first_seed"], CONFIG["first_seed"] + CONFIG["seeds"])
    return [
        Case(dataset, method, size, seed)
        for dataset in CONFIG["datasets"]
        for size in CONFIG["sizes"]
        for method in CONFIG["methods"]
        for seed in seeds
    ]


def work(case: Case) -> dict[str, Any]:
    loaded = load(case.dataset)
    n_gold = len(loaded.task)
    rng = np.random.default_rng([case.seed, case.size])
    known = np.zeros(n_gold, dtype=bool)
    known[rng.choice(n_gold, min(case.size, n_gold // 2), replace=False)] = True
    start = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        model, q = fit(case, loaded, known)
    seconds = time.perf_counter() - start
    task = loaded.task[~known]
    truth = loaded.label[~known]
    guess = q[task].argmax(axis=1) if model is None else model.labels_.label[task]
    share = np.maximum(q[task, truth], FLOOR)
    found = {
        "accuracy": round(float((guess == truth).mean()), 5),
        "log_loss": round(float(-np.log(share).mean()), 5),
        "seconds": round(seconds, 2),
    }
    if case.method == "auto":
        found["chosen"] = model.chosen_
    return {**case._asdict(), **found}


def fit(case: Case, loaded: Loaded, known: Any) -> tuple[Any, Any]:
    """Return the fitted model, or None, and its probabilities."""
    import tiebreak as tb

    responses = loaded.responses
    gold = {
        responses.tasks[int(i)]: responses.classes[int(k)]
        for i, k in zip(loaded.task[known], loaded.label[known], strict=True)
    }
    options = {"backend": "numba", "n_threads": 1}
    if case.method == "best":
        return None, best_worker(loaded, known)
    makers = {
        "mv": tb.MajorityVote,
        "vb_once": lambda **of: tb.VariationalBayes(gold_weight=1, **of),
        "vb": tb.VariationalBayes,
        "pool": tb.LogOpinionPool,
        "auto": tb.Auto,
    }
    model = makers[case.method](**options).fit(responses, gold=gold)
    return model, model.probabilities_


def best_worker(loaded: Loaded, known: Any) -> Any:
    from tiebreak.gold import GoldCodes
    from tiebreak.inference import vb
    from tiebreak.inference.best_worker import BestWorker
    from tiebreak.inference.stages import lay_out
    from tiebreak.kernels.arrays import softmax

    tasks = lay_out(loaded.responses)
    n_classes = loaded.responses.n_classes
    shares = vb.majority(tasks, n_classes).mean(axis=0)
    gold = GoldCodes(loaded.task[known], loaded.label[known])
    return softmax(BestWorker.of(tasks, np.maximum(shares, 1e-9), gold).scores())


def cell_of(case: Case) -> str:
    return f"{case.dataset} {case.method} {case.size}"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    found = {name: [row[name] for row in rows] for name in ("accuracy", "log_loss")}
    found["seconds"] = round(float(np.median([row["seconds"] for row in rows])), 2)
    if "chosen" in rows[0]:
        names = [row["chosen"] for row in rows]
        found["chosen"] = {name: names.count(name) for name in sorted(set(names))}
    return found


if __name__ == "__main__":
    Experiment(FOLDER, CONFIG, cases, work, cell_of, summary).main()
