"""Plans: how many workers, responses or tasks until a bound is small enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Literal

import numpy as np

from tiebreak.arguments import FLAG, WHOLE, checks, number, optional, whole
from tiebreak.errors import OptionError
from tiebreak.theory.crowd import Assumptions
from tiebreak.theory.linked import LinkedTasks
from tiebreak.theory.recursion import Bounds, VersionName, bounds, evidence_thresholds, run

Unit = Literal["workers", "responses a task", "tasks"]

MOST_WORKERS = 100_000
MOST_TASKS = 1_000_000_000
LABEL_ERROR = number("between 0 and 1", above=0.0, below=1.0)
RIGHT = 0.5  # below this error of its class probabilities, a task's label is right
SMALLEST_FAILURE = 1e-9
HALVINGS = 20


@dataclass(frozen=True, slots=True, eq=False)
class CrowdPlan:
    """How many of something the label bound needs to fall below `label_error`.

    `needed` is None where even `most` do not suffice; `bounds` are those at `needed`, or at
    `most`. The search doubles and then halves; where more does harm for a while it may miss a
    smaller answer, never return a wrong one.
    """

    unit: Unit
    label_error: float
    needed: int | None
    most: int
    bounds: Bounds

    @property
    def verdict(self) -> str:
        """The plan in one plain sentence."""
        goal = f"label bound below {self.label_error:g}"
        if self.needed is None:
            why = " ".join(self.bounds.reasons) or "The bound stays above the target."
            return f"Even {self.most:,} {self.unit} do not suffice for a {goal}. {why}"
        return f"{self.needed:,} {self.unit} suffice for a {goal}. {self.bounds.verdict}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "unit": self.unit,
            "label_error": self.label_error,
            "needed": self.needed,
            "most": self.most,
            "verdict": self.verdict,
        }


@checks(assumptions=Assumptions, label_error=LABEL_ERROR, most=whole(1))
def workers_needed(
    assumptions: Assumptions,
    label_error: float = RIGHT,
    *,
    links: LinkedTasks | None = None,
    n_iter: int = 10,
    sharp: bool = True,
    most: int = MOST_WORKERS,
) -> CrowdPlan:
    """Find how many workers, of the same kinds in the same shares, the label bound needs.

    Examples
    --------
    >>> crowd = Assumptions(
    ...     class_prior=[0.5, 0.5], confusion=[[0.9, 0.1], [0.1, 0.9]], n_tasks=20_000
    ... )
    >>> workers_needed(crowd).needed
    47
    """

    def at(n: int) -> Bounds:
        return bounds(with_workers(assumptions, n), links=links, n_iter=n_iter, sharp=sharp)

    return _search("workers", label_error, most, at)


@checks(assumptions=Assumptions, label_error=LABEL_ERROR)
def responses_needed(
    assumptions: Assumptions,
    label_error: float = RIGHT,
    *,
    links: LinkedTasks | None = None,
    n_iter: int = 10,
    sharp: bool = True,
) -> CrowdPlan:
    """Find how many responses each task needs from these workers, drawn at random for each task.

    The response rates of the assumptions are not used; see `with_responses_per_task`.
    """

    def at(n: int) -> Bounds:
        crowd = with_responses_per_task(assumptions, n)
        return bounds(crowd, links=links, n_iter=n_iter, sharp=sharp)

    return _search("responses a task", label_error, assumptions.total_workers, at)


@checks(assumptions=Assumptions, label_error=LABEL_ERROR, most=whole(1))
def tasks_needed(
    assumptions: Assumptions,
    label_error: float = RIGHT,
    *,
    n_iter: int = 10,
    sharp: bool = True,
    most: int = MOST_TASKS,
) -> CrowdPlan:
    """Find how many tasks are enough to learn the workers.

    Too many tasks do harm in turn: the bound speaks about all labels at once.
    """

    def at(n: int) -> Bounds:
        return bounds(replace(assumptions, n_tasks=n), n_iter=n_iter, sharp=sharp)

    return _search("tasks", label_error, most, at)


@checks(assumptions=Assumptions, links=optional(LinkedTasks), n_iter=whole(1), sharp=FLAG)
def probability_all_right(
    assumptions: Assumptions,
    *,
    links: LinkedTasks | None = None,
    n_iter: int = 10,
    sharp: bool = True,
) -> float:
    """Return the largest probability with which the bounds prove every label right; 0 if none.

    The failure probability of the assumptions is replaced by the smallest one at which the last
    label bound is still below ½.

    Examples
    --------
    >>> crowd = Assumptions(
    ...     class_prior=[0.5, 0.5], confusion=[[0.9, 0.1], [0.1, 0.9]], n_tasks=20_000, n_workers=60
    ... )
    >>> round(probability_all_right(crowd), 3)
    0.999
    """
    name: VersionName = "sharp" if sharp else "plain"
    candidates = evidence_thresholds(assumptions, name)

    def proves(failure: float) -> bool:
        crowd = replace(assumptions, failure_probability=failure)
        return any(
            run(crowd, links, n_iter, name, each).labels_right
            for each in candidates
            if each.evidence_failure < failure
        )

    fails = np.log(SMALLEST_FAILURE)
    works = np.log(1 - SMALLEST_FAILURE)
    if not proves(float(np.exp(works))):
        return 0.0
    for _ in range(HALVINGS):
        middle = (fails + works) / 2
        if proves(float(np.exp(middle))):
            works = middle
        else:
            fails = middle
    return float(-np.expm1(works))


@checks(assumptions=Assumptions, n=whole(1))
def with_workers(assumptions: Assumptions, n: int) -> Assumptions:
    """Return the same crowd with n workers, kinds in the same shares as far as numbers allow.

    Where tasks have a most number of responses, it grows in proportion.
    """
    total = assumptions.total_workers
    ends = np.cumsum(assumptions.n_workers) * n // total
    counts = np.diff(ends, prepend=0)
    kept = counts > 0
    everyone = assumptions.most_responses == total
    most = n if everyone else ceil(assumptions.most_responses * n / total)
    return replace(
        assumptions,
        confusion=assumptions.confusion[kept],
        n_workers=counts[kept],
        response_rate=assumptions.response_rate[kept],
        confusion_counts=assumptions.confusion_counts[kept],
        most_responses=most,
    )


@checks(assumptions=Assumptions, n=WHOLE)
def with_responses_per_task(assumptions: Assumptions, n: int) -> Assumptions:
    """Return the same crowd where each task is answered by n workers drawn at random.

    The theorems let each worker answer independently; drawing exactly n for each task makes the
    evidence no less sure ([eq:thm-fixed-number]) and caps the responses on a task at n.
    """
    total = assumptions.total_workers
    if not 1 <= n <= total:
        raise OptionError(f"A task can have 1 to {total:,} responses from these workers; got {n}.")
    rates = np.full(len(assumptions.n_workers), n / total)
    return replace(assumptions, response_rate=rates, most_responses=n)


def _search(unit: Unit, label_error: float, most: int, at: Callable[[int], Bounds]) -> CrowdPlan:
    """Double until the bound is small enough, then halve the last step."""

    def good(found: Bounds) -> bool:
        return not found.vacuous and found.worst_label_error < label_error

    too_few = 0
    enough = 1
    found = at(enough)
    while not good(found):
        if enough == most:
            return CrowdPlan(unit, label_error, None, most, found)
        too_few = enough
        enough = min(2 * enough, most)
        found = at(enough)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        tried = at(middle)
        if good(tried):
            enough = middle
            found = tried
        else:
            too_few = middle
    return CrowdPlan(unit, label_error, enough, most, found)
