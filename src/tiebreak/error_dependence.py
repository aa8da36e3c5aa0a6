"""How much workers err together: what a crowd of n is worth in workers who err apart."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tiebreak import tables
from tiebreak.arguments import FITTED, SEED, checks
from tiebreak.errors import InputError
from tiebreak.kernels.layout import Codes, Floats, Mask
from tiebreak.responses import Responses
from tiebreak.responses.weighing import plurality

N_BOOTSTRAP = 400
INTERVAL = (2.5, 97.5)  # percent of the bootstrap draws
MOST_WORKERS = 1000  # by pairs: those with the most responses
LEAST_COMMON = 10  # tasks that two workers share, for a correlation of their own
LEAST_ERRORS = 5  # tasks on which either errs, for a suspicion
COPIED = 0.8  # of these tasks both give the same wrong label


class LikelyCopies(NamedTuple):
    """Two workers who give the same wrong labels."""

    left: Hashable
    right: Hashable
    n_common: int  # tasks that both answered
    n_errors: int  # of these, on which either errs
    n_same: int  # of these, on which both give the same wrong label


@dataclass(frozen=True)
class Dependence:
    """How much errors are shared, given the class.

    `correlation` is (n, n) for `workers`: of the errors of two of them, nan where they share fewer
    than ten tasks. `mean_correlation`, φ, is over all pairs of responses on a task. `effective` is
    n / (1 + (n − 1) φ), n the mean number of responses of a task: so many workers who err apart
    would be worth as much. Intervals are of 95 %, over tasks drawn again.
    """

    mean_correlation: float
    interval: tuple[float, float]
    n_responses: float
    effective: float
    effective_interval: tuple[float, float]
    copies: tuple[LikelyCopies, ...]
    by_gold: bool
    n_tasks: int
    workers: tuple[Hashable, ...] = field(repr=False)
    correlation: Floats = field(repr=False)

    def __str__(self) -> str:
        low, high = self.effective_interval
        words = (
            f"{self.n_responses:.1f} responses a task are worth {self.effective:.1f} "
            f"({low:.1f} to {high:.1f}) that err apart; mean correlation of errors "
            f"{self.mean_correlation:.2f}, on {self.n_tasks:,} tasks."
        )
        if self.copies:
            names = ", ".join(f"{c.left} and {c.right}" for c in self.copies[:5])
            words += f" Likely copies: {names}."
        if not self.by_gold:
            words += (
                " Without gold shared errors cannot be seen: what most workers get wrong counts as "
                "right. Some 50 known labels show them."
            )
        return words


@checks(model=FITTED, random_state=SEED)
def dependence(model: Any, gold: Any = None, *, random_state: int | None = 0) -> Dependence:
    """Return how much the workers of a fitted model err together, given the class.

    Parameters
    ----------
    model
        Fitted.
    gold
        Known labels; only their tasks are looked at. Without them the model's own labels stand in
        for the truth, and **shared errors cannot be seen**: what most workers get wrong together
        counts as right. Some 50 known labels show them.
    random_state
        Of the tasks drawn again for the intervals.

    Examples
    --------
    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(400, 6, responses_per_task=6, shared=0.5, random_state=0)
    >>> model = tb.VariationalBayes().fit(crowd.responses)
    >>> bool(dependence(model, crowd.gold).effective < dependence(model).effective)
    True
    """
    truth = _truth(model, gold)
    answers = _answers(plurality(model.responses_), truth)
    if not len(answers.task):
        raise InputError("No task of gold has a response: there are no errors to compare.")
    agree, spread = _by_task(answers, len(truth))
    scored = np.flatnonzero(np.bincount(answers.task, minlength=len(truth)))
    n_each = len(answers.task) / len(scored)
    found = _ratio(agree.sum(), spread.sum())
    rng = np.random.default_rng(random_state)
    drawn = rng.choice(scored, size=(N_BOOTSTRAP, len(scored)))
    again = [_ratio(agree[tasks].sum(), spread[tasks].sum()) for tasks in drawn]
    low, high = np.percentile(again, INTERVAL)
    chosen = _busiest(answers, model.responses_.n_workers)
    return Dependence(
        mean_correlation=found,
        interval=(float(low), float(high)),
        n_responses=n_each,
        effective=effective(n_each, found),
        effective_interval=(effective(n_each, high), effective(n_each, low)),
        copies=_copies(answers, chosen, model),
        by_gold=gold is not None,
        n_tasks=len(scored),
        workers=tuple(model.workers_[int(w)] for w in chosen),
        correlation=_correlation(answers, chosen, len(truth)),
    )


class _Answers(NamedTuple):
    """Responses to tasks whose truth is known or assumed."""

    task: Codes
    worker: Codes
    label: Codes
    errs: Mask
    residual: Floats  # error less the rate of this worker on this class


def _truth(model: Any, gold: Any) -> Codes:
    """Return the class of each task; −1 where it is not known."""
    if gold is None:
        return np.asarray(model.labels_.label)
    known = tables.read_gold(gold).on(model.tasks_, model.classes_)
    truth = np.full(len(model.tasks_), -1, dtype=np.int32)
    truth[known.task] = known.label
    return truth


def _answers(responses: Responses, truth: Codes) -> _Answers:
    task = responses.task_of_each()
    known = truth[task] >= 0
    task = task[known]
    worker = responses.worker_of_each()[known]
    label = responses.label_of_each()[known]
    errs = label != truth[task]
    cell = worker.astype(np.int64) * responses.n_classes + truth[task]
    given = np.bincount(cell)
    rate = np.bincount(cell, weights=errs) / np.maximum(given, 1)
    return _Answers(task, worker, label, errs, errs - rate[cell])


def _by_task(answers: _Answers, n_tasks: int) -> tuple[Floats, Floats]:
    """Return, for each task, Σ over ordered pairs of r_a r_b, and of (r_a² + r_b²) / 2."""
    total = np.bincount(answers.task, weights=answers.residual, minlength=n_tasks)
    square = np.bincount(answers.task, weights=answers.residual**2, minlength=n_tasks)
    n_others = np.maximum(np.bincount(answers.task, minlength=n_tasks) - 1.0, 0.0)
    return np.asarray(total**2 - square), np.asarray(n_others * square)


def _ratio(agree: float, spread: float) -> float:
    return float(agree / spread) if spread > 0.0 else 0.0


def effective(n: float, phi: float) -> float:
    """Return n / (1 + (n − 1) φ); not more than n, since errors that offset each other are luck.

    >>> round(effective(9, 0.4), 2)
    2.14
    """
    return float(n / (1.0 + max(n - 1.0, 0.0) * max(phi, 0.0)))


def _busiest(answers: _Answers, n_workers: int) -> Codes:
    given = np.bincount(answers.worker, minlength=n_workers)
    busy = np.argsort(-given, kind="stable")[:MOST_WORKERS]
    return np.sort(busy[given[busy] > 0])


def _columns(values: Floats, answers: _Answers, chosen: Codes, n_tasks: int) -> Any:
    """Return a sparse table of tasks by chosen workers."""
    shape = (n_tasks, int(answers.worker.max()) + 1)
    return sparse.csr_matrix((values, (answers.task, answers.worker)), shape=shape)[:, chosen]


def _correlation(answers: _Answers, chosen: Codes, n_tasks: int) -> Floats:
    residual = _columns(answers.residual, answers, chosen, n_tasks)
    there = _columns(np.ones(len(answers.task)), answers, chosen, n_tasks)
    agree = (residual.T @ residual).toarray()
    square = (residual.multiply(residual).T @ there).toarray()
    common = (there.T @ there).toarray()
    scale = np.sqrt(square * square.T)
    enough = (common >= LEAST_COMMON) & (scale > 0.0)
    return np.asarray(np.divide(agree, scale, out=np.full(agree.shape, np.nan), where=enough))


def _copies(answers: _Answers, chosen: Codes, model: Any) -> tuple[LikelyCopies, ...]:
    """Return pairs that give the same wrong labels on nearly all tasks on which either errs."""
    n_tasks = len(model.tasks_)
    there = _columns(np.ones(len(answers.task)), answers, chosen, n_tasks)
    errs = _columns(answers.errs.astype(np.float64), answers, chosen, n_tasks)
    common = (there.T @ there).toarray()
    of_left = (errs.T @ there).toarray()
    both = (errs.T @ errs).toarray()
    either = of_left + of_left.T - both
    same = _same_wrong_labels(answers, chosen, len(model.classes_))
    is_copy = (either >= LEAST_ERRORS) & (same >= COPIED * either) & (common >= LEAST_COMMON)
    left, right = np.nonzero(np.triu(is_copy, 1))
    order = np.argsort(-same[left, right], kind="stable")
    name = [model.workers_[int(w)] for w in chosen]
    return tuple(
        LikelyCopies(name[a], name[b], int(common[a, b]), int(either[a, b]), int(same[a, b]))
        for a, b in zip(left[order].tolist(), right[order].tolist(), strict=True)
    )


def _same_wrong_labels(answers: _Answers, chosen: Codes, n_classes: int) -> Floats:
    """Count, by pair of chosen workers, the tasks on which both give the same wrong label."""
    wrong = np.flatnonzero(answers.errs)
    cell = answers.task[wrong].astype(np.int64) * n_classes + answers.label[wrong]
    _, row = np.unique(cell, return_inverse=True)
    shape = (len(wrong), int(answers.worker.max()) + 1)
    table = sparse.csr_matrix((np.ones(len(wrong)), (row, answers.worker[wrong])), shape=shape)
    of_chosen = table[:, chosen]
    return np.asarray((of_chosen.T @ of_chosen).toarray())
