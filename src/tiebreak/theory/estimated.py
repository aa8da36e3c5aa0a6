"""Estimates in place of the truth: what a fitted model would have to be right about."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.responses import Responses
from tiebreak.theory.crowd import Assumptions, Floats, Start


class FittedModel(Protocol):
    """What a fitted estimator offers: its beliefs and the responses behind them."""

    class_prior_: Floats
    confusion_: Floats
    responses_: Responses


def assumptions_from(
    model: FittedModel, *, failure_probability: float = 0.05, start: Start | None = None
) -> Assumptions:
    """Put a fitted model's estimates in where the theorems ask for the truth.

    The bounds that follow are no certificate for these responses: they say what would hold for
    a crowd of which the estimates were true. Response rates are each worker's share of the
    tasks; workers who never answered are left out.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> votes = [("a", "ann", "x"), ("a", "bob", "x"), ("b", "ann", "y"), ("c", "bob", "y")]
    >>> fitted = SimpleNamespace(
    ...     class_prior_=np.array([0.4, 0.6]),
    ...     confusion_=np.full((2, 2, 2), 0.5),
    ...     responses_=Responses.from_rows(votes),
    ... )
    >>> assumptions_from(fitted)
    Assumptions(2 workers of 2 kinds, 3 tasks, 2 classes, 1.33 responses a task)
    """
    responses = model.responses_
    if responses.n_classes < 2 or not responses.n_responses:
        raise OptionError(
            "The theorems need two classes or more; "
            f"the responses have {responses.n_classes} and {responses.n_responses:,} labels."
        )
    by_worker = np.bincount(responses.worker_of_each(), minlength=responses.n_workers)
    by_task = np.bincount(responses.task_of_each(), minlength=responses.n_tasks)
    active = by_worker > 0
    return Assumptions(
        class_prior=model.class_prior_,
        confusion=model.confusion_[active],
        n_tasks=responses.n_tasks,
        response_rate=np.minimum(by_worker[active] / responses.n_tasks, 1.0),
        failure_probability=failure_probability,
        start=start,
        most_responses=int(by_task.max()),
    )
