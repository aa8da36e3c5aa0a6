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
