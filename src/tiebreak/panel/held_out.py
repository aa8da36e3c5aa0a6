"""What a method says of known tasks whose class it was not told, by any part of the panel.

Known tasks are dealt into folds. The tasks of each fold are labelled by an unfitted copy of the
model, fitted to the responses of some judges with the gold of the other folds: the method that
will be used, on the judges that would be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tiebreak import tables
from tiebreak.decisions.cross_fit import fit_again
from tiebreak.gold import Gold
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets
from tiebreak.panel.table import GoldTable, drawn_by_name
from tiebreak.responses import Responses

N_FOLDS = 4
MOST_TASKS = 10_000  # of a fit: of more, those whose class is known, and some of the others
LOSS_FLOOR = 1e-4  # of a probability, before its log is taken


def blind(model: Any) -> Any:
    """Return the model as fitted without gold: itself, or a fit to the same responses and links."""
    return model if model.gold_ is None or not len(model.gold_) else fit_again(model)


class Scored(NamedTuple):
    """How a panel does on the known tasks, each (n,)."""

    loss: Floats  # log-loss
    right: Floats  # 1 where the label is right


class CrossValidation:
    """Scores parts of a panel on known tasks; each score takes a fit for every fold."""

    def __init__(
        self,
        model: Any,
        table: GoldTable,
        gold: Any,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._model = model
        self._progress = progress
        self._responses = _some_tasks(model, table.task)
        known = {} if model.gold_ is None else model.gold_.to_dict()
        known |= {} if gold is None else tables.read_gold(gold).to_dict()
        tasks = self._responses.tasks
        codes = tasks.codes(list(known)).tolist()  # gold may have 7 as text where tasks are numbers
        self._known = {
            tasks[code]: label
            for code, label in zip(codes, known.values(), strict=True)
            if code >= 0
        }
        self._tasks = [model.tasks_[int(i)] for i in table.task]
        self._truth = [self._known[task] for task in self._tasks]
        self._dealt = deal(model.responses_, table.task, self._truth)
        self._worker = self._responses.worker_of_each()
        self.answers: Mask = np.bincount(self._worker, minlength=self._responses.n_workers) > 0

    def score(self, members: Mask, what: str, *, half_of_gold: bool = False) -> Scored:
        """Score the panel of these judges, told the gold of the other folds, or half of that."""
        if self._progress is not None:
            self._progress(f"scoring {what}")
        loss = np.zeros(len(self._tasks))
        right = np.zeros(len(self._tasks))
        for fold in range(N_FOLDS):
            rows = np.flatnonzero(self._dealt % N_FOLDS == fold)
            if not len(rows):
                continue
            hides = self._dealt % N_FOLDS == fold
            if half_of_gold:
                hides |= self._dealt >= N_FOLDS
            hidden = {self._tasks[i] for i in np.flatnonzero(hides)}
            told = {task: label for task, label in self._known.items() if task not in hidden}
            if told:
                gold = Gold.from_dict(told)
                fitted = fit_again(self._model, gold, responses=self._of(members))
            else:
                fitted = blind(self._model)
            q = fitted.probabilities_[fitted.tasks_.codes([self._tasks[i] for i in rows])]
            truth = fitted.classes_.codes([self._truth[i] for i in rows])
            # A class that the fit does not know has no probability.
            p = np.where(truth >= 0, q[np.arange(len(rows)), truth], 0.0)
            loss[rows] = -np.log(np.maximum(p, LOSS_FLOOR))
            right[rows] = q.argmax(axis=1) == truth
        return Scored(loss, right)

    def _of(self, members: Mask) -> Responses:
        """Return the responses of some judges; the others stay, and say nothing."""
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
    """Deal known tasks into 2 N_FOLDS parts by their class and responses; no order plays a part.

    Parts f and f + N_FOLDS are a fold. Tasks are sorted by what is said of them and dealt in turn,
    so that folds are alike. Tasks of which the same is said are in the order of their ids, which
    matters only with links.

    >>> rows = [("a", "ann", "x"), ("b", "ann", "y"), ("c", "ann", "x")]
    >>> deal(Responses.from_rows(rows), np.array([0, 1, 2]), ["x", "x", "x"]).tolist()
    [0, 2, 1]
    >>> deal(Responses.from_rows(rows[::-1]), np.array([0, 1, 2]), ["x", "x", "x"]).tolist()
    [1, 2, 0]
    """
    worker, label = np.divmod(responses.code, responses.n_classes)
    said = (
        _ranks(responses.workers)[worker] * responses.n_classes + _ranks(responses.classes)[label]
    )
    weight = responses.weight_of_each()
    keys = []
    for i, known in zip(task.tolist(), truth, strict=True):
        at = slice(int(responses.start[i]), int(responses.start[i + 1]))
        what = sorted(zip(said[at].tolist(), weight[at].tolist(), strict=True))
        keys.append((str(known), what, str(responses.tasks[i])))
    dealt = np.empty(len(keys), dtype=np.int32)
    dealt[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys)) % (2 * N_FOLDS)
    return dealt


def _ranks(names: Iterable[Hashable]) -> Offsets:
    """Return the place of each name where all are sorted."""
    texts = [str(name) for name in names]
    ranks = np.empty(len(texts), dtype=np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks


def _some_tasks(model: Any, known: Codes) -> Responses:
    """Return all responses, or those on the known tasks and some others where there are very many.

    With links all stay, as a task may hang on any other.
    """
    responses: Responses = model.responses_
    if responses.n_tasks <= MOST_TASKS or model.links_ is not None:
        return responses
    chosen = np.zeros(responses.n_tasks, dtype=bool)
    chosen[drawn_by_name(responses.tasks, MOST_TASKS)] = True
    chosen[known] = True
    return responses.on_tasks(np.flatnonzero(chosen))
