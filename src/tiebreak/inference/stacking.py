"""Stacking: how much each of several methods counts, by what they predicted of known tasks.

Choosing one method by 50 known labels is a matter of luck: the one that leads is often not the one
that is better. So methods are pooled, the more of each the better it predicted: [eq:stack].

    p(k) ∝ Π_m p_m(k)^a_m,    a_m ≥ 0, Σ_m a_m = 1

The weights a have a Dirichlet prior, in which the first method counts most, and what is used is
their mean after the known labels. It moves smoothly: with few labels it is near the prior's mean,
with many at the weights that predict best. Nothing is ever chosen.

    two methods, ten known tasks, prior (2, ½)
    the second gives .9 to the label where the first gives .8:  weights (.73, .27), from (.8, .2)
    where the first gives .5:                                    weights (.41, .59)
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from tiebreak.inference.opinion_weights import LEAST_SHARE
from tiebreak.kernels.layout import Codes, Floats

N_DRAWS = 2000  # of weights
ENOUGH = 300  # effective draws: the mean is then known within some .01
MOST_ROUNDS = 12
WIDER = 0.7  # draws of the next round spread more than what was found: tails are not missed
LEAST_COUNT = 0.2  # of a method in the Dirichlet that draws
MOST_COUNT = 1e5  # of all methods in it
MOST_TASKS = 1_000  # known tasks that are looked at: more would not move a weight
CELLS = 2_000_000  # of the scores held at a time


def log_shares(probabilities: Floats) -> Floats:
    """Return logs of probabilities; no method may rule out a class by more than log 1,000."""
    return np.asarray(np.log(np.maximum(probabilities, LEAST_SHARE)))


def weigh(
    predicted: Floats, label: Codes, prior: Floats, random_state: int | None = None
) -> Floats:
    """Return the posterior mean of the weights of methods, which sum to 1: [eq:stack].

    Parameters
    ----------
    predicted
        (n_methods, n_known, n_classes) probabilities of tasks by methods that have not seen their
        labels.
    prior
        (n_methods,) of the Dirichlet distribution of the weights.

    Examples
    --------
    >>> sure, unsure = np.tile([0.9, 0.1], (10, 1)), np.tile([0.5, 0.5], (10, 1))
    >>> label = np.zeros(10, dtype=np.int32)
    >>> weigh(np.stack([unsure, sure]), label, np.array([2.0, 0.5])).round(1).tolist()
    [0.4, 0.6]
    """
    some = np.unique(np.linspace(0, len(label) - 1, min(len(label), MOST_TASKS)).astype(np.int64))
    logs = np.moveaxis(log_shares(predicted[:, some]), 0, 2)
    rng = np.random.default_rng(random_state or 0)
    count = prior
    mean = prior / prior.sum()
    for _ in range(MOST_ROUNDS):
        drawn = np.maximum(rng.dirichlet(count, N_DRAWS), 1e-300)
        odds = _log_likelihood(logs, label[some], drawn)
        odds += _log_dirichlet(drawn, prior) - _log_dirichlet(drawn, count)
        chance = np.exp(odds - logsumexp(odds))
        mean = chance @ drawn
        if 1.0 / (chance**2).sum() >= ENOUGH:
            break
        count = _narrowed(drawn, chance, mean, prior)
    return np.asarray(mean / mean.sum())


def _log_likelihood(logs: Floats, label: Codes, drawn: Floats) -> Floats:
    """Return the log-likelihood of the labels by each draw of weights; `logs` is by method last."""
    found = np.zeros(len(drawn))
    n_classes = logs.shape[1]
    step = max(CELLS // (n_classes * len(drawn)), 1)
    for first in range(0, len(label), step):
        part = slice(first, first + step)
        scores = logs[part] @ drawn.T  # (some tasks, n_classes, n_draws)
        scores -= scores.max(axis=1, keepdims=True)
        own = scores[np.arange(len(scores)), label[part]]
        shares = own - np.log(np.exp(scores, out=scores).sum(axis=1))
        found += np.maximum(shares, np.log(LEAST_SHARE)).sum(axis=0)
    return found


def _log_dirichlet(drawn: Floats, count: Floats) -> Floats:
    norm = gammaln(count.sum()) - gammaln(count).sum()
    return np.asarray(np.log(drawn) @ (count - 1.0) + norm)


def _narrowed(drawn: Floats, chance: Floats, mean: Floats, prior: Floats) -> Floats:
    """Return the Dirichlet with the mean and spread that were found, somewhat wider."""
    spread = float((chance @ (drawn - mean) ** 2).sum())
    total = float((mean * (1.0 - mean)).sum()) / max(spread, 1e-12) - 1.0
    total = float(np.clip(WIDER * total, prior.sum(), MOST_COUNT))
    return np.maximum(total * mean, LEAST_COUNT)
