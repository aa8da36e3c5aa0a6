"""Fit every method to the same random links, clean and partly wrong; resumable.

    python experiments/02_links/run.py [--methods a,b] [--datasets a,b] [--jobs 2]

Each fit is a line of `runs.jsonl` beside this file (not kept in the repository). With --collect,
complete cells go to `results.json`, which is kept, and which `report.py` turns into tables and
figures. A second call skips what either file holds already.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

from common import Experiment, estimator_options, read_config

HERE = Path(__file__).parent
CONFIG = read_config(HERE)
FIGURES = ("macro_f", "micro_f", "log_loss", "calibration_error", "violated", "seconds", "dropped")


class Case(NamedTuple):
    dataset: str
    size: float
    wrong: float
    seed: int
    method: str


def cases() -> list[Case]:
    first = CONFIG["first_seed"]
    seeds = range(first, first + CONFIG["seeds"])
    grid = product(CONFIG["datasets"], CONFIG["sizes"], CONFIG["wrong"], seeds, CONFIG["methods"])
    return [case for case in map(Case._make, grid) if is_run(case)]


def is_run(case: Case) -> bool:
    method = CONFIG["methods"][case.method]
    first = (CONFIG["first_seed"], CONFIG["sizes"][0], 0.0)
    if method.get("once") and (case.seed, case.size, case.wrong) != first:
        return False
    when = method.get("when", "always")
    return when == "always" or (when == "clean") == (case.wrong == 0.0)


@cache
def load(name: str) -> Any:
    import tiebreak as tb

    folder = Path(os.environ["TIEBREAK_DATA"]) / name
    return tb.read_responses(folder / "responses.csv"), tb.read_gold(folder / "gold.csv")


def fit(case: Case) -> dict[str, Any]:
    import tiebreak as tb
    from tiebreak.simulate import links as draw_links

    responses, gold = load(case.dataset)
    n_links = round(case.size * len(gold))
    links = draw_links(gold, n_links, wrong=case.wrong, random_state=case.seed)
    method = CONFIG["methods"][case.method]
    prior = "uniform" if case.dataset in CONFIG["uniform_prior"] else "diagonal"
    options = {"confusion_prior": prior, "backend": "numba", "n_threads": 1}
    model = tb.VariationalBayes(**options, **estimator_options(method.get("options", {})))
    with warnings.catch_warnings(action="ignore"):
        start = time.process_time()  # one thread, whatever else runs
        model.fit(responses, links=links if method.get("links", True) else None)
        seconds = time.process_time() - start
    report = tb.evaluate.report(model.labels_, gold, links)
    return {
        **case._asdict(),
        "macro_f": round(report.macro_f, 6),
        "micro_f": round(report.micro_f, 6),
        "log_loss": round(report.log_loss, 5),
        "calibration_error": round(report.calibration_error, 5),
        "violated": report.violated_given,
        "seconds": round(seconds, 4),
        "dropped": n_dropped(responses, links) if case.method == "grid" else 0,
    }


def n_dropped(responses: Any, links: Any) -> int:
    """Count the cannot-links whose tasks must-links join: the grid's closure drops them."""
    from tiebreak.links import graph as link_graph

    return len(link_graph.close(responses.n_tasks, links.on(responses.tasks)).conflicts)


def cell_of(case: Case) -> str:
    return f"{case.dataset}/{case.size:.2f}/{case.wrong:.2f}/{case.method}"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: [row[name] for row in rows] for name in FIGURES}


if __name__ == "__main__":
    Experiment(HERE, CONFIG, cases, fit, cell_of, summary).main()
