"""The two theorems in three versions: corrected, sharpened, and as the paper prints them.

Each version has the same functions; `bounds` runs them in turn. What is passed from one to the
next: how far counts may stray, errors of labels, errors of parameters. docs: theory.md beside
experiments/01_theory_bounds has every equation and the list of errata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tiebreak.research.theory.crowd import Assumptions, Floats

TOLERANCE = 1e-9  # of s; the value is flat there, so its error is far smaller
GRID = np.linspace(0.0, 1.0, 65)
THRESHOLD = 0.5  # the share of the expected evidence that every task must reach
EVIDENCE_CONSTANT = 33.0  # Bernstein's inequality; 31.4 would do


class Deviations(NamedTuple):
    """How far counts may stray from what is expected, as shares of all tasks.

    The events E2 to E4 of [eq:thm-events]; infinite where nothing can be promised.
    """

    tasks: Floats  # r, (n_classes,): tasks of a class
    answers: Floats  # t, (n_kinds, truth, answer): a worker's answers
    answered: Floats  # s, (n_kinds, truth): a worker's answered tasks

    @classmethod
    def unknown(cls, crowd: Assumptions) -> Deviations:
        shape = crowd.confusion.shape
        return cls(*(np.full(size, np.inf) for size in (shape[1], shape, shape[:2])))


class LabelErrors(NamedTuple):
    """Largest distance of a task's class probabilities from the truth, linked tasks apart."""

    unlinked: float
    linked: float
    linked_share: float

    @classmethod
    def same(cls, error: float) -> LabelErrors:
        return cls(error, error, 0.0)

    @property
    def mean(self) -> float:
        return self.linked_share * self.linked + (1 - self.linked_share) * self.unlinked


class ParameterErrors(NamedTuple):
    """Largest distance of the expected class prior and confusions from the truth.

    The totals are the Dirichlet pseudo-counts behind them, at least.
    """

    class_prior: Floats  # (n_classes,)
    confusion: Floats  # (n_kinds, truth, answer)
    class_prior_total: float
    confusion_total: Floats  # (n_kinds, truth)


