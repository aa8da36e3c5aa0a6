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

from tiebreak.data.gold import GoldCodes
from tiebreak.kernels.layout import (
    ByTask,
    Codes,
    Floats,
    Offsets,
    part_of,
    responses_on,
    weights_on,
    weights_or_ones,
)

WEIGHT_OF_OTHERS = 4.0  # known tasks: so much the mean of all workers counts for each of them
MAY_ERR = 0.05  # the share that even classes have beside the word of the best worker
N_BINS = 64  # of accuracies
N_BEST = 8  # workers: bins are narrow where their accuracies lie
LEVELS = np.linspace(0.02, 0.98, 17)
CELLS = 2_000_000  # held at a time
LEAST = 1e-300


class LikelyBest(NamedTuple):
    """How often each worker was right and wrong on known tasks, by weight."""

    right: Floats  # (n_workers,)
    wrong: Floats

    @classmethod
    def of(cls, tasks: ByTask, n_classes: int, gold: GoldCodes) -> LikelyBest:
        """Count right and wrong answers to known tasks."""
        n_workers = tasks.n_codes // n_classes
        start, code = responses_on(tasks, gold.task)
        weight = weights_or_ones(weights_on(tasks, gold.task), len(code))
        is_right = code % n_classes == np.repeat(gold.label, np.diff(start))
        right = np.bincount(code // n_classes, weights=weight * is_right, minlength=n_workers)
        wrong = np.bincount(code // n_classes, weights=weight * ~is_right, minlength=n_workers)
        return cls(np.asarray(right, np.float64), np.asarray(wrong, np.float64))

    def accuracy(self) -> Floats:
        """Return how accurate each worker is expected to be."""
        right, wrong = self._beta()
        return np.asarray(right / (right + wrong))

    def words(self, tasks: ByTask, n_classes: int) -> Floats:
        """Return (n_tasks, n_classes): each label with the chance that the best worker gave it."""
        right, wrong = self._beta()
        edges = self._edges()
        log_below, share = _chances(right, wrong, edges)
        found = np.full((tasks.n_tasks, n_classes), 1.0 / n_classes)
        size = np.diff(tasks.start)
        part = np.cumsum(size) * N_BINS // CELLS
        for number in np.unique(part):
            at = np.flatnonzero((part == number) & (size > 0)).astype(np.int32)
            if len(at):
                some = part_of(tasks, at, n_classes)
                worker = some.code // n_classes
                found[at] = _words(some, n_classes, log_below[worker], share[worker])
        return found

    def words_without_own(self, tasks: ByTask, n_classes: int, gold: GoldCodes) -> Floats:
        """Return the words on known tasks, each as if its own label were not known."""
        some = part_of(tasks, gold.task, n_classes)
        found = np.full((some.n_tasks, n_classes), 1.0 / n_classes)
        answered = np.flatnonzero(np.diff(some.start)).astype(np.int32)
        if not len(answered):
            return found
        some = part_of(some, answered, n_classes)
        task = some.task_of_each()
        worker = some.code // n_classes
        weight = weights_or_ones(some.weight, len(some.code))
        own_right = weight * (some.code % n_classes == gold.label[answered][task])
        # A worker may have several responses on one task: all of them are left out.
        runs = _run_of(task, worker, len(self.right))
        of_run = np.bincount(runs, weights=own_right)[runs]
        wrong_of_run = np.bincount(runs, weights=weight - own_right)[runs]
        all_right = self.right.sum() - np.bincount(task, weights=own_right)
        everything = (self.right + self.wrong).sum() - np.bincount(task, weights=weight)
        mean = ((all_right + 1.0) / (everything + 2.0))[task]
        right = self.right[worker] - of_run + WEIGHT_OF_OTHERS * mean
        wrong = self.wrong[worker] - wrong_of_run + WEIGHT_OF_OTHERS * (1.0 - mean)
        found[answered] = _words(some, n_classes, *_chances(right, wrong, self._edges()))
        return found

    def _beta(self) -> tuple[Floats, Floats]:
        """Return the parameters of accuracies: each worker is drawn to the mean of all."""
        mean = (self.right.sum() + 1.0) / ((self.right + self.wrong).sum() + 2.0)
        return self.right + WEIGHT_OF_OTHERS * mean, self.wrong + WEIGHT_OF_OTHERS * (1.0 - mean)

    def _edges(self) -> Floats:
        """Return the edges of bins: half of them even, half where the best workers lie.

        All who are level with the last of the best belong to them: order must not choose.
        """
        right, wrong = self._beta()
        accuracy = right / (right + wrong)
        least = np.sort(accuracy)[-N_BEST:][0]
        best = np.unique(np.column_stack([right, wrong])[accuracy >= least], axis=0).T
        likely = betaincinv(best[0][:, None], best[1][:, None], LEVELS)
        narrow = np.quantile(likely, np.linspace(0.0, 1.0, N_BINS // 2))
        return np.sort(np.concatenate([narrow, np.linspace(0.0, 1.0, N_BINS // 2 + 1)]))


def _chances(right: Floats, wrong: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Return by bin: log Pr(in a lower bin, or the lower half of this), Pr(in this) / Pr(below)."""
    below = betainc(right[:, None], wrong[:, None], edges)
    middle = np.maximum((below[:, 1:] + below[:, :-1]) / 2.0, LEAST)
    return np.log(middle), np.diff(below, axis=1) / middle


def _words(tasks: ByTask, n_classes: int, log_below: Floats, share: Floats) -> Floats:
    """Return the words on tasks that have responses, of which each has a row of chances.

    Several responses of a worker to one task share one chance.
    """
    task = tasks.task_of_each()
    size = np.diff(tasks.start)
    first = tasks.start[:-1]
    runs = _run_of(task, tasks.code // n_classes, tasks.n_codes // n_classes)
    turn = (1.0 / np.bincount(runs))[runs][:, None]
    every = np.add.reduceat(turn * log_below, first, axis=0)
    every = np.exp(every - every.max(axis=1, keepdims=True))
    chance = (turn * share * np.repeat(every, size, axis=0)).sum(axis=1)
    chance /= np.repeat(np.add.reduceat(chance, first), size)
    cell = task * n_classes + tasks.code % n_classes
    said = np.bincount(cell, weights=chance, minlength=tasks.n_tasks * n_classes)
    return np.asarray((1.0 - MAY_ERR) * said.reshape(-1, n_classes) + MAY_ERR / n_classes)


def _run_of(task: Offsets, worker: Codes, n_workers: int) -> Offsets:
    """Number the pairs of task and worker, (n_responses,)."""
    key = task * np.int64(n_workers) + worker
    return np.asarray(np.unique(key, return_inverse=True)[1])
