"""Silence that counts: which workers saw every task, and the problem with what they did not say."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.ids import MISSING, Ids
from tiebreak.inference import gold_weights
from tiebreak.inference.gold_weights import GoldWeight
from tiebreak.inference.problem import Problem
from tiebreak.kernels.layout import Mask

if TYPE_CHECKING:
    from tiebreak.inference.estimator import Estimator

SawAllOption = bool | Iterable[Hashable] | None  # True: every worker


def require_workers(saw_all: SawAllOption) -> None:
    """Refuse what names no workers."""
    if isinstance(saw_all, str | bytes) or not isinstance(saw_all, bool | Iterable | None):
        raise OptionError(
            f"saw_all takes a list of workers, or True for all of them; got {saw_all!r}."
        )


def who_saw_all(saw_all: SawAllOption, workers: Ids) -> Mask | None:
    """Say of each worker whether they saw every task; None where nobody is said to.

    >>> who_saw_all(["b"], Ids(["a", "b"])).tolist()
    [False, True]
    """
    if saw_all is None or saw_all is False:
        return None
    if saw_all is True:
        return np.ones(len(workers), dtype=bool)
    names = list(saw_all)
    code = workers.codes(names) if names else np.empty(0, dtype=np.int32)
    unknown = np.flatnonzero(code == MISSING)
    if len(unknown):
        raise OptionError(
            f"saw_all names worker {names[int(unknown[0])]!r}, who gave no response. Leave it out."
        )
    saw = np.zeros(len(workers), dtype=bool)
    saw[code] = True
    return saw if saw.any() else None


def are_alike(one: Any, other: Any) -> bool:
    """Whether the same workers are said to have seen all tasks of two models."""
    return bool(_words(getattr(one, "saw_all", None)) == _words(getattr(other, "saw_all", None)))


def _words(saw_all: SawAllOption) -> Any:
    if saw_all is None or isinstance(saw_all, bool):
        return bool(saw_all)
    return set(saw_all) or False


def with_silence(
    problem: Problem, saw_all: SawAllOption, workers: Ids, gold_weight: GoldWeight
) -> Problem:
    """Return the problem in which silence of those who saw all counts: [eq:silence].

    They all saw every task, so that a known one counts alike for the silence of each.
    """
    saw = who_saw_all(saw_all, workers)
    if saw is None:
        return problem
    from tiebreak.inference.worker_models.saw_all import SawAll, add_silence

    tasks = add_silence(problem.tasks, saw, problem.n_classes, problem.n_states)
    table = problem.gold_weight
    if table is not None:
        n_tasks = problem.tasks.n_tasks if problem.copies is None else problem.copies.sum()
        of_silence = gold_weights.of_answers(gold_weight, float(n_tasks), problem.n_classes)
        table = np.concatenate([table, np.full((1, problem.n_classes), of_silence)])
    return problem._replace(
        tasks=tasks,
        workers=SawAll(problem.workers, saw),
        gold_weight=table,
        given=problem.tasks,
    )


def without_silence(problem: Problem) -> Problem:
    """Return the problem of what workers said alone."""
    if problem.given is None:
        return problem
    from tiebreak.inference.worker_models.saw_all import SawAll

    if not isinstance(problem.workers, SawAll):
        return problem
    table = None if problem.gold_weight is None else problem.gold_weight[:-1]
    return problem._replace(
        tasks=problem.given, given=None, workers=problem.workers.inner, gold_weight=table
    )


def refuse_silence(model: Estimator, what: str) -> None:
    """Refuse what cannot be done with a model in which silence counts, with the way out."""
    if getattr(model, "saw_all", None):
        raise OptionError(
            f"{what} cannot count silence, and this model was fitted with saw_all. Keep the "
            "responses and fit or update the whole, or fit without saw_all."
        )
