"""Worker models: what a response says about a task, given what is believed of who gave it.

A model turns counts (how often each worker gave each label to tasks in each state) into
parameters, and parameters into the log table `[code, state]` that sweeps look up. Sweeps, links,
gold and asking know nothing else of workers, so that a new model is one file here with a class of
these methods, one line in `MODELS`, and one line in the conformance test. The paper's own model,
confusion matrices, stands here beside the protocol.

`n_classes` is how many labels workers may give, and how many classes are reported. `n_states` is
how many states a task may be in, inside: as many as classes, or more where a class is split into
subtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.inference import dirichlet
from tiebreak.inference.dirichlet import (
    ClassPrior,
    ConfusionPrior,
    KnownShares,
    StatePrior,
    SubtypePrior,
    Trust,
)
from tiebreak.kernels.layout import Floats, Mask
from tiebreak.options import AUTO, require_word
from tiebreak.responses import Responses

if TYPE_CHECKING:
    from tiebreak.inference.worker_models.kinds import Kinds

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


class ConfusionMatrices(NamedTuple):
    """A `WorkerModel` whose parameters are β, Dirichlet counts (n_workers, answer, state).

    β lies as [worker, answer, state], not [worker, truth, answer] as in results, so that a response
    looks up neighbours in memory.
    """

    prior: Floats  # β₀, (n_workers or 1, answer, state)
    n_workers: int

    @property
    def n_classes(self) -> int:
        """How many labels a worker may give."""
        return int(self.prior.shape[1])

    @property
    def n_states(self) -> int:
        """How many states a task may be in."""
        return int(self.prior.shape[2])

    def collect(self, counts: Floats) -> Floats:
        """Return counts as (n_workers, answer, state): the sums of [eq:confusion-update]."""
        return counts.reshape(self.n_workers, self.n_classes, self.n_states)

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return E[log θ], (n_codes, n_states): [eq:expected-logs]."""
        logs = dirichlet.expected_log(parameters, 1, n_threads, prior=self.prior)
        return logs.reshape(-1, self.n_states)

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return Σ_wk [log B(β_wk) − log B(β₀_wk)], as in [eq:bound-after-update]."""
        of_prior = dirichlet.log_beta(self.prior, axis=1).sum()
        if len(self.prior) == 1:
            of_prior *= self.n_workers
        of_all = dirichlet.log_beta(parameters, 1, n_threads, prior=self.prior).sum()
        return float(of_all - of_prior)

    def confusion(self, parameters: Floats) -> Floats:
        """Return E[θ], (worker, state, answer)."""
        by_answer = dirichlet.mean(parameters, axis=1)
        return np.ascontiguousarray(by_answer.transpose(0, 2, 1))

    @staticmethod
    def pool(counts: Floats) -> Floats:
        """Return counts of which confusions are shares: each cell is a parameter of its own."""
        return counts


class CrowdModel(NamedTuple):
    """What tasks may be, and how workers answer them."""

    states: StatePrior
    workers: WorkerModel


class AnswerCounts(NamedTuple):
    """What a model must know of responses that lie on other machines."""

    counts: Floats  # (n_workers, n_classes) how often each worker gave each label, by weight
    fixed: Mask | None  # rows that are not learnt, as of `one_class.rows_to_fix`


class Given(NamedTuple):
    """What a model is made from."""

    confusion: ConfusionPrior
    of_class: Floats  # (n_classes,)
    responses: Responses  # where answers are given, workers and classes alone
    trust: Trust | None = None
    answers: AnswerCounts | None = None  # None: as the responses say

    def rows_to_fix(self) -> Mask | None:
        """Return the rows of one-class voters that are not learnt; None where there are none."""
        if self.answers is not None:
            return self.answers.fixed
        if not _mostly_of_one_label(self.responses.weigh_labels()):
            return None
        from tiebreak.inference.worker_models.one_class import rows_to_fix

        return rows_to_fix(self.responses)

    def n_answers(self) -> Floats:
        """Return how often each label was given, by weight, (n_classes,)."""
        given = self.answers
        counts = self.responses.weigh_labels() if given is None else given.counts
        return np.asarray(counts.sum(axis=0))

    def prior(self) -> Floats:
        """Return the prior of confusions, (n_workers or 1, answer, class), with what is trusted."""
        crowd = self.responses
        prior = dirichlet.confusion_prior(self.confusion, crowd.workers, crowd.n_classes)
        return prior if self.trust is None else prior + self.trusted()

    def trusted(self) -> Floats:
        """Return right pseudo-answers of trusted workers, (n_workers, answer, class)."""
        crowd = self.responses
        return dirichlet.trusted_answers(self.trust or {}, crowd.workers, crowd.n_classes)


def _mostly_of_one_label(counts: Floats) -> bool:
    """Say whether most responses come from workers who gave one label only: rules, perhaps."""
    n_given = counts.sum(axis=1)
    gave_one = np.count_nonzero(counts, axis=1) == 1
    return bool(2 * n_given[gave_one].sum() > n_given.sum())


Maker = Callable[[Given], CrowdModel]


def _confusion(given: Given) -> CrowdModel:
    return _of_rules_or_not(given, ConfusionMatrices(given.prior(), given.responses.n_workers))


def _of_rules_or_not(given: Given, workers: WorkerModel) -> CrowdModel:
    """Return the model; of a crowd of rules with what nothing tells kept at the prior."""
    fixed = given.rows_to_fix()
    if fixed is None:
        return CrowdModel(ClassPrior(given.of_class), workers)
    from tiebreak.inference.worker_models.one_class import FixedRows

    known = FixedRows(workers, fixed, given.prior())
    return CrowdModel(KnownShares(given.of_class), known)


def _coin(given: Given) -> CrowdModel:
    from tiebreak.inference.worker_models.coin import Coins

    coins = Coins.from_matrices(given.prior(), given.responses.n_workers)
    return CrowdModel(ClassPrior(given.of_class), coins)


def _kinds(given: Given) -> CrowdModel:
    return _of_rules_or_not(given, _three_kinds(given))


def _plain_kinds(given: Given) -> CrowdModel:
    return CrowdModel(ClassPrior(given.of_class), _three_kinds(given))


def _subtypes(given: Given) -> CrowdModel:
    by_state = np.repeat(given.prior(), N_SUBTYPES, axis=2)
    workers = ConfusionMatrices(by_state, given.responses.n_workers)
    return CrowdModel(SubtypePrior(given.of_class, N_SUBTYPES), workers)


def _kinds_and_subtypes(given: Given) -> CrowdModel:
    workers = _three_kinds(given).with_subtypes(N_SUBTYPES)
    return CrowdModel(SubtypePrior(given.of_class, N_SUBTYPES), workers)


def _three_kinds(given: Given) -> Kinds:
    from tiebreak.inference.worker_models.kinds import Kinds, three_kinds

    responses = given.responses
    prior = dirichlet.confusion_prior(given.confusion, responses.workers, responses.n_classes)
    if len(prior) > 1:
        raise OptionError(
            "Kinds of workers share one prior: confusion_prior cannot differ by worker."
        )
    share = given.n_answers()
    kinds = three_kinds(prior[0], share / (share.sum() or 1.0))
    weight = np.full(len(kinds), 1.0 / len(kinds))
    trusted = None if given.trust is None else given.trusted()
    return Kinds(kinds, weight, responses.n_workers, trusted)


MODELS: dict[str, Maker] = {
    "confusion": _confusion,
    "coin": _coin,
    "kinds": _kinds,
    "subtypes": _subtypes,
    "kinds+subtypes": _kinds_and_subtypes,
    "communities": _plain_kinds,  # what `communities.learn` starts from
}


PLAIN = "confusion"
COMMUNITIES = "communities"
NAMES = tuple(MODELS)


def require_model(name: str, allowed: tuple[str, ...] = NAMES) -> None:
    """Refuse a name that no worker model has."""
    if isinstance(name, str) and name == AUTO:
        raise OptionError(
            "worker_model='auto' is gone: Auto() (--method auto) pools several models instead of "
            "choosing one. Or name a worker model."
        )
    require_word("worker_model", name, allowed)


def crowd_model(
    name: str,
    prior: ConfusionPrior,
    of_class: Floats,
    responses: Responses,
    trust: Trust | None = None,
    answers: AnswerCounts | None = None,
) -> CrowdModel:
    """Make the model of a name, with the priors that the user gave."""
    return MODELS[name](Given(prior, of_class, responses, trust, answers))
