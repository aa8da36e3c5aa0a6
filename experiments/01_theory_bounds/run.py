"""Simulate a crowd, compare what variational Bayes does with what the theorems promise.

    python experiments/01_theory_bounds/run.py

writes results.json beside this file. Where TIEBREAK_DATA names the folder of real datasets, their
table is computed too; otherwise it is kept as it was.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plans

import tiebreak as tb
from tiebreak.research import theory
from tiebreak.research.theory.__main__ import read

HERE = Path(__file__).parent
N_TRIALS = 20
N_ITER = 5
WORKERS = range(30, 91, 2)
ERRORS = ("label_error", "class_prior_error", "confusion_error")
DATASETS = (
    *("bluebird", "rte", "dog", "web", "music_genre"),
    *("zencrowd_us", "zencrowd_india", "sentence_polarity", "product", "trec"),
)


def main() -> None:
    crowd = read(HERE / "crowd.toml")[0]
    found = theory.bounds(crowd, n_iter=N_ITER)
    trials = [simulate(crowd, seed) for seed in range(N_TRIALS)]
    kept = json.loads((HERE / "results.json").read_text()) if has_results() else {}
    results = {
        "probability": found.probability,
        "probability_all_right": plans.probability_all_right(crowd),
        "bounds": {name: getattr(found, name).tolist() for name in ERRORS},
        "observed": {name: [trial[name] for trial in trials] for name in ERRORS},
        "held": sum(holds(found, trial) for trial in trials),
        "by_workers": [by_workers(crowd, n) for n in WORKERS],
        "needed": plans.needed(crowd, "workers"),
        "needed_plain": plans.needed(crowd, "workers", version="plain"),
        "real": real_table(os.environ.get("TIEBREAK_DATA")) or kept.get("real", []),
    }
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    print(f"held in {results['held']} of {N_TRIALS} trials; wrote results.json")


def has_results() -> bool:
    return (HERE / "results.json").exists()


def simulate(crowd: theory.Assumptions, seed: int) -> dict[str, list[float]]:
    """Return the largest errors after each iteration, started from hard majority votes."""
    n_workers = crowd.total_workers
    drawn = tb.simulate.crowd(
        crowd.n_tasks,
        n_workers,
        crowd.n_classes,
        responses_per_task=n_workers,
        confusion=crowd.confusion[0],
        class_prior=crowd.class_prior,
        random_state=seed,
    )
    truth = np.eye(crowd.n_classes)[drawn.gold.label]
    votes = tb.MajorityVote().fit(drawn.responses).labels_.label
    start = np.eye(crowd.n_classes)[votes]
    errors: dict[str, list[float]] = {name: [] for name in ERRORS}
    for n_iter in range(1, N_ITER + 1):
        model = tb.VariationalBayes(init=start, tol=0, max_iter=n_iter, calibrate="none").fit(
            drawn.responses
        )
        gaps = (
            model.probabilities_ - truth,
            model.class_prior_ - crowd.class_prior,
            model.confusion_ - crowd.confusion[0],
        )
        for name, gap in zip(ERRORS, gaps, strict=True):
            errors[name].append(float(np.abs(gap).max()))
    return errors


def holds(found: theory.Bounds, trial: dict[str, list[float]]) -> bool:
    return all(np.all(np.array(trial[name]) <= getattr(found, name)) for name in ERRORS)


def by_workers(crowd: theory.Assumptions, n: int) -> dict[str, Any]:
    """Return the last label bound for n workers, and how surely every label is proved right."""
    asked = plans.with_workers(crowd, n)
    return {
        "n_workers": n,
        "label_error": theory.bounds(asked).worst_label_error,
        "probability_all_right": plans.probability_all_right(asked),
    }


def real_table(folder: str | None) -> list[dict[str, Any]]:
    """Plug confusions counted from gold into the theorems, for every real dataset."""
    if not folder:
        return []
    return [real_row(name, Path(folder) / name) for name in DATASETS]


def real_row(name: str, folder: Path) -> dict[str, Any]:
    gold = tb.read_gold(folder / "gold.csv")
    responses = tb.read_responses(folder / "responses.csv").with_classes(gold.classes)
    crowd = counted_from_gold(responses, gold)
    found = theory.bounds(crowd)
    return {
        "dataset": name,
        "n_tasks": crowd.n_tasks,
        "n_workers": crowd.total_workers,
        "n_classes": crowd.n_classes,
        "responses_per_task": crowd.responses_per_task,
        "evidence_per_task": crowd.evidence_per_task,
        "evidence_failure_plain": theory.plain.evidence_failure(crowd),
        "evidence_failure_sharp": min(theory.sharp.evidence_failures(crowd, (0.05, 0.3, 0.5))),
        "vacuous": found.vacuous,
        "probability_all_right": plans.probability_all_right(crowd),
    }


def counted_from_gold(responses: tb.Responses, gold: tb.Gold) -> theory.Assumptions:
    """Count who confuses what on the gold tasks, smoothed by the diagonal prior."""
    n_classes = responses.n_classes
    known = gold.on(responses.tasks, responses.classes)
    truth = np.full(responses.n_tasks, -1)
    truth[known.task] = known.label
    counted = truth[responses.task_of_each()] >= 0
    cells = (
        responses.worker_of_each()[counted],
        truth[responses.task_of_each()[counted]],
        responses.label_of_each()[counted],
    )
    counts = np.ones((responses.n_workers, n_classes, n_classes)) + (n_classes - 1) * np.eye(
        n_classes
    )
    np.add.at(counts, cells, 1)
    fitted = Counted(
        class_prior_=np.bincount(known.label, minlength=n_classes) / len(known.label),
        confusion_=counts / counts.sum(axis=2, keepdims=True),
        responses_=responses,
    )
    return replace(theory.assumptions_from(fitted), failure_probability=0.1)


class Counted:
    """What a fitted model offers, counted instead of fitted."""

    def __init__(self, class_prior_: Any, confusion_: Any, responses_: tb.Responses) -> None:
        self.class_prior_ = class_prior_
        self.confusion_ = confusion_
        self.responses_ = responses_


if __name__ == "__main__":
    main()
