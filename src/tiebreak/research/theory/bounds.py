"""Bounds: the errors of labels, class prior and confusions, iteration by iteration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tiebreak.errors import OptionError
from tiebreak.options import require_count, require_number, require_word
from tiebreak.research.theory import rules
from tiebreak.research.theory.crowd import Assumptions, Floats, LinkedTasks
from tiebreak.research.theory.rules import Deviations, LabelErrors, ParameterErrors, Plain

THRESHOLDS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)
RIGHT = 0.5  # below this error of its class probabilities, a task's label is right
TRACED = (
    *("label_error", "class_prior_error", "confusion_error"),
    *("linked_label_error", "label_exponent", "link_support"),
)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Upper bounds on the errors after each iteration; all hold together with `probability`.

    A bound of 1 says nothing: it is vacuous.

    Attributes
    ----------
    label_error, class_prior_error, confusion_error
        (n_iter,): the largest error of any task's class probabilities, of any entry of the class
        prior, of any entry of a confusion matrix.
    linked_label_error
        (n_iter,): the same for linked tasks; without links that of all.
    label_exponent
        (n_iter,): U in nats. label_error is (n_classes − 1) e^−U, and may be too small for a float.
    link_support
        (n_iter,): the least W of any linked task; 0 without links.
    probability
        Of all these bounds together, over all iterations; 0 where none can be given.
    evidence_threshold, evidence_failure, deviations
        What they are made of: φ, the chance that some task gets less than this share of the
        expected evidence, and how far counts may stray.
    """

    assumptions: Assumptions
    links: LinkedTasks | None
    label_error: Floats
    class_prior_error: Floats
    confusion_error: Floats
    linked_label_error: Floats
    label_exponent: Floats
    link_support: Floats
    probability: float
    evidence_threshold: float
    evidence_failure: float
    deviations: Deviations

    @property
    def worst_label_error(self) -> float:
        """The bound on any task's label error after the last iteration, linked or not."""
        linked = float(self.linked_label_error[-1])
        if self.links is not None and self.links.total_tasks == self.assumptions.n_tasks:
            return linked
        return max(float(self.label_error[-1]), linked)

    @property
    def vacuous(self) -> bool:
        """Whether the bounds say nothing about the labels after the last iteration."""
        return self.probability <= 0 or self.worst_label_error >= 1

    @property
    def labels_right(self) -> bool:
        """Whether the last bound proves every label right: each probability errs by less than ½."""
        return not self.vacuous and self.worst_label_error < RIGHT

    def __str__(self) -> str:
        if self.probability <= 0:
            return (
                "vacuous: the chance that some task gets less than "
                f"{self.evidence_threshold:.0%} of the expected evidence is only known "
                f"to be below {self.evidence_failure:.3g}"
            )
        if self.vacuous:
            step = int(np.argmax(self.label_error >= 1))
            return (
                "vacuous: the true class is only known to lead by "
                f"{self.label_exponent[step]:.3g} nats at iteration {step + 1}"
            )
        proved = "every label is right" if self.labels_right else "no label is proved right"
        return (
            f"{proved} (error below {self.worst_label_error:.3g}), class prior within "
            f"{self.class_prior_error[-1]:.3g}, confusions within {self.confusion_error[-1]:.3g}, "
            f"with probability at least {self.probability:.4g}"
        )


def bounds(
    assumptions: Assumptions,
    *,
    links: LinkedTasks | None = None,
    n_iter: int = 10,
    version: str = "sharp",
    threshold: float | None = None,
) -> Bounds:
    """Bound the errors after each iteration: Theorem 1, or with links Theorem 2.

    Parameters
    ----------
    assumptions
        The crowd, the tasks, the priors and the start.
    links
        Linked tasks; inference is then mean-field, with all tasks updated in parallel.
    n_iter
        How many iterations.
    version
        "sharp": our sharper bounds, as rigorous. "plain": corrected, with the paper's constants.
        "printed": the paper's own formulas, errors and all.
    threshold
        φ, the share of the expected evidence that every task must reach; only sharp bounds have
        a choice, and None takes the best of twelve.

    Examples
    --------
    >>> crowd = Assumptions(
    ...     class_prior=[0.5, 0.5],
    ...     confusion=[[0.9, 0.1], [0.12, 0.88]],
    ...     n_tasks=20_000,
    ...     n_workers=60,
    ...     failure_probability=0.1,
    ... )
    >>> found = bounds(crowd, n_iter=2)
    >>> found.vacuous, bool(found.label_error[-1] < 1e-4)
    (False, True)
    >>> bounds(crowd, version="plain").vacuous
    True
    """
    require_count("n_iter", n_iter, 1)
    if threshold is not None:
        words = "between 0 and 1, both excluded"
        require_number("threshold", threshold, words, above=0.0, below=1.0)
    if links is not None:
        if links.cannot.shape[1] != assumptions.n_classes:
            n_classes = (links.cannot.shape[1], assumptions.n_classes)
            raise OptionError("links-classes", links=n_classes[0], assumed=n_classes[1])
        if links.total_tasks > assumptions.n_tasks:
            raise OptionError("links-tasks", links=links.total_tasks, assumed=assumptions.n_tasks)
    candidates = _thresholds(assumptions, version, threshold)
    # Chosen by the assumptions, never by data: the bound stays valid.
    tried = [_run(assumptions, links, n_iter, version, *each) for each in candidates]
    share = max(tried, key=_merit).evidence_threshold
    exact = _rules(version).evidence_failure(assumptions, share)
    return _run(assumptions, links, n_iter, version, share, exact)


