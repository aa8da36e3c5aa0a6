"""The judges of a panel on the tasks whose class is known, as tables task by judge.

gold task   truth    gpt            ann
a           yes      yes yes no     yes      error of gpt 1/3, of ann 0
b           no       yes yes yes    –        error of gpt 1, ann gave no answer: nan
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tiebreak import tables
from tiebreak.errors import InputError, note
from tiebreak.ids import MISSING, Ids
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.responses import Responses

MOST_GOLD = 5000  # known tasks that are looked at; of more, so many are drawn
FLOOR = 1e-6  # of a confusion matrix, before logs are taken


class GoldTable(NamedTuple):
    """n known tasks with a response by J judges; K classes."""

    task: Codes  # (n,) code of the task
    truth: Codes  # (n,); K where no judge knows the class
    share: Floats  # (n, J, K): of a judge's answers, for each label
    weight: Floats  # (n, J): of all its answers; 0 where it gave none
    error: Floats  # (n, J): share of wrong answers; nan where it gave none
    workers: Ids
    classes: Ids

    @property
    def there(self) -> Mask:
        """Who answered what, (n, J)."""
        return self.weight > 0.0

    def rows(self, at: Offsets) -> GoldTable:
        """Return the table of some of the tasks."""
        return self._replace(
            task=self.task[at],
            truth=self.truth[at],
            share=self.share[at],
            weight=self.weight[at],
            error=self.error[at],
        )


def known_codes(gold: Any, tasks: Ids, classes: Ids) -> tuple[Codes, Codes]:
    """Return the tasks and classes of gold in codes; a class that no judge knows is K."""
    if gold is None:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    known = tables.read_gold(gold)
    task = tasks.codes(known.tasks)
    away = int(np.count_nonzero(task == MISSING))
    if away:
        note(f"{away:,} tasks of gold are not among the responses; they are left out.")
    if not len(known):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    code = classes.codes(known.classes)[known.label]
    label = np.where(code == MISSING, len(classes), code).astype(np.int32)
    return task[task != MISSING], label[task != MISSING]


def drawn_by_name(tasks: Iterable[Hashable], n: int) -> Offsets:
    """Draw n tasks by their ids, so that the order of rows plays no part; return their places.

    Tasks whose ids have the same checksum come and go together, so it may be one or two more.

    >>> drawn_by_name(["a", "b", "c", "d"], 2).tolist()
    [1, 2]
    """
    keys = np.array([zlib.crc32(str(task).encode()) for task in tasks], dtype=np.uint32)
    return np.flatnonzero(keys <= np.partition(keys, n - 1)[n - 1])


def gold_table(responses: Responses, task: Codes, label: Codes) -> GoldTable:
    """Gather what each judge said on known tasks that have a response."""
    answered = np.diff(responses.start)[task] > 0
    rows = np.flatnonzero(answered)
    if not len(rows):
        raise InputError(
            "No task of gold has a response, so nothing can be said about the judges. Give gold of "
            "tasks that they answered."
        )
    if len(rows) > MOST_GOLD:
        rows = rows[drawn_by_name((responses.tasks[int(i)] for i in task[rows]), MOST_GOLD)]
        note(f"{MOST_GOLD:,} of the known tasks are drawn for the report.")
    task = task[rows]
    truth = label[rows]
    at, place = responses_on(responses, task)
    n_classes = responses.n_classes
    worker, said = np.divmod(responses.code[at].astype(np.int64), n_classes)
    counts = np.ones(len(at)) if responses.weight is None else responses.weight[at]
    shape = (len(task), responses.n_workers, n_classes)
    cell = (place * responses.n_workers + worker) * n_classes + said
    votes = np.bincount(cell, weights=counts, minlength=int(np.prod(shape))).reshape(shape)
    weight = votes.sum(axis=2)
    share = votes / np.maximum(weight, 1e-300)[:, :, None]
    of_truth = np.append(share, np.zeros((*weight.shape, 1)), axis=2)
    right = np.take_along_axis(of_truth, truth[:, None, None].astype(np.int64), axis=2)[:, :, 0]
    error = np.where(weight > 0.0, 1.0 - right, np.nan)
    return GoldTable(task, truth, share, weight, error, responses.workers, responses.classes)


def responses_on(responses: Responses, task: Codes | Offsets) -> tuple[Offsets, Offsets]:
    """Return the places of the responses to some tasks, and which of these tasks each is of."""
    first = responses.start[task]
    n_each = responses.start[task + 1] - first
    place = np.repeat(np.arange(len(task)), n_each)
    ends = np.cumsum(n_each)
    at = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - n_each, n_each)
    return at + np.repeat(first, n_each), place
