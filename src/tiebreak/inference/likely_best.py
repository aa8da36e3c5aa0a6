"""The likely best: one worker's word for each task, where gold leaves open who is the best.

Who is right most often on 50 known tasks is often not the best worker. So each worker of a task is
heard with the chance that it is the best of those who answered, given known tasks: where one is far
ahead, it is heard alone; where several are level, each has its share: [eq:likely-best].

    h_r = Pr(accuracy of r's worker > that of all others on the task)
    accuracy ~ Beta(right + 4 mean, wrong + 4 (1 − mean))

    three workers, right on 45, 44 and 30 of 50 known tasks:    heard for .62, .38 and .00
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaincinv

from tiebreak.gold import GoldCodes
from tiebreak.inference.best_worker import WEIGHT_OF_OTHERS
from tiebreak.kernels.layout import (
    ByTask,
    Codes,
    Floats,
    part_of,
    responses_on,
    weights_on,
    weights_or_ones,
)

N_BINS = 64  # of accuracies
N_BEST = 8  # workers: bins are narrow where their accuracies lie
LEVELS = np.linspace(0.02, 0.98, 17)
CELLS = 2_000_000  # held at a time
LEAST = 1e-300


class LikelyBest(NamedTuple):
    """How accurate each worker may be, by known tasks."""

    right: Floats  # (n_workers,) of the Beta distribution
    wrong: Floats

    @classmethod
    def of(cls, tasks: ByTask, n_classes: int, gold: GoldCodes) -> LikelyBest:
        """Count right and wrong answers to known tasks, each worker drawn to the mean of all."""
        n_workers = tasks.n_codes // n_classes
        start, code = responses_on(tasks, gold.task)
        weight = weights_or_ones(weights_on(tasks, gold.task), len(code))
        is_right = code % n_classes == np.repeat(gold.label, np.diff(start))
        worker = code // n_classes
        right = np.bincount(worker, weights=weight * is_right, minlength=n_workers)
        wrong = np.bincount(worker, weights=weight * ~is_right, minlength=n_workers)
        mean = (right.sum() + 1.0) / (right.sum() + wrong.sum() + 2.0)
        return cls(right + WEIGHT_OF_OTHERS * mean, wrong + WEIGHT_OF_OTHERS * (1.0 - mean))

    def probabilities(self, tasks: ByTask, asked: Codes, shares: Floats) -> Floats:
        """Return p of each class on some tasks: the words of their workers, as they are heard.

        A worker gives its label its accuracy, and the other classes the rest, by their `shares`.
        """
        found = np.tile(shares, (len(asked), 1))
        chances = _Chances.of(self)
        accuracy = self.right / (self.right + self.wrong)
        size = np.diff(tasks.start)[asked]
        part = np.cumsum(size) * N_BINS // CELLS
        for number in np.unique(part):
            place = np.flatnonzero((part == number) & (size > 0))
            if len(place):
                some = part_of(tasks, asked[place], len(shares))
                found[place] = _words(some, chances.heard(some, len(shares)), accuracy, shares)
        return found


class _Chances(NamedTuple):
    """By worker and bin of accuracies."""

    log_below: Floats  # (n_workers, n_bins) log Pr(in a lower bin, or in the lower half of this)
    share: Floats  # Pr(in this bin) / Pr(below)

    @classmethod
    def of(cls, best: LikelyBest) -> _Chances:
        edges = _edges(best)
        below = betainc(best.right[:, None], best.wrong[:, None], edges)
        middle = np.maximum((below[:, 1:] + below[:, :-1]) / 2.0, LEAST)
        return cls(np.log(middle), np.diff(below, axis=1) / middle)

    def heard(self, tasks: ByTask, n_classes: int) -> Floats:
        """Return the chance that a response is by the best worker of its task; sums to 1 by task.

        Several runs of a worker share one chance.
        """
        worker = tasks.code // n_classes
        size = np.diff(tasks.start)
        first = tasks.start[:-1]
        turn = _turns(tasks, worker)[:, None]
        every = np.add.reduceat(turn * self.log_below[worker], first, axis=0)
        every = np.exp(every - every.max(axis=1, keepdims=True))
        chance = (turn * self.share[worker] * np.repeat(every, size, axis=0)).sum(axis=1)
        return np.asarray(chance / np.repeat(np.add.reduceat(chance, first), size))


def _edges(best: LikelyBest) -> Floats:
    """Return the edges of bins: half of them even, half where the best workers lie."""
    order = np.argsort(-best.right / (best.right + best.wrong), kind="stable")[:N_BEST]
    likely = betaincinv(best.right[order, None], best.wrong[order, None], LEVELS)
    narrow = np.quantile(likely, np.linspace(0.0, 1.0, N_BINS // 2))
    return np.sort(np.concatenate([narrow, np.linspace(0.0, 1.0, N_BINS // 2 + 1)]))


def _turns(tasks: ByTask, worker: Codes) -> Floats:
    """Return 1 / the number of runs that the worker of each response has on the task."""
    if tasks.weight is None:
        return np.ones(len(worker))
    task = tasks.task_of_each()
    _, own, runs = np.unique(
        task * np.int64(tasks.n_codes) + worker, return_inverse=True, return_counts=True
    )
    return np.asarray(1.0 / runs[own])


def _words(tasks: ByTask, heard: Floats, accuracy: Floats, shares: Floats) -> Floats:
    n_classes = len(shares)
    task = tasks.task_of_each()
    label = tasks.code % n_classes
    right = accuracy[tasks.code // n_classes]
    other = (1.0 - right) / np.maximum(1.0 - shares[label], LEAST)
    found = np.bincount(task, weights=heard * other, minlength=tasks.n_tasks)[:, None] * shares
    own = heard * (right - other * shares[label])
    by_label = np.bincount(task * n_classes + label, weights=own, minlength=found.size)
    found += by_label.reshape(found.shape)
    return np.asarray(found / found.sum(axis=1, keepdims=True))