def _rules(version: str) -> Plain:
    require_word("version", version, ("sharp", "plain", "printed"))
    found: Plain = getattr(rules, version)
    return found


def _thresholds(
    crowd: Assumptions, version: str, threshold: float | None = None
) -> list[tuple[float, float]]:
    """List the thresholds to try, and the chance that some task falls short of each."""
    if version != "sharp":
        if threshold not in (None, rules.THRESHOLD):
            raise OptionError("fixed-threshold", given=threshold)
        return [(rules.THRESHOLD, _rules(version).evidence_failure(crowd))]
    shares = THRESHOLDS if threshold is None else (threshold,)
    return list(zip(shares, rules.sharp.evidence_failures(crowd, shares), strict=True))


def _merit(found: Bounds) -> tuple[float, ...]:
    """Rank runs: the last label bound; how long bounds say anything; evidence, then its chance."""
    return (
        -found.worst_label_error,
        float((found.label_error < 1).sum()),
        float(found.label_exponent[-1]),
        -found.evidence_failure,
    )


def _run(
    crowd: Assumptions,
    links: LinkedTasks | None,
    n_iter: int,
    version: str,
    share: float,
    evidence_failure: float,
) -> Bounds:
    """Alternate the two halves of [eq:thm-recursion], starting from the assumed start.

    ν is spent first: [eq:thm-budget]. What δ₁ leaves of it goes in halves to the class counts and
    the answers. The printed theorem has no valid split, since its δ₁ is above 1; it is shown as if
    δ₁ were 0.
    """
    rule = _rules(version)
    evidence = share * crowd.evidence_per_task
    budget = crowd.failure_probability
    left = budget if version == "printed" else budget - evidence_failure
    probability = 0.0 if version == "printed" or left <= 0 else 1 - budget
    if left > 0:
        deviations = rule.deviations(crowd, left)
    else:
        evidence, deviations = -np.inf, Deviations.unknown(crowd)
    errors = _at_start(crowd)
    labels = LabelErrors.same(crowd.start.label_error)
    table = []
    for _ in range(n_iter):
        exponent = rule.label_exponent(crowd, evidence, errors)
        error = rule.label_error(crowd, exponent)
        support = 0.0
        if links is None:
            labels = LabelErrors.same(error)
        else:
            # Departs from the paper: neighbours are linked, so their own bound counts (erratum 27).
            if version == "printed":
                support = float(links.support(labels.unlinked, "printed").min())
            else:
                support = float(links.support(labels.linked).min())
            linked = rule.label_error(crowd, exponent + links.strength * support)
            labels = LabelErrors(error, linked, links.total_tasks / crowd.n_tasks)
        class_prior = rule.class_prior_error(crowd, deviations, labels)
        confusion, row_totals = rule.confusion_error(crowd, deviations, labels)
        total = crowd.n_tasks + float(crowd.class_prior_counts.sum())
        errors = ParameterErrors(class_prior, confusion, total, row_totals)
        worst = (float(class_prior.max()), float(confusion.max()))
        table.append((labels.unlinked, *worst, labels.linked, exponent, support))
    traced: dict[str, Any] = dict(zip(TRACED, np.array(table).T, strict=True))
    return Bounds(
        assumptions=crowd,
        links=links,
        probability=probability,
        evidence_threshold=share,
        evidence_failure=evidence_failure,
        deviations=deviations,
        **traced,
    )


def _at_start(crowd: Assumptions) -> ParameterErrors:
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
    return ParameterErrors(
        np.full(crowd.n_classes, start.class_prior_error),
        np.full(crowd.confusion.shape, start.confusion_error),
        total,
        row_totals,
    )


def with_responses_per_task(assumptions: Assumptions, n: int) -> Assumptions:
    """Return the same crowd where each task is answered by n workers drawn at random.

    The theorems let each worker answer independently; drawing exactly n for each task makes the
    evidence no less sure ([eq:thm-fixed-number]) and caps the responses on a task at n.
    """
    total = assumptions.total_workers
    if not 1 <= n <= total:
        raise OptionError("responses-per-task", most=total, given=n)
    rates = np.full(len(assumptions.n_workers), n / total)
    return replace(assumptions, response_rate=rates, most_responses=n)
