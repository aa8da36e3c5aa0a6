"""Theorems 1 and 2 as the paper prints them, errors and all, so that they can be compared.

Nothing here is a valid bound: each function names its errata, listed on docs/theory.md.
"""

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
)
from tiebreak.theory.plain import (
    EVIDENCE_CONSTANT,
    THRESHOLD,
    answer_rates,
    logarithmic_loss,
)


def evidence_failure(crowd: Assumptions, threshold: float = THRESHOLD) -> float:
    """K N exp(−M D_γ / (33 ln ρ_γ)): above 1 whatever the crowd (erratum 16)."""
    rate = crowd.evidence_per_task / (EVIDENCE_CONSTANT * np.log(crowd.rarest_answer))
    with np.errstate(over="ignore"):
        return float(crowd.n_classes * crowd.n_tasks * np.exp(-rate))


def deviations(crowd: Assumptions, budget: float) -> Deviations:
    """Radii from the printed ν: no sum over answers, no side condition (errata 17, 19 and 23).

    `answered` is the smallest radius; `confusion_error` uses the printed one of each entry.
    """
    n_classes = crowd.n_classes
    share = budget / 2
    tasks = np.sqrt(3 * crowd.class_prior / crowd.n_tasks * np.log(2 * n_classes / share))
    n_events = 4 * crowd.total_workers * n_classes
    answers = np.sqrt(3 * answer_rates(crowd) / crowd.n_tasks * np.log(n_events / share))
    return Deviations(tasks, answers, (answers / crowd.confusion).min(axis=2))


def label_exponent(crowd: Assumptions, evidence: float, errors: ParameterErrors) -> float:
    """U = D_π + evidence + f_π + M f_γ: one f of each where the lemma has two (erratum 14)."""
    return crowd.class_prior_gap + evidence + parameter_loss(crowd, errors)


def parameter_loss(crowd: Assumptions, errors: ParameterErrors) -> float:
    """f_π + M f_γ, f_γ with the prior's total (erratum 22: undefined for common priors)."""
    class_prior_total = crowd.n_tasks + float(crowd.class_prior_counts.sum())
    confusion_total = float(crowd.confusion_counts.sum(axis=2).min())
    on_prior = logarithmic_loss(crowd.rarest_class, errors.class_prior.max(), class_prior_total)
    on_confusion = logarithmic_loss(crowd.rarest_answer, errors.confusion.max(), confusion_total)
    return on_prior + crowd.total_workers * on_confusion


def label_error(crowd: Assumptions, exponent: float) -> float:
    """K e^−U, capped at 1 (erratum 24)."""
    return capped_exponential(float(np.log(crowd.n_classes)) - exponent)


def class_prior_error(crowd: Assumptions, deviations: Deviations, labels: LabelErrors) -> Floats:
    """(N (ε_q + r_k) + α₀_k + ρ_π ᾱ₀) / (N + ᾱ₀): false for frequent classes (erratum 20)."""
    total = crowd.class_prior_counts.sum()
    pull = crowd.class_prior_counts + crowd.rarest_class * total
    strayed = crowd.n_tasks * (labels.mean + deviations.tasks)
    return np.asarray(np.minimum((strayed + pull) / (crowd.n_tasks + total), 1.0))


def confusion_error(
    crowd: Assumptions,
    deviations: Deviations,
    labels: LabelErrors,
    posterior_total: Floats | None = None,
) -> RowErrors:
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
    return RowErrors(capped_ratio(strayed + pull, below), below.min(axis=2))
