"""Choosing the next 20 questions, and fitting again with their answers, for 100,000 tasks."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from benchmarks.measure import about, keep, seconds
from tiebreak import VariationalBayes, simulate
from tiebreak.ask.fitting import BETWEEN_BATCHES
from tiebreak.links import Links
from tiebreak.selection import pairs, questions

N_TASKS, N_WORKERS, RESPONSES_PER_TASK = 100_000, 500, 5
N_PAIRS, ROUNDS = 20, 10
CLASSES = (2, 4, 10)


def measure(n_classes: int) -> dict[str, Any]:
    crowd = simulate.crowd(
        N_TASKS,
        N_WORKERS,
        n_classes,
        responses_per_task=RESPONSES_PER_TASK,
        accuracy=(0.4, 0.8),
        random_state=0,
    )
    responses, truth = crowd.responses, crowd.gold.label
    model = VariationalBayes().fit(responses)  # compiles
    left: list[int] = []
    right: list[int] = []
    first, choosing, again = [], [], []
    mixed = measure_mixed(responses, truth, model)
    for turn in range(ROUNDS):
        first.append(seconds(lambda: VariationalBayes().fit(responses)))
        start = time.perf_counter()
        found = pairs(model, N_PAIRS, "adaptive", random_state=turn)
        choosing.append(time.perf_counter() - start)
        codes = responses.tasks.codes([*found.left, *found.right])
        left += codes[:N_PAIRS].tolist()
        right += codes[N_PAIRS:].tolist()
        links = Links(
            np.array(left, np.int32),
            np.array(right, np.int32),
            truth[left] == truth[right],
            responses.tasks,
            np.arange(len(left)),
        )
        start = time.perf_counter()
        model = VariationalBayes(tol=BETWEEN_BATCHES).fit(responses, links=links, start=model)
        again.append(time.perf_counter() - start)
    return {
        "classes": n_classes,
        "first_fit_seconds": [round(each, 4) for each in first],
        "choosing_seconds": [round(each, 4) for each in choosing],
        "refit_seconds": [round(each, 4) for each in again],
        "refit_share": round(statistics.median(again[1:]) / statistics.median(first[1:]), 3),
        "mixed_choosing_seconds": [round(each, 4) for each in mixed["choosing"]],
        "mixed_refit_seconds": [round(each, 4) for each in mixed["again"]],
        "mixed_refit_share": round(
            statistics.median(mixed["again"][1:]) / statistics.median(first[1:]), 3
        ),
    }


def measure_mixed(responses: Any, truth: Any, model: Any) -> dict[str, list[float]]:
    """Choose labels and links together, answer them, fit again."""
    gold: dict[Any, Any] = {}
    ends: list[tuple[Any, Any, bool]] = []
    found: dict[str, list[float]] = {"choosing": [], "again": []}
    for turn in range(ROUNDS):
        start = time.perf_counter()
        rows = questions(model, N_PAIRS, costs={"label": 2.0}, random_state=turn)
        found["choosing"].append(time.perf_counter() - start)
        for row in rows:
            known = truth[responses.tasks.codes([row.task])[0]]
            if row.kind == "label":
                gold[row.task] = responses.classes[int(known)]
            else:
                other = truth[responses.tasks.codes([row.other])[0]]
                ends.append((row.task, row.other, bool(known == other)))
        links = Links.from_columns(*map(list, zip(*ends, strict=True))) if ends else None
        start = time.perf_counter()
        model = VariationalBayes(tol=BETWEEN_BATCHES).fit(
            responses, links=links, gold=gold, start=model
        )
        found["again"].append(time.perf_counter() - start)
    return found


def main() -> None:
    keep(
        "asking",
        {
            "what": f"choose {N_PAIRS} pairs (mixed: questions), answer them, fit again",
            "tolerance": BETWEEN_BATCHES,
            "tasks": N_TASKS,
            "responses": N_TASKS * RESPONSES_PER_TASK,
            "rows": [measure(each) for each in CLASSES],
            **about(),
        },
    )


if __name__ == "__main__":
    main()
