"""Runs: what several responses of one worker to one task are worth.

    read                                                kept
    task a, judge gpt: yes yes yes no  (ρ = .7)         yes, weight 3 / 3.1; no, weight 1 / 3.1

Runs of one judge err together: ρ says how much, 0 (as independent as different judges) to 1 (one
vote in all), and k runs count as one with weight k / (1 + (k − 1) ρ). It is learnt from the runs
themselves. With θ the confusion of a judge, as the *other* workers of each task see it, two
independent runs agree with chance e = Σ_k q(k) Σ_l θ(k, l)²; they agree with chance a;
ρ = (a − e) / (1 − e), [eq:runs], pooled over judges. A sitting is what one worker said to one task
in one order of presentation; orders have a correlation of their own between them.

Nothing here needs gold. Where the others are often wrong, θ looks flatter than it is, e is too low
and ρ too high: runs then count for less, which is the safe side.

Equal answers of a worker to a task become one response with the sum of their weights, which every
fit takes for the same: eight runs need hardly more memory than one.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.data import confidence
from tiebreak.data.ids import Ids
from tiebreak.data.responses import Responses
from tiebreak.errors import note
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats, Mask

EXPECTED = 0.7  # ρ of one judge over its runs on rewardbench2 (judges there: .54 to .86)
LEAST = 0.35  # ρ below which no judge's runs go: they share no less than different people do
VOTE_RIGHT = 0.75  # how often a vote is taken to be right when the class of a task is guessed
PRIOR_TASKS = 20.0  # so many tasks on which runs could disagree stand for what is expected
CELLS_AT_ONCE = 1 << 22  # responses × classes: memory for some tasks, not of all
MOST_PARTS = 16  # of so many tasks that ρ is learnt from: sums of millions of runs need no more
MOST_CELLS = 1 << 26  # judges × classes²; beyond it all judges share one confusion
EQUAL = 1e-9  # weights that differ by less, as a share, are a tie
CONFIDENCE_NOTED = 0.05  # confidence that changes weights by less is not mentioned

Places = npt.NDArray[np.int64]


class WorkerRuns(NamedTuple):
    """What the runs of one worker show; nan where there are too few of them."""

    worker: Hashable
    n_repeated: int  # sittings with two runs or more
    self_agreement: float  # chance that two runs of a sitting agree
    run_correlation: float  # ρ of runs
    n_both: int  # tasks seen in two orders or more
    flip_rate: float  # chance that the verdict changes with the order
    first_preference: float  # share of verdicts for what was shown first
    order_correlation: float  # ρ of orders
    group: str | None = None  # family
    slope: float = np.nan  # of stated confidence: 0 tells nothing, 1 is taken at its word


@dataclass(frozen=True)
class Runs:
    """What repeated runs, orders and stated confidence showed when responses were read."""

    workers: tuple[WorkerRuns, ...] = field(repr=False)
    run_correlation: float  # over all workers
    order_correlation: float
    n_repeats: int
    n_given: int  # responses that were read, before equal ones were joined
    least_times: int  # that a worker answered one task
    most_times: int

    def of(self, worker: Hashable) -> WorkerRuns | None:
        """Return what is known of a worker; None where it is not among them."""
        return next((each for each in self.workers if each.worker == worker), None)

    def groups(self) -> dict[Hashable, str]:
        """Return the family of each worker that has one."""
        return {each.worker: each.group for each in self.workers if each.group is not None}

    def joined(self, newer: Runs | None, n_given: int) -> Runs:
        """Return what is known of all workers, where more responses came since."""
        known = {each.worker for each in self.workers}
        others = () if newer is None else newer.workers
        return replace(
            self,
            workers=(*self.workers, *(each for each in others if each.worker not in known)),
            n_given=n_given,
            least_times=1,
            most_times=1,  # not known: who answers a task anew takes earlier answers back
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text; None where unknown."""
        rows = [[None if value != value else value for value in row] for row in self.workers]
        return {**vars(self), "workers": rows}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Runs:
        """Read what `to_dict` has made."""
        at_group = WorkerRuns._fields.index("group")
        rows: Iterable[Any] = (
            [np.nan if v is None and i != at_group else v for i, v in enumerate(row)]
            for row in found["workers"]
        )
        return cls(**{**found, "workers": tuple(WorkerRuns(*row) for row in rows)})


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
    is_new = _changes(responses.task_of_each(), responses.worker_of_each())
    times = np.diff(np.flatnonzero(is_new), append=responses.n_responses)
    responses = replace(responses, n_repeats=responses.n_responses - len(times))
    if not (responses.n_repeats or extras.is_given):
        return responses
    learnt = _Learnt(responses, extras.order)
    slopes = None
    by_confidence = None
    if extras.confidence is not None and np.isfinite(extras.confidence).any():
        slopes = _confidence_slopes(responses, extras.confidence)
        by_confidence = confidence.weights(responses, extras.confidence, slopes)
        low, high = by_confidence.min(), by_confidence.max()
        if low < 1.0 - CONFIDENCE_NOTED or high > 1.0 + CONFIDENCE_NOTED:
            note("confidence-weighed", low=low, high=high)
    runs = Runs(
        _rows(responses, extras, learnt, slopes),
        learnt.pooled_runs,
        learnt.pooled_orders,
        responses.n_repeats,
        responses.n_responses,
        int(times.min(initial=responses.n_responses or 1)),
        int(times.max(initial=1)),
    )
    weighed = replace(responses, runs=runs)
    if responses.n_repeats:
        has_runs = any(row.n_repeated for row in runs.workers)
        has_orders = any(row.n_both for row in runs.workers)
        note(
            "runs-weighed",
            size=weighed.size(),
            of_runs=runs.run_correlation if has_runs else None,
            of_orders=runs.order_correlation if has_orders else None,
        )
    elif responses.weight is None and by_confidence is None:
        return weighed  # nothing to weigh: fits stay what they were
    weight = learnt.weights(responses, extras.order)
    for more in (responses.weight, by_confidence):
        weight = weight if more is None else weight * more
    task = responses.task_of_each()
    first = np.flatnonzero(_changes(task, responses.code))
    return replace(
        weighed,
        start=_starts(task[first], responses),
        code=responses.code[first],
        weight=np.add.reduceat(weight, first) if len(first) else weight,
    )


