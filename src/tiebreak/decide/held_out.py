"""Known tasks held out: what a model says of them where it has not seen their classes.

Gold tells how many labels are right, but not on a task whose label it gave. So known tasks are
dealt into folds, and those of each fold are labelled by a fit with the gold of the others.
"""

from __future__ import annotations

import copy
import warnings
from functools import cached_property
from typing import Any

import numpy as np

from tiebreak.data import Gold, GoldCodes, Ids
from tiebreak.errors import OptionError
from tiebreak.inference.known import deal
from tiebreak.kernels.layout import Codes, Floats, Mask

N_FOLDS = 4


def fit_again(model: Any, gold: Gold | None = None, responses: Any = None) -> Any:
    """Fit an unfitted copy of a model to its responses, or other ones, and links, with this gold.

    Notes are not repeated: the caller has seen those of the first fit.
    """
    if needs_features(model):
        raise OptionError("features-needed-again")
    given = {"links": model.links_, "gold": gold if gold is not None and len(gold) else None}
    given |= {"features": getattr(model, "_features", None), "pairs": model.pairs_}
    known = {name: value for name, value in given.items() if value is not None}
    with warnings.catch_warnings(action="ignore"):
        again = type(model)(**model.get_params())
        return again.fit(model.responses_ if responses is None else responses, **known)


def needs_features(model: Any) -> bool:
    """Say whether a model was fitted with features that nobody has any more: no file holds them."""
    return model.classifier_weight_ is not None and model._features is None


def without_gold(model: Any) -> Any:
    """Return the model fitted without gold: itself, or a fit to the same responses and links."""
    return model if model.gold_ is None or not len(model.gold_) else fit_again(model)


def held_out(
    model: Any, gold: Gold, fold: Codes, *, hidden: Mask | None = None, responses: Any = None
) -> tuple[Ids, Floats]:
    """Return classes, and what fits without a known task's fold say of it: (n_known, n_classes).

    Parameters
    ----------
    fold
        Of each known task, (n_known,); below 0 where all fits are told its class. These rows of the
        result are 0.
    hidden
        Known tasks whose class no fit is told.
    responses
        To fit to, where they are not the model's own.
    """
    extra = [name for name in gold.classes if model.classes_.codes([name])[0] < 0]
    classes = Ids([*model.classes_, *extra])
    q = np.zeros((len(gold), len(classes)))
    for each in range(int(fold.max(initial=-1)) + 1):
        own = np.flatnonzero(fold == each)
        told = np.flatnonzero(fold != each if hidden is None else (fold != each) & ~hidden)
        rest = Gold.from_columns(gold.tasks.take(told), gold.classes.take(gold.label[told]))
        fitted = fit_again(model, rest, responses)
        place = fitted.tasks_.codes(gold.tasks.take(own))
        q[np.ix_(own, classes.codes(fitted.classes_))] = fitted.probabilities_[place]
    return classes, q


class HeldOut:
    """The known tasks of a fit, held out when somebody asks, once for all decisions of the fit.

    It holds the model as it is now: updates that come later change nothing here.
    """

    def __init__(self, model: Any) -> None:
        self.labels = model.labels_  # of the fit that this belongs to
        self._model = copy.copy(model)
        vars(self._model).pop("_held_out", None)

    @cached_property
    def known(self) -> tuple[GoldCodes, Floats] | None:
        """Known tasks and what fits say of them; None where nothing can be fitted again."""
        model = self._model
        is_of_counts = getattr(model, "_carried", None) is not None
        if len(model.gold_) < N_FOLDS or is_of_counts or needs_features(model):
            return None
        at_random = np.argsort(np.random.default_rng(0).permutation(len(model.gold_)))
        _, q = held_out(model, model.gold_, deal(at_random, N_FOLDS))
        return model.gold_.on(model.tasks_, model.classes_), q


def held_out_of(model: Any) -> HeldOut | None:
    """Return what all decisions of a fit share; None without gold."""
    if getattr(model, "gold_", None) is None:
        return None
    kept: HeldOut | None = vars(model).get("_held_out")
    if kept is None or kept.labels is not model.labels_:
        kept = vars(model)["_held_out"] = HeldOut(model)
    return kept
