"""Worker models: what a response says about a task, given what is believed of who gave it.

A model turns counts (how often each worker gave each label to tasks in each state) into
parameters, and parameters into the log table `[code, state]` that sweeps look up. Sweeps, links,
gold and asking know nothing else of workers, so that a new model is one file here with a class of
these methods, one line in `MODELS`, and one line in the conformance test.

`n_classes` is how many labels workers may give, and how many classes are reported. `n_states` is
how many states a task may be in, inside: as many as classes, or more where a class is split into
subtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.inference import priors
from tiebreak.inference.class_prior import ClassPrior, StatePrior, SubtypePrior
from tiebreak.inference.priors import ConfusionPrior
from tiebreak.inference.worker_models.coin import Coins
from tiebreak.inference.worker_models.confusion import ConfusionMatrices
from tiebreak.inference.worker_models.kinds import Kinds, three_kinds
from tiebreak.kernels.layout import Floats
from tiebreak.responses import Responses

N_SUBTYPES = 5


class WorkerModel(Protocol):
    """How workers answer. Parameters are positive: a prior plus what responses add to it."""

    @property
    def n_workers(self) -> int:
        """How many workers there are."""

    @property
    def n_classes(self) -> int:
        """How many labels a worker may give."""

    @property
    def n_states(self) -> int:
        """How many states a task may be in."""

    @property
    def prior(self) -> Floats:
        """Parameters before any response; one for all workers, or one per worker."""

    def collect(self, counts: Floats) -> Floats:
        """Return what counts by code and state, (n_codes, n_states), add to the parameters."""

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the expected log probability of each response, (n_codes, n_states)."""

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return the workers' part of the bound, right after the parameters were updated."""

    def confusion(self, parameters: Floats) -> Floats:
        """Return the expected confusion matrices, (worker, state, answer)."""


class CrowdModel(NamedTuple):
    """What tasks may be, and how workers answer them."""

    states: StatePrior
    workers: WorkerModel


Maker = Callable[[ConfusionPrior, Floats, Responses], CrowdModel]


def _confusion(given: ConfusionPrior, of_class: Floats, responses: Responses) -> CrowdModel:
    prior = priors.confusion_prior(given, responses.workers, responses.n_classes)
    return CrowdModel(ClassPrior(of_class), ConfusionMatrices(prior, responses.n_workers))


def _coin(given: ConfusionPrior, of_class: Floats, responses: Responses) -> CrowdModel:
    prior = priors.confusion_prior(given, responses.workers, responses.n_classes)
    return CrowdModel(ClassPrior(of_class), Coins.from_matrices(prior, responses.n_workers))


def _kinds(given: ConfusionPrior, of_class: Floats, responses: Responses) -> CrowdModel:
    return CrowdModel(ClassPrior(of_class), _three_kinds(given, responses))


def _subtypes(given: ConfusionPrior, of_class: Floats, responses: Responses) -> CrowdModel:
    prior = priors.confusion_prior(given, responses.workers, responses.n_classes)
    by_state = np.repeat(prior, N_SUBTYPES, axis=2)
    workers = ConfusionMatrices(by_state, responses.n_workers)
    return CrowdModel(SubtypePrior(of_class, N_SUBTYPES), workers)


def _kinds_and_subtypes(
    given: ConfusionPrior, of_class: Floats, responses: Responses
) -> CrowdModel:
    kinds = _three_kinds(given, responses)
    workers = kinds._replace(priors=np.repeat(kinds.priors, N_SUBTYPES, axis=2))
    return CrowdModel(SubtypePrior(of_class, N_SUBTYPES), workers)


def _three_kinds(given: ConfusionPrior, responses: Responses) -> Kinds:
    prior = priors.confusion_prior(given, responses.workers, responses.n_classes)
    if len(prior) > 1:
        raise OptionError(
            "Kinds of workers share one prior: confusion_prior cannot differ by worker."
        )
    share = np.bincount(responses.code % responses.n_classes, minlength=responses.n_classes)
    kinds = three_kinds(prior[0], share / max(share.sum(), 1))
    return Kinds(kinds, np.full(len(kinds), 1.0 / len(kinds)), responses.n_workers)


MODELS: dict[str, Maker] = {
    "confusion": _confusion,
    "coin": _coin,
    "kinds": _kinds,
    "subtypes": _subtypes,
    "kinds+subtypes": _kinds_and_subtypes,
}


def require_model(name: str, allowed: tuple[str, ...] = tuple(MODELS)) -> None:
    """Refuse a name that no worker model has."""
    if name not in allowed:
        raise OptionError.unknown("worker_model", name, allowed)


def crowd_model(
    name: str, prior: ConfusionPrior, of_class: Floats, responses: Responses
) -> CrowdModel:
    """Make the model of a name, with the priors that the user gave."""
    return MODELS[name](prior, of_class, responses)