def vote(responses: Responses) -> tuple[Responses, int]:
    """Keep what each worker said most often on each task; return how many ties keep nothing.

    task a, worker gpt: yes yes no     → yes
    task b, worker gpt: yes no         → no vote: a tie

    Responses that carry weights vote by them; the one that is kept has the mean of those that won.
    """
    if not responses.n_responses:
        return responses, 0
    task = responses.task_of_each()
    first = np.flatnonzero(_changes(task, responses.code))  # of each answer of a worker to a task
    n_runs = np.diff(first, append=responses.n_responses)
    total = n_runs if responses.weight is None else np.add.reduceat(responses.weight, first)
    task = task[first]
    is_new = _changes(task, responses.worker_of_each()[first])
    pair = np.cumsum(is_new) - 1
    most = np.maximum.reduceat(total, np.flatnonzero(is_new))
    is_most = total >= most[pair] * (1.0 - EQUAL)
    n_winners = np.bincount(pair[is_most])
    kept = is_most & (n_winners[pair] == 1)
    voted = replace(
        responses,
        start=_starts(task[kept], responses),
        code=responses.code[first[kept]],
        weight=None if responses.weight is None else (total / n_runs)[kept],
    )
    return voted, int(np.count_nonzero(n_winners > 1))


def plurality(responses: Responses) -> Responses:
    """Return one response of each worker to each task, the one that weighs most; a tie gives none.

    What measures agreement or errors of workers wants each of them once. Responses that were not
    weighed by runs are returned as they are.
    """
    if responses.runs is None or responses.weight is None:
        return responses
    return replace(vote(responses)[0], weight=None)


