"""Decisions on the ten datasets and on simulated crowds: costs, promises, more votes."""

from __future__ import annotations

import os
import sys
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))

from common import NAMES, by_bound

import tiebreak as tb
from tiebreak.decide.costs import read_cost_matrix
from tiebreak.decide.decide import estimate_accuracy
from tiebreak.decide.planning import costs_after

DEAR = 10.0  # what missing the rarest class costs; any other error costs 1
RATES = (0.1, 0.2, 0.3, 0.5)
N_GOLD = 100
N_GOLD_DRAWS = 4
N_SHARES = 10_000  # tasks: so much do shares of classes count that are known
N_PROMISES = 20  # simulated crowds of each kind
DATASETS = tuple(NAMES)
FIRST_SEED = 300  # what known tasks count for was chosen on crowds 200 to 207
LEVEL = 0.9
# What is promised is a quantile. It was chosen on these crowds, which are shown nowhere else.
QUANTILES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
SHARED = (0.0, 0.1, 0.2, 0.3, 0.5)
QUANTILE_SEEDS = range(700, 705)
CALIBRATED = 0.05  # calibration error up to which a promise is judged
POINTS = 0.02  # by which accuracy may fall short of what was promised


@cache
def load(name: str) -> tuple[tb.Responses, tb.Gold]:
    folder = Path(os.environ["TIEBREAK_DATA"]) / name
    return tb.read_responses(folder / "responses.csv"), tb.read_gold(folder / "gold.csv")


@cache
def by_chosen_model(name: str) -> tb.VariationalBayes:
    """Fit the worker model that the responses speak for."""
    return by_bound(load(name)[0])


def costs() -> dict[str, Any]:
    """Missing the rarest class costs ten: expected and realised cost, beside the likeliest."""
    found = {}
    for name in DATASETS:
        responses, gold = load(name)
        row = _cost(tb.VariationalBayes().fit(responses), gold, None)
        row["unscaled"] = _cost(tb.VariationalBayes(calibrate="none").fit(responses), gold, None)
        drawn = []
        for some in _draws_of(gold):
            model = tb.VariationalBayes().fit(responses, gold=some)
            drawn.append(_realised(_cost(model, gold, some)))
        row["gold"] = drawn
        known = gold.on(responses.tasks, responses.classes)
        shares = np.bincount(known.label, minlength=responses.n_classes) / len(known.label)
        told = tb.VariationalBayes(class_prior=N_SHARES * np.maximum(shares, 1e-3))
        row["shares"] = _cost(told.fit(responses), gold, None)
        row["auto"] = _cost(by_chosen_model(name), gold, None)
        found[name] = row
    return found


