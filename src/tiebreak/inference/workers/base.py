"""What every worker model answers, and what it is made from."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np

from tiebreak.data import Responses
from tiebreak.data.ids import Ids
from tiebreak.inference import dirichlet
from tiebreak.inference.dirichlet import FIXED, ClassPrior, ClassPriorOption, ConfusionPrior, Trust
from tiebreak.inference.workers import one_class
from tiebreak.kernels.layout import ByTask, Codes, Floats, Mask, Offsets

NEW = -1  # the code of a worker whom the model has never seen


def unset() -> Floats:
    """Return what stands for an array until a model is bound to a crowd."""
    return np.empty((1, 0, 0))


class CrowdModel(NamedTuple):
    """What tasks may be, and how workers answer them."""

    states: ClassPrior
    workers: Workers


class AnswerCounts(NamedTuple):
    """What a model must know of responses that are not at hand."""

    counts: Floats  # (n_workers, n_classes) how often each worker gave each label, by weight
    fixed: Mask | None  # rows that are not learnt, as of `one_class.rows_to_fix`


@dataclasses.dataclass(frozen=True, eq=False)
class CrowdFacts:
    """What a model is made from: who answered, what they said, and priors as users give them."""

    workers: Ids
    n_classes: int
    confusion: ConfusionPrior
    of_class: Floats  # (n_classes,)
    trust: Trust | None = None
    responses: Responses | None = None
    answers: AnswerCounts | None = None  # None: as the responses say

    @classmethod
    def of_responses(
        cls,
        responses: Responses,
        confusion: ConfusionPrior = "diagonal",
        class_prior: ClassPriorOption = 1.0,
        trust: Trust | None = None,
        answers: AnswerCounts | None = None,
    ) -> Self:
        """Return the crowd that gave some responses."""
        n_classes = responses.n_classes
        of_class = dirichlet.class_prior(class_prior, n_classes)
        return cls(responses.workers, n_classes, confusion, of_class, trust, responses, answers)

    @property
    def n_workers(self) -> int:
        """How many workers there are."""
        return len(self.workers)

    def rows_to_fix(self) -> Mask | None:
        """Return the rows of one-class voters that are not learnt; None where there are none."""
        if self.answers is not None:
            return self.answers.fixed
        assert self.responses is not None  # either is given
        return one_class.rows_to_fix(self.responses)

    def counts_of_labels(self) -> Floats:
        """Return how often each worker gave each label, by weight, (n_workers, n_classes)."""
        if self.answers is not None:
            return self.answers.counts
        assert self.responses is not None  # either is given
        return self.responses.weigh_labels()

    def confusion_prior(self) -> Floats:
        """Return the prior of confusions, (n_workers or 1, answer, class), without trust."""
        return dirichlet.confusion_prior(self.confusion, self.workers, self.n_classes)

    def trusted(self) -> Floats | None:
        """Return right pseudo-answers of trusted workers, (n_workers, answer, class)."""
        if self.trust is None:
            return None
        return dirichlet.trusted_answers(self.trust, self.workers, self.n_classes)

    def whole_prior(self) -> Floats:
        """Return the prior of confusions with what is trusted."""
        trusted = self.trusted()
        prior = self.confusion_prior()
        return prior if trusted is None else prior + trusted

    def prior_of_new(self) -> Floats:
        """Return the prior of a worker of whom nothing is known, (1, answer, class)."""
        is_for_all = isinstance(self.confusion, str) or np.ndim(self.confusion) in (1, 2)  # type: ignore[arg-type]
        given = self.confusion if is_for_all else "diagonal"
        return dirichlet.confusion_prior(given, self.workers[:0], self.n_classes)


class WorkerCells(NamedTuple):
    """The parameters of a fitted model as rows of Dirichlet counts: what intervals are made of.

    A response to a task in some state counts in one cell, and the cells of a row share 1 between
    them. With confusion matrices a cell is (worker, answer, state) and a row (worker, state); with
    coins a worker is one row of two cells, right and wrong. `with_states` adds the cells of tasks:
    one row of all classes, and one per class where it has subtypes. Two workers, two classes,
    confusion matrices:

        cell      0 … 3                    4 … 7       8, 9
        means     worker 0: [code, state]  worker 1    class 0, class 1
        row       0, 1, 0, 1               2, 3, 2, 3  4, 4
    """

    of_code: Offsets  # (n_codes, n_states) the cell of a response to a task in a state
    row: Offsets  # (n_cells,)
    prior: Floats  # (n_cells,) counts before any response
    is_fixed: Mask  # (n_cells,) of rows that are known and not learnt
    share: Floats  # (n_codes, n_states) of its cell's probability that a response has
    between: Floats  # (n_cells,) variance of means between kinds of workers
    of_state: Offsets = np.empty((0, 0), np.int64)  # (n_layers, n_states): its class, its subtype
    class_of: Offsets = np.empty(0, np.int64)  # (n_states,)

    @classmethod
    def of_confusions(
        cls, prior: Floats, is_fixed: Mask | None = None, between: Floats | None = None
    ) -> Self:
        """Return a cell for each entry of confusion matrices; prior is (worker, answer, state)."""
        n_workers, n_labels, n_states = prior.shape
        code, state = np.indices((n_workers * n_labels, n_states))
        row = ((code // n_labels) * n_states + state).ravel()
        fixed = np.zeros(prior.shape, dtype=bool)
        if is_fixed is not None:
            fixed |= is_fixed[:, None, :]
        spread = np.zeros(prior.size) if between is None else between.ravel()
        shares = np.ones(code.shape)
        return cls(code * n_states + state, row, prior.ravel(), fixed.ravel(), shares, spread)

    def with_states(self, states: ClassPrior) -> Self:
        """Number the cells of states after those of workers."""
        class_of, n_classes = states.class_of.astype(np.int64), states.n_classes
        layers, rows, priors = [class_of], [np.zeros(n_classes, np.int64)], [states.of_class]
        if states.n_subtypes > 1:  # each class is one more row
            layers.append(n_classes + np.arange(len(class_of)))
            rows.append(1 + class_of)
            priors.append(states.prior)
        prior = np.concatenate(priors)
        is_known = np.full(len(prior), states.read == FIXED)
        return self._replace(
            row=np.concatenate([self.row, int(self.row.max()) + 1 + np.concatenate(rows)]),
            prior=np.concatenate([self.prior, prior]),
            is_fixed=np.concatenate([self.is_fixed, is_known]),
            between=np.concatenate([self.between, np.zeros(len(prior))]),
            of_state=len(self.prior) + np.stack(layers),
            class_of=class_of,
        )

    def row_sums(self, values: Floats) -> Floats:
        """Return the sum over each cell's row, (n_cells,)."""
        return np.asarray(np.bincount(self.row, weights=values)[self.row])

    def means(self, counts: Floats) -> Floats:
        """Return the expected probability of each cell."""
        learnt = counts / self.row_sums(counts)
        return np.where(self.is_fixed, self.prior / self.row_sums(self.prior), learnt)


