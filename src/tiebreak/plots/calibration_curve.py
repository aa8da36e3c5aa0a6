"""The calibration curve: what probabilities state against how often labels are right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tiebreak import tables
from tiebreak.errors import InputError
from tiebreak.gold import Gold
from tiebreak.ids import MISSING, Ids
from tiebreak.kernels.layout import Offsets
from tiebreak.labels import Labels

BINS = 10
Z = 1.96  # of an interval of 95 %


class CalibrationPoint(NamedTuple):
    """Labels whose probabilities fall into one bin."""

    stated: float  # mean probability
    right: float  # share that is right
    low: float  # of Wilson's interval of 95 %
    high: float
    n: int


class ToScore(NamedTuple):
    """Labels that have not seen the known labels which they are compared with."""

    labels: Labels
    gold: Gold
    is_fitted_again: bool  # whether the model was fitted once more, without its gold


def labels_to_score(model: Any, truth: Any = None) -> ToScore | None:
    """Return labels and known labels that they have not seen; None where nothing is known.

    `truth` is compared as it is, less the tasks that the fit was given. Without it, a model that
    was given gold is fitted once more without, and that fit is compared with the gold.
    """
    if truth is not None:
        known = tables.read_gold(truth)
        if model.gold_ is not None:
            known = _without(known, model.gold_)
        return ToScore(model.labels_, known, False)
    if model.gold_ is None or not len(model.gold_):
        return None
    params = model.get_params()
    if "worker_model" in params:
        params["worker_model"] = getattr(model, "worker_model_", params["worker_model"])
    links = {} if model.links_ is None else {"links": model.links_}
    again = type(model)(**params).fit(model.responses_, **links)
    return ToScore(again.labels_, model.gold_, True)


def calibration_curve(labels: Labels, gold: Gold, bins: int = BINS) -> list[CalibrationPoint]:
    """Return one point for each bin of stated probability that has labels in it.

    >>> q = np.array([[0.9, 0.1], [0.92, 0.08], [0.2, 0.8]])
    >>> labels = Labels.from_probabilities(Ids("abc"), Ids("xy"), q)
    >>> gold = Gold.from_dict({"a": "x", "b": "y", "c": "y"})
    >>> [(point.right, point.n) for point in calibration_curve(labels, gold)]
    [(1.0, 1), (0.5, 2)]
    """
    task = labels.tasks.codes(gold.tasks)
    truth = labels.classes.codes(gold.classes)[gold.label]
    there = task != MISSING
    if not there.any() or labels.probability is None:
        raise InputError(
            "No known label belongs to a task of the model. Give both the same task ids."
        )
    stated = labels.probability[task[there]]
    right = (labels.label[task[there]] == truth[there]).astype(np.float64)
    bin_of = np.minimum((bins * stated).astype(np.int64), bins - 1)
    n = np.bincount(bin_of, minlength=bins)
    mean = np.bincount(bin_of, stated, minlength=bins)
    share = np.bincount(bin_of, right, minlength=bins)
    points = []
    for k in np.flatnonzero(n).tolist():
        low, high = wilson(float(share[k] / n[k]), int(n[k]))
        points.append(
            CalibrationPoint(float(mean[k] / n[k]), float(share[k] / n[k]), low, high, int(n[k]))
        )
    return points


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % of a share.

    >>> tuple(round(end, 3) for end in wilson(0.5, 10))
    (0.237, 0.763)
    """
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * float(np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _without(known: Gold, given: Gold) -> Gold:
    """Leave out the tasks that the fit was given."""
    seen = known.tasks.codes(given.tasks)
    is_new = np.ones(len(known), dtype=bool)
    is_new[seen[seen != MISSING]] = False
    if not is_new.any():
        raise InputError(
            "Every known label to compare with was given to the fit. Hold some back: fit without "
            "them, and give them here."
        )
    return subset(known, np.flatnonzero(is_new))


def subset(known: Gold, chosen: Offsets) -> Gold:
    """Return the known labels at these places."""
    return replace(
        known,
        tasks=Ids(known.tasks.take(chosen)),
        label=known.label[chosen],
        row=known.row[chosen],
    )
