"""The best worker by gold: one worker's word for each task, as sure as gold says it is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiebreak.gold import GoldCodes
from tiebreak.kernels.layout import ByTask, Codes, Floats, responses_on

WEIGHT_OF_OTHERS = 4.0  # known tasks: so much does the mean accuracy count in that of a worker
NOBODY = -1


class BestWorker(NamedTuple):
    """Who is heard on each task, and how often each worker is right."""

    label: Codes  # (n_tasks,) of the best worker who answered; −1 where nobody did
    worker: Codes  # (n_tasks,)
    accuracy: Floats  # (n_workers,)
    log_shares: Floats  # (n_classes,) of classes: what a wrong answer may have been
    order: Codes  # (n_workers,) best first

    @classmethod
    def of(cls, tasks: ByTask, shares: Floats, gold: GoldCodes) -> BestWorker:
        """Rank workers by known tasks, each drawn towards the mean of all: [eq:best-worker].

        `shares`, (n_classes,), are those of the classes.
        """
        n_classes = len(shares)
        accuracy = _accuracy(tasks, gold, n_classes)
        order = np.argsort(-accuracy, kind="stable").astype(np.int32)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        label = np.full(tasks.n_tasks, NOBODY, dtype=np.int32)
        worker = np.full(tasks.n_tasks, NOBODY, dtype=np.int32)
        has_some = np.flatnonzero(np.diff(tasks.start))
        if len(has_some):
            of_each = rank[tasks.code // n_classes]
            first = np.minimum.reduceat(of_each, tasks.start[has_some])
            task = tasks.task_of_each()
            best = np.full(tasks.n_tasks, -1, dtype=np.int64)
            best[has_some] = first
            heard = np.flatnonzero(of_each == best[task])
            label[task[heard]] = tasks.code[heard] % n_classes
            worker[task[heard]] = tasks.code[heard] // n_classes
        return cls(label, worker, accuracy, np.log(shares), order)

    def scores(self) -> Floats:
        """Return log p of each class: the worker's accuracy for its label, shares for the rest."""
        n_classes = len(self.log_shares)
        scores = np.tile(self.log_shares, (len(self.label), 1))
        heard = np.flatnonzero(self.label != NOBODY)
        label = self.label[heard]
        right = np.clip(self.accuracy[self.worker[heard]], 1e-6, 1.0 - 1e-6)
        if n_classes == 1:
            return scores
        shares = np.exp(self.log_shares)
        others = shares.sum() - shares[label]
        scores[heard] += (np.log1p(-right) - np.log(others))[:, None]
        scores[heard, label] = np.log(right)
        return scores


def _accuracy(tasks: ByTask, gold: GoldCodes, n_classes: int) -> Floats:
    n_workers = tasks.n_codes // n_classes
    start, code = responses_on(tasks, gold.task)
    truth = np.repeat(gold.label, np.diff(start))
    is_right = code % n_classes == truth
    worker = code // n_classes
    given = np.bincount(worker, minlength=n_workers)
    right = np.bincount(worker[is_right], minlength=n_workers)
    mean = (right.sum() + 1.0) / (given.sum() + 2.0)
    return np.asarray((right + WEIGHT_OF_OTHERS * mean) / (given + WEIGHT_OF_OTHERS))
