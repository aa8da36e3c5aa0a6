"""Labels of tasks by workers as they are known, in plain NumPy."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.arrays import by_class, softmax
from tiebreak.kernels.layout import ByTask, Codes, Floats
from tiebreak.kernels.reference.tasks import likeliest, score_tasks


def classify(
    tasks: ByTask,
    log_prior: Floats,
    log_table: Floats,
    n_classes: int,
    dependence: float,
    multiplier: float,
    n_threads: int = 1,
) -> tuple[Floats, Codes, Floats]:
    """Return the probabilities of classes, the likeliest class of each task, and its probability.

    Implements [eq:design-effect]: p_i ∝ exp(t u_i / (1 + ρ (n_i − 1))), with u of [eq:task-update],
    ρ the `dependence`, t the `multiplier` and n_i the number of responses, by weight. Where there
    are more states than classes, u of a class is the log of the sum over its states, exponentiated.
    """
    others = np.maximum(_n_responses(tasks) - 1.0, 0.0)
    scale = multiplier / (1.0 + dependence * others)
    scores = by_class(score_tasks(tasks, log_prior, log_table), n_classes)
    q = softmax(scores, scale)
    return q, *likeliest(q)


def _n_responses(tasks: ByTask) -> Floats:
    counted = np.diff(tasks.start)
    if tasks.weight is None:
        return counted.astype(np.float64)
    task = np.repeat(np.arange(tasks.n_tasks), counted)
    sums = np.bincount(task, weights=tasks.weight, minlength=tasks.n_tasks)
    return np.asarray(sums, dtype=np.float64)  # bincount counts where there are no tasks
