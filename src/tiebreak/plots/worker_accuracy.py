"""Worker accuracy: how often each worker is right, how sure that is, and that in a word."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from tiebreak.kernels.layout import Floats
from tiebreak.responses import Responses

LEVEL = 0.9  # of the interval
MOST_RESPONSES = 1_000_000  # up to which the report waits for intervals that cover
FEWEST = 10  # responses: below, no worker is judged

RELIABLE = "better than chance"
CHANCE = "no better than chance"
WORSE = "worse than chance"
ALONE = "agrees with hardly anybody"
TOO_FEW = "too few to tell"
POOR = (CHANCE, WORSE, ALONE)


class WorkerAccuracy(NamedTuple):
    """One row per worker, in the order of the model's workers."""

    accuracy: Floats  # expected over the classes
    low: Floats
    high: Floats
    n_responses: npt.NDArray[np.int64]
    verdict: tuple[str, ...]


def worker_accuracy(model: Any) -> WorkerAccuracy:
    """Return how often each worker is right, with an interval of 90 %.

    The accuracy is Σ π(k) θ(k, k), with the interval of `model.workers_table()`. That takes about
    as long as the fit: for very large crowds, and where the model has no such table, each row of a
    confusion matrix is taken as Dirichlet with its fitted mean and as much weight as the worker has
    responses to tasks labelled so, and one for each class; the sum over rows as the Beta of the
    same mean and variance. Then labels count as sure, and the interval is a little narrow.

    >>> import tiebreak as tb
    >>> crowd = tb.simulate.crowd(200, 6, 2, random_state=0)
    >>> found = worker_accuracy(tb.VariationalBayes().fit(crowd.responses))
    >>> bool((found.low < found.accuracy).all() and (found.accuracy < found.high).all())
    True
    """
    prior = np.asarray(model.class_prior_)
    right = np.diagonal(model.confusion_, axis1=1, axis2=2)
    counts = responses_by_label(model.responses_, model.labels_.label) + dropped_by_class(model)
    weight = counts + len(prior)
    mean = right @ prior
    variance = (right * (1.0 - right) / (weight + 1.0)) @ prior**2
    low, high = _beta_interval(mean, variance)
    if _has_table(model):
        table = model.workers_table(level=LEVEL)
        mean = table.accuracy
        low = table.accuracy_low
        high = table.accuracy_high
    n_responses = counts.sum(axis=1).round().astype(np.int64)
    # How often answers that ignore the task would be right.
    by_chance = np.einsum("k,wkl->wl", prior, model.confusion_) @ prior
    verdict = _verdicts(mean, low, high, by_chance, n_responses)
    return WorkerAccuracy(mean, low, high, n_responses, verdict)


def _has_table(model: Any) -> bool:
    """Whether a table of workers can be had soon, and is of the tasks that this model shows."""
    end = vars(model).get("_warm_start")
    crowd = model.responses_
    if end is None or getattr(model, "_carried", None) is not None:
        return False
    return bool(len(end.q) == crowd.n_tasks and 0 < crowd.n_responses <= MOST_RESPONSES)


def responses_by_label(responses: Responses, label: Any) -> Floats:
    """Count the responses of each worker to tasks of each label, (n_workers, n_classes)."""
    n_classes = responses.n_classes
    cell = responses.worker_of_each().astype(np.int64) * n_classes
    cell += np.asarray(label)[responses.task_of_each()]
    size = responses.n_workers * n_classes
    return np.bincount(cell, minlength=size).reshape(-1, n_classes).astype(np.float64)


def dropped_by_class(model: Any) -> Floats:
    """Return what a model counted of responses that it no longer has, (n_workers, n_classes)."""
    n_classes = len(model.classes_)
    carried = getattr(model, "_carried", None)
    if carried is None:
        return np.zeros((len(model.workers_), n_classes))
    by_answer = carried.counts.reshape(
        -1, n_classes, n_classes, carried.counts.shape[1] // n_classes
    )
    return np.asarray(by_answer.sum(axis=(1, 3)))


def _beta_interval(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return where the middle 90 % of a Beta with this mean and variance lie."""
    inside = np.clip(mean, 1e-9, 1.0 - 1e-9)
    spread = np.maximum(variance, 1e-12)
    strength = np.maximum(inside * (1.0 - inside) / spread - 1.0, 1e-3)
    a = inside * strength
    b = (1.0 - inside) * strength
    tail = (1.0 - LEVEL) / 2.0
    return np.asarray(betaincinv(a, b, tail)), np.asarray(betaincinv(a, b, 1.0 - tail))


def _verdicts(
    mean: Floats,
    low: Floats,
    high: Floats,
    by_chance: Floats,
    n_responses: npt.NDArray[np.int64],
) -> tuple[str, ...]:
    """Judge each worker: nobody is called a guesser who may be as good as most."""
    is_judged = n_responses >= FEWEST
    usual = float(np.median(mean[is_judged])) if is_judged.any() else 1.0
    found = np.where(low > by_chance, RELIABLE, TOO_FEW).astype(object)
    found[is_judged & (low <= by_chance) & (high < usual)] = CHANCE
    found[is_judged & (high < by_chance)] = WORSE
    found[~is_judged] = TOO_FEW
    return tuple(found)
