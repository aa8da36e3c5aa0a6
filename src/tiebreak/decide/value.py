"""Value: what one more answer is worth, for plans of votes and for routes alike.

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

from tiebreak.decide.costs import CostMatrix
from tiebreak.kernels.layout import Floats

TINY = np.finfo(float).tiny


def strength(model: Any, n_given: Floats, weight: Floats | float = 1.0) -> Floats:
    """Return s, how much an answer of some weight counts on tasks with so many responses."""
    found = model.calibration_
    scale = np.ones_like(n_given) if found is None else found.scale(n_given + weight)
    return np.asarray(weight * scale)


def after(joint: Floats, confusion: Floats, strength: Floats) -> Floats:
    """Return the joint table with one answer more.

    `joint` is (n_tasks, n_said, n_classes), `confusion` [truth, answer] of one worker, or of one
    for each task.
    """
    power = np.maximum(confusion, TINY) ** strength[:, None, None]
    said = power / power.sum(axis=2, keepdims=True)
    more = joint[:, :, None, :] * said.transpose(0, 2, 1)[:, None, :, :]
    return np.asarray(more.reshape(len(joint), -1, joint.shape[2]))


def expected_cost(joint: Floats, costs: CostMatrix) -> Floats:
    """Return the expected cost of each task where every joint answer gets its best decision."""
    return np.asarray((joint @ costs.cost).min(axis=2).sum(axis=1))
