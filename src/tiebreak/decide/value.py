"""Value: what more answers are worth, for plans of votes and for routes alike.

Before an answer l of worker w is known it is drawn from what is known of the worker, given the
class. What is expected to be paid after it is an average over answers, each with the decision that
is best then, [eq:answer-cost]:

    Σ_l min_d Σ_k q(k) θ̃(k, l) cost(k, d)

Several answers make a joint table, (task, what was said so far, class). Where errors are shared a
further answer tells less than the first, so that θ̃ ∝ θ^s: it counts as [eq:design-effect] scales a
task with one response more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiebreak.data.ids import MISSING
from tiebreak.decide.costs import CostMatrix
from tiebreak.kernels.layout import Codes, Floats, Offsets, total_weights

AT_ONCE = 1 << 21  # numbers in memory
TINY = np.finfo(float).tiny


def costs_after(
    model: Any, costs: CostMatrix, tasks: Offsets, sequence: Codes, weight: Floats | None = None
) -> Floats:
    """Return the expected cost of tasks after 0, 1, 2 … more answers, (n_tasks, n_answers + 1).

    Parameters
    ----------
    sequence
        Who answers, (n_tasks, n_answers); MISSING where nobody does, so that nothing changes.
    weight
        Of these answers, of the same shape; None: 1 each.
    """
    crowd = model.responses_
    weight = np.ones(sequence.shape) if weight is None else weight
    n_given = total_weights(crowd.start, crowd.weight)[tasks]
    n_answers = sequence.shape[1]
    found = np.empty((len(tasks), n_answers + 1))
    step = max(1, AT_ONCE // crowd.n_classes ** (n_answers + 1))
    for low in range(0, len(tasks), step):
        part = slice(low, low + step)
        n = n_given[part].astype(np.float64)
        joint = np.asarray(model.probabilities_[tasks[part]])[:, None, :]
        found[part, 0] = _expected(joint, costs)
        for v in range(n_answers):
            who, one = sequence[part, v], weight[part, v]
            n = n + one
            strength = one if model.calibration_ is None else one * model.calibration_.scale(n)
            joint = _with_answer(joint, model.confusion_[np.maximum(who, 0)], strength)
            found[part, v + 1] = np.where(who == MISSING, found[part, v], _expected(joint, costs))
    return np.minimum.accumulate(found, axis=1)


def _with_answer(joint: Floats, confusion: Floats, strength: Floats) -> Floats:
    """Return the joint table, (n_tasks, n_said, n_classes), with one answer more of each task.

    `confusion` is [truth, answer] of the worker who answers each task.
    """
    power = np.maximum(confusion, TINY) ** strength[:, None, None]
    said = power / power.sum(axis=2, keepdims=True)
    more = joint[:, :, None, :] * said.transpose(0, 2, 1)[:, None, :, :]
    return np.asarray(more.reshape(len(joint), -1, joint.shape[2]))


def _expected(joint: Floats, costs: CostMatrix) -> Floats:
    """Return the expected cost of each task where every joint answer gets its best decision."""
    return np.asarray((joint @ costs.cost).min(axis=2).sum(axis=1))
