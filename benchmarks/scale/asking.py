"""Choosing the next 20 questions, and fitting again with their answers, for 100,000 tasks."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.measure import about, keep, seconds
from tiebreak import VariationalBayes, simulate
from tiebreak.ask.fitting import BETWEEN_BATCHES
from tiebreak.links import Links
from tiebreak.selection import pairs, questions
from tiebreak.selection.questions import Offer

N_TASKS, N_WORKERS, RESPONSES_PER_TASK = 100_000, 500, 5
N_PAIRS, ROUNDS = 20, 12
CLASSES = (2, 4, 10)


class Answers(NamedTuple):
    """What was said: labels by task, and pairs with whether they are the same."""

    gold: dict[Any, Any]
    ends: list[tuple[Any, Any, bool]]


def measure(n_classes: int) -> dict[str, Any]:
    crowd = simulate.crowd(
        N_TASKS,
        N_WORKERS,
        n_classes,
        responses_per_task=RESPONSES_PER_TASK,
        accuracy=(0.4, 0.8),
        random_state=0,
    )
    VariationalBayes().fit(crowd.responses)  # compiles
    pairs_only = measure_session(crowd, choose_pairs)
    uncalibrated = measure_session(crowd, choose_pairs, calibrate="none")
    mixed = measure_session(crowd, choose_mixed)
    return {
        "classes": n_classes,
        "first_fit_seconds": pairs_only["first"],
        "choosing_seconds": pairs_only["choosing"],
        "refit_seconds": pairs_only["again"],
        "refit_share": median_ratio(pairs_only),
        "uncalibrated_first_fit_seconds": uncalibrated["first"],
        "uncalibrated_refit_seconds": uncalibrated["again"],
        "uncalibrated_refit_share": median_ratio(uncalibrated),
        "mixed_first_fit_seconds": mixed["first"],
        "mixed_choosing_seconds": mixed["choosing"],
        "mixed_refit_seconds": mixed["again"],
        "mixed_refit_share": median_ratio(mixed),
    }


def measure_session(
    crowd: Any, choose: Callable[[Any, int], list[Offer]], calibrate: str = "auto"
) -> dict[str, list[float]]:
    """Choose questions, answer them, fit again; beside each refit a first fit is timed.

    A session asks about doubtful tasks, so that its fits have `gold_weight=1` (ask/fitting.py).
    """
    responses = crowd.responses
    model = VariationalBayes(calibrate=calibrate).fit(responses)
    said = Answers({}, [])
    found: dict[str, list[float]] = {"first": [], "choosing": [], "again": []}
    for turn in range(ROUNDS + 1):
        start = time.perf_counter()
        asked = choose(model, turn)
        found["choosing"].append(time.perf_counter() - start)
        answer(crowd, asked, said)
        links = Links.from_columns(*map(list, zip(*said.ends, strict=True))) if said.ends else None
        again = VariationalBayes(tol=BETWEEN_BATCHES, gold_weight=1, calibrate=calibrate)
        found["first"].append(seconds(lambda: VariationalBayes(calibrate=calibrate).fit(responses)))
        start = time.perf_counter()
        again.fit(responses, links=links, gold=said.gold or None, start=model)
        found["again"].append(time.perf_counter() - start)
        model = again
    return {name: [round(each, 4) for each in times] for name, times in found.items()}


def median_ratio(found: dict[str, list[float]]) -> float:
    """Return the median of refit / first fit, pair by pair: both met the same machine.

    The first round is left out: its refit compiles.
    """
    pairs = zip(found["again"][1:], found["first"][1:], strict=True)
    return round(statistics.median(again / first for again, first in pairs), 3)


def choose_pairs(model: Any, turn: int) -> list[Offer]:
    found = pairs(model, N_PAIRS, "adaptive", random_state=turn)
    return [Offer("same", left, right) for left, right, _ in found]


def choose_mixed(model: Any, turn: int) -> list[Offer]:
    return list(questions(model, N_PAIRS, costs={"label": 2.0}, random_state=turn))


def answer(crowd: Any, asked: list[Offer], said: Answers) -> None:
    """Answer from gold, and add that to what was said."""
    for row in asked:
        known = class_of(crowd, row.task)
        if row.kind == "label":
            said.gold[row.task] = known
        else:
            said.ends.append((row.task, row.other, known == class_of(crowd, row.other)))


def class_of(crowd: Any, task: Any) -> Any:
    code = crowd.responses.tasks.codes([task])[0]
    return crowd.responses.classes[int(crowd.gold.label[code])]


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
