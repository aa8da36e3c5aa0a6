"""Theorems 1 and 2, corrected and sharpened: still rigorous, far smaller; see docs/theory.md."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiebreak.kernels.layout import Floats
from tiebreak.theory.crowd import Assumptions
from tiebreak.theory.events import (
    Deviations,
    LabelErrors,
    ParameterErrors,
    RowErrors,
    capped_ratio,
    log_or_minus_infinity,
)
from tiebreak.theory.plain import answer_rates, class_prior_error, label_error

__all__ = [
    "class_prior_error",
    "confusion_error",
    "deviations",
    "evidence_failure",
    "evidence_failures",
    "label_error",
    "label_exponent",
]

TOLERANCE = 1e-9  # of s; the value is flat there, so its error is far smaller
GRID = np.linspace(0.0, 1.0, 65)


def evidence_failure(crowd: Assumptions, threshold: float) -> float:
    """Bound the chance that on some task the responses say too little, by Chernoff's method.

    Implements [eq:thm-evidence-sharp], φ the threshold:

        δ₁ = N max_k Σ_(l≠k) min_s exp(s φ M D_γ + Σ_m ln(1 + μ_m (Σ_c γ_kc^(1−s) γ_lc^s − 1)))
    """
    evidence = threshold * crowd.evidence_per_task
    n_classes = crowd.n_classes
    least = np.full((n_classes, n_classes), -np.inf)
    for truth in range(n_classes):
        for other in range(n_classes):
            if truth != other:
                least[truth, other] = _least_exponent(crowd, truth, other, evidence)
    return _union_over_tasks(crowd, least)


def evidence_failures(crowd: Assumptions, thresholds: Sequence[float]) -> list[float]:
    """Bound the same chance at many thresholds at once.

    Each s gives a valid bound, so the best of a grid is one too, a few percent larger than the
    best of all; one pass over the grid serves every threshold.
    """
    log_confusion = np.log(crowd.confusion)
    moments = np.stack([_log_moments(crowd, log_confusion, s) for s in GRID])
    evidence = crowd.evidence_per_task
    failures = []
    for threshold in thresholds:
        least = (GRID[:, None, None] * threshold * evidence + moments).min(axis=0)
        np.fill_diagonal(least, -np.inf)
        failures.append(_union_over_tasks(crowd, least))
    return failures


def _union_over_tasks(crowd: Assumptions, exponent: Floats) -> float:
    """Add up over wrong classes, take the worst true class, and any task may be the one."""
    return float(crowd.n_tasks * np.exp(exponent).sum(axis=1).max())


def _log_moments(crowd: Assumptions, log_confusion: Floats, s: float) -> Floats:
    """Return ln E exp(−s · evidence) of one task, (truth, other)."""
    likely = np.exp((1 - s) * log_confusion) @ np.exp(s * log_confusion).transpose(0, 2, 1)
    rate = crowd.response_rate[:, None, None]
    return np.tensordot(crowd.n_workers, np.log1p(rate * (likely - 1)), axes=1)


def _least_exponent(crowd: Assumptions, truth: int, other: int, evidence: float) -> float:
    """Minimise the Chernoff exponent over s in [0, 1]: it is convex in s."""
    from scipy.optimize import minimize_scalar

    log_truth = np.log(crowd.confusion[:, truth])
    log_other = np.log(crowd.confusion[:, other])

    def exponent(s: float) -> float:
        overlap = np.exp((1 - s) * log_truth + s * log_other).sum(axis=1) - 1
        return float(s * evidence + crowd.n_workers @ np.log1p(crowd.response_rate * overlap))

    options = {"xatol": TOLERANCE}
    least = minimize_scalar(exponent, bounds=(0.0, 1.0), method="bounded", options=options)
    return min(float(least.fun), 0.0)


def deviations(crowd: Assumptions, budget: float) -> Deviations:
    """Bound how far counts stray, by Bernstein's inequality, with no side condition.

    Implements [eq:thm-radii-sharp] for p = π_k, μ π_k γ_kc and μ π_k:

        (L/3 + √(L²/9 + 2 N p (1 − p) L)) / N,  L = ln 2K/ν_π, ln 4MK²/ν_γ and ln 4MK/ν_γ
    """
    n_classes = crowd.n_classes
    n_workers = crowd.total_workers
    share = budget / 2
    answered = crowd.response_rate[:, None] * crowd.class_prior
    return Deviations(
        _radius(crowd.n_tasks, crowd.class_prior, 2 * n_classes / share),
        _radius(crowd.n_tasks, answer_rates(crowd), 4 * n_workers * n_classes**2 / share),
        _radius(crowd.n_tasks, answered, 4 * n_workers * n_classes / share),
    )


def _radius(n_tasks: int, probability: Floats, n_events: float) -> Floats:
    """Bernstein's radius for the share of n_tasks in which an event happens."""
    surprise = np.log(n_events)
    variance = n_tasks * probability * (1 - probability)
    root = np.sqrt(surprise**2 / 9 + 2 * variance * surprise)
    return np.asarray((surprise / 3 + root) / n_tasks)


