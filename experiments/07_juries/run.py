"""Run experiment 07: how often a known task should count for its workers.

TIEBREAK_DATA=… TIEBREAK_JURIES=… python experiments/07_juries/run.py [--datasets …] [--collect]
"""

from __future__ import annotations

import csv
import os
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data.gold import GoldCodes

sys.path.append(str(Path(__file__).parents[1]))
from common import Experiment, read_config

FOLDER = Path(__file__).parent
CONFIG = read_config(FOLDER)
WEIGHTS: dict[str, Any] = {"vb_once": 1, "vb": "auto"}
SIX = "Vanilla"  # the prompt of the six judges of llmbar


class Case(NamedTuple):
    dataset: str
    method: str  # "all": every method sees the same gold
    size: int
    seed: int


class Loaded(NamedTuple):
    """A dataset."""

    responses: Any
    truth: Any  # gold of tasks with responses


@cache
def load(name: str) -> Loaded:
    import tiebreak as tb

    root = Path(os.environ["TIEBREAK_JURIES" if name in CONFIG["juries"] else "TIEBREAK_DATA"])
    if name in CONFIG["simulated"]:
        return prepare(*simulated(name))
    folder = root / name.removesuffix("_six")
    gold = tb.read_gold(folder / "gold.csv")
    with warnings.catch_warnings(action="ignore"):
        if name in ("llmbar", "llmbar_six"):
            responses = tb.Responses.from_rows(last_rows(folder, only_six=name == "llmbar_six"))
        else:
            responses = tb.read_responses(folder / "responses.csv")
    return prepare(responses.with_classes(gold.classes), gold)


def prepare(responses: Any, gold: Any) -> Loaded:
    """Keep gold of tasks that somebody answered."""
    known = gold.on(responses.tasks, responses.classes)
    answered = np.diff(responses.start)[known.task] > 0
    truth = GoldCodes(known.task[answered], known.label[answered])
    return Loaded(responses, truth)


def simulated(name: str) -> tuple[Any, Any]:
    """Make a jury of 12 on 800 tasks of three classes.

    *apart*: each errs alone. *together*: on half of the tasks all who err give the same wrong
    label. *star*: so too, and one judge is right on .92 of the tasks, alone. *herd*: on 45 % of
    the tasks eleven judges give the same wrong label, and one judge does not.
    """
    import tiebreak as tb

    rng = np.random.default_rng(7)
    n_tasks = 800
    truth = rng.integers(0, 3, n_tasks)
    wrong = (truth + rng.integers(1, 3, n_tasks)) % 3
    together = rng.random(n_tasks) < {"sim_apart": 0.0, "sim_herd": 1.0}.get(name, 0.5)
    herd = rng.random(n_tasks) < 0.45
    rows = []
    for judge in range(12):
        is_star = judge == 0 and name in ("sim_star", "sim_herd")
        right = rng.random(n_tasks) < (0.92 if is_star else rng.uniform(0.6, 0.8))
        if name == "sim_herd" and not is_star:
            right = np.where(rng.random(n_tasks) < 0.1, right, ~herd)
        own = (truth + rng.integers(1, 3, n_tasks)) % 3
        said = np.where(right, truth, np.where(together & (not is_star), wrong, own))
        rows += [(f"t{i}", f"j{judge}", f"c{k}") for i, k in enumerate(said.tolist())]
    labels = {f"t{i}": f"c{k}" for i, k in enumerate(truth.tolist())}
    return tb.Responses.from_rows(rows), tb.Gold.from_dict(labels)


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
    """Return one judge of each model, all with the same prompt."""
    return sorted(judge for judge in judges if judge.endswith(f"/{SIX}"))


def cases() -> list[Case]:
    seeds = range(CONFIG["first_seed"], CONFIG["first_seed"] + CONFIG["seeds"])
    return [
        Case(dataset, "all", size, seed)
        for dataset in CONFIG["datasets"]
        for size in CONFIG["sizes"]
        for seed in seeds
    ]


def work(case: Case) -> dict[str, Any]:
    import tiebreak as tb

    responses, truth = load(case.dataset)
    n_gold = len(truth.task)
    rng = np.random.default_rng([case.seed, case.size])
    known = np.zeros(n_gold, dtype=bool)
    known[rng.choice(n_gold, min(case.size, n_gold // 2), replace=False)] = True
    gold = {
        responses.tasks[int(task)]: responses.classes[int(label)]
        for task, label in zip(truth.task[known], truth.label[known], strict=True)
    }
    rest = GoldCodes(truth.task[~known], truth.label[~known])
    found: dict[str, Any] = {}
    with warnings.catch_warnings(action="ignore"):
        for name, weight in WEIGHTS.items():
            model = tb.VariationalBayes(gold_weight=weight, backend="numba", n_threads=1)
            model.fit(responses, gold=gold)
            right = model.labels_.label[rest.task] == rest.label
            found[name] = {"accuracy": round(float(right.mean()), 5)}
    return {**case._asdict(), "found": found}


def cell_of(case: Case) -> str:
    return f"{case.dataset} {case.size}"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Keep the figures of every draw by method."""
    return {
        name: {"accuracy": [row["found"][name]["accuracy"] for row in rows]} for name in WEIGHTS
    }


if __name__ == "__main__":
    Experiment(FOLDER, CONFIG, cases, work, cell_of, summary).main()
