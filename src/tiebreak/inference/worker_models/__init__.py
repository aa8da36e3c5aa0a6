"""Worker models: what a response says about a task, given what is believed of who gave it.

A model turns counts (how often each worker gave each label to tasks in each state) into
parameters, and parameters into the log table `[code, state]` that sweeps look up. Sweeps, links,
gold and asking know nothing else of workers, so that a new model is one file here with a class of
these methods, one line in `MODELS`, and one line in the conformance test.

`n_classes` is how many labels workers may give, and how many classes are reported. `n_states` is
how many states a task may be in, inside: the same number for the models here, more for models that
split a class into subtypes.
"""

from __future__ import annotations

from typing import Protocol

from tiebreak.errors import OptionError
from tiebreak.inference.priors import ConfusionPrior
from tiebreak.inference.worker_models.coin import Coins
from tiebreak.inference.worker_models.confusion import ConfusionMatrices
from tiebreak.kernels.layout import Floats
from tiebreak.responses import Responses


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
        """Return the expected confusion matrices, (worker, truth, answer)."""


MODELS: dict[str, type[ConfusionMatrices] | type[Coins]] = {
    "confusion": ConfusionMatrices,
    "coin": Coins,
}


def require_model(name: str) -> None:
    """Refuse a name that no worker model has."""
    if name not in MODELS:
        raise OptionError.unknown("worker_model", name, tuple(MODELS))


def worker_model(name: str, prior: ConfusionPrior, responses: Responses) -> WorkerModel:
    """Make the worker model of a name, with the prior that the user gave."""
    require_model(name)
    return MODELS[name].from_prior(prior, responses.workers, responses.n_classes)