class Plain:
    """The theorems, corrected, with the paper's constants."""

    def evidence_failure(self, crowd: Assumptions, threshold: float = THRESHOLD) -> float:
        """Bound the chance that on some task the responses say too little.

        Implements [eq:thm-evidence-plain]: δ₁ = (K − 1) N exp(−M D_γ / (33 ln(1/ρ_γ))).

        Departs from the paper: it prints ln ρ_γ, which is negative (erratum 16), and K for K − 1.
        The threshold is fixed at one half.
        """
        rate = crowd.evidence_per_task / (EVIDENCE_CONSTANT * np.log(1 / crowd.rarest_answer))
        return float((crowd.n_classes - 1) * crowd.n_tasks * np.exp(-rate))

    def deviations(self, crowd: Assumptions, budget: float) -> Deviations:
        """Bound how far counts stray, half of the budget for classes and half for answers.

        Implements [eq:thm-radii-plain]:

            r_k = √(3 π_k/N · ln(2K/ν_π)),  t_kc = √(3 μ π_k γ_kc/N · ln(4MK²/ν_γ)),
            s_k = min_c t_kc/γ_kc,  valid only where r_k ≤ π_k and t_kc ≤ μ π_k γ_kc

        Departs from the paper: the sum over answers and the split of ν are missing there
        (errata 17 and 19).
        """
        expected = answer_rates(crowd)
        tasks = _chernoff(crowd, crowd.class_prior, 2 * crowd.n_classes, budget)
        n_events = 4 * crowd.total_workers * crowd.n_classes**2
        answers = _chernoff(crowd, expected, n_events, budget)
        if (tasks > crowd.class_prior).any():
            tasks = np.full_like(tasks, np.inf)
        if (answers > expected).any():
            return Deviations.unknown(crowd)._replace(tasks=tasks)
        return Deviations(tasks, answers, (answers / crowd.confusion).min(axis=2))

    def label_exponent(self, crowd: Assumptions, evidence: float, errors: ParameterErrors) -> float:
        """Bound by how many nats the true class leads on every task.

        Implements [eq:thm-exponent]: U = D_π + evidence + 2 f_π + 2 M_max f_γ.
        """
        return crowd.class_prior_gap + evidence + float(self.parameter_loss(crowd, errors))

    def parameter_loss(self, crowd: Assumptions, errors: ParameterErrors) -> Floats | float:
        """Nats lost since class prior and confusions are not known exactly: 2 f_π + 2 M_max f_γ.

        Implements [eq:thm-loss]: f(ε) = ln(1 − ε/ρ − 1/(2ρ·total)), for the class prior and for
        the confusions, with the least posterior total.

        Departs from the paper: the theorem prints a single f of each (erratum 14) and the prior
        total in f_γ (erratum 22).
        """
        on_prior = _f(crowd.rarest_class, errors.class_prior.max(), errors.class_prior_total)
        least_total = float(errors.confusion_total.min())
        on_confusion = _f(crowd.rarest_answer, errors.confusion.max(), least_total)
        return 2 * on_prior + 2 * crowd.most_responses * on_confusion  # type: ignore[operator]

    def label_error(self, crowd: Assumptions, exponent: float) -> float:
        """Implements [eq:thm-label]: ε_q = min(1, (K − 1) e^−U)."""
        return float(np.exp(min(np.log(crowd.n_classes - 1) - exponent, 0.0)))

    def class_prior_error(
        self, crowd: Assumptions, deviations: Deviations, labels: LabelErrors
    ) -> Floats:
        """Bound the error of the class prior, (n_classes,).

        Implements [eq:thm-class-prior]: ε_π = (N (ε_q + r_k) + |α₀_k − π_k ᾱ₀|) / (N + ᾱ₀).

        Departs from the paper: it prints α₀_k + ρ_π ᾱ₀, which is too small where one class is
        frequent (erratum 20).
        """
        total = crowd.class_prior_counts.sum()
        pull = np.abs(crowd.class_prior_counts - crowd.class_prior * total)
        strayed = crowd.n_tasks * (labels.mean + deviations.tasks)
        return np.asarray(np.minimum((strayed + pull) / (crowd.n_tasks + total), 1.0))

    def confusion_error(
        self, crowd: Assumptions, deviations: Deviations, labels: LabelErrors
    ) -> tuple[Floats, Floats]:
        """Bound the errors of the confusions, and the rows' posterior totals from below.

        Implements [eq:thm-confusion]:

            ε_γ = (2N (t_kc + ε_q) + |β₀_kc − γ_kc β̄₀_k|) / (N μ π_k − N s_k − N ε_q + β̄₀_k)

        Departs from the paper: the denominator ends in the prior total, not the posterior one
        (erratum 21).
        """
        n_tasks = crowd.n_tasks
        prior_total = crowd.confusion_counts.sum(axis=2)
        expected = crowd.response_rate[:, None] * crowd.class_prior
        row_total = n_tasks * (expected - deviations.answered - labels.mean) + prior_total
        pull = np.abs(crowd.confusion_counts - crowd.confusion * prior_total[:, :, None])
        strayed = 2 * n_tasks * (deviations.answers + labels.mean)
        return _capped_ratio(strayed + pull, row_total[:, :, None]), row_total


