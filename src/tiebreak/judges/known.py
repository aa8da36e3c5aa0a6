"""Known tasks: what judges said of them, intervals, and cross-validation on them.

gold task   truth    gpt            ann
a           yes      yes yes no     yes      error of gpt 1/3, of ann 0
b           no       yes yes yes    –        error of gpt 1, ann gave no answer: nan
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta
from scipy.stats import t as student

from tiebreak import tables
from tiebreak.data import Responses
from tiebreak.data.gold import Gold
from tiebreak.data.ids import MISSING, Ids
from tiebreak.decide.held_out import fit_again
from tiebreak.errors import InputError, note
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets

LEVEL = 0.95  # of the panel's intervals
MOST_GOLD = 5000  # known tasks in a table; of more, a sample
N_FOLDS = 4
MOST_TASKS = 10_000  # in a fit of the cross-validation; of more, the known ones and a sample
LOSS_FLOOR = 1e-4  # smallest probability in a log-loss
PRIOR_TASKS = 2.0  # tasks with a difference of the given size, added to the observed ones


class GoldTable(NamedTuple):
    """Answers of J judges to n known tasks; K classes."""

    task: Codes  # (n,)
    truth: Codes  # (n,); K for a class that no judge used
    share: Floats  # (n, J, K): share of each label among a judge's answers
    weight: Floats  # (n, J): of all its answers; 0 without an answer
    error: Floats  # (n, J): share of wrong answers; nan without an answer
    workers: Ids
    classes: Ids

    @property
    def there(self) -> Mask:
        """Whether a judge answered a task, (n, J)."""
        return self.weight > 0.0


class PairedDifference(NamedTuple):
    """A mean difference over known tasks, with its interval."""

    value: float
    low: float
    high: float


def known_codes(gold: Any, tasks: Ids, classes: Ids) -> tuple[Codes, Codes]:
    """Return the codes of the known tasks and their classes; K for a class that no judge used."""
    known = Gold.from_dict({}) if gold is None else tables.read_gold(gold)
    if not len(known):
        return np.empty(0, np.int32), np.empty(0, np.int32)
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
    of_truth = np.append(share, np.zeros((*weight.shape, 1)), axis=2)
    right = np.take_along_axis(of_truth, truth[:, None, None].astype(np.int64), axis=2)[:, :, 0]
    error = np.where(weight > 0.0, 1.0 - right, np.nan)
    return GoldTable(task, truth, share, weight, error, responses.workers, responses.classes)


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


def paired_difference(
    a: Floats, b: Floats, spread: float, level: float = LEVEL
) -> PairedDifference:
    """Return the mean of a − b with its interval; see `reach`.

    >>> paired_difference(np.ones(20), np.ones(20), 1.0).high > 0.1
    True
    """
    change = a - b
    mean = float(change.mean())
    square = np.square(change - mean).sum()
    half = float(reach(square, np.array(len(change)), spread, level))
    return PairedDifference(mean, mean - half, mean + half)


# Cross-validation: known tasks are dealt into folds. The tasks of a fold are labelled by an
# unfitted copy of the model, fitted to the responses of some judges with the gold of the others.


def without_gold(model: Any) -> Any:
    """Return the model fitted without gold: itself, or a fit to the same responses and links."""
    return model if model.gold_ is None or not len(model.gold_) else fit_again(model)


class Scored(NamedTuple):
    """Scores of a panel on the known tasks, each (n,)."""

    loss: Floats  # log-loss
    right: Floats  # 1 where the label is right


class CrossValidation:
    """Scores parts of a panel on known tasks; a score takes one fit for each fold."""

    def __init__(
        self, model: Any, task: Codes, gold: Any, progress: Callable[[str], None] | None = None
    ) -> None:
        self._model = model
        self._progress = progress
        self._responses = _some_tasks(model, task)
        known = {} if model.gold_ is None else model.gold_.to_dict()
        known |= {} if gold is None else tables.read_gold(gold).to_dict()
        tasks = self._responses.tasks
        codes = tasks.codes(list(known)).tolist()  # gold may have 7 as text where tasks are numbers
        pairs = zip(codes, known.values(), strict=True)
        self._known = {tasks[code]: label for code, label in pairs if code >= 0}
        self._tasks = [model.tasks_[int(i)] for i in task]
        self._truth = [self._known[each] for each in self._tasks]
        self._dealt = deal(model.responses_, task, self._truth)
        self._worker = self._responses.worker_of_each()
        self.answers: Mask = np.bincount(self._worker, minlength=self._responses.n_workers) > 0

    def score(self, members: Mask, what: str, *, half_of_gold: bool = False) -> Scored:
        """Score the panel of these judges, fitted with gold of the other folds."""
        if self._progress is not None:
            self._progress(f"scoring {what}")
        loss = np.zeros(len(self._tasks))
        right = np.zeros(len(self._tasks))
        for fold in range(N_FOLDS):
            is_own = self._dealt % N_FOLDS == fold
            rows = np.flatnonzero(is_own)
            if not len(rows):
                continue
            hides = is_own | (half_of_gold & (self._dealt >= N_FOLDS))
            hidden = {self._tasks[i] for i in np.flatnonzero(hides)}
            kept = {task: label for task, label in self._known.items() if task not in hidden}
            if kept:
                gold = Gold.from_dict(kept)
                fitted = fit_again(self._model, gold, responses=self._of(members))
            else:
                fitted = without_gold(self._model)
            q = fitted.probabilities_[fitted.tasks_.codes([self._tasks[i] for i in rows])]
            truth = fitted.classes_.codes([self._truth[i] for i in rows])
            # A class that the fit does not know has no probability.
            p = np.where(truth >= 0, q[np.arange(len(rows)), truth], 0.0)
            loss[rows] = -np.log(np.maximum(p, LOSS_FLOOR))
            right[rows] = q.argmax(axis=1) == truth
        return Scored(loss, right)

    def _of(self, members: Mask) -> Responses:
        """Return the responses of some judges; the others stay without responses."""
        kept = members[self._worker]
        if kept.all():
            return self._responses
        task = self._responses.task_of_each()[kept]
        n_each = np.bincount(task, minlength=self._responses.n_tasks)
        weight = self._responses.weight
        return replace(
            self._responses,
            start=np.concatenate([[0], np.cumsum(n_each)]).astype(self._responses.start.dtype),
            code=self._responses.code[kept],
            weight=None if weight is None else weight[kept],
        )


def deal(responses: Responses, task: Codes, truth: Sequence[Hashable]) -> Codes:
    """Deal known tasks into 2 N_FOLDS parts; parts f and f + N_FOLDS are a fold.

    Tasks are sorted by their class and responses and dealt in turn: folds are alike, and the order
    of rows has no influence. Ties are in the order of ids, which matters only with links.

    >>> rows = [("a", "ann", "x"), ("b", "ann", "y"), ("c", "ann", "x")]
    >>> deal(Responses.from_rows(rows), np.array([0, 1, 2]), ["x", "x", "x"]).tolist()
    [0, 2, 1]
    >>> deal(Responses.from_rows(rows[::-1]), np.array([0, 1, 2]), ["x", "x", "x"]).tolist()
    [1, 2, 0]
    """
    workers = [str(name) for name in responses.workers]
    classes = [str(name) for name in responses.classes]
    weight = responses.weight_of_each()
    keys = []
    for i, known in zip(task.tolist(), truth, strict=True):
        said = zip(
            *responses.of(i), weight[responses.start[i] : responses.start[i + 1]], strict=True
        )
        what = sorted((workers[int(w)], classes[int(k)], float(n)) for w, k, n in said)
        keys.append((str(known), what, str(responses.tasks[i])))
    dealt = np.empty(len(keys), dtype=np.int32)
    dealt[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys)) % (2 * N_FOLDS)
    return dealt


def _some_tasks(model: Any, known: Codes) -> Responses:
    """Return all responses, or those on the known tasks and a sample where there are very many.

    With links all stay, as a task may depend on any other.
    """
    responses: Responses = model.responses_
    if responses.n_tasks <= MOST_TASKS or model.links_ is not None:
        return responses
    chosen = np.zeros(responses.n_tasks, dtype=bool)
    chosen[drawn_by_name(responses.tasks, MOST_TASKS)] = True
    chosen[known] = True
    return responses.on_tasks(np.flatnonzero(chosen))
