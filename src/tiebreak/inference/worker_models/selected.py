"""Some workers of a model, in another order, with others that it has never seen.

Prediction, updates and streams touch few workers at a time, and meet new ones.
"""

from __future__ import annotations

import numpy as np

from tiebreak.inference.worker_models import ConfusionMatrices, WorkerModel
from tiebreak.inference.worker_models.carried import CarriedWorkers
from tiebreak.inference.worker_models.coin import Coins
from tiebreak.inference.worker_models.kinds import Kinds
from tiebreak.inference.worker_models.one_class import FixedRows
from tiebreak.kernels.layout import Codes, Floats

UNKNOWN = -1  # the code of a worker whom the model has never seen


def select_workers(model: WorkerModel, at: Codes, base: Floats) -> WorkerModel:
    """Return the model of the workers `at`; `UNKNOWN` is one whom it has never seen.

    `base`, (1, answer, class), is the prior of such a worker, where priors differ by worker.
    """
    n = len(at)
    if isinstance(model, ConfusionMatrices):
        of_base = _by_state(base, model.n_states)
        return ConfusionMatrices(_rows(model.prior, at, of_base, model.n_workers), n)
    if isinstance(model, Coins):
        of_base = Coins.from_matrices(base, 1).prior
        return Coins(_rows(model.prior, at, of_base, model.n_workers), n, model.n_classes)
    if isinstance(model, Kinds):
        trusted = model.trusted
        if trusted is not None:
            trusted = np.concatenate([trusted, np.zeros_like(trusted[:1])])[at]
        return model._replace(n_workers=n, trusted=trusted)
    if isinstance(model, FixedRows):
        inner = select_workers(model.inner, at, base)
        fixed = np.concatenate([model.is_fixed, np.zeros((1, model.n_states), dtype=bool)])
        given = model.given
        if given is not None:
            given = _rows(given, at, _by_state(base, model.n_states), model.n_workers)
        return FixedRows(inner, fixed[at], given)  # UNKNOWN, the last row, may say anything
    if isinstance(model, CarriedWorkers):
        inner = select_workers(model.inner, at, base)
        added = np.concatenate([model.added, np.zeros_like(model.added[:1])])[at]
        return CarriedWorkers(inner, added)
    raise TypeError(f"{type(model).__name__} has no rule for some of its workers.")


def select_parameters(model: WorkerModel, parameters: Floats, at: Codes, base: Floats) -> Floats:
    """Return the parameters of the workers `at`; those of an unknown one are its prior."""
    chosen = select_workers(model, at, base)
    prior = np.broadcast_to(chosen.prior, (len(at), *parameters.shape[1:])).copy()
    known = at != UNKNOWN
    prior[known] = parameters[at[known]]
    return prior


def _rows(values: Floats, at: Codes, of_unknown: Floats, n_workers: int) -> Floats:
    """Return rows of values that may differ by worker; a single one is for all."""
    is_shared = len(values) == 1 and (n_workers > 1 or np.array_equal(values, of_unknown))
    if is_shared:
        return values
    return np.concatenate([values, of_unknown])[at]  # UNKNOWN is the last row


def _by_state(base: Floats, n_states: int) -> Floats:
    return np.repeat(base, n_states // base.shape[2], axis=2)