def first_classes(orders: Sequence[str], classes: Ids) -> list[int | None]:
    """Return the class that each order shows first; None where its name does not tell.

    >>> first_classes(["12", "21"], Ids(["1", "2"]))
    [0, 1]
    >>> first_classes(["False", "True"], Ids(["A", "B", "tie"]))
    [0, 1]
    """
    texts = [str(name).casefold() for name in classes]
    names = [order.casefold() for order in orders]
    swapped = {"false": 0, "0": 0, "no": 0, "original": 0, "true": 1, "yes": 1, "swapped": 1}
    if "0" in orders:  # beside 0, a 1 is no name of an answer
        swapped["1"] = 1
    if len(texts) >= 2 and all(name in swapped for name in names):
        return [swapped[name] for name in names]
    found: list[int | None] = []
    for name in names:  # the longest class that it begins with, or else one that ends by its first
        starts = [k for k, text in enumerate(texts) if name.startswith(text)]
        ends = [k for k, text in enumerate(texts) if text and text[-1:] == name[:1]]
        found.append(max(starts or ends, key=lambda k: len(texts[k]), default=None))
    return found


def _changes(task: Codes, value: Codes) -> Mask:
    """Tell where a row differs from the one before it; the first always does."""
    is_new = np.ones(len(task), dtype=bool)
    is_new[1:] = (np.diff(task) != 0) | (np.diff(value) != 0)
    return is_new


def _starts(task: Codes, like: Responses) -> Places:
    """Return where the rows of each task begin."""
    n_each = np.bincount(task, minlength=like.n_tasks)
    return np.concatenate([[0], np.cumsum(n_each)]).astype(like.start.dtype)


# How much runs and orders err together


