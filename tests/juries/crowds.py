"""Panels whose truth is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import tiebreak as tb


class Made(NamedTuple):
    """Responses, all gold, and a sample of it."""

    responses: tb.Responses
    gold: dict[Any, Any]
    some: dict[Any, Any]


def made(
    n_tasks: int = 400, n_judges: int = 6, shared: float = 0.4, n_known: int = 80, seed: int = 0
) -> Made:
    """Simulate judges that err together on some tasks."""
    crowd = tb.simulate.crowd(
        n_tasks, n_judges, 2, responses_per_task=n_judges, shared=shared, random_state=seed
    )
    gold = crowd.gold.to_dict()
    keys = list(gold)
    drawn = np.random.default_rng(seed).choice(len(keys), n_known, replace=False)
    return Made(crowd.responses, gold, {keys[i]: gold[keys[i]] for i in drawn.tolist()})


def family(n_tasks: int = 1500, seed: int = 0) -> tuple[tb.Responses, dict[int, int]]:
    """Four judges of one mind on a third of the tasks, and four that err apart."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_tasks)
    rows = []
    common = rng.random(n_tasks) < 0.25
    for i in range(n_tasks):
        for j in range(4):
            wrong = common[i] if rng.random() < 0.9 else rng.random() < 0.25
            rows.append((i, f"gpt {j}", int(truth[i] ^ wrong)))
        rows += [(i, f"own {j}", int(truth[i] ^ (rng.random() < 0.25))) for j in range(4)]
    return tb.Responses.from_rows(rows), dict(enumerate(truth.tolist()))


def fitted(responses: Any, gold: Any = None) -> Any:
    return tb.VariationalBayes(dependence=0.5).fit(responses, gold=gold)


def jury(
    seed: int,
    accuracy: dict[str, float],
    shared: float = 0.5,
    n_tasks: int = 500,
    n_known: int = 300,
) -> Made:
    """Judges of given accuracies on two classes, who look at one misleading sign on some tasks.

    With chance `shared` a judge errs by a number that all judges of the task have in common, so
    that who errs more often errs wherever the better ones do.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_tasks)
    common = rng.random(n_tasks)
    rows = []
    for name, right in accuracy.items():
        own = np.where(rng.random(n_tasks) < shared, common, rng.random(n_tasks))
        said = np.where(own < right, truth, 1 - truth)
        rows += [(f"t{i}", name, f"c{said[i]}") for i in range(n_tasks)]
    gold = {f"t{i}": f"c{truth[i]}" for i in range(n_tasks)}
    drawn = rng.choice(n_tasks, n_known, replace=False)
    some = {f"t{i}": gold[f"t{i}"] for i in drawn.tolist()}
    return Made(tb.Responses.from_rows(rows), gold, some)


def position_biased(seed: int, n_tasks: int = 400, n_known: int = 200) -> Made:
    """Five judges who say which of two answers is better, A, B or tie; one mostly says A."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n_tasks, p=[0.4, 0.4, 0.2])
    rows = []
    for name, right in {"ann": 0.8, "bob": 0.75, "cat": 0.7, "dan": 0.65, "first": 0.65}.items():
        said = np.where(rng.random(n_tasks) < right, truth, rng.integers(0, 3, n_tasks))
        if name == "first":
            said = np.where(rng.random(n_tasks) < 0.6, 0, said)
        rows += [(f"t{i}", name, ("A", "B", "tie")[said[i]]) for i in range(n_tasks)]
    gold = {f"t{i}": ("A", "B", "tie")[truth[i]] for i in range(n_tasks)}
    drawn = rng.choice(n_tasks, n_known, replace=False)
    some = {f"t{i}": gold[f"t{i}"] for i in drawn.tolist()}
    return Made(tb.Responses.from_rows(rows), gold, some)