def label_exponent(crowd: Assumptions, evidence: float, errors: ParameterErrors) -> float:
    """Bound by how many nats the true class leads on every task.

    Implements [eq:thm-exponent-sharp]: U = min over classes k ≠ l of

        ln(π_k/π_l) + evidence + loss_kl

    where the class prior's part of the loss and its gap belong to the same two classes.
    """
    log_prior = np.log(crowd.class_prior)
    lead = log_prior[:, None] - log_prior + evidence + parameter_loss(crowd, errors)
    np.fill_diagonal(lead, np.inf)
    return float(lead.min())


def parameter_loss(crowd: Assumptions, errors: ParameterErrors) -> Floats:
    """Nats that truth k may lose to class l, (n_classes, n_classes), entry by entry.

    Implements [eq:thm-loss-sharp]: ln(1 − ε_k/p_k − 1/(2 p_k·total)) − ln(1 + ε_l/p_l), for the
    class prior, and for the confusions with the worst answer of each worker and the M_max worst
    workers.
    """
    falls, rises = _entry_losses(crowd.class_prior, errors.class_prior, errors.class_prior_total)
    on_prior = falls[:, None] - rises
    falls, rises = _entry_losses(
        crowd.confusion, errors.confusion, errors.confusion_total[:, :, None]
    )
    by_kind = (falls[:, :, None, :] - rises[:, None, :, :]).min(axis=3)
    return on_prior + _worst_workers(by_kind, crowd)


def _entry_losses(truth: Floats, error: Floats, total: float | Floats) -> tuple[Floats, Floats]:
    """Bound E ln(x/x*) from below, by ψ(a) > ln(a − ½), and from above, by Jensen."""
    with np.errstate(divide="ignore"):
        shrink = np.where(np.asarray(total) > 0, 1 / (2 * truth * total), np.inf)
    return log_or_minus_infinity(1 - error / truth - shrink), np.log1p(error / truth)


def _worst_workers(by_kind: Floats, crowd: Assumptions) -> Floats:
    """Add up the losses of the `most_responses` workers who lose most, for each two classes."""
    order = np.argsort(by_kind, axis=0)
    present = np.cumsum(crowd.n_workers[order], axis=0)
    before = present - crowd.n_workers[order]
    meeting = np.clip(crowd.most_responses - before, 0, present - before)
    losses = np.take_along_axis(by_kind, order, axis=0)
    met = np.where(meeting > 0, losses, 0.0)
    return np.asarray((met * meeting).sum(axis=0))


def confusion_error(crowd: Assumptions, deviations: Deviations, labels: LabelErrors) -> RowErrors:
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
    responses = n_tasks * np.minimum(crowd.response_rate + deviations.answered.sum(axis=1), 1.0)
    moved = np.minimum(n_tasks * labels.mean, responses * labels.worst)[:, None]
    row_total = n_tasks * (expected - deviations.answered) - moved + prior_total
    pull = np.abs(crowd.confusion_counts - gamma * prior_total[:, :, None])
    strayed = n_tasks * (deviations.answers + gamma * deviations.answered[:, :, None])
    mixed_up = np.maximum(gamma, 1 - gamma) * moved[:, :, None]
    return RowErrors(capped_ratio(strayed + mixed_up + pull, row_total[:, :, None]), row_total)
