"""Priors as users give them, as arrays that inference uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.errors import OptionError
from tiebreak.ids import MISSING, Ids
from tiebreak.kernels.layout import Floats

ClassPrior = float | Sequence[float] | Floats
ConfusionPrior = str | Sequence[float] | Floats | Mapping[Any, npt.ArrayLike]

Trust = Mapping[Any, float]  # right pseudo-answers by worker


def class_prior(given: ClassPrior, n_classes: int) -> Floats:
    """Return Dirichlet parameters of the class prior, (n_classes,).

    >>> class_prior(1.0, 3).tolist()
    [1.0, 1.0, 1.0]
    """
    values = np.asarray(given, dtype=np.float64)
    if values.shape not in ((), (n_classes,)):
        raise OptionError(
            f"class_prior must be one number or {n_classes} numbers, one a class in the order of "
            f"classes_; got shape {values.shape}."
        )
    _require_positive("class_prior", values)
    return np.array(np.broadcast_to(values, (n_classes,)))


def confusion_prior(given: ConfusionPrior, workers: Ids, n_classes: int) -> Floats:
    """Return Dirichlet parameters of the confusions, (n_workers or 1, answer, truth).

    "diagonal" is the paper's: K for the right answer, 1 for each wrong one,
    [eq:prior-diagonal]. A pair is (right, wrong). An array is (truth, answer) for all workers or
    (worker, truth, answer). A mapping gives arrays for some workers (what they did in earlier
    jobs, as pseudo-counts); the others get "diagonal".

    >>> confusion_prior("diagonal", Ids(["ann"]), 2).tolist()
    [[[2.0, 1.0], [1.0, 2.0]]]
    """
    if isinstance(given, str):
        words = {"diagonal": (float(n_classes), 1.0), "uniform": (1.0, 1.0)}
        if given not in words:
            raise OptionError.unknown("confusion_prior", given, tuple(words))
        return _right_wrong(*words[given], n_classes)
    if isinstance(given, Mapping):
        return _by_worker(given, workers, n_classes)
    values = np.asarray(given, dtype=np.float64)
    _require_positive("confusion_prior", values)
    if values.shape == (2,):
        return _right_wrong(float(values[0]), float(values[1]), n_classes)
    if values.shape == (n_classes, n_classes):
        return np.ascontiguousarray(values.T)[None]
    if values.shape == (len(workers), n_classes, n_classes):
        return np.ascontiguousarray(values.transpose(0, 2, 1))
    raise OptionError(
        "confusion_prior must be 'diagonal', 'uniform', (right, wrong), an array of shape "
        f"({n_classes}, {n_classes}) or ({len(workers)}, {n_classes}, {n_classes}) as "
        f"[worker, truth, answer], or a mapping by worker; got shape {values.shape}."
    )


def _right_wrong(right: float, wrong: float, n_classes: int) -> Floats:
    table = np.full((n_classes, n_classes), wrong)
    np.fill_diagonal(table, right)
    return table[None]


def _by_worker(given: Mapping[Any, npt.ArrayLike], workers: Ids, n_classes: int) -> Floats:
    table = np.repeat(_right_wrong(float(n_classes), 1.0, n_classes), len(workers), axis=0)
    codes = workers.codes(list(given))
    for name, w, value in zip(given, codes, given.values(), strict=True):
        if w == MISSING:
            raise OptionError(f"confusion_prior names worker {name!r}, who gave no response.")
        counts = np.asarray(value, dtype=np.float64)
        if counts.shape != (n_classes, n_classes):
            raise OptionError(
                f"confusion_prior of worker {name!r} must have shape ({n_classes}, {n_classes}) "
                f"as [truth, answer]; got {counts.shape}."
            )
        _require_positive(f"confusion_prior of worker {name!r}", counts)
        table[w] = counts.T
    return table


def trusted_answers(trust: Trust, workers: Ids, n_classes: int) -> Floats:
    """Return right pseudo-answers to tasks of each class, (n_workers, answer, class).

    >>> trusted_answers({"bob": 9.0}, Ids(["ann", "bob"]), 2).tolist()
    [[[0.0, 0.0], [0.0, 0.0]], [[9.0, 0.0], [0.0, 9.0]]]
    """
    table = np.zeros((len(workers), n_classes, n_classes))
    diagonal = np.arange(n_classes)
    for name, w, value in zip(trust, workers.codes(list(trust)), trust.values(), strict=True):
        if w == MISSING:
            raise OptionError(f"trust names worker {name!r}, who gave no response.")
        if not (np.isfinite(value) and value >= 0.0):
            raise OptionError(
                f"trust in worker {name!r} is a number of right answers, 0 or more; got {value!r}."
            )
        table[w, diagonal, diagonal] = value
    return table


def _require_positive(name: str, values: Floats) -> None:
    if not (np.isfinite(values).all() and (values > 0.0).all()):
        raise OptionError(f"{name} must be positive and finite; got {values.tolist()}.")
