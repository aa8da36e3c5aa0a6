"""What the theorems pass from step to step: deviations, errors of labels and of parameters.

Every version of the theorems (`plain`, `sharp`, `printed`) offers the same five functions on
these, and `recursion` runs them in turn.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from tiebreak.kernels.layout import Floats
from tiebreak.theory.crowd import Assumptions


class Deviations(NamedTuple):
    """How far counts may stray from what is expected, as shares of all tasks.

    The events E2 to E4 of [eq:thm-events]; infinite where nothing can be promised.
    """

    tasks: Floats  # r, (n_classes,): tasks of a class
    answers: Floats  # t, (n_kinds, truth, answer): a worker's answers
    answered: Floats  # s, (n_kinds, truth): a worker's answered tasks

    @classmethod
    def unknown(cls, crowd: Assumptions) -> Deviations:
        """Promise nothing."""
        shape = crowd.confusion.shape
        return cls(*(np.full(size, np.inf) for size in (shape[1], shape, shape[:2])))


class LabelErrors(NamedTuple):
    """Largest distance of a task's class probabilities from the truth, linked tasks apart."""

    unlinked: float
    linked: float
    linked_share: float

    @classmethod
    def same(cls, error: float) -> LabelErrors:
        """Give every task the same error."""
        return cls(error, error, 0.0)

    @property
    def mean(self) -> float:
        """The average over all tasks."""
        return self.linked_share * self.linked + (1 - self.linked_share) * self.unlinked

    @property
    def worst(self) -> float:
        """The larger of the two."""
        return max(self.unlinked, self.linked)


class ParameterErrors(NamedTuple):
    """Largest distance of the expected class prior and confusions from the truth.

    The totals are the Dirichlet pseudo-counts behind them, at least.
    """

    class_prior: Floats  # (n_classes,)
    confusion: Floats  # (n_kinds, truth, answer)
    class_prior_total: float
    confusion_total: Floats  # (n_kinds, truth)

    @classmethod
    def at_start(cls, crowd: Assumptions) -> ParameterErrors:
        """Take the errors that the start is assumed to have."""
        start = crowd.start
        total = start.class_prior_total
        if total is None:
            total = crowd.n_tasks + float(crowd.class_prior_counts.sum())
        if start.confusion_total is None:
            expected = crowd.n_tasks * crowd.response_rate[:, None] * crowd.class_prior
            row_totals = expected + crowd.confusion_counts.sum(axis=2)
        else:
            row_totals = np.full(crowd.confusion.shape[:2], start.confusion_total)
        return cls(
            np.full(crowd.n_classes, start.class_prior_error),
            np.full(crowd.confusion.shape, start.confusion_error),
            total,
            row_totals,
        )


class RowErrors(NamedTuple):
    """Errors of confusion entries, (n_kinds, truth, answer), and the rows' least totals."""

    entry: Floats
    total: Floats


class Version(Protocol):
    """One version of the theorems: as printed, corrected, or corrected and sharpened."""

    def evidence_failure(self, crowd: Assumptions, threshold: float) -> float:
        """δ₁: the chance that some task's responses say less than `threshold` of expected."""
        ...

    def deviations(self, crowd: Assumptions, budget: float) -> Deviations:
        """How far counts stray with probability at most `budget`."""
        ...

    def label_exponent(self, crowd: Assumptions, evidence: float, errors: ParameterErrors) -> float:
        """U: by how many nats the true class leads every other on every task."""
        ...

    def label_error(self, crowd: Assumptions, exponent: float) -> float:
        """ε_q: the largest error of a task's class probabilities, 1 where vacuous."""
        ...

    def class_prior_error(
        self, crowd: Assumptions, deviations: Deviations, labels: LabelErrors
    ) -> Floats:
        """ε_π for each class, at most 1."""
        ...

    def confusion_error(
        self, crowd: Assumptions, deviations: Deviations, labels: LabelErrors
    ) -> RowErrors:
        """ε_γ for each entry, at most 1, and the least posterior total of each row."""
        ...


def log_or_minus_infinity(share: Floats) -> Floats:
    """Return ln where the share is above 0, −∞ elsewhere: a loss that leaves nothing."""
    return np.log(share, out=np.full(np.shape(share), -np.inf), where=share > 0)


def capped_ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide, where the denominator is above 0, and cap at 1; 1 elsewhere: vacuous."""
    ratio = np.ones(np.broadcast_shapes(numerator.shape, denominator.shape))
    np.divide(numerator, denominator, out=ratio, where=denominator > 0)
    return np.minimum(ratio, 1.0)


def capped_exponential(log_error: float) -> float:
    """Raise e to the given power, at most to 1."""
    return float(np.exp(min(log_error, 0.0)))
