"""Exact answers by enumerating all labellings: slow, short, independent of the package's ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from scipy.special import gammaln, logsumexp

Labelling = tuple[int, ...]


def labellings(n_tasks: int, n_classes: int, known: dict[int, int]) -> Iterator[Labelling]:
    choices = [[known[i]] if i in known else range(n_classes) for i in range(n_tasks)]
    return product(*choices)


def log_beta(concentration: np.ndarray) -> float:
    return float(gammaln(concentration).sum() - gammaln(concentration.sum()))


def log_joint(
    y: Labelling, rows: list[tuple[int, int, int]], class_prior: np.ndarray, prior: np.ndarray
) -> float:
    """Return log p(y, responses), parameters integrated out; prior is [worker, truth, answer]."""
    n_classes = len(class_prior)
    total = log_beta(class_prior + np.bincount(y, minlength=n_classes)) - log_beta(class_prior)
    counts = np.zeros_like(prior)
    for task, worker, label in rows:
        counts[worker, y[task], label] += 1
    for worker in range(len(prior)):
        for k in range(n_classes):
            total += log_beta(prior[worker, k] + counts[worker, k]) - log_beta(prior[worker, k])
    return total


def link_sum(y: Labelling, links: list[tuple[int, int, float]]) -> float:
    """Return Σ w_ij over links whose ends agree."""
    return sum(weight for i, j, weight in links if y[i] == y[j])


def log_total(score: Callable[[Labelling], float], all_y: Iterator[Labelling]) -> float:
    """Return log Σ exp(score) over labellings."""
    return float(logsumexp([score(y) for y in all_y]))


def marginals(
    score: Callable[[Labelling], float], n_tasks: int, n_classes: int
) -> tuple[np.ndarray, float]:
    """Return the probability of each class of each task, and log Σ exp(score)."""
    every = list(labellings(n_tasks, n_classes, {}))
    scores = np.array([score(y) for y in every])
    total = float(logsumexp(scores))
    weight = np.exp(scores - total)
    q = np.zeros((n_tasks, n_classes))
    for y, w in zip(every, weight, strict=True):
        q[np.arange(n_tasks), y] += w
    return q, total
