"""Small crowds with constraints, and what all their labellings say: the oracle."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

CLASSES = ("a", "b", "c", "d")


class Enumerated(NamedTuple):
    """The truth of a small crowd by enumeration."""

    labellings: Any  # (n, n_tasks)
    worth: Any  # (n,) log; −∞ where a hard constraint is broken

    @property
    def is_feasible(self) -> bool:
        return bool(np.isfinite(self.worth).any())

    @property
    def q(self) -> Any:
        p = np.exp(self.worth - self.worth.max())
        p /= p.sum()
        n_classes = self.labellings.max() + 1
        return np.stack([p @ (self.labellings == k) for k in range(n_classes)], axis=1)


def holds(record: dict[str, Any], label: dict[str, str]) -> bool:
    """Say whether labels keep one record."""
    if "if" in record:
        given = all(label[t] == k for t, k in record["if"].items())
        return not given or all(label[t] == k for t, k in record["then"].items())
    if "order" in record:
        a, b = (CLASSES.index(label[t]) for t in record["order"])
        return a >= b
    if "same" in record:
        return len({label[t] for t in record["same"]}) == 1
    if "different" in record:
        return len({label[t] for t in record["different"]}) == len(record["different"])
    if "task" in record:
        own = label[record["task"]]
        return own not in record["not"] if "not" in record else own in record["labels"]
    return sum(label[t] in record["labels"] for t in record["tasks"]) in record["count"]


def draw_records(rng: Any, tasks: list[str], n_classes: int) -> list[dict[str, Any]]:
    """Draw one to five constraints of mixed kinds, hard and soft, which may overlap."""
    classes = list(CLASSES[:n_classes])
    records: list[dict[str, Any]] = []
    for _ in range(rng.integers(1, 6)):
        n = int(rng.integers(2, len(tasks) + 1))
        some = [str(t) for t in rng.choice(tasks, n, replace=False)]
        labels = [str(k) for k in rng.choice(classes, rng.integers(1, n_classes), replace=False)]
        counts = np.flatnonzero(rng.random(n + 1) < 0.5).tolist() or [1]
        record: dict[str, Any] = (
            {"tasks": some, "labels": labels, "count": counts},
            {"tasks": some, "labels": labels, "count": counts},
            {"if": {some[0]: classes[0]}, "then": {some[1]: classes[-1]}},
            {"task": some[0], "labels": labels},
            {"task": some[0], "not": labels[:1]},
            {"order": some[:2], "classes": classes},
            {"same": some[:2]},
            {"different": some[:2]},
        )[rng.integers(8)]
        if rng.random() < 0.5:
            record = record | {"weight": float(rng.uniform(0.2, 4.0))}
        records.append(record)
    return records


def enumerate_all(
    scores: Any, tasks: list[str], records: list[dict[str, Any]], known: dict[str, str]
) -> Enumerated:
    """Return every labelling, and what it is worth."""
    n_tasks, n_classes = scores.shape
    labellings = np.array(list(product(range(n_classes), repeat=n_tasks)))
    worth = np.take_along_axis(scores[None], labellings[..., None], 2)[..., 0].sum(axis=1)
    for i, codes in enumerate(labellings.tolist()):
        label = {task: CLASSES[k] for task, k in zip(tasks, codes, strict=True)}
        if any(label[task] != name for task, name in known.items()):
            worth[i] = -np.inf
        for record in records:
            if not holds(record, label):
                worth[i] -= record.get("weight", np.inf)
    return Enumerated(labellings, worth)
