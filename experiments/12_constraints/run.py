"""Measure constraints: see README.md. `python run.py rewardbench simulated asking`."""

from __future__ import annotations

import csv
import os
import sys
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import psi

import tiebreak as tb
from tiebreak.data.ids import Ids
from tiebreak.inference.door import Inputs, rules_of
from tiebreak.inference.tasks.coupling.constrain import constrain
from tiebreak.kernels.arrays import softmax

DATA = Path(os.environ.get("TIEBREAK_DATA", "data"))
SETS = Path(os.environ.get("TIEBREAK_SETS", "sets")) / "data-constraints"
FLOOR = 1e-4  # of a probability, before its log is taken
Floats = Any
Drawn = tuple[Floats, int, tb.Constraints, tuple[float, float]]  # truth, classes, rules, accuracies


def rewardbench() -> None:
    """One of four responses is the best: nine judges give scores of 1 to 10, eight runs each."""
    scores = np.load(SETS / "rb2_scores.npy")
    n_items, n_responses, n_judges, n_runs = scores.shape
    n_tasks = n_items * n_responses
    runs = np.nan_to_num(np.rint(scores.reshape(n_tasks, n_judges, n_runs)), nan=-1.0)
    answers = np.stack([(runs == k).sum(axis=2) / n_runs for k in range(1, 11)], axis=2)
    mean = np.nanmean(scores, axis=(2, 3))
    best = (mean == mean.max(axis=1, keepdims=True)).astype(float)
    best = (best / best.sum(axis=1, keepdims=True)).ravel()
    q = np.column_stack([1.0 - best, best])
    while True:  # variational Bayes with tables of 2 classes and 10 answers, Jeffreys' prior
        counts = 0.5 + np.einsum("tjk,tc->jck", answers, q)
        shares = 1.0 + q.sum(axis=0)
        logs = psi(counts) - psi(counts.sum(axis=2, keepdims=True))
        score = psi(shares) - psi(shares.sum()) + np.einsum("tjk,jck->tc", answers, logs)
        new = softmax(score)
        moved, q = np.abs(new - q).max(), new
        if moved < 1e-6:
            break
    tasks = [f"{i}-{r}" for i in range(n_items) for r in range(n_responses)]
    nobody = np.zeros(n_tasks + 1, np.int64), np.empty(0, np.int32)
    crowd = tb.Responses(*nobody, Ids(tasks), Ids(["judge"]), Ids(["0", "1"]))
    groups = [(task, task.split("-")[0]) for task in tasks]
    table = tb.Constraints.groups(groups, "exactly one", "1")
    rules = rules_of(Inputs(crowd, None, None, None, None, None), table)
    assert rules is not None
    print("mean of judges", round(_accuracy(mean), 4))
    for dependence in (0.0, 0.35):
        own = softmax(score, 1.0 / (1.0 + dependence * (answers.sum(axis=(1, 2)) - 1.0)))
        found, label, _ = constrain(rules, own, own.argmax(axis=1).astype(np.int32))
        for name, p in (("plain", own[:, 1]), ("exactly one", found[:, 1])):
            p = p.reshape(mean.shape)
            p = p / p.sum(axis=1, keepdims=True)
            loss = -np.log(np.maximum(p[:, 0], FLOOR)).mean()
            print(dependence, name, f"accuracy {_accuracy(p):.4f}, log-loss {loss:.3f}")
        ones = label.reshape(mean.shape).sum(axis=1)
        plain = own.argmax(axis=1).reshape(mean.shape).sum(axis=1)
        print("exactly one label:", (plain == 1).mean().round(3), (ones == 1).mean())


def _accuracy(p: Floats) -> float:
    """Return how often the first response is the best, ties broken at random."""
    noise = 1e-9 * np.random.default_rng(0).random(p.shape)
    return float(((p + noise).argmax(axis=1) == 0).mean())


# -- simulated crowds ------------------------------------------------------------------------------


def one_of_five(seed: int) -> Drawn:
    """Groups of five, one of which is 1."""
    rng = np.random.default_rng(seed)
    truth = np.zeros(1000, int)
    truth[np.arange(200) * 5 + rng.integers(5, size=200)] = 1
    groups = [(f"t{i}", f"g{i // 5}") for i in range(1000)]
    return truth, 2, tb.Constraints.groups(groups, "exactly one", "1"), (0.5, 0.9)


def ordered(seed: int) -> Drawn:
    """Pairs of four ordered classes, of which it is known which is not below the other."""
    truth = np.random.default_rng(seed).integers(0, 4, 300)
    pairs = [(i, i + 1) if truth[i] >= truth[i + 1] else (i + 1, i) for i in range(0, 300, 2)]
    named = [(f"t{a}", f"t{b}") for a, b in pairs]
    return truth, 4, tb.Constraints.order(named), (0.4, 0.75)


