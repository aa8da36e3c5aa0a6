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
import numpy.typing as npt

from tiebreak import files
from tiebreak.decisions.cross_fit import fit_again
from tiebreak.gold import Gold
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.panel.table import GoldTable, drawn_by_name, name_keys
from tiebreak.responses import Responses

N_FOLDS = 5
MOST_TASKS = 20_000  # tasks of a fit: of more, those whose class is known, and some of the others
LOSS_FLOOR = 1e-4  # of a probability, before its log is taken


def blind(model: Any) -> Any:
    """Return the model as fitted without gold: itself, or a fit to the same responses and links.

    A pool, which cannot do without gold, is stood in for by the VB whose terms it weighs.
    """
    from tiebreak.inference.log_opinion_pool import LogOpinionPool
    from tiebreak.inference.variational_bayes import VariationalBayes

    if model.gold_ is None or not len(model.gold_):
        return model
    if isinstance(model, LogOpinionPool):
        return fit_again(model, unfitted=VariationalBayes(dependence=model.dependence))
    return fit_again(model)


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
        known = {} if model.gold_ is None else model.gold_.to_dict()
        known |= {} if gold is None else files.read_gold(gold).to_dict()
        names = list(known)
        here = np.flatnonzero(model.tasks_.codes(names) >= 0)
        self._known = {names[i]: known[names[i]] for i in here.tolist()}
        self._tasks = [model.tasks_[int(i)] for i in table.task]
        self._truth = [self._known[task] for task in self._tasks]
        self.fold = folds_by_name(self._tasks, self._truth)
        self._responses = _some_tasks(model, list(self._known))
        self._worker = self._responses.worker_of_each()

    def score(
        self, members: Mask | Sequence[Mask], what: str, *, half_of_gold: bool = False
    ) -> Scored:
        """Score a panel: who is in it, or who is in it in each fold; fits with the other folds.

        `half_of_gold`: with two of the four other folds instead.
        """
        each = [members] * N_FOLDS if isinstance(members, np.ndarray) else members
        loss = np.full(len(self._tasks), -np.log(LOSS_FLOOR))
        right = np.zeros(len(self._tasks))
        for fold in range(N_FOLDS):
            rows = np.flatnonzero(self.fold == fold)
            if not len(rows):
                continue
            if self._progress is not None:
                self._progress(f"{what}, fold {fold + 1} of {N_FOLDS}")
            left_out = {fold, *((fold + 1) % N_FOLDS, (fold + 2) % N_FOLDS)[: 2 * half_of_gold]}
            hidden = {self._tasks[i] for i in np.flatnonzero(np.isin(self.fold, list(left_out)))}
            told = {task: label for task, label in self._known.items() if task not in hidden}
            gold = Gold.from_dict(told) if told else None
            fitted = fit_again(self._model, gold, responses=self._of(each[fold]))
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


def folds_by_name(tasks: Iterable[Hashable], truth: Sequence[Hashable]) -> Codes:
    """Deal tasks into folds, class by class, by what they are called: no order plays a part.

    >>> folds_by_name(["a", "b", "c", "d"], ["x", "x", "y", "y"]).tolist()
    [1, 0, 2, 3]
    >>> folds_by_name(["d", "c", "b", "a"], ["y", "y", "x", "x"]).tolist()
    [3, 2, 0, 1]
    """
    keys = name_keys(tasks)
    order = sorted(range(len(keys)), key=lambda i: (str(truth[i]), keys[i]))
    fold = np.empty(len(keys), dtype=np.int32)
    fold[order] = np.arange(len(keys)) % N_FOLDS
    return fold


def _some_tasks(model: Any, known: list[Hashable]) -> Responses:
    """Return all responses, or those on known tasks and on some others where there are very many.

    With links all stay, as a task may hang on any other.
    """
    responses: Responses = model.responses_
    if responses.n_tasks <= MOST_TASKS or model.links_ is not None:
        return responses
    chosen: npt.NDArray[Any] = np.zeros(responses.n_tasks, dtype=bool)
    chosen[drawn_by_name(list(responses.tasks), MOST_TASKS)] = True
    chosen[responses.tasks.codes(known)] = True
    return responses.on_tasks(np.flatnonzero(chosen))
