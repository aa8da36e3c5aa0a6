"""Ask simulated questions by every method, and score the labels after each budget; resumable.

    python experiments/03_asking/run.py [--methods a,b] [--datasets a,b] [--jobs 2] [--seeds 20]

Answers come from gold; of two people one may err. Each case, one method on one dataset with one
seed, is a line of `runs.jsonl` beside this file (not kept in the repository). With --collect,
cells go to `results.json`, which is kept, with as many seeds as were run, and which `report.py`
turns into tables and figures. A second call skips what either file holds already.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from asking import ask_free, ask_labels, ask_mixed, ask_pairs, ask_two_people
from common import Experiment
from crowds import CONFIG, HERE, SIMULATED, load, macro_f


class Case(NamedTuple):
    dataset: str
    method: str
    seed: int


def cases() -> list[Case]:
    """Return all cases, those with few seeds first."""
    first = CONFIG["first_seed"]
    found = []
    for at in range(CONFIG["seeds"]):
        for dataset in (*CONFIG["datasets"], *SIMULATED):
            for method, how in CONFIG["methods"].items():
                is_wanted = how.get("all_seeds") or at < CONFIG["few_seeds"]
                if is_wanted and dataset in datasets_of(how):
                    found.append(Case(dataset, method, first + at))
    return found


def datasets_of(how: dict[str, Any]) -> list[str]:
    if how.get("part") == "free":
        return list(CONFIG["free"]["datasets"])
    if how.get("part") == "wrong":
        return list(CONFIG["datasets"])
    return [*CONFIG["datasets"], *SIMULATED]


def ask(case: Case) -> dict[str, Any]:
    """Run one case: ask, fit, score, and so on."""
    how = CONFIG["methods"][case.method]
    crowd = load(case.dataset)
    start = time.perf_counter()
    if "label_cost" in how:
        found = ask_labels(crowd, case.seed, how["label_cost"])
    elif case.method == "links":
        found = ask_pairs(crowd, case.seed)
    elif how.get("part") == "free":
        found = ask_free(crowd, case.seed)
    elif how.get("part") == "wrong":
        found = ask_two_people(crowd, case.seed, how["rate"], as_gold=how.get("gold", False))
    else:
        found = ask_mixed(crowd, case.seed, how["cost"])
    return {**case._asdict(), **found, "seconds": time.perf_counter() - start}


def work(case: Case) -> dict[str, Any]:
    with warnings.catch_warnings(action="ignore"):
        return ask(case)


def cell_of(case: Case) -> str:
    return f"{case.dataset}/{case.method}"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    kept = {name: [row[name] for row in rows] for name in ("macro_f", "by_swap", "apart", "asked")}
    kept = {name: each for name, each in kept.items() if each[0] is not None}
    n_seeds = len(rows)
    if all(each == kept["macro_f"][0] for each in kept["macro_f"]):
        kept["macro_f"] = kept["macro_f"][:1]  # the same for every seed
    return {
        "n": rows[0]["n"],
        "seeds": n_seeds,
        **kept,
        "seconds": round(float(np.mean([row["seconds"] for row in rows])), 2),
    }


def unfold(cell: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that `summary` was made of; each took the mean of their seconds."""
    every = {name: cell.get(name) for name in ("macro_f", "by_swap", "apart", "asked")}
    if len(cell["macro_f"]) == 1:
        every["macro_f"] = cell["macro_f"] * cell["seeds"]
    return [
        {
            "n": cell["n"],
            "seconds": cell["seconds"],
            **{name: None if each is None else each[at] for name, each in every.items()},
        }
        for at in range(cell["seeds"])
    ]


def about() -> dict[str, Any]:
    """Keep how many gold tasks there are, and the scores of plain VB, which no question changes."""
    with warnings.catch_warnings(action="ignore"):
        found = {name: load(name) for name in (*CONFIG["datasets"], *SIMULATED)}
    return {
        "n_gold": {name: crowd.n_gold for name, crowd in found.items()},
        "plain": {name: round(macro_f(c, c.plain.labels_.label), 5) for name, c in found.items()},
    }


if __name__ == "__main__":
    Experiment(
        HERE,
        {**CONFIG, "datasets": [*CONFIG["datasets"], *SIMULATED]},
        cases,
        work,
        cell_of,
        summary,
        about,
        unfold,
    ).main()