class Workers:
    """How workers answer. Parameters are positive: a prior plus what responses add to it.

    A model is a frozen dataclass; its fields are arrays, numbers and words, so that a model file
    keeps it as it is. As an option it holds no worker; `bind` returns the model of a crowd.
    """

    registry: ClassVar[dict[str, type[Workers]]] = {}  # by class name: what model files may hold
    by_worker: ClassVar[tuple[str, ...]] = ("prior",)  # fields with a row a worker, or one for all
    starts_at_gold: ClassVar[bool] = False  # always: else where gold contradicts the crowd
    heeds_rules: bool = False  # whether some rows stay at the prior in a crowd of rules
    can_widen: bool = True  # whether the model can be told for more classes
    n_subtypes: int = 1

    if TYPE_CHECKING:  # fields of most models, properties of some

        @property
        def n_workers(self) -> int:
            """How many workers there are."""

        @property
        def prior(self) -> Floats:
            """Parameters before any response, (n_workers or 1, ...)."""

        @property
        def prior_of_new(self) -> Floats:
            """Parameters of a worker never seen, (1, ...)."""

    def __init_subclass__(cls) -> None:
        """Let model files hold this model."""
        super().__init_subclass__()
        Workers.registry[cls.__name__] = cls

    # What a model must say.

    def of(self, crowd: CrowdFacts) -> Workers:
        """Return the model of a crowd's workers."""
        raise NotImplementedError(f"{type(self).__name__}.of(crowd)")

    def collect(self, counts: Floats) -> Floats:
        """Return what counts by code and state, (n_codes, n_states), add to the parameters."""
        raise NotImplementedError(f"{type(self).__name__}.collect(counts)")

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        """Return the expected log probability of each response, (n_codes, n_states).

        This is the gradient of `log_evidence` by counts, so that the bound cannot fall.
        """
        raise NotImplementedError(f"{type(self).__name__}.log_table(parameters)")

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return the workers' part of the bound, right after the parameters were updated."""
        raise NotImplementedError(f"{type(self).__name__}.log_evidence(parameters)")

    def confusion(self, parameters: Floats) -> Floats:
        """Return the expected confusion matrices, (worker, state, answer)."""
        raise NotImplementedError(f"{type(self).__name__}.confusion(parameters)")

    # What follows, unless a model says otherwise.

    @property
    def n_classes(self) -> int:
        """How many labels a worker may give."""
        return int(self.prior.shape[1])

    @property
    def n_states(self) -> int:
        """How many states a task may be in."""
        return int(self.prior.shape[2])

    def bind(self, crowd: CrowdFacts) -> CrowdModel:
        """Return the model for a crowd, with what its tasks may be.

        In a crowd of rules what nothing tells is kept at the prior.
        """
        workers, of_class = self.of(crowd), crowd.of_class
        if self.n_subtypes > 1:
            return CrowdModel(ClassPrior(of_class, n_subtypes=self.n_subtypes), workers)
        fixed = crowd.rows_to_fix() if self.heeds_rules else None
        if fixed is None:
            return CrowdModel(ClassPrior(of_class), workers)
        return CrowdModel(
            ClassPrior(of_class, FIXED), FixedRows(workers, fixed, crowd.whole_prior())
        )

    def select(self, at: Codes) -> Workers:
        """Return the model of the workers `at`, in this order; `NEW` is one never seen."""
        changed = {name: self._rows(name, at) for name in self.by_worker}
        return dataclasses.replace(self, n_workers=len(at), **changed)  # type: ignore[type-var]

    def select_parameters(self, parameters: Floats, at: Codes) -> Floats:
        """Return the parameters of the workers `at`; those of a new one are its prior."""
        shape = (len(at), *parameters.shape[1:])
        chosen = np.broadcast_to(self.select(at).prior, shape).copy()
        seen = at != NEW
        chosen[seen] = parameters[at[seen]]
        return chosen

    def cells(self, parameters: Floats) -> WorkerCells:
        """Return the parameters as Dirichlet counts."""
        return WorkerCells.of_confusions(np.broadcast_to(self.prior, parameters.shape))

    def starts(self, rows: ByTask, copies: Floats | None = None) -> tuple[Floats, ...]:
        """Return where q may start beside the votes; the fit with the highest bound is kept."""
        return ()

    def traits(self, parameters: Floats, level: float) -> dict[str, Floats]:
        """Return what else is known of each worker, by name: a mean, and its `_low` and `_high`."""
        return {}

    def _rows(self, name: str, at: Codes) -> Floats:
        values: Floats = getattr(self, name)
        of_new: Floats = getattr(self, f"{name}_of_new")
        is_shared = len(values) == 1 and (self.n_workers > 1 or np.array_equal(values, of_new))
        return values if is_shared else np.concatenate([values, of_new])[at]  # NEW: the last row


