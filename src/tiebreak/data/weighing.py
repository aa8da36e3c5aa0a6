"""Weighing: responses of which a worker gave several to one task, with what each is worth.

    read                                            kept
    task a, gpt: yes yes yes no  (ρ = .7)           yes, weight 3 / 3.1; no, weight 1 / 3.1

Equal answers of a worker to a task become one response with the sum of their weights, which every
fit takes for the same: eight runs need hardly more memory than one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from tiebreak.data import confidence as stated
from tiebreak.data import runs
from tiebreak.data.ids import Ids
from tiebreak.data.responses import Responses
from tiebreak.data.runs import Runs
from tiebreak.errors import note
from tiebreak.kernels.layout import Codes, Floats

EQUAL = 1e-9  # weights that differ by less, as a share, are a tie
TOLD = 0.05  # confidence that changes weights by less is not mentioned


class Extras(NamedTuple):
    """What a file says of each response beyond its label, in the order of the responses."""

    order: Codes | None = None  # −1 where none is given
    order_names: Sequence[str] = ()
    confidence: Floats | None = None  # 0 to 1; nan where none is given
    groups: Mapping[int, str] = MappingProxyType({})  # family of workers, by code

    @property
    def is_given(self) -> bool:
        """Whether there is anything beyond the labels."""
        return self.order is not None or self.confidence is not None or bool(self.groups)


def weigh(responses: Responses, extras: Extras | None = None) -> Responses:
    """Return the responses with weights for runs, orders and stated confidence.

    Where no worker answered a task twice and nothing more is known, they are returned as they are.

    >>> import warnings
    >>> rows = [("a", "gpt", "yes"), ("a", "gpt", "yes"), ("a", "ann", "no"), ("b", "ann", "no")]
    >>> with warnings.catch_warnings(action="ignore"):
    ...     Responses.from_rows(rows, repeats="runs").weight.round(2).tolist()
    [1.17, 1.0, 1.0]
    """
    extras = extras or Extras()
    if responses.runs is not None:  # weighed already
        return responses
    n_repeats, least, most = _count_times(responses)
    responses = replace(responses, n_repeats=n_repeats)
    if not (responses.n_repeats or extras.is_given):
        return responses
    crowd = (responses.start, responses.code, responses.n_workers, responses.n_classes)
    learnt = runs.learn(*crowd, extras.order)
    slopes = None
    by_confidence = None
    if extras.confidence is not None and np.isfinite(extras.confidence).any():
        slopes = stated.learn_slopes(*crowd, extras.confidence)
        by_confidence = stated.weights(
            responses.code, responses.n_classes, extras.confidence, slopes
        )
        _tell_confidence(by_confidence)
    first = first_preference(responses, extras)
    found = runs.summarise(learnt, responses.workers, first, extras.groups)
    rows = tuple(
        row._replace(slope=np.nan if slopes is None else float(slopes.slope[j]))
        for j, row in enumerate(found.workers)
    )
    found = replace(
        found,
        workers=rows,
        n_repeats=n_repeats,
        n_given=responses.n_responses,
        least_times=least,
        most_times=most,
    )
    _tell(responses, found)
    weighed = replace(responses, runs=found)
    if not responses.n_repeats and responses.weight is None and by_confidence is None:
        return weighed  # nothing to weigh: fits stay what they were
    return _merge_equal(weighed, learnt, extras.order, by_confidence)


def _count_times(responses: Responses) -> tuple[int, int, int]:
    """Return how many responses repeat a worker on a task, and the fewest and most of one pair."""
    n_pairs, least, most = 0, responses.n_responses or 1, 1
    for low, high in runs.parts(responses.start, responses.n_classes):
        here = slice(int(responses.start[low]), int(responses.start[high]))
        task = np.repeat(np.arange(high - low), np.diff(responses.start[low : high + 1]))
        if not len(task):
            continue
        worker = responses.code[here] // responses.n_classes
        is_last = (np.diff(worker, append=-1) != 0) | (np.diff(task, append=-1) != 0)
        times = np.diff(np.flatnonzero(is_last), prepend=-1)
        n_pairs += len(times)
        least, most = min(least, int(times.min())), max(most, int(times.max()))
    return responses.n_responses - n_pairs, least, most


def _merge_equal(
    responses: Responses,
    learnt: runs.LearntRuns,
    order: Codes | None,
    by_confidence: Floats | None,
) -> Responses:
    """Make one response of equal answers of a worker to a task, with the sum of their weights.

    Some tasks at a time: millions of runs are never there a second time.
    """
    start = responses.start
    codes = []
    weights = []
    n_each = np.zeros(responses.n_tasks, dtype=np.int64)
    for low, high in runs.parts(start, responses.n_classes):
        here = slice(int(start[low]), int(start[high]))
        weight = runs.weights(start, responses.code, responses.n_classes, learnt, order, low, high)
        for more in (responses.weight, by_confidence):
            weight = weight if more is None else weight * more[here]
        task = np.repeat(np.arange(high - low), np.diff(start[low : high + 1]))
        code = responses.code[here]
        is_next = np.diff(task) != 0
        is_first = np.ones(len(code), dtype=bool)
        is_first[1:] = is_next | (np.diff(code) != 0)
        first = np.flatnonzero(is_first)
        codes.append(code[first])
        weights.append(np.add.reduceat(weight, first) if len(first) else weight)
        n_each[low:high] = np.bincount(task[first], minlength=high - low)
    new_start = np.concatenate([[0], np.cumsum(n_each)]).astype(start.dtype)
    empty = [responses.code[:0]]
    return replace(
        responses,
        start=new_start,
        code=np.concatenate(codes or empty),
        weight=np.concatenate(weights or [np.empty(0)]),
    )


def plurality(responses: Responses) -> Responses:
    """Return one response of each worker to each task, the one that weighs most; a tie gives none.

    What measures agreement or errors of workers wants each of them once. Responses that were not
    weighed by runs are returned as they are.
    """
    if responses.runs is None or responses.weight is None or not responses.n_responses:
        return responses
    worker = responses.worker_of_each()
    task = responses.task_of_each()
    is_new = np.ones(len(worker), dtype=bool)
    is_new[1:] = (np.diff(worker) != 0) | (np.diff(task) != 0)
    pair = np.cumsum(is_new) - 1
    most = np.maximum.reduceat(responses.weight, np.flatnonzero(is_new))
    is_most = responses.weight >= most[pair] * (1.0 - EQUAL)
    kept = is_most & (np.bincount(pair[is_most])[pair] == 1)
    n_each = np.bincount(task[kept], minlength=responses.n_tasks)
    start = np.concatenate([[0], np.cumsum(n_each)]).astype(responses.start.dtype)
    return replace(responses, start=start, code=responses.code[kept], weight=None)


def first_preference(responses: Responses, extras: Extras) -> Floats:
    """Return the share of verdicts for what was shown first, (n_workers,); nan where unknown.

    Each order counts alike, so that a class that is right more often in one order does not show.
    """
    unknown = np.full(responses.n_workers, np.nan)
    if extras.order is None:
        return unknown
    shown = first_classes(extras.order_names, responses.classes)
    if not any(each is not None for each in shown):
        return unknown
    worker = responses.worker_of_each()
    label = responses.label_of_each()
    shares = []
    for at, first in enumerate(shown):
        if first is None:
            continue
        here = extras.order == at
        n = np.bincount(worker[here], minlength=responses.n_workers)
        chosen = np.bincount(worker[here & (label == first)], minlength=responses.n_workers)
        shares.append(np.where(n > 0, chosen / np.maximum(n, 1), np.nan))
    known = np.isfinite(shares).all(axis=0)
    return np.where(known, np.mean(shares, axis=0), np.nan)


def first_classes(orders: Sequence[str], classes: Ids) -> list[int | None]:
    """Return the class that each order shows first; None where its name does not tell.

    >>> first_classes(["12", "21"], Ids(["1", "2"]))
    [0, 1]
    >>> first_classes(["False", "True"], Ids(["A", "B", "tie"]))
    [0, 1]
    """
    texts = [str(name).casefold() for name in classes]
    swapped = {"false": 0, "0": 0, "no": 0, "original": 0, "true": 1, "yes": 1, "swapped": 1}
    if "0" in orders:  # beside 0, a 1 is no name of an answer
        swapped["1"] = 1
    if len(texts) >= 2 and all(name.casefold() in swapped for name in orders):
        return [swapped[name.casefold()] for name in orders]
    return [_first_class(name.casefold(), texts) for name in orders]


def _first_class(order: str, classes: Sequence[str]) -> int | None:
    """Return the longest class that the name of an order begins with, or else ends by its first."""
    starts = [k for k, text in enumerate(classes) if order.startswith(text)]
    ends = [k for k, text in enumerate(classes) if text and text[-1:] == order[:1]]
    return max(starts or ends, key=lambda k: len(classes[k]), default=None)


def _tell(responses: Responses, found: Runs) -> None:
    if responses.n_repeats:
        parts = []
        if any(row.n_repeated for row in found.workers):
            parts.append(f"runs err together by {found.run_correlation:.2f}")
        if any(row.n_both for row in found.workers):
            parts.append(f"orders by {found.order_correlation:.2f}")
        why = f" ({', '.join(parts)})" if parts else ""
        size = replace(responses, runs=found).size()
        note(f"{size}: all are kept, with less weight each{why} (repeats='runs').")


def _tell_confidence(weight: Floats) -> None:
    """Say so where stated confidence changes what responses count."""
    if weight.min() < 1.0 - TOLD or weight.max() > 1.0 + TOLD:
        note(
            "Column 'confidence' counts as far as it predicts agreement with others: weights from "
            f"{weight.min():.2f} to {weight.max():.2f}. If it means something else, rename it."
        )
