"""The likelihood of Dawid and Skene, summed task by task."""

from __future__ import annotations

import numpy as np

from tiebreak.data import Responses
from tiebreak.kernels import Floats


def objective(
    responses: Responses,
    class_prior: Floats,
    confusion: Floats,
    known: dict[int, int] | None = None,
    smoothing: float = 0.0,
) -> float:
    """Return the log-likelihood, and the log prior that smoothing is: [eq:ds-likelihood].

    Parameters
    ----------
    class_prior, confusion
        (n_classes,) and (worker, truth, answer).
    known
        The class of known tasks.
    """
    with np.errstate(divide="ignore"):
        log_prior, log_confusion = np.log(class_prior), np.log(confusion)
    score = np.tile(log_prior, (responses.n_tasks, 1))
    worker, label = responses.worker_of_each(), responses.label_of_each()
    weight = responses.weight_of_each()
    for task, w, k, times in zip(responses.task_of_each(), worker, label, weight, strict=True):
        score[task] += times * log_confusion[w, :, k]
    total = 0.0
    for task, row in enumerate(score):
        of_class = (known or {}).get(task)
        total += np.logaddexp.reduce(row) if of_class is None else row[of_class]
    if smoothing:
        total += smoothing * (log_prior.sum() + log_confusion.sum())
    return float(total)