def allowed(seed: int) -> Drawn:
    """Two or three of five classes are allowed."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, 300)
    sets = {}
    for i, k in enumerate(truth.tolist()):
        others = rng.choice([j for j in range(5) if j != k], rng.integers(1, 3), replace=False)
        sets[f"t{i}"] = [str(j) for j in (k, *others.tolist())]
    return truth, 5, tb.Constraints.allowed(sets), (0.4, 0.75)


def hierarchy(seed: int) -> Drawn:
    """A cat is a mammal is an animal."""
    draws = np.random.default_rng(seed).random((100, 3)) < 0.6
    truth = np.logical_and.accumulate(draws, axis=1).ravel().astype(int)
    rules = [
        {"if": {f"t{3 * p + k + 1}": "1"}, "then": {f"t{3 * p + k}": "1"}}
        for p in range(100)
        for k in (0, 1)
    ]
    return truth, 2, tb.Constraints.from_records(rules), (0.5, 0.85)


def transitive(seed: int) -> Drawn:
    """Pairs of five records are the same or not, in 16 blocks."""
    rng = np.random.default_rng(seed)
    truth: list[int] = []
    triples = []
    for _ in range(16):
        entity = rng.integers(0, 3, 5)
        name = {pair: f"t{len(truth) + n}" for n, pair in enumerate(combinations(range(5), 2))}
        truth += [int(entity[a] == entity[b]) for a, b in name]
        triples += [(name[a, b], name[b, c], name[a, c]) for a, b, c in combinations(range(5), 3)]
    return np.array(truth), 2, tb.Constraints.transitive(triples, "1"), (0.5, 0.85)


def simulated() -> None:
    """Compare fits with and without rules: three answers a task, by 25 workers; eight seeds."""
    kinds: tuple[Callable[[int], Drawn], ...] = (
        *(one_of_five, ordered, allowed, hierarchy, transitive),
    )
    for kind in kinds:
        for estimator in (tb.VariationalBayes, tb.Auto):
            rows = []
            for seed in range(8):
                truth, n_classes, rules, between = kind(seed)
                votes = _votes(truth, n_classes, between, 1000 + seed)
                gold = {f"t{i}": str(k) for i, k in enumerate(truth)}
                row: list[float] = []
                for given in (None, rules):
                    labels = estimator().fit(votes, constraints=given).labels_
                    row.append(tb.evaluate.accuracy(labels, gold))
                    row.append(tb.evaluate.log_loss(labels, gold))
                rows.append(row)
            found = np.array(rows)
            n_better = (found[:, 2] > found[:, 0]).sum(), (found[:, 3] < found[:, 1]).sum()
            means = found.mean(axis=0).round(3).tolist()
            print(kind.__name__, estimator.__name__, means, "better in", *n_better, "of 8")


def _votes(
    truth: Floats, n_classes: int, between: tuple[float, float], seed: int
) -> list[tuple[str, str, str]]:
    rng = np.random.default_rng(seed)
    right = rng.uniform(*between, 25)
    votes = []
    for i, k in enumerate(truth.tolist()):
        for w in rng.choice(25, 3, replace=False).tolist():
            others = [j for j in range(n_classes) if j != k]
            says = k if rng.random() < right[w] else int(rng.choice(others))
            votes.append((f"t{i}", f"w{w}", str(says)))
    return votes


# -- which of these --------------------------------------------------------------------------------


def asking() -> None:
    """Ask about labels, or which of a group it is, 20 questions a round; gold answers."""
    for name in ("zencrowd_india", "zencrowd_us"):
        responses = tb.read_responses(DATA / name / "responses.csv")
        gold = {t: str(k) for t, k in tb.read_gold(DATA / name / "gold.csv").to_dict().items()}
        with (SETS / "zencrowd_groups.csv").open(encoding="utf-8") as lines:
            rows = [(row["task"], row["group"]) for row in csv.DictReader(lines)]
        known_tasks = set(responses.tasks)
        rows = [row for row in rows if row[0] in known_tasks]
        rules = tb.Constraints.groups(rows, "at most one", "1")
        for kind, kinds, given in (
            ("labels, no constraint", ("label",), None),
            ("labels", ("label",), rules),
            ("which of these", ("which", "label"), rules),
        ):
            known: dict[str, str] = {}
            accuracy = []
            for n in range(0, 401, 20):
                model: Any = tb.VariationalBayes().fit(
                    responses, gold=known or None, constraints=given
                )
                if n in (0, 100, 200, 400):
                    accuracy.append(round(tb.evaluate.accuracy(model.labels_, gold), 3))
                costs = dict.fromkeys(kinds, 1.0)
                for row in tb.selection.questions(model, 20, kinds, costs, random_state=0):
                    known |= {t: gold[t] for t in row.members or (row.task,) if t in gold}
            print(name, kind, accuracy)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in sys.argv[1:] or ("rewardbench", "simulated", "asking"):
        {"rewardbench": rewardbench, "simulated": simulated, "asking": asking}[part]()
