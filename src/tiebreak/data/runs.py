"""Repeated runs: what several responses of one worker to one task are worth.

    task a, judge gpt: yes yes yes no   four runs in one sitting, each with weight 1 / (1 + 3 ρ)

Runs of one judge err together: ρ says how much, 0 (as apart as different judges) to 1 (one vote in
all). It is learnt from the runs themselves. With θ the confusion of a judge, as the *other* workers
of each task see it, two runs that err apart agree with chance e = Σ_k q(k) Σ_l θ(k, l)²; they agree
with chance a; ρ = (a − e) / (1 − e), [eq:runs], pooled over judges. The orders in which answers
were shown are sittings of their own, with a correlation of their own between them.

Nothing here needs gold. Where the others are often wrong, θ looks flatter than it is, e is too low
and ρ too high: runs then count for less, which is the safe side.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.data.ids import Ids
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import Codes, Floats, Mask, Offsets

EXPECTED = 0.7  # ρ of one judge over its runs on rewardbench2 (judges there: .54 to .86)
LEAST = 0.35  # ρ below which no judge's runs go: they share no less than different people do
VOTE_RIGHT = 0.75  # how often a vote is taken to be right when the class of a task is guessed
PRIOR_TASKS = 20.0  # so many tasks on which runs could disagree stand for what is expected
CELLS_AT_ONCE = 1 << 22  # pairs × classes: memory for some tasks, not of all
MOST_PARTS = 16  # of so many tasks that ρ is learnt from
MOST_CELLS = 1 << 26  # judges × classes²; beyond it only accuracies are kept

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text; None where unknown."""
        rows = [[None if value != value else value for value in row[1:]] for row in self.workers]
        times = [self.n_repeats, self.n_given, self.least_times, self.most_times]
        sums = [self.run_correlation, self.order_correlation, *times]
        return {"workers": rows, "codes": [row.worker for row in self.workers], "sums": sums}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Runs:
        """Read what `to_dict` has made."""
        names = WorkerRuns._fields[1:]
        rows = []
        for worker, values in zip(found["codes"], found["workers"], strict=True):
            known = dict(zip(names, values, strict=True))
            numbers: dict[str, Any] = {
                name: np.nan if value is None and name != "group" else value
                for name, value in known.items()
            }
            rows.append(WorkerRuns(worker, **numbers))
        return cls(tuple(rows), *found["sums"])

    def joined(self, newer: Runs | None, n_given: int) -> Runs:
        """Return what is known of all workers, where more responses came since."""
        others = () if newer is None else newer.workers
        known = {each.worker for each in self.workers}
        return replace(
            self,
            workers=(*self.workers, *(each for each in others if each.worker not in known)),
            n_given=n_given,
            least_times=1,
            most_times=1,  # not known: who answers a task anew takes earlier answers back
        )

    def groups(self) -> dict[Hashable, str]:
        """Return the family of each worker that has one."""
        return {each.worker: each.group for each in self.workers if each.group is not None}


class Sittings(NamedTuple):
    """Some tasks: each row is one worker, one task, one order."""

    task: Places  # (n,), from 0
    worker: Places  # (n,)
    order: Places  # (n,)
    pair: Places  # (n,): which worker and task
    n_runs: Floats  # (n,)
    share: Floats  # (n, K): of its runs, for each label
    response: Places  # the sitting of each response
    n_orders: Floats  # (n,): orders in which this worker saw this task
    others: Floats  # (n, K): chance of each class, by the other workers of the task
    has_others: Mask  # (n,)


class LearntRuns(NamedTuple):
    """Sums over workers and their correlations; each (n_workers,)."""

    n_repeated: Floats
    agree: Floats
    run_correlation: Floats
    n_both: Floats
    flips: Floats
    order_correlation: Floats
    pooled_runs: float
    pooled_orders: float


class _Excess(NamedTuple):
    """Agreement beyond what runs that err apart have, and the most it could be."""

    n: Floats
    agree: Floats
    excess: Floats
    room: Floats


def learn(
    start: Offsets, code: Codes, n_workers: int, n_classes: int, order: Codes | None = None
) -> LearntRuns:
    """Learn how much the runs, and the orders, of each worker err together.

    Two runs of each of two judges, who agree with themselves wherever they are wrong:

    >>> start = np.array([0, 4, 8, 12])
    >>> code = np.array([0, 0, 2, 2, 1, 1, 3, 3, 0, 0, 3, 3])
    >>> bool(learn(start, code, 2, 2).run_correlation.min() > 0.7)
    True
    """
    ranges = _some(list(parts(start, n_classes)))
    spread = _squared_confusions(start, code, n_workers, n_classes, order, ranges)
    runs = _Excess(*(np.zeros(n_workers) for _ in range(4)))
    orders = _Excess(*(np.zeros(n_workers) for _ in range(4)))
    for low, high in ranges:
        each = sittings(start, code, low, high, n_classes, order)
        expected = (each.others * spread[each.worker]).sum(axis=1)
        _add_runs(runs, each, expected)
        _add_orders(orders, each, expected)
    rho_runs, pooled_runs = _correlations(runs)
    rho_runs = np.maximum(rho_runs, LEAST)
    _, pooled_orders = _correlations(orders)
    # A judge that flips with the order looks as if its two verdicts erred apart. It is not worth
    # more than one that does not: orders have one correlation for all judges.
    rho_orders = np.full(n_workers, pooled_orders)
    return LearntRuns(
        runs.n,
        runs.agree,
        rho_runs,
        orders.n,
        orders.n - orders.agree,
        rho_orders,
        pooled_runs,
        pooled_orders,
    )


