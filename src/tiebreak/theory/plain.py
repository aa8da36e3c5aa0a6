"""Theorems 1 and 2, corrected, with the paper's constants: see docs/theory.md."""

from __future__ import annotations

import numpy as np

from tiebreak.kernels.layout import Floats
from tiebreak.theory.crowd import Assumptions
from tiebreak.theory.events import (
    Deviations,
    LabelErrors,
    ParameterErrors,
    RowErrors,
    capped_exponential,
    capped_ratio,
    log_or_minus_infinity,
)

THRESHOLD = 0.5  # the share of the expected evidence that every task must reach
EVIDENCE_CONSTANT = 33.0  # Bernstein's inequality; 31.4 would do


def evidence_failure(crowd: Assumptions, threshold: float = THRESHOLD) -> float:
    """Bound the chance that on some task the responses say too little.

    Implements [eq:thm-evidence-plain]:

        δ₁ = (K − 1) N exp(−M D_γ / (33 ln(1/ρ_γ)))

    Departs from the paper: it prints ln ρ_γ, which is negative (erratum 16), and K for K − 1.
    The threshold is fixed at one half.
    """
    rate = crowd.evidence_per_task / (EVIDENCE_CONSTANT * np.log(1 / crowd.rarest_answer))
    return float((crowd.n_classes - 1) * crowd.n_tasks * np.exp(-rate))


def deviations(crowd: Assumptions, budget: float) -> Deviations:
    """Bound how far counts stray, half of the budget for classes and half for answers.

    Implements [eq:thm-radii-plain]:

        r_k = √(3 π_k/N · ln(2K/ν_π)),  t_kc = √(3 μ π_k γ_kc/N · ln(4MK²/ν_γ)),
        s_k = min_c t_kc/γ_kc,  valid only where r_k ≤ π_k and t_kc ≤ μ π_k γ_kc

    Departs from the paper: the sum over answers and the split of ν are missing there
    (errata 17 and 19).
    """
    none = Deviations.unknown(crowd)
    n_classes = crowd.n_classes
    share = budget / 2
    tasks = np.sqrt(3 * crowd.class_prior / crowd.n_tasks * np.log(2 * n_classes / share))
    if (tasks > crowd.class_prior).any():
        tasks = none.tasks
    expected = answer_rates(crowd)
    n_events = 4 * crowd.total_workers * n_classes**2
    answers = np.sqrt(3 * expected / crowd.n_tasks * np.log(n_events / share))
    if (answers > expected).any():
        return Deviations(tasks, none.answers, none.answered)
    return Deviations(tasks, answers, (answers / crowd.confusion).min(axis=2))


def answer_rates(crowd: Assumptions) -> Floats:
    """μ π_k γ_kc, (n_kinds, truth, answer): how often a worker gives answer c on truth k."""
    return crowd.response_rate[:, None, None] * crowd.class_prior[:, None] * crowd.confusion


def label_exponent(crowd: Assumptions, evidence: float, errors: ParameterErrors) -> float:
    """Bound by how many nats the true class leads on every task.

    Implements [eq:thm-exponent]: U = D_π + evidence + 2 f_π + 2 M_max f_γ.
    """
    return crowd.class_prior_gap + evidence + parameter_loss(crowd, errors)


def parameter_loss(crowd: Assumptions, errors: ParameterErrors) -> float:
    """Nats lost since class prior and confusions are not known exactly: 2 f_π + 2 M_max f_γ.

    Implements [eq:thm-loss]: f(ε) = ln(1 − ε/ρ − 1/(2ρ·total)), for the class prior and for the
    confusions, with the least posterior total.

    Departs from the paper: the theorem prints a single f of each (erratum 14) and the prior
    total in f_γ (erratum 22).
    """
    on_prior = logarithmic_loss(
        crowd.rarest_class, errors.class_prior.max(), errors.class_prior_total
    )
    on_confusion = logarithmic_loss(
        crowd.rarest_answer, errors.confusion.max(), float(errors.confusion_total.min())
    )
    return 2 * on_prior + 2 * crowd.most_responses * on_confusion


def logarithmic_loss(rarest: float, error: float, total: float) -> float:
    """f(ε) = ln(1 − ε/ρ − 1/(2ρ·total)), −∞ where undefined."""
    if total <= 0:
        return -np.inf
    return float(log_or_minus_infinity(np.array(1 - error / rarest - 1 / (2 * rarest * total))))


def label_error(crowd: Assumptions, exponent: float) -> float:
    """Implements [eq:thm-label]: ε_q = min(1, (K − 1) e^−U)."""
    return capped_exponential(float(np.log(crowd.n_classes - 1)) - exponent)


def class_prior_error(crowd: Assumptions, deviations: Deviations, labels: LabelErrors) -> Floats:
    """Bound the error of the class prior, (n_classes,).

    Implements [eq:thm-class-prior]:

        ε_π = (N (ε_q + r_k) + |α₀_k − π_k ᾱ₀|) / (N + ᾱ₀)

    Departs from the paper: it prints α₀_k + ρ_π ᾱ₀, which is too small where one class is
    frequent (erratum 20).
    """
    total = crowd.class_prior_counts.sum()
    pull = np.abs(crowd.class_prior_counts - crowd.class_prior * total)
    strayed = crowd.n_tasks * (labels.mean + deviations.tasks)
    return np.asarray(np.minimum((strayed + pull) / (crowd.n_tasks + total), 1.0))


def confusion_error(crowd: Assumptions, deviations: Deviations, labels: LabelErrors) -> RowErrors:
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
    return RowErrors(capped_ratio(strayed + pull, row_total[:, :, None]), row_total)
