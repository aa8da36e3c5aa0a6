"""The crowds that are asked about: ten datasets, and simulated ones that err together."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import read_config

HERE = Path(__file__).parent
CONFIG = read_config(HERE)
SIMULATED = {f"simulated {k}": k for k in CONFIG["simulated"]["classes"]}


class Asked(NamedTuple):
    """A crowd, its gold in codes, and what plain VB finds."""

    responses: Any
    names: list[Any]  # of the gold tasks
    task: np.ndarray  # their codes
    label: np.ndarray
    truth: np.ndarray  # by code of task, -1 where it is not known
    plain: Any

    @property
    def n_gold(self) -> int:
        return len(self.names)


def new_model(**options: Any) -> Any:
    import tiebreak as tb

    return tb.VariationalBayes(gold_weight=1, backend="numba", n_threads=1, **options)


@cache
def load(name: str) -> Asked:
    import tiebreak as tb

    if name in SIMULATED:
        responses, gold = simulated(SIMULATED[name])
    else:
        folder = Path(os.environ["TIEBREAK_DATA"]) / name
        gold = tb.read_gold(folder / "gold.csv")
        responses = tb.read_responses(folder / "responses.csv").with_classes(gold.classes)
    codes = gold.on(responses.tasks, responses.classes)
    truth = np.full(responses.n_tasks, -1)
    truth[codes.task] = codes.label
    plain = new_model().fit(responses)
    return Asked(responses, list(gold.tasks), codes.task, codes.label, truth, plain)


def simulated(n_classes: int) -> tuple[Any, Any]:
    import tiebreak as tb

    how = CONFIG["simulated"]
    crowd = tb.simulate.crowd(
        how["tasks"],
        how["workers"],
        n_classes,
        responses_per_task=how["responses_per_task"],
        accuracy=tuple(how["accuracy"]),
        shared=how["shared"],
        random_state=n_classes,
    )
    return crowd.responses.with_classes(crowd.gold.classes), crowd.gold


def macro_f(crowd: Asked, label: np.ndarray) -> float:
    from tiebreak import evaluate

    return evaluate.Scored(crowd.label, label[crowd.task], crowd.responses.n_classes).macro_f()


def most_by_swap(crowd: Asked, label: np.ndarray) -> float:
    """Return the most that macro-F gains where two classes exchange their names."""
    best = 0.0
    score = macro_f(crowd, label)
    n_classes = crowd.responses.n_classes
    for one in range(n_classes):
        for other in range(one + 1, n_classes):
            name = np.arange(n_classes)
            name[[one, other]] = [other, one]
            best = max(best, macro_f(crowd, name[label]) - score)
    return round(best, 5)
