"""Bounds: the errors of labels, class prior and confusions, iteration by iteration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from tiebreak.arguments import FLAG, checks, number, optional, whole
from tiebreak.errors import OptionError
from tiebreak.kernels.layout import Floats
from tiebreak.theory import plain, printed, verdicts
from tiebreak.theory import sharp as sharp_rules
from tiebreak.theory.crowd import Assumptions
from tiebreak.theory.events import Deviations, LabelErrors, ParameterErrors, Version
from tiebreak.theory.linked import LinkedTasks

VersionName = Literal["sharp", "plain", "as printed"]
VERSIONS = cast(
    "dict[VersionName, Version]", {"sharp": sharp_rules, "plain": plain, "as printed": printed}
)
THRESHOLDS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)


class Ingredients(NamedTuple):
    """What the bounds are made of, by name; the paper's letters stand on docs/theory.md."""

    class_prior_gap: float
    evidence_per_worker: float
    evidence_per_task: float
    evidence_threshold: float
    evidence_failure: float
    rarest_class: float
    rarest_answer: float
    most_responses: int
    class_prior_radius: Floats
    answer_radius: Floats
    answered_radius: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Upper bounds on the errors after each iteration; all hold together with `probability`.

    A bound of 1 says nothing: it is vacuous, and tables print that word.

    Attributes
    ----------
    label_error, class_prior_error, confusion_error
        (n_iter,): the largest error of any task's class probabilities, of any entry of the class
        prior, of any entry of a confusion matrix.
    linked_label_error
        (n_iter,): the same for linked tasks; None without links.
    label_exponent
        (n_iter,): U in nats. label_error is (n_classes − 1) e^−U, and may be too small for a float.
    link_support
        (n_iter,): the least W of any linked task; None without links.
    probability
        Of all these bounds together, over all iterations; 0 where none can be given.
    """

    assumptions: Assumptions
    links: LinkedTasks | None
    version: VersionName
    label_error: Floats
    class_prior_error: Floats
    confusion_error: Floats
    linked_label_error: Floats | None
    label_exponent: Floats
    link_support: Floats | None
    probability: float
    ingredients: Ingredients

    @property
    def n_iter(self) -> int:
        """How many iterations the bounds cover."""
        return len(self.label_error)

    @property
    def worst_label_error(self) -> float:
        """The bound on any task's label error after the last iteration, linked or not."""
        linked = self.linked_label_error
        last = float(self.label_error[-1])
        if linked is None or self.links is None:
            return last
        if self.links.total_tasks == self.assumptions.n_tasks:
            return float(linked[-1])
        return max(last, float(linked[-1]))

    @property
    def vacuous(self) -> bool:
        """Whether the bounds say nothing about the labels after the last iteration."""
        return self.probability <= 0 or self.worst_label_error >= 1

    @property
    def labels_right(self) -> bool:
        """Whether the last bound proves every label right: each probability errs by less than ½."""
        return not self.vacuous and self.worst_label_error < 0.5

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the bounds are vacuous, in plain sentences; empty where they are not."""
        return verdicts.reasons(self)

    @property
    def verdict(self) -> str:
        """What the bounds promise, in one plain sentence."""
        return verdicts.verdict(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists, ready for JSON; what is not finite is None."""
        return verdicts.as_dict(self)

    def __repr__(self) -> str:
        return f"Bounds({self.version}, {self.n_iter} iterations: {self.verdict})"