class Sharp(Plain):
    """The theorems corrected and sharpened: as rigorous, and far smaller."""

    def evidence_failure(self, crowd: Assumptions, threshold: float = THRESHOLD) -> float:
        """Bound the chance that on some task the responses say too little, by Chernoff's method.

        Implements [eq:thm-evidence-sharp], φ the threshold:

            δ₁ = N max_k Σ_(l≠k) min_s exp(s φ M D_γ + Σ_m ln(1 + μ_m (Σ_c γ_kc^(1−s) γ_lc^s − 1)))
        """
        from scipy.optimize import minimize_scalar

        evidence = threshold * crowd.evidence_per_task
        log_confusion = np.log(crowd.confusion)
        least = np.full((crowd.n_classes, crowd.n_classes), -np.inf)
        for truth, other in zip(*np.nonzero(~np.eye(crowd.n_classes, dtype=bool)), strict=True):
            own, wrong = log_confusion[:, truth], log_confusion[:, other]

            def exponent(s: float, own: Floats = own, wrong: Floats = wrong) -> float:
                overlap = np.exp((1 - s) * own + s * wrong).sum(axis=1) - 1
                moments = np.log1p(crowd.response_rate * overlap)
                return float(s * evidence + crowd.n_workers @ moments)

            found = minimize_scalar(  # convex in s
                exponent, bounds=(0.0, 1.0), method="bounded", options={"xatol": TOLERANCE}
            )
            least[truth, other] = min(float(found.fun), 0.0)
        return _union_over_tasks(crowd, least)

    def evidence_failures(self, crowd: Assumptions, thresholds: Sequence[float]) -> list[float]:
        """Bound the same chance at many thresholds at once.

        Each s gives a valid bound, so the best of a grid is one too, a few percent larger than the
        best of all; one pass over the grid serves every threshold.
        """
        logs = np.log(crowd.confusion)
        rate = crowd.response_rate[:, None, None]
        moments = []
        for s in GRID:
            likely = np.exp((1 - s) * logs) @ np.exp(s * logs).transpose(0, 2, 1)
            moments.append(np.tensordot(crowd.n_workers, np.log1p(rate * (likely - 1)), axes=1))
        failures = []
        for threshold in thresholds:
            evidence = GRID[:, None, None] * threshold * crowd.evidence_per_task
            least = (evidence + np.stack(moments)).min(axis=0)
            np.fill_diagonal(least, -np.inf)
            failures.append(_union_over_tasks(crowd, least))
        return failures

    def deviations(self, crowd: Assumptions, budget: float) -> Deviations:
        """Bound how far counts stray, by Bernstein's inequality, with no side condition.

        Implements [eq:thm-radii-sharp] for p = π_k, μ π_k γ_kc and μ π_k:

            (L/3 + √(L²/9 + 2 N p (1 − p) L)) / N,  L = ln 2K/ν_π, ln 4MK²/ν_γ and ln 4MK/ν_γ
        """

        def radius(probability: Floats, n_events: float) -> Floats:
            surprise = np.log(n_events / (budget / 2))
            variance = crowd.n_tasks * probability * (1 - probability)
            root = np.sqrt(surprise**2 / 9 + 2 * variance * surprise)
            return np.asarray((surprise / 3 + root) / crowd.n_tasks)

        n_classes = crowd.n_classes
        n_rows = 4 * crowd.total_workers * n_classes
        return Deviations(
            radius(crowd.class_prior, 2 * n_classes),
            radius(answer_rates(crowd), n_rows * n_classes),
            radius(crowd.response_rate[:, None] * crowd.class_prior, n_rows),
        )

    def label_exponent(self, crowd: Assumptions, evidence: float, errors: ParameterErrors) -> float:
        """Bound by how many nats the true class leads on every task.

        Implements [eq:thm-exponent-sharp]: U = min over classes k ≠ l of

            ln(π_k/π_l) + evidence + loss_kl

        where the class prior's part of the loss and its gap belong to the same two classes.
        """
        log_prior = np.log(crowd.class_prior)
        lead = log_prior[:, None] - log_prior + evidence + self.parameter_loss(crowd, errors)
        np.fill_diagonal(lead, np.inf)
        return float(lead.min())

    def parameter_loss(self, crowd: Assumptions, errors: ParameterErrors) -> Floats:
        """Nats that truth k may lose to class l, (n_classes, n_classes), entry by entry.

        Implements [eq:thm-loss-sharp]: ln(1 − ε_k/p_k − 1/(2 p_k·total)) − ln(1 + ε_l/p_l), for
        the class prior, and for the confusions with the worst answer of each worker and the M_max
        worst workers.
        """
        falls, rises = _entry_losses(
            crowd.class_prior, errors.class_prior, np.asarray(errors.class_prior_total)
        )
        on_prior = falls[:, None] - rises
        falls, rises = _entry_losses(
            crowd.confusion, errors.confusion, errors.confusion_total[:, :, None]
        )
        by_kind = (falls[:, :, None, :] - rises[:, None, :, :]).min(axis=3)
        order = np.argsort(by_kind, axis=0)  # the workers who lose most, for each two classes
        present = np.cumsum(crowd.n_workers[order], axis=0)
        before = present - crowd.n_workers[order]
        meeting = np.clip(crowd.most_responses - before, 0, present - before)
        met = np.where(meeting > 0, np.take_along_axis(by_kind, order, axis=0), 0.0)
        return np.asarray(on_prior + (met * meeting).sum(axis=0))

    def confusion_error(
        self, crowd: Assumptions, deviations: Deviations, labels: LabelErrors
    ) -> tuple[Floats, Floats]:
        """Bound the errors of the confusions, and the rows' posterior totals from below.

        Implements [eq:thm-confusion-sharp]:

            ε_γ = (N t_kc + γ_kc N s_k + max(γ_kc, 1 − γ_kc) E + |β₀_kc − γ_kc β̄₀_k|)
                  / (N μ π_k − N s_k − E + β̄₀_k),   E = min(N ε̄_q, |R_m| max ε_q)

        where the worker's number of responses |R_m| is at most N (μ + Σ_k s_k) and at most N.
        """
        n_tasks = crowd.n_tasks
        gamma = crowd.confusion
        prior_total = crowd.confusion_counts.sum(axis=2)
        expected = crowd.response_rate[:, None] * crowd.class_prior
        share = np.minimum(crowd.response_rate + deviations.answered.sum(axis=1), 1.0)
        worst = max(labels.unlinked, labels.linked)
        moved = np.minimum(n_tasks * labels.mean, n_tasks * share * worst)[:, None]
        row_total = n_tasks * (expected - deviations.answered) - moved + prior_total
        pull = np.abs(crowd.confusion_counts - gamma * prior_total[:, :, None])
        strayed = n_tasks * (deviations.answers + gamma * deviations.answered[:, :, None])
        mixed_up = np.maximum(gamma, 1 - gamma) * moved[:, :, None]
        return _capped_ratio(strayed + mixed_up + pull, row_total[:, :, None]), row_total