class Sittings:
    """The responses of some tasks: each sitting is one worker, one task, one order."""

    def __init__(self, responses: Responses, low: int, high: int, order: Codes | None) -> None:
        start, n_classes = responses.start, responses.n_classes
        self.rows = slice(int(start[low]), int(start[high]))  # of these tasks
        task = np.repeat(np.arange(high - low), np.diff(start[low : high + 1]))
        worker, label = np.divmod(responses.code[self.rows].astype(np.int64), n_classes)
        shown = np.zeros_like(task) if order is None else order[self.rows].astype(np.int64) + 1
        n_shown = int(shown.max(initial=0)) + 1
        n_workers = int(worker.max(initial=0)) + 1
        key = (task * n_workers + worker) * n_shown + shown
        if order is None:  # sorted by task and worker already
            is_new = np.diff(key, prepend=-1) != 0
            self.response = np.cumsum(is_new) - 1  # the sitting of each response
            kept = key[is_new]
        else:
            kept, self.response = np.unique(key, return_inverse=True)
        self.n_runs = np.bincount(self.response, minlength=len(kept)).astype(np.float64)
        cells = self.response * n_classes + label
        counts = np.bincount(cells, minlength=len(kept) * n_classes).reshape(-1, n_classes)
        self.share = counts / self.n_runs[:, None]  # (n, n_classes) of its runs, for each label
        self.task, self.worker = np.divmod(kept // n_shown, n_workers)  # tasks from 0
        self.pair = np.cumsum(np.diff(kept // n_shown, prepend=-1) != 0) - 1  # worker and task
        # Orders in which this worker saw this task.
        self.n_orders = np.bincount(self.pair, minlength=1)[self.pair].astype(np.float64)

    def other_votes(self) -> tuple[Floats, Mask]:
        """Return what the other workers of a sitting's task say of its class, and if any do."""
        n_classes = self.share.shape[1]
        n_tasks = int(self.task.max(initial=-1)) + 1
        votes = np.zeros((n_tasks, n_classes))
        np.add.at(votes, self.task, self.share / self.n_orders[:, None])
        n_voters = np.bincount(self.task, weights=1.0 / self.n_orders, minlength=n_tasks)
        # A worker's own vote is what it gave over all its orders; taking out this order's share, m
        # times, is the same in the mean and needs no second table.
        rest = np.maximum(votes[self.task] - self.share, 0.0)
        n_others = rest.sum(axis=1)
        has_others = (n_voters[self.task] > 1.0 + 1e-9) & (n_others > 1e-9)
        # A vote is worth log-odds of VOTE_RIGHT, and n votes count as n that share errors.
        odds = np.log(VOTE_RIGHT * max(n_classes - 1, 1) / (1.0 - VOTE_RIGHT))
        scale = odds / (1.0 + LEAST * np.maximum(n_others - 1.0, 0.0))
        return softmax(scale[:, None] * rest), has_others


def _parts(responses: Responses) -> list[tuple[int, int]]:
    """Cut tasks into ranges of so many responses that their tables stay small."""
    most = max(CELLS_AT_ONCE // max(responses.n_classes, 1), 1)
    edges = [0]
    while edges[-1] < responses.n_tasks:
        until = responses.start[edges[-1]] + most
        high = int(np.searchsorted(responses.start, until, side="right")) - 1
        edges.append(min(max(high, edges[-1] + 1), responses.n_tasks))
    return list(itertools.pairwise(edges))


class _Learnt:
    """How much the runs, and the orders, of each worker err together.

    `runs` and `orders` are sums over workers, (4, n_workers): n, agreements, those beyond chance,
    the most of these. `of_runs` is ρ of each worker.
    """

    def __init__(self, responses: Responses, order: Codes | None) -> None:
        ranges = _parts(responses)
        ranges = ranges[:: -(-len(ranges) // MOST_PARTS) or 1]
        spread = _squared_confusions(responses, order, ranges)
        self.runs = np.zeros((4, responses.n_workers))
        self.orders = np.zeros((4, responses.n_workers))
        for low, high in ranges:
            each = Sittings(responses, low, high, order)
            others, has_others = each.other_votes()
            expected = (others * spread[each.worker]).sum(axis=1)
            several = (each.n_runs > 1.0) & has_others
            k = each.n_runs[several]
            same = np.square(each.share[several]).sum(axis=1) * k**2
            agree = (same - k) / (k * (k - 1.0))  # of two of its runs
            _add(self.runs, each.worker[several], agree, expected[several], np.ones(len(k)))
            for apart in range(1, int(each.n_orders.max(initial=1.0))):  # orders are neighbours
                left = np.flatnonzero(each.pair[apart:] == each.pair[:-apart])
                left = left[has_others[left] & has_others[left + apart]]
                right = left + apart
                m = each.n_orders[left]
                agree = (each.share[left] * each.share[right]).sum(axis=1)
                chance = (expected[left] + expected[right]) / 2.0
                _add(self.orders, each.worker[left], agree, chance, 2.0 / (m * (m - 1.0)))
        of_runs, self.pooled_runs = _correlations(self.runs)
        # A judge that flips with the order looks as if its two verdicts erred apart. It is not
        # worth more than one that does not: orders have one correlation for all judges.
        self.of_runs = np.maximum(of_runs, LEAST)
        self.pooled_orders = _correlations(self.orders)[1]

    def weights(self, responses: Responses, order: Codes | None) -> Floats:
        """Return what each response counts: 1 / (1 + ρ (k − 1)) for runs, and again for orders."""
        weight = np.empty(responses.n_responses)
        for low, high in _parts(responses):
            each = Sittings(responses, low, high, order)
            of_runs = 1.0 + self.of_runs[each.worker] * (each.n_runs - 1.0)
            of_orders = 1.0 + self.pooled_orders * (each.n_orders - 1.0)
            weight[each.rows] = (1.0 / (of_runs * of_orders))[each.response]
        return weight


def _squared_confusions(
    responses: Responses, order: Codes | None, ranges: list[tuple[int, int]]
) -> Floats:
    """Return Σ_l θ_j(k, l)², (n_workers, n_classes), θ as the other workers see it."""
    n_workers, n_classes = responses.n_workers, responses.n_classes
    one_for_all = n_workers * n_classes**2 > MOST_CELLS
    counts = np.zeros((1 if one_for_all else n_workers, n_classes, n_classes))
    for low, high in ranges:
        each = Sittings(responses, low, high, order)
        others, has_others = each.other_votes()
        by_worker = np.argsort(each.worker, kind="stable")
        by_worker = by_worker[has_others[by_worker]]
        who = np.zeros(len(by_worker), np.int64) if one_for_all else each.worker[by_worker]
        edges = np.flatnonzero(np.diff(who, prepend=-1, append=-1))
        for a, b in itertools.pairwise(edges):
            members = by_worker[a:b]
            counts[who[a]] += others[members].T @ each.share[members]
    # One answer of each kind is added, as in the prior of workers, so that no row is empty.
    theta = counts + np.eye(n_classes) + 1.0 / n_classes
    theta /= theta.sum(axis=2, keepdims=True)
    return np.broadcast_to(np.square(theta).sum(axis=2), (n_workers, n_classes))


def _add(sums: Floats, worker: Places, agree: Floats, chance: Floats, times: Floats) -> None:
    ones = np.ones(len(worker))
    for row, value in zip(sums, (ones, agree, agree - chance, 1.0 - chance), strict=True):
        row += np.bincount(worker, weights=times * value, minlength=len(row))


def _correlations(sums: Floats) -> tuple[Floats, float]:
    """Return ρ of each worker and of all, drawn towards each other: [eq:runs]."""
    _, _, excess, room = sums
    pooled = (excess.sum() + PRIOR_TASKS * EXPECTED) / (room.sum() + PRIOR_TASKS)
    pooled = float(np.clip(pooled, 0.0, 1.0))
    return np.clip((excess + PRIOR_TASKS * pooled) / (room + PRIOR_TASKS), 0.0, 1.0), pooled


def _confidence_slopes(responses: Responses, stated: Floats) -> Floats:
    """Learn what the stated confidence of each worker is worth, from how others voted."""
    agree, count = np.zeros((2, responses.n_workers, len(confidence.LEVELS)))
    for low, high in _parts(responses):
        each = Sittings(responses, low, high, None)
        others, has_others = each.other_votes()
        used = np.isfinite(stated[each.rows]) & has_others[each.response]
        sitting = each.response[used]
        same = others[sitting, responses.code[each.rows][used] % responses.n_classes]
        at = (each.worker[sitting], confidence.level_of(stated[each.rows][used]))
        np.add.at(agree, at, same)
        np.add.at(count, at, 1.0)
    return confidence.learn_slopes(agree, count)


def _rows(
    responses: Responses, extras: Extras, learnt: _Learnt, slopes: Floats | None
) -> tuple[WorkerRuns, ...]:
    """Name what was learnt by worker."""
    n_repeated, agreements = learnt.runs[:2]
    n_both, same = learnt.orders[:2]
    with np.errstate(invalid="ignore", divide="ignore"):
        agreement = agreements / n_repeated
        flips = (n_both - same) / n_both
    first = _first_preference(responses, extras)
    return tuple(
        WorkerRuns(
            worker,
            round(n_repeated[j]),
            float(agreement[j]),
            float(learnt.of_runs[j]) if n_repeated[j] else np.nan,
            round(n_both[j]),
            float(flips[j]),
            float(first[j]),
            learnt.pooled_orders if n_both[j] else np.nan,
            extras.groups.get(j),
            np.nan if slopes is None else float(slopes[1, j]),
        )
        for j, worker in enumerate(responses.workers)
    )


def _first_preference(responses: Responses, extras: Extras) -> Floats:
    """Return the share of verdicts for what was shown first, (n_workers,); nan where unknown.

    Each order counts alike, so that a class that is right more often in one order does not show.
    """
    n_workers = responses.n_workers
    unknown = np.full(n_workers, np.nan)
    if extras.order is None:
        return unknown
    worker = responses.worker_of_each()
    label = responses.label_of_each()
    shares = []
    for at, first in enumerate(first_classes(extras.order_names, responses.classes)):
        if first is not None:
            here = extras.order == at
            n = np.bincount(worker[here], minlength=n_workers)
            chosen = np.bincount(worker[here & (label == first)], minlength=n_workers)
            shares.append(np.where(n > 0, chosen / np.maximum(n, 1), np.nan))
    return np.mean(shares, axis=0) if shares else unknown