@checks(
    assumptions=Assumptions,
    links=optional(LinkedTasks),
    n_iter=whole(1),
    sharp=FLAG,
    as_printed=FLAG,
    threshold=optional(number("between 0 and 1, both excluded", above=0.0, below=1.0)),
)
def bounds(
    assumptions: Assumptions,
    *,
    links: LinkedTasks | None = None,
    n_iter: int = 10,
    sharp: bool = True,
    as_printed: bool = False,
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
    sharp
        Our sharper bounds, as rigorous, rather than those with the paper's constants.
    as_printed
        The paper's own formulas, errors and all, whatever `sharp` says.
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
    >>> bounds(crowd, sharp=False).vacuous
    True
    """
    if links is not None:
        _check_links(assumptions, links)
    name: VersionName = "as printed" if as_printed else "sharp" if sharp else "plain"
    candidates = evidence_thresholds(assumptions, name, threshold)
    best = candidates[0]
    if len(candidates) > 1:  # chosen by the assumptions, never by data: the bound stays valid
        best = max(candidates, key=lambda each: _merit(run(assumptions, links, n_iter, name, each)))
    exact = VERSIONS[name].evidence_failure(assumptions, best.share)
    return run(assumptions, links, n_iter, name, best._replace(evidence_failure=exact))


class EvidenceThreshold(NamedTuple):
    """A share of the expected evidence, and the chance that some task falls short of it."""

    share: float
    evidence_failure: float


def evidence_thresholds(
    crowd: Assumptions, name: VersionName, threshold: float | None = None
) -> list[EvidenceThreshold]:
    """List the thresholds to try; which is best depends on the crowd."""
    if name != "sharp":
        if threshold not in (None, plain.THRESHOLD):
            raise OptionError(f"Only sharp bounds can choose a threshold; got {threshold!r}.")
        failure = VERSIONS[name].evidence_failure(crowd, plain.THRESHOLD)
        return [EvidenceThreshold(plain.THRESHOLD, failure)]
    thresholds = THRESHOLDS if threshold is None else (threshold,)
    failures = sharp_rules.evidence_failures(crowd, thresholds)
    return [EvidenceThreshold(*pair) for pair in zip(thresholds, failures, strict=True)]


def _merit(found: Bounds) -> tuple[float, ...]:
    """Rank runs: the last label bound; how long bounds say anything; evidence, then its chance."""
    return (
        -found.worst_label_error,
        float((found.label_error < 1).sum()),
        float(found.label_exponent[-1]),
        -found.ingredients.evidence_failure,
    )


def _check_links(crowd: Assumptions, links: LinkedTasks) -> None:
    if links.cannot.shape[1] != crowd.n_classes:
        raise OptionError(
            f"links count {links.cannot.shape[1]} classes, the assumptions {crowd.n_classes}."
        )
    if links.total_tasks > crowd.n_tasks:
        raise OptionError(
            f"links name {links.total_tasks:,} tasks, the assumptions only {crowd.n_tasks:,}."
        )


class _Iteration(NamedTuple):
    exponent: float
    support: float
    labels: LabelErrors
    class_prior: float
    confusion: float


def run(
    crowd: Assumptions,
    links: LinkedTasks | None,
    n_iter: int,
    name: VersionName,
    threshold: EvidenceThreshold,
) -> Bounds:
    """Run the recursion at one threshold of the evidence."""
    evidence, deviations, probability = _promises(crowd, name, threshold)
    table = list(islice(_iterate(crowd, links, name, evidence, deviations), n_iter))
    linked = None if links is None else np.array([step.labels.linked for step in table])
    support = None if links is None else np.array([step.support for step in table])
    return Bounds(
        assumptions=crowd,
        links=links,
        version=name,
        label_error=np.array([step.labels.unlinked for step in table]),
        class_prior_error=np.array([step.class_prior for step in table]),
        confusion_error=np.array([step.confusion for step in table]),
        linked_label_error=linked,
        label_exponent=np.array([step.exponent for step in table]),
        link_support=support,
        probability=probability,
        ingredients=_ingredients(crowd, threshold, deviations),
    )


def _promises(
    crowd: Assumptions, name: VersionName, threshold: EvidenceThreshold
) -> tuple[float, Deviations, float]:
    """Spend ν: the evidence and the deviations that hold, and the probability of both.

    [eq:thm-budget]: what δ₁ leaves of ν goes in halves to the class counts and the answers. The
    printed theorem has no valid split, since its δ₁ is above 1; it is shown as if δ₁ were 0.
    """
    budget = crowd.failure_probability
    evidence = threshold.share * crowd.evidence_per_task
    if name == "as printed":
        return evidence, printed.deviations(crowd, budget), 0.0
    left = budget - threshold.evidence_failure
    if left <= 0:
        return -np.inf, Deviations.unknown(crowd), 0.0
    return evidence, VERSIONS[name].deviations(crowd, left), 1 - budget


def _iterate(
    crowd: Assumptions,
    links: LinkedTasks | None,
    name: VersionName,
    evidence: float,
    deviations: Deviations,
) -> Iterator[_Iteration]:
    """Alternate the two halves of [eq:thm-recursion], starting from the assumed start."""
    rules = VERSIONS[name]
    errors = ParameterErrors.at_start(crowd)
    labels = LabelErrors.same(crowd.start.label_error)
    while True:
        exponent = rules.label_exponent(crowd, evidence, errors)
        support = _least_support(links, name, labels)
        labels = _label_errors(crowd, links, rules, exponent, support)
        class_prior = rules.class_prior_error(crowd, deviations, labels)
        rows = rules.confusion_error(crowd, deviations, labels)
        posterior_total = crowd.n_tasks + float(crowd.class_prior_counts.sum())
        errors = ParameterErrors(class_prior, rows.entry, posterior_total, rows.total)
        worst_prior = float(class_prior.max())
        worst_entry = float(rows.entry.max())
        yield _Iteration(exponent, support, labels, worst_prior, worst_entry)


def _least_support(links: LinkedTasks | None, name: VersionName, labels: LabelErrors) -> float:
    """Return the least W of any linked task.

    Departs from the paper: neighbours are linked tasks, so their own bound counts (erratum 27).
    """
    if links is None:
        return 0.0
    if name == "as printed":
        return float(links.support(labels.unlinked, "printed").min())
    return float(links.support(labels.linked).min())


def _label_errors(
    crowd: Assumptions,
    links: LinkedTasks | None,
    rules: Version,
    exponent: float,
    support: float,
) -> LabelErrors:
    unlinked = rules.label_error(crowd, exponent)
    if links is None:
        return LabelErrors.same(unlinked)
    linked = rules.label_error(crowd, exponent + links.strength * support)
    return LabelErrors(unlinked, linked, links.total_tasks / crowd.n_tasks)


def _ingredients(
    crowd: Assumptions, threshold: EvidenceThreshold, deviations: Deviations
) -> Ingredients:
    return Ingredients(
        class_prior_gap=crowd.class_prior_gap,
        evidence_per_worker=crowd.evidence_per_worker,
        evidence_per_task=crowd.evidence_per_task,
        evidence_threshold=threshold.share,
        evidence_failure=threshold.evidence_failure,
        rarest_class=crowd.rarest_class,
        rarest_answer=crowd.rarest_answer,
        most_responses=crowd.most_responses,
        class_prior_radius=deviations.tasks,
        answer_radius=deviations.answers,
        answered_radius=deviations.answered,
    )