def weights(
    start: Offsets,
    code: Codes,
    n_classes: int,
    learnt: LearntRuns,
    order: Codes | None,
    low: int,
    high: int,
) -> Floats:
    """Return what each response to tasks low to high counts, for runs and again for orders.

    1 / (1 + ρ (k − 1)), k the runs of a sitting, or the orders of a worker and task.
    """
    each = sittings(start, code, low, high, n_classes, order, with_others=False)
    of_runs = 1.0 + learnt.run_correlation[each.worker] * (each.n_runs - 1.0)
    of_orders = 1.0 + learnt.order_correlation[each.worker] * (each.n_orders - 1.0)
    return np.asarray((1.0 / (of_runs * of_orders))[each.response])


def _some(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return some of very many ranges, at equal steps: sums of millions of runs need no more."""
    step = -(-len(ranges) // MOST_PARTS)
    return ranges[::step] if ranges else ranges


def parts(start: Offsets, n_classes: int) -> Iterator[tuple[int, int]]:
    """Cut tasks into ranges of so many responses that their tables stay small."""
    most = max(CELLS_AT_ONCE // max(n_classes, 1), 1)
    low = 0
    n_tasks = len(start) - 1
    while low < n_tasks:
        high = int(np.searchsorted(start, start[low] + most, side="right")) - 1
        high = min(max(high, low + 1), n_tasks)
        yield low, high
        low = high


def sittings(
    start: Offsets,
    code: Codes,
    low: int,
    high: int,
    n_classes: int,
    order: Codes | None = None,
    *,
    with_others: bool = True,
) -> Sittings:
    """Gather the responses of tasks low to high by worker, task and order."""
    here = slice(int(start[low]), int(start[high]))
    task = np.repeat(np.arange(high - low), np.diff(start[low : high + 1]))
    worker, label = np.divmod(code[here].astype(np.int64), n_classes)
    shown = np.zeros(len(task), np.int64) if order is None else order[here].astype(np.int64) + 1
    n_shown = int(shown.max(initial=0)) + 1
    key = (task * (int(worker.max(initial=0)) + 1) + worker) * n_shown + shown
    if order is None:  # sorted by task and worker already
        is_new = np.diff(key, prepend=-1) != 0
        response = np.cumsum(is_new) - 1
        kept = key[is_new]
    else:
        kept, response = np.unique(key, return_inverse=True)
    n = len(kept)
    n_runs = np.bincount(response, minlength=n).astype(np.float64)
    counts = np.bincount(response * n_classes + label, minlength=n * n_classes)
    share = np.asarray(counts.reshape(n, n_classes) / n_runs[:, None])
    pair_key, sitting_order = np.divmod(kept, n_shown)
    sitting_task, sitting_worker = np.divmod(pair_key, int(worker.max(initial=0)) + 1)
    pair = np.cumsum(np.diff(pair_key, prepend=-1) != 0) - 1
    n_orders = np.bincount(pair, minlength=1)[pair].astype(np.float64)
    others = np.empty((0, n_classes))
    has_others = np.empty(0, dtype=bool)
    if with_others:
        others, has_others = _other_votes(sitting_task, share, n_orders, high - low)
    return Sittings(
        sitting_task,
        sitting_worker,
        sitting_order - 1,
        pair,
        n_runs,
        share,
        response,
        n_orders,
        others,
        has_others,
    )


def _other_votes(
    task: Places, share: Floats, n_orders: Floats, n_tasks: int
) -> tuple[Floats, Mask]:
    """Return what the other workers of each sitting's task say of its class, one vote each."""
    one_vote = share / n_orders[:, None]
    n_classes = share.shape[1]
    votes = np.zeros((n_tasks, n_classes))
    np.add.at(votes, task, one_vote)
    n_voters = np.bincount(task, weights=1.0 / n_orders, minlength=n_tasks)
    # A worker's own vote is what it gave over all its orders; taking out this order's share, m
    # times, is the same in the mean and needs no second table.
    rest = np.maximum(votes[task] - share, 0.0)
    n_others = rest.sum(axis=1)
    has_others = (n_voters[task] > 1.0 + 1e-9) & (n_others > 1e-9)
    # A vote is worth log-odds of VOTE_RIGHT, and n votes count as n that share errors.
    odds = np.log(VOTE_RIGHT * max(n_classes - 1, 1) / (1.0 - VOTE_RIGHT))
    scale = odds / (1.0 + LEAST * np.maximum(n_others - 1.0, 0.0))
    return softmax(scale[:, None] * rest), has_others


def _squared_confusions(
    start: Offsets,
    code: Codes,
    n_workers: int,
    n_classes: int,
    order: Codes | None,
    ranges: list[tuple[int, int]],
) -> Floats:
    """Return Σ_l θ_j(k, l)², (n_workers, n_classes), θ as the other workers see it."""
    one_for_all = n_workers * n_classes**2 > MOST_CELLS
    rows = 1 if one_for_all else n_workers
    counts = np.zeros((rows, n_classes, n_classes))
    for low, high in ranges:
        each = sittings(start, code, low, high, n_classes, order)
        by_worker = np.argsort(each.worker, kind="stable")
        by_worker = by_worker[each.has_others[by_worker]]
        who = np.zeros(len(by_worker), np.int64) if one_for_all else each.worker[by_worker]
        edges = np.flatnonzero(np.diff(who, prepend=-1, append=-1))
        for a, b in itertools.pairwise(edges):
            members = by_worker[a:b]
            counts[who[a]] += each.others[members].T @ each.share[members]
    # One answer of each kind is added, as in the prior of workers, so that no row is empty.
    theta = counts + np.eye(n_classes) + 1.0 / n_classes
    theta /= theta.sum(axis=2, keepdims=True)
    squared = np.square(theta).sum(axis=2)
    return np.asarray(np.broadcast_to(squared, (n_workers, n_classes)))


def _add_runs(total: _Excess, each: Sittings, expected: Floats) -> None:
    """Count sittings with several runs: do two of its runs agree, and should they?"""
    several = (each.n_runs > 1.0) & each.has_others
    k = each.n_runs[several]
    same = np.square(each.share[several]).sum(axis=1) * k**2
    agree = (same - k) / (k * (k - 1.0))
    _add(total, each.worker[several], agree, expected[several], np.ones(len(k)))


def _add_orders(total: _Excess, each: Sittings, expected: Floats) -> None:
    """Count pairs of orders of one worker and task, next to each other in `each`."""
    for apart in range(1, int(each.n_orders.max(initial=1.0))):
        left = np.flatnonzero(each.pair[apart:] == each.pair[:-apart])
        left = left[each.has_others[left] & each.has_others[left + apart]]
        right = left + apart
        m = each.n_orders[left]
        agree = (each.share[left] * each.share[right]).sum(axis=1)
        chance = (expected[left] + expected[right]) / 2.0
        _add(total, each.worker[left], agree, chance, 2.0 / (m * (m - 1.0)))


def _add(total: _Excess, worker: Places, agree: Floats, expected: Floats, times: Floats) -> None:
    size = len(total.n)
    total.n[:] += np.bincount(worker, weights=times, minlength=size)
    total.agree[:] += np.bincount(worker, weights=times * agree, minlength=size)
    total.excess[:] += np.bincount(worker, weights=times * (agree - expected), minlength=size)
    total.room[:] += np.bincount(worker, weights=times * (1.0 - expected), minlength=size)


def _correlations(found: _Excess) -> tuple[Floats, float]:
    """Return ρ of each worker and of all, drawn towards each other: [eq:runs]."""
    pooled = (found.excess.sum() + PRIOR_TASKS * EXPECTED) / (found.room.sum() + PRIOR_TASKS)
    pooled = float(np.clip(pooled, 0.0, 1.0))
    own = (found.excess + PRIOR_TASKS * pooled) / (found.room + PRIOR_TASKS)
    return np.clip(own, 0.0, 1.0), pooled


def summarise(
    learnt: LearntRuns, workers: Ids, first_preference: Floats, groups: Mapping[int, str]
) -> Runs:
    """Name what was learnt by worker."""
    with np.errstate(invalid="ignore", divide="ignore"):
        agreement = learnt.agree / learnt.n_repeated
        flips = learnt.flips / learnt.n_both
    rows = tuple(
        WorkerRuns(
            workers[j],
            round(learnt.n_repeated[j]),
            float(agreement[j]),
            float(learnt.run_correlation[j]) if learnt.n_repeated[j] else np.nan,
            round(learnt.n_both[j]),
            float(flips[j]),
            float(first_preference[j]),
            float(learnt.order_correlation[j]) if learnt.n_both[j] else np.nan,
            groups.get(j),
        )
        for j in range(len(workers))
    )
    return Runs(rows, learnt.pooled_runs, learnt.pooled_orders, 0, 0, 1, 1)
