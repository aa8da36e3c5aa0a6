"""Plans: how many workers, responses or tasks the bounds need, and how sure they can be.

python experiments/01_theory_bounds/plans.py crowd.toml workers 0.001
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from tiebreak.research.theory import (
    Assumptions,
    LinkedTasks,
    bounds,
    with_responses_per_task,
)
from tiebreak.research.theory.__main__ import read

RIGHT = 0.5  # below this error of its class probabilities, a task's label is right
MOST = {"workers": 100_000, "tasks": 1_000_000_000}
SMALLEST_FAILURE = 1e-9
HALVINGS = 20


def needed(
    assumptions: Assumptions,
    unit: str = "workers",
    label_error: float = RIGHT,
    *,
    most: int | None = None,
    **options: Any,
) -> int | None:
    """Find how many workers, responses a task or tasks the label bound needs; None: no number.

    The search doubles and then halves; where more does harm for a while it may miss a smaller
    answer, never return a wrong one. Too many tasks do harm in turn: the bound speaks about all
    labels at once.

    Parameters
    ----------
    unit
        "workers": of the same kinds in the same shares. "responses": on each task, from workers
        drawn at random for it. "tasks": enough to learn the workers.
    label_error
        What the bound must fall below; ½ proves every label right.
    most
        Where the search ends.
    **options
        Of `bounds`.

    Examples
    --------
    >>> crowd = Assumptions(
    ...     class_prior=[0.5, 0.5], confusion=[[0.9, 0.1], [0.1, 0.9]], n_tasks=20_000
    ... )
    >>> needed(crowd)
    47
    """
    scaled: dict[str, Callable[[Assumptions, int], Assumptions]] = {
        "workers": with_workers,
        "responses": with_responses_per_task,
        "tasks": lambda crowd, n: replace(crowd, n_tasks=n),
    }
    most = most if most is not None else MOST.get(unit, assumptions.total_workers)

    def suffices(n: int) -> bool:
        found = bounds(scaled[unit](assumptions, n), **options)
        return not found.vacuous and found.worst_label_error < label_error

    too_few, enough = 0, 1
    while not suffices(enough):
        if enough == most:
            return None
        too_few, enough = enough, min(2 * enough, most)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if suffices(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def probability_all_right(
    assumptions: Assumptions,
    *,
    links: LinkedTasks | None = None,
    n_iter: int = 10,
    version: str = "sharp",
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

    def proves(log_failure: float) -> bool:
        crowd = replace(assumptions, failure_probability=float(np.exp(log_failure)))
        return bounds(crowd, links=links, n_iter=n_iter, version=version).labels_right

    fails, works = np.log(SMALLEST_FAILURE), np.log(1 - SMALLEST_FAILURE)
    if not proves(works):
        return 0.0
    for _ in range(HALVINGS):
        middle = (fails + works) / 2
        if proves(middle):
            works = middle
        else:
            fails = middle
    return float(-np.expm1(works))


def with_workers(assumptions: Assumptions, n: int) -> Assumptions:
    """Return the same crowd with n workers, kinds in the same shares as far as numbers allow.

    Where tasks have a most number of responses, it grows in proportion.
    """
    total = assumptions.total_workers
    counts = np.diff(np.cumsum(assumptions.n_workers) * n // total, prepend=0)
    kept = counts > 0
    most = assumptions.most_responses
    assert most is not None
    return replace(
        assumptions,
        confusion=assumptions.confusion[kept],
        n_workers=counts[kept],
        response_rate=assumptions.response_rate[kept],
        confusion_counts=assumptions.confusion_counts[kept],
        most_responses=n if most == total else ceil(most * n / total),
    )


if __name__ == "__main__":
    file, asked, target = sys.argv[1:]
    found = read(file)
    print(needed(found[0], asked, float(target), links=found[1]))