class Printed(Plain):
    """The theorems as the paper prints them, errors and all. Nothing here is a valid bound."""

    def evidence_failure(self, crowd: Assumptions, threshold: float = THRESHOLD) -> float:
        """K N exp(−M D_γ / (33 ln ρ_γ)): above 1 whatever the crowd (erratum 16)."""
        rate = crowd.evidence_per_task / (EVIDENCE_CONSTANT * np.log(crowd.rarest_answer))
        with np.errstate(over="ignore"):
            return float(crowd.n_classes * crowd.n_tasks * np.exp(-rate))

    def deviations(self, crowd: Assumptions, budget: float) -> Deviations:
        """Radii from the printed ν: no sum over answers, no side condition (errata 17, 19, 23)."""
        tasks = _chernoff(crowd, crowd.class_prior, 2 * crowd.n_classes, budget)
        n_events = 4 * crowd.total_workers * crowd.n_classes
        answers = _chernoff(crowd, answer_rates(crowd), n_events, budget)
        return Deviations(tasks, answers, (answers / crowd.confusion).min(axis=2))

    def parameter_loss(self, crowd: Assumptions, errors: ParameterErrors) -> float:
        """f_π + M f_γ: one f of each where the lemma has two (erratum 14).

        f_γ has the prior's total (erratum 22: undefined for common priors).
        """
        class_prior_total = crowd.n_tasks + float(crowd.class_prior_counts.sum())
        confusion_total = float(crowd.confusion_counts.sum(axis=2).min())
        on_prior = _f(crowd.rarest_class, errors.class_prior.max(), class_prior_total)
        on_confusion = _f(crowd.rarest_answer, errors.confusion.max(), confusion_total)
        return on_prior + crowd.total_workers * on_confusion

    def label_error(self, crowd: Assumptions, exponent: float) -> float:
        """K e^−U, capped at 1 (erratum 24)."""
        return float(np.exp(min(np.log(crowd.n_classes) - exponent, 0.0)))

    def class_prior_error(
        self, crowd: Assumptions, deviations: Deviations, labels: LabelErrors
    ) -> Floats:
        """(N (ε_q + r_k) + α₀_k + ρ_π ᾱ₀) / (N + ᾱ₀): false for frequent classes (erratum 20)."""
        total = crowd.class_prior_counts.sum()
        pull = crowd.class_prior_counts + crowd.rarest_class * total
        strayed = crowd.n_tasks * (labels.mean + deviations.tasks)
        return np.asarray(np.minimum((strayed + pull) / (crowd.n_tasks + total), 1.0))

    def confusion_error(
        self,
        crowd: Assumptions,
        deviations: Deviations,
        labels: LabelErrors,
        posterior_total: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """(2N (t + ε_q) + β₀ + β̄₀) / (N μ π − N t/γ − N ε_q + β̄): circular, fails (erratum 21).

        β̄ is the posterior total, which nobody knows beforehand; None puts in what is expected,
        N μ π + β̄₀.
        """
        n_tasks = crowd.n_tasks
        prior_total = crowd.confusion_counts.sum(axis=2)
        expected = crowd.response_rate[:, None] * crowd.class_prior
        if posterior_total is None:
            posterior_total = n_tasks * expected + prior_total
        known = (n_tasks * (expected - labels.mean) + posterior_total)[:, :, None]
        below = known - n_tasks * deviations.answers / crowd.confusion
        strayed = 2 * n_tasks * (deviations.answers + labels.mean)
        pull = crowd.confusion_counts + prior_total[:, :, None]
        return _capped_ratio(strayed + pull, below), below.min(axis=2)


plain, sharp, printed = Plain(), Sharp(), Printed()


def answer_rates(crowd: Assumptions) -> Floats:
    """μ π_k γ_kc, (n_kinds, truth, answer): how often a worker gives answer c on truth k."""
    rates = crowd.response_rate[:, None, None] * crowd.class_prior[:, None] * crowd.confusion
    return np.asarray(rates)


def _chernoff(crowd: Assumptions, expected: Floats, n_events: float, budget: float) -> Floats:
    return np.asarray(np.sqrt(3 * expected / crowd.n_tasks * np.log(n_events / (budget / 2))))


def _union_over_tasks(crowd: Assumptions, exponent: Floats) -> float:
    """Add up over wrong classes, take the worst true class, and any task may be the one."""
    return float(crowd.n_tasks * np.exp(exponent).sum(axis=1).max())


def _f(rarest: float, error: float, total: float) -> float:
    """f(ε) = ln(1 − ε/ρ − 1/(2ρ·total)), −∞ where undefined."""
    left = 1 - error / rarest - 1 / (2 * rarest * total) if total > 0 else 0.0
    return float(np.log(left)) if left > 0 else -np.inf


def _entry_losses(truth: Floats, error: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Bound E ln(x/x*) from below, by ψ(a) > ln(a − ½), and from above, by Jensen."""
    with np.errstate(divide="ignore"):
        left = 1 - error / truth - np.where(total > 0, 1 / (2 * truth * total), np.inf)
    falls = np.log(left, out=np.full(left.shape, -np.inf), where=left > 0)
    return falls, np.log1p(error / truth)


def _capped_ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide, where the denominator is above 0, and cap at 1; 1 elsewhere: vacuous."""
    ratio = np.ones(np.broadcast_shapes(numerator.shape, denominator.shape))
    np.divide(numerator, denominator, out=ratio, where=denominator > 0)
    return np.minimum(ratio, 1.0)
