"""Known tasks: what judges said of them, and intervals of shares and differences on them.

gold task   truth    gpt            ann
a           yes      yes yes no     yes      error of gpt 1/3, of ann 0
b           no       yes yes yes    –        error of gpt 1, ann gave no answer: nan
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta
from scipy.stats import t as student

from tiebreak import tables
from tiebreak.data import MISSING, Ids, Responses
from tiebreak.errors import InputError, note
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets

LEVEL = 0.95  # of the panel's intervals
MOST_GOLD = 5000  # known tasks in a table; of more, a sample
PRIOR_TASKS = 2.0  # tasks with a difference of the given size, added to the observed ones


class GoldTable(NamedTuple):
    """Answers of J judges to n known tasks; K classes."""

    task: Codes  # (n,)
    truth: Codes  # (n,); K for a class that no judge used
    share: Floats  # (n, J, K): share of each label among a judge's answers
    error: Floats  # (n, J): share of wrong answers; nan without an answer
    workers: Ids
    classes: Ids

    @property
    def there(self) -> Mask:
        return np.isfinite(self.error)


def known_codes(gold: Any, tasks: Ids, classes: Ids) -> tuple[Codes, Codes]:
    """Return the codes of the known tasks and their classes; K for a class that no judge used."""
    known = tables.read_gold({} if gold is None else gold)
    task = tasks.codes(known.tasks)
    if n := int(np.count_nonzero(task == MISSING)):
        note("gold-without-responses", n=n)
    code = classes.codes(known.classes)[known.label]
    label = np.where(code == MISSING, len(classes), code).astype(np.int32)
    return task[task != MISSING], label[task != MISSING]


def gold_table(responses: Responses, task: Codes, label: Codes) -> GoldTable:
    """Gather the answers of each judge to the known tasks that have a response."""
    rows = np.flatnonzero(np.diff(responses.start)[task] > 0)
    if not len(rows):
        raise InputError("no-known-response")
    if len(rows) > MOST_GOLD:
        rows = rows[drawn_by_name((responses.tasks[int(i)] for i in task[rows]), MOST_GOLD)]
        note("known-tasks-drawn", n=MOST_GOLD)
    task, truth = task[rows], label[rows]
    known = responses.on_tasks(task)
    shape = (len(task), responses.n_workers, responses.n_classes)
    cell = known.task_of_each().astype(np.int64) * (shape[1] * shape[2]) + known.code
    votes = np.bincount(cell, weights=known.weight_of_each(), minlength=int(np.prod(shape)))
    votes = votes.reshape(shape)
    weight = votes.sum(axis=2)
    share = votes / np.maximum(weight, 1e-300)[:, :, None]
    right = share[np.arange(len(task)), :, truth % shape[2]] * (truth < shape[2])[:, None]
    error = np.where(weight > 0.0, 1.0 - right, np.nan)
    return GoldTable(task, truth, share, error, responses.workers, responses.classes)


def drawn_by_name(tasks: Iterable[Hashable], n: int) -> Offsets:
    """Draw n tasks by a checksum of their ids, so that the order of rows has no influence.

    Ids with the same checksum are drawn together, so the sample may be one or two larger.

    >>> drawn_by_name(["a", "b", "c", "d"], 2).tolist()
    [1, 2]
    """
    keys = np.array([zlib.crc32(str(task).encode()) for task in tasks], dtype=np.uint32)
    return np.flatnonzero(keys <= np.partition(keys, n - 1)[n - 1])


def interval_of_share(right: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Return the interval of a share after `right` of n, by Jeffreys' prior.

    >>> [round(x, 2) for x in interval_of_share(45, 50)]
    [0.79, 0.96]
    """
    tail = (1.0 - level) / 2.0
    low = float(beta.ppf(tail, right + 0.5, n - right + 0.5)) if right > 0.0 else 0.0
    high = float(beta.ppf(1.0 - tail, right + 0.5, n - right + 0.5)) if right < n else 1.0
    return low, high


def reach(square: Floats, n: Floats, spread: float, level: float) -> Floats:
    """Return half the length of Student's interval of a mean, from the sum of squared deviations.

    PRIOR_TASKS differences of size `spread` are added to the variance: tasks on which two panels
    have not differed so far do not show that they never will.
    """
    freedom = n - 1.0 + PRIOR_TASKS
    variance = (square + PRIOR_TASKS * spread**2) / freedom / n
    return np.asarray(student.ppf((1.0 + level) / 2.0, freedom) * np.sqrt(variance))


class PairedDifference(NamedTuple):
    """A mean difference over known tasks, with its interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, a: Floats, b: Floats, spread: float, level: float = LEVEL) -> PairedDifference:
        """Return the mean of a − b with its interval; see `reach`.

        >>> PairedDifference.of(np.ones(20), np.ones(20), 1.0).high > 0.1
        True
        """
        change = a - b
        mean = float(change.mean())
        square = np.square(change - mean).sum()
        half = float(reach(square, np.array(len(change)), spread, level))
        return cls(mean, mean - half, mean + half)

    def text(self, digits: int = 3) -> str:
        """Write the difference and its interval.

        >>> PairedDifference(-0.5, -1.0, 0.0).text(1)
        '−0.5 (−1.0 to +0.0)'
        """
        value, low, high = (f"{each:+.{digits}f}".replace("-", "−") for each in self)
        return f"{value} ({low} to {high})"
