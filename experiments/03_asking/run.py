"""Ask simulated questions by every method, and score the labels after each budget; resumable.

    python experiments/03_asking/run.py [--methods a,b] [--datasets a,b] [--jobs 2] [--seeds 20]

Answers come from gold; with wrong answers, a share of them is flipped. Each case, one method on one
dataset with one seed, is a line of `runs.jsonl` beside this file (not kept in the repository). With
--collect, complete cells go to `results.json`, which is kept, and which `report.py` turns into
tables and figures. A second call skips what either file holds already.
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

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from common import Experiment, estimator_options, read_config

HERE = Path(__file__).parent
CONFIG = read_config(HERE)


class Case(NamedTuple):
    dataset: str
    wrong: float
    method: str
    seed: int


class Asked(NamedTuple):
    """A dataset, its gold in codes, and what plain VB finds."""

    responses: Any
    names: list[Any]  # of the gold tasks
    task: np.ndarray  # their codes
    label: np.ndarray
    plain: Any


def cases() -> list[Case]:
    seeds = range(CONFIG["first_seed"], CONFIG["first_seed"] + CONFIG["seeds"])
    grid = product(CONFIG["datasets"], CONFIG["wrong"], CONFIG["methods"], seeds)
    found = map(Case._make, grid)
    return [case for case in found if not (case.wrong and _method(case).get("clean_only"))]


def _method(case: Case) -> dict[str, Any]:
    method: dict[str, Any] = CONFIG["methods"][case.method]
    return method


@cache
def load(name: str) -> Asked:
    import tiebreak as tb

    folder = Path(os.environ["TIEBREAK_DATA"]) / name
    gold = tb.read_gold(folder / "gold.csv")
    responses = tb.read_responses(folder / "responses.csv").with_classes(gold.classes)
    truth = gold.on(responses.tasks, responses.classes)
    plain = _model(name).fit(responses)
    return Asked(responses, list(gold.tasks), truth.task, truth.label, plain)


def _model(dataset: str, **options: Any) -> Any:
    import tiebreak as tb

    prior = "uniform" if dataset in CONFIG["uniform_prior"] else "diagonal"
    return tb.VariationalBayes(
        confusion_prior=prior,
        gold_weight=1,
        backend="numba",
        n_threads=1,
        **estimator_options(options),
    )


def stops(n_gold: int, *, in_rounds: bool) -> list[int]:
    """Return the numbers of questions after which a method is fitted and scored."""
    found = {round(share * n_gold) for share in CONFIG["budgets"]}
    if in_rounds:
        most = max(found)
        found |= {round(most * (i + 1) / CONFIG["rounds"]) for i in range(CONFIG["rounds"])}
    return sorted(found - {0})


def ask(case: Case) -> dict[str, Any]:
    """Run one case: ask, fit, score, and so on."""
    method = _method(case)
    crowd = load(case.dataset)
    rng = np.random.default_rng([case.seed, round(1000 * case.wrong)])
    asking = ask_labels if method["ask"] == "labels" else ask_pairs
    start = time.perf_counter()
    scored = asking(case, crowd, rng)
    seconds = time.perf_counter() - start
    n, macro, micro = zip(*scored, strict=True)
    return {**case._asdict(), "n": n, "macro_f": macro, "micro_f": micro, "seconds": seconds}


def ask_pairs(case: Case, crowd: Asked, rng: Any) -> list[tuple[int, float, float]]:
    import tiebreak as tb

    method = _method(case)
    model = crowd.plain
    truth = np.full(crowd.responses.n_tasks, -1)
    truth[crowd.task] = crowd.label
    options = method.get("soft_options", method["options"]) if case.wrong else method["options"]
    left: list[Any] = []
    right: list[Any] = []
    must: list[bool] = []
    scored = []
    drawn = None
    if not method.get("rounds"):  # all at once: what is asked first is the same for every budget
        most = max(stops(len(crowd.names), in_rounds=False))
        drawn = list(tb.selection.pairs(model, most, method["ask"], crowd.names, rng))
    for stop in stops(len(crowd.names), in_rounds=bool(method.get("rounds"))):
        wanted = stop - len(left)
        asked = (
            drawn[len(left) : stop]
            if drawn is not None
            else list(tb.selection.pairs(model, wanted, method["ask"], crowd.names, rng))
        )
        for a, b, _ in asked:
            same = bool(np.equal(*truth[crowd.responses.tasks.codes([a, b])]))
            left.append(a)
            right.append(b)
            must.append(same != bool(rng.random() < case.wrong))
        links = tb.Links.from_columns(left, right, must)
        begin = model if method.get("rounds") else crowd.plain
        model = _model(case.dataset, **options).fit(crowd.responses, links=links, start=begin)
        scored.append((len(left), *_scores(crowd, model.labels_.label)))
    return scored


def ask_labels(case: Case, crowd: Asked, rng: Any) -> list[tuple[int, float, float]]:
    """Ask for the label of the tasks in most doubt, by the margin of their probabilities."""
    import tiebreak as tb

    method = _method(case)
    model = crowd.plain
    known: list[int] = []  # places in the gold tasks
    scored = []
    for stop in stops(len(crowd.names), in_rounds=bool(method.get("rounds"))):
        margin = tb.selection.margins(model.probabilities_[crowd.task])
        margin[known] = np.inf
        if not method.get("rounds"):
            margin = tb.selection.margins(crowd.plain.probabilities_[crowd.task])
            known = []
        ties = rng.random(len(margin))
        known += np.lexsort((ties, margin))[: stop - len(known)].tolist()
        classes = crowd.responses.classes
        gold = [(crowd.names[i], classes[int(crowd.label[i])]) for i in known]
        begin = model if method.get("rounds") else crowd.plain
        model = _model(case.dataset).fit(crowd.responses, gold=gold, start=begin)
        scored.append((stop, *_scores(crowd, model.labels_.label)))
    return scored


def _scores(crowd: Asked, label: np.ndarray) -> tuple[float, float]:
    from tiebreak import evaluate

    counts = evaluate.count_classes(crowd.label, label[crowd.task], crowd.responses.n_classes)
    return round(evaluate.macro_f(counts), 5), round(evaluate.micro_f(counts), 5)


def work(case: Case) -> dict[str, Any]:
    with warnings.catch_warnings(action="ignore"):
        return ask(case)


def cell_of(case: Case) -> str:
    return f"{case.dataset}/{case.wrong:.2f}/{case.method}"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "n": rows[0]["n"],
        "macro_f": [row["macro_f"] for row in rows],
        "micro_f": [row["micro_f"][-1] for row in rows],
        "seconds": round(float(np.mean([row["seconds"] for row in rows])), 2),
    }


def about() -> dict[str, Any]:
    """Keep how many gold tasks there are, and the scores of plain VB, which no question changes."""
    found = {name: load(name) for name in CONFIG["datasets"]}
    return {
        "n_gold": {name: len(crowd.names) for name, crowd in found.items()},
        "plain": {name: _scores(c, c.plain.labels_.label) for name, c in found.items()},
    }


if __name__ == "__main__":
    Experiment(HERE, CONFIG, cases, work, cell_of, summary, about).main()