def _draws_of(gold: tb.Gold) -> list[tb.Gold]:
    """Return some gold, drawn a few times."""
    found = []
    for seed in range(N_GOLD_DRAWS):
        rng = np.random.default_rng(seed)
        chosen = rng.choice(len(gold), min(N_GOLD, len(gold) // 2), replace=False)
        classes = gold.classes.take(gold.label[chosen])
        found.append(tb.Gold.from_columns(gold.tasks.take(chosen), classes))
    return found


def _realised(row: dict[str, Any]) -> list[float]:
    return [row["decided"]["realised"], row["argmax"]["realised"]]


def _cost(model: Any, gold: tb.Gold, given: tb.Gold | None) -> dict[str, Any]:
    """Return what decisions and labels cost on tasks whose class the model was not told."""
    known = gold.on(model.tasks_, model.classes_)
    told = [] if given is None else given.on(model.tasks_, model.classes_).task
    scored = ~np.isin(known.task, told)
    task = known.task[scored]
    truth = known.label[scored]
    rarest = int(model.class_prior_.argmin())
    matrix = 1.0 - np.eye(len(model.classes_))
    matrix[rarest] *= DEAR
    decided = model.decide(matrix)
    q = model.probabilities_[task]
    label = model.labels_.label[task]
    every = np.arange(len(label))
    return {
        "decided": {
            "expected": float(decided.expected_cost[task].mean()),
            "realised": float(matrix[truth, decided.decision[task]].mean()),
        },
        "argmax": {
            "expected": float((q @ matrix)[every, label].mean()),
            "realised": float(matrix[truth, label].mean()),
        },
        "changed": float((decided.decision[task] != label).mean()),
        "rarest": _of_rarest(q[:, rarest], label == rarest, truth == rarest),
        "share": [float(model.class_prior_[rarest]), float((truth == rarest).mean())],
    }


def _of_rarest(chance: np.ndarray, is_label: np.ndarray, is_truth: np.ndarray) -> dict[str, Any]:
    """Say how probable the rarest class was, and how often it came, by whether it is the label."""
    found = {}
    for name, chosen in (("labelled so", is_label), ("labelled otherwise", ~is_label)):
        stated = float(chance[chosen].mean()) if chosen.any() else np.nan
        came = float(is_truth[chosen].mean()) if chosen.any() else np.nan
        found[name] = [stated, came, int(chosen.sum())]
    return found


def abstaining() -> dict[str, Any]:
    """Leave some tasks open: promised and realised accuracy of the rest, without and with gold."""
    found = {}
    for name in DATASETS:
        responses, gold = load(name)
        chosen = by_chosen_model(name)
        row = {
            "none": _abstain(tb.VariationalBayes().fit(responses), gold, None),
            "auto": _abstain(chosen, gold, None) | {"model": chosen.worker_model},
        }
        drawn = [
            _abstain(tb.VariationalBayes().fit(responses, gold=some), gold, some)
            for some in _draws_of(gold)
        ]
        row["gold"] = {
            key: np.mean([each[key] for each in drawn], axis=0).tolist() for key in drawn[0]
        }
        row["draws"] = {str(i): each for i, each in enumerate(drawn)}
        found[name] = row
    return found


def _abstain(model: Any, gold: tb.Gold, given: tb.Gold | None) -> dict[str, Any]:
    """Score the tasks whose class is known but was not told to the model."""
    truth = _truth_that_was_not_told(model, gold, given)
    found: dict[str, Any] = {
        "ece10": tb.evaluate.calibration_error(model.labels_, gold, 10, given=given)
    }
    for rate in (0.0, *RATES):
        found[f"{rate:g}"] = _promise(model.decide(abstain_rate=rate), truth)
    return found


def _truth_that_was_not_told(model: Any, gold: tb.Gold, given: tb.Gold | None) -> np.ndarray:
    known = gold.on(model.tasks_, model.classes_)
    truth = np.full(len(model.tasks_), -1)
    truth[known.task] = known.label
    if given is not None:
        truth[given.on(model.tasks_, model.classes_).task] = -1
    return truth


def _promise(decided: Any, truth: np.ndarray) -> list[float]:
    """Return accuracy by word, low, high, as it came out, as expected, as promised."""
    scored = np.where(truth >= 0, decided.stated.label, -1)
    kept = scored >= 0
    if not kept.any():
        return [np.nan] * 6
    found = estimate_accuracy(decided.stated._replace(label=scored), LEVEL)
    stated = float(decided.probability[kept].mean())
    realised = float((scored == truth)[kept].mean())
    return [stated, found.low, found.high, realised, found.expected, found.promised]


def promises() -> dict[str, Any]:
    """Promised and realised accuracy on simulated crowds, by how much is known."""
    found = {}
    for n_classes in (2, 4, 10):
        for shared in (0.0, 0.3):
            for n_gold in (0, 50, 200):
                drawn = [
                    _promises_of(n_classes, shared, n_gold, seed)
                    for seed in range(FIRST_SEED, FIRST_SEED + N_PROMISES)
                ]
                key = f"K={n_classes}, shared {shared:g}, gold {n_gold}"
                found[key] = np.concatenate(drawn).tolist()
                print(key, np.mean(found[key], axis=0), flush=True)
    return found


def _promises_of(n_classes: int, shared: float, n_gold: int, seed: int) -> np.ndarray:
    made = tb.simulate.crowd(
        1000, 30, n_classes, responses_per_task=5, accuracy=(0.4, 0.9), shared=shared,
        random_state=seed,
    )  # fmt: skip
    known = dict(list(made.gold.to_dict().items())[:n_gold])
    model = tb.VariationalBayes().fit(made.responses, gold=known or None)
    given = tb.Gold.from_dict(known) if known else None
    truth = _truth_that_was_not_told(model, made.gold, given)
    return np.array([_promise(model.decide(abstain_rate=rate), truth) for rate in (0.0, 0.2, 0.5)])


def quantiles() -> dict[str, Any]:
    """How often a promise at each quantile is kept, and how far it is off: where it was chosen."""
    found = {}
    for n_gold, shared in product((0, N_GOLD), SHARED):
        rows: list[list[float]] = []
        drawn = product((2, 4), (3, 5, 10), ((0.5, 0.9), (0.4, 0.8)), QUANTILE_SEEDS)
        for n_classes, n_votes, accuracy, seed in drawn:
            made = tb.simulate.crowd(
                1000, 30, n_classes, responses_per_task=n_votes, accuracy=accuracy, shared=shared,
                random_state=seed,
            )  # fmt: skip
            rows += _at_quantiles(made, n_gold)
        calibrated = [row for row in rows if row[0] <= CALIBRATED]
        key = f"gold {n_gold}, shared {shared:g}"
        found[key] = {"all": _kept_and_gap(rows), "calibrated": _kept_and_gap(calibrated)}
        print(key, found[key], flush=True)
    return found


def _at_quantiles(made: tb.simulate.Crowd, n_gold: int) -> list[list[float]]:
    """Return calibration error, accuracy as it came out, and its quantiles, by share left open."""
    known = dict(list(made.gold.to_dict().items())[:n_gold])
    given = tb.Gold.from_dict(known) if known else None
    model = tb.VariationalBayes().fit(made.responses, gold=given)
    error = tb.evaluate.calibration_error(model.labels_, made.gold, 10, given=given)
    truth = _truth_that_was_not_told(model, made.gold, given)
    rows = []
    for rate in RATES:
        stated = model.decide(abstain_rate=rate).stated
        scored = np.where(truth >= 0, stated.label, -1)
        others = stated._replace(label=scored)
        realised = float((scored == truth)[scored >= 0].mean())
        lows = [estimate_accuracy(others, 1.0 - 2.0 * at).low for at in QUANTILES]
        rows.append([error, realised, *lows])
    return rows


def _kept_and_gap(rows: list[list[float]]) -> dict[str, Any]:
    """Return how many promises there are, how many are kept, and the mean of what is left over."""
    if not rows:
        return {"n": 0, "kept": [0] * len(QUANTILES), "gap": [0.0] * len(QUANTILES)}
    table = np.array(rows)
    over = table[:, 1:2] - table[:, 2:]
    return {
        "n": len(rows),
        "kept": (over >= -POINTS).sum(axis=0).tolist(),
        "gap": over.mean(axis=0).tolist(),
    }


def more_votes() -> dict[str, Any]:
    """Fit to half of the votes: what two more were expected to do, and what they did."""
    found = {}
    for name in DATASETS:
        responses, gold = load(name)
        task = responses.task_of_each()
        worker = responses.worker_of_each()
        rng = np.random.default_rng(0)
        order = np.lexsort((rng.random(len(task)), task))
        rank = np.empty(len(task), dtype=int)
        n_votes = np.diff(responses.start)
        rank[order] = np.arange(len(task)) - np.repeat(responses.start[:-1], n_votes)
        n_first = max(1, int(np.median(n_votes)) // 2)
        before, after = (
            tb.VariationalBayes().fit(_part(responses, rank < n)) for n in (n_first, n_first + 2)
        )
        sequence = np.full((responses.n_tasks, 2), -1, dtype=np.int32)
        for more in (0, 1):
            chosen = rank == n_first + more
            sequence[task[chosen], more] = worker[chosen]
        matrix = read_cost_matrix(None, before.classes_)
        every = np.arange(responses.n_tasks)
        planned = costs_after(before, matrix, every, sequence).mean(axis=0)
        found[name] = {
            "votes": n_first,
            "now": float(planned[0]),
            "planned": float(planned[2]),
            "came": float(after.decide().expected_cost.mean()),
            "wrong_now": 1.0 - tb.evaluate.accuracy(before.labels_, gold),
            "wrong_after": 1.0 - tb.evaluate.accuracy(after.labels_, gold),
        }
    return found


def _part(responses: tb.Responses, chosen: np.ndarray) -> tb.Responses:
    return tb.Responses.from_codes(
        responses.task_of_each()[chosen],
        responses.worker_of_each()[chosen],
        responses.label_of_each()[chosen],
        responses.tasks,
        responses.workers,
        responses.classes,
    )
