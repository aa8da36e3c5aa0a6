"""Value: how many wrong labels one answer is expected to correct.

An answer is worth something where it can change a label: two tasks in doubt tell little about each
other, a task in doubt and one that is sure tell the class of the first. Plans of several responses,
with costs and shared errors, are in `decide.planning`.
"""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.layout import Floats


def link_gain(q: Floats, other: Floats, error: float = 0.0) -> Floats:
    """Return how much less wrong q gets, as expected, by "is it the same as the other?".

    Implements [eq:link-gain], with c(k) = ε + (1 − 2ε) q'(k):

        G = max_k q(k) c(k) + max_k q(k) (1 − c(k)) − max_k q(k)

    Parameters
    ----------
    q, other
        (…, n_classes), rows sum to 1; taken as independent.
    error
        ε: how often the answer is wrong.

    Examples
    --------
    >>> doubtful, sure = np.array([0.5, 0.5]), np.array([0.99, 0.01])
    >>> link_gain(doubtful, sure).round(2), link_gain(doubtful, doubtful).round(2)
    (np.float64(0.49), np.float64(0.0))
    """
    agrees = error + (1.0 - 2.0 * error) * other
    return vote_gain(q, np.stack([agrees, 1.0 - agrees], axis=-1))


def vote_gain(q: Floats, confusion: Floats) -> Floats:
    """Return how much less wrong q gets, as expected, by one more vote of a worker.

    Implements [eq:vote-gain]: Σ_l max_k q(k) θ(k, l) − max_k q(k)

    Parameters
    ----------
    q
        (…, n_classes).
    confusion
        (…, n_classes, n_answers), [truth, answer], of the worker.
    """
    joint = q[..., :, None] * confusion
    return np.asarray(joint.max(axis=-2).sum(axis=-1) - q.max(axis=-1))


def answer_gain(p: Floats, error: float) -> Floats:
    """Return how much less wrong p gets, as expected, by a label that is wrong so often.

    [eq:vote-gain] of a person who errs evenly among the other classes; without errors it is
    1 - p₁, [eq:gold-gain]. An answer that could not change the likeliest class is worth nothing.

    Parameters
    ----------
    p
        (…, n_classes), likeliest first.

    Examples
    --------
    >>> p = np.array([[0.6, 0.4], [0.98, 0.02]])
    >>> answer_gain(p, 0.0).round(2).tolist(), answer_gain(p, 0.05).round(2).tolist()
    ([0.4, 0.02], [0.35, 0.0])
    """
    among_wrong = error / max(p.shape[-1] - 1, 1)
    others = np.maximum((1.0 - error) * p[..., 1:], among_wrong * p[..., :1])
    return np.asarray(others.sum(axis=-1) - error * p[..., 0])


def settling_gain(q: Floats) -> Floats:
    """Return the best gain a question of asking class after class until one answer is "same".

    Implements [eq:settling-gain], classes by falling probability, m the number of classes tried:

        max_m (q₂ + … + q_{m+1}) / (1 + (1 − q₁) + … + (1 − q₁ − … − q_{m−1}))

    With two classes it is the probability of the second.
    """
    by_rank = -np.sort(-q, axis=-1)
    among_first = np.cumsum(by_rank, axis=-1)[..., :-1]
    n_asked = 1.0 + np.cumsum(1.0 - among_first, axis=-1) - (1.0 - among_first)
    put_right = among_first + by_rank[..., 1:] - by_rank[..., :1]
    return np.asarray((put_right / n_asked).max(axis=-1))
