"""Crowds as rows that come in parts, and models of every kind."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt

import tiebreak as tb

Row = tuple[str, str, str]
WORKER_MODELS = ("confusion", "coin", "kinds", "subtypes", "kinds+subtypes", "communities")


def rows_of(responses: tb.Responses) -> list[Row]:
    """Return responses as (task, worker, label), in the order of tasks."""
    columns = (
        responses.tasks.take(responses.task_of_each()),
        responses.workers.take(responses.worker_of_each()),
        responses.classes.take(responses.label_of_each()),
    )
    return [(str(t), str(w), str(k)) for t, w, k in zip(*columns, strict=True)]


def shuffled(responses: tb.Responses, seed: int = 0) -> list[Row]:
    """Return responses in random order."""
    rows = rows_of(responses)
    random.Random(seed).shuffle(rows)
    return rows


def crowd(n_tasks: int = 120, n_classes: int = 3, seed: int = 0) -> Any:
    """Draw a crowd."""
    return tb.simulate.crowd(
        n_tasks, 9, n_classes, responses_per_task=4, accuracy=(0.55, 0.9), random_state=seed
    )


def some_gold(made: Any, n: int) -> dict[Any, Any]:
    """Return the classes of the first tasks."""
    return dict(list(made.gold.to_dict().items())[:n])


def chances(labels: tb.Labels) -> npt.NDArray[np.float64]:
    """Return the probability of each class of each task."""
    assert labels.probabilities is not None
    return labels.probabilities


def chance(labels: tb.Labels, task: str) -> float:
    """Return the probability of the label of a task."""
    found = labels[task].probability
    assert found is not None
    return found


def assert_equal(one: Any, other: Any, within: float = 1e-6) -> None:
    """Compare two models by the ids of their tasks."""
    assert one.labels_.best() == other.labels_.best()
    place = one.tasks_.codes(other.tasks_)
    column = one.classes_.codes(other.classes_)
    mine = one.probabilities_[np.ix_(place, column)]
    assert np.abs(mine - other.probabilities_).max() < within