@dataclasses.dataclass(frozen=True, eq=False)
class Around(Workers):
    """A model around another, which answers all that this one does not."""

    inner: Workers

    @property
    def n_workers(self) -> int:
        return self.inner.n_workers

    @property
    def prior(self) -> Floats:
        return self.inner.prior

    @property
    def prior_of_new(self) -> Floats:
        return self.inner.prior_of_new

    @property
    def n_classes(self) -> int:
        return self.inner.n_classes

    @property
    def n_states(self) -> int:
        return self.inner.n_states

    def collect(self, counts: Floats) -> Floats:
        return self.inner.collect(counts)

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        return self.inner.log_evidence(parameters, n_threads)

    def confusion(self, parameters: Floats) -> Floats:
        return self.inner.confusion(parameters)


@dataclasses.dataclass(frozen=True, eq=False)
class FixedRows(Around):
    """A model of which some rows of confusion matrices are not learnt.

    A fixed row is known: it is the mean of the prior that the user gave. Counts are kept for all
    rows alike.
    """

    is_fixed: Mask  # (n_workers, n_states)
    given: Floats  # (n_workers or 1, answer, state) the prior whose mean they are

    can_widen = False

    def log_table(self, parameters: Floats, n_threads: int = 1) -> Floats:
        learnt = self.inner.log_table(parameters, n_threads).reshape(parameters.shape)
        known = dirichlet.log_shares(FIXED, parameters, self.given, 1)
        table = np.where(self.is_fixed[:, None, :], known, learnt)
        return np.asarray(table.reshape(-1, self.n_states))

    def log_evidence(self, parameters: Floats, n_threads: int = 1) -> float:
        """Return log B(β) − log B(β₀) of rows that are learnt, Σ n log θ of those known."""
        fixed = self.is_fixed[:, None, :]
        added = np.where(fixed, parameters - self.prior, 0.0)
        unlearnt = np.where(fixed, self.prior, parameters)  # such a row adds nothing to the sum
        of_known = float((added * dirichlet.log_shares(FIXED, added, self.given, 1)).sum())
        return self.inner.log_evidence(unlearnt, n_threads) + of_known

    def confusion(self, parameters: Floats) -> Floats:
        known = np.broadcast_to(dirichlet.mean(self.given, 1), parameters.shape).transpose(0, 2, 1)
        return np.where(self.is_fixed[:, :, None], known, self.inner.confusion(parameters))

    def cells(self, parameters: Floats) -> WorkerCells:
        fixed = np.broadcast_to(self.is_fixed[:, None, :], parameters.shape)
        return self.inner.cells(parameters)._replace(is_fixed=fixed.ravel())

    def select(self, at: Codes) -> FixedRows:
        """Return the model of some workers; a new one may say anything."""
        fixed = np.concatenate([self.is_fixed, np.zeros((1, self.n_states), dtype=bool)])
        is_shared = len(self.given) == 1
        given = self.given if is_shared else np.concatenate([self.given, self.given[:1]])[at]
        return FixedRows(self.inner.select(at), fixed[at], given)
