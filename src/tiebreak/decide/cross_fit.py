"""Cross-fitting: what a model says of known tasks where it has not seen their classes.

Gold tells how many labels are right, but not on a task whose label it gave. So known tasks are
dealt into folds, and those of each fold are labelled by a fit with the gold of the others.
"""

from __future__ import annotations

import copy
import warnings
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data.gold import Gold
from tiebreak.decide.costs import CostMatrix
from tiebreak.kernels.layout import Codes, Floats

N_FOLDS = 4


class KnownTasks(NamedTuple):
    """Known tasks, their classes, and what a model says that has not been told."""

    task: Codes  # (n_known,)
    label: Codes  # (n_known,)
    q: Floats  # (n_known, n_classes)


class CrossFit:
    """Labels known tasks without their own gold, when somebody asks; once for each fit.

    It holds the model as it is now: updates that come later change nothing here.
    """

    def __init__(self, model: Any) -> None:
        self.labels = model.labels_  # of the fit that this belongs to
        self._model = copy.copy(model)

    @cached_property
    def known(self) -> KnownTasks | None:
        """Known tasks; None where they are too few, or there is nothing to fit again."""
        model = self._model
        if len(model.gold_) < N_FOLDS or getattr(model, "_carried", None) is not None:
            return None
        known = model.gold_.on(model.tasks_, model.classes_)
        fold = np.random.default_rng(0).permutation(len(known.task)) % N_FOLDS
        q = np.zeros((len(known.task), len(model.classes_)))
        for each in range(N_FOLDS):
            own = fold == each
            rest = Gold.from_columns(
                model.tasks_.take(known.task[~own]), model.classes_.take(known.label[~own])
            )
            fitted = fit_again(model, rest)
            column = model.classes_.codes(fitted.classes_)
            q[np.ix_(own, column)] = fitted.probabilities_[known.task[own]]
        return KnownTasks(known.task, known.label, q)

    def recount(self, costs: CostMatrix, dearest: float) -> tuple[int, int]:
        """Return how many known tasks get a class by these costs, and how many the right one.

        `dearest` is what a task may cost at most, as expected, to get a class.
        """
        if self.known is None:
            return 0, 0
        expected = costs.expected(self.known.q)
        label = costs.label[expected.argmin(axis=1)]
        decided = (label >= 0) & (expected.min(axis=1) <= dearest)
        return int(decided.sum()), int((label == self.known.label)[decided].sum())


def cross_fit_of(model: Any) -> CrossFit | None:
    """Return the cross-fit that all decisions of a fit share; None without gold."""
    if getattr(model, "gold_", None) is None:
        return None
    kept: CrossFit | None = vars(model).get("_cross_fit")
    if kept is None or kept.labels is not model.labels_:
        kept = CrossFit(model)
        vars(model)["_cross_fit"] = kept
    return kept


def fit_again(
    model: Any, gold: Gold | None = None, unfitted: Any = None, responses: Any = None
) -> Any:
    """Fit a model to the same responses and links, with this gold; or fit `unfitted` so.

    `responses` are those to fit to, where they are not the model's own.
    """
    again = type(model)(**model.get_params()) if unfitted is None else unfitted
    given = {"links": model.links_, "gold": gold}
    known = {name: value for name, value in given.items() if value is not None}
    with warnings.catch_warnings(action="ignore"):  # the caller has seen the notes of this very fit
        return again.fit(model.responses_ if responses is None else responses, **known)
