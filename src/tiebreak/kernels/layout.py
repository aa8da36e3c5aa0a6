"""How arrays lie: responses by task, links by group.

Responses are sorted by task. One response is one number, `code = worker · K + label`, and every
table that it looks up lies as `[code, truth]`, so that a response is one gather of K neighbours.
Three tasks, two workers, K = 2; worker 0 says 1, 0, 1 and worker 1 says 1 on the first and last:

    task       0        1     2
    worker     0  1     0     0  1
    label      1  1     0     1  1
    code       1  3     0     1  3      start = [0, 2, 3, 5]
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Roles = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]

# What a sweep does with a row: updates it, keeps and counts it, or leaves it to somebody else.
FREE = 0
KNOWN = 1
AWAY = 2


MAX_CHUNKS = 16
TASKS_AT_ONCE = 1 << 16
RESPONSES_PER_CHUNK = 150_000
# Chunks have accumulators of their own while all of these together are no larger than so:
ACCUMULATOR_BYTES = 256 << 20
ACCUMULATOR_BYTES_A_RESPONSE = 8


class ByCode(NamedTuple):
    """The tasks with code c are task[start[c]:start[c + 1]], in ascending order.

    `edges` cuts the codes into shards with about as many responses each. A code is counted by one
    thread, so that no accumulators are needed but the counts themselves.
    """

    start: Offsets  # (n_codes + 1,)
    task: Codes  # (n_responses,)
    edges: Offsets  # (n_shards + 1,)
    weight: Floats | None = None  # (n_responses,) in the same order; None: one each


class SortedByTask(Protocol):
    """Responses that lie by task: of kernels, of a crowd, or mapped from files."""

    @property
    def start(self) -> Offsets:
        """(n_tasks + 1,) where the responses of each task begin."""

    @property
    def code(self) -> Codes:
        """(n_responses,) worker · K + label."""

    @property
    def weight(self) -> Floats | None:
        """(n_responses,) how often each counts; None: once."""


class ByTask(NamedTuple):
    """The responses of task i are code[start[i]:start[i + 1]].

    `edges` cuts the tasks into chunks with about as many responses each. Their number depends on
    the input alone, so that sums over chunks have the same bits for any number of threads.
    """

    start: Offsets  # (n_tasks + 1,)
    code: Codes  # (n_responses,) worker · K + label
    role: Roles  # (n_tasks,) FREE, KNOWN or AWAY
    edges: Offsets  # (n_chunks + 1,)
    n_codes: int  # n_workers · K
    by_code: ByCode | None = None  # where chunks cannot afford accumulators of their own
    weight: Floats | None = None  # (n_responses,) > 0: how often each counts; None: one each
    rounder: float | None = None  # what q is rounded by where it is counted; None: it is not

    @property
    def n_tasks(self) -> int:
        return len(self.role)

    def task_of_each(self) -> Offsets:
        """Make the column of tasks, (n_responses,)."""
        return np.repeat(np.arange(self.n_tasks), np.diff(self.start))

    @property
    def is_counted(self) -> Mask:
        return np.asarray(self.role != AWAY)


class Swept(NamedTuple):
    """What one pass over the tasks gives."""

    counts: Floats  # (n_codes, n_classes): Σ weight · q over the responses with each code
    totals: Floats  # (n_classes,): Σ q over tasks
    change: float  # largest change of any q
    entropy: float  # Σ H(q) over the free tasks

    def plus(self, other: Swept) -> Swept:
        """Add up two passes over different tasks: always in the same order, for the same bits."""
        return Swept(
            self.counts + other.counts,
            self.totals + other.totals,
            max(self.change, other.change),
            self.entropy + other.entropy,
        )


class ByGroup(NamedTuple):
    """Linked tasks by group, and weighted links between groups.

    With closure a group is a must-component: its members pull each other with `pull` = 1, and
    each pair of cannot-linked groups is one link of weight −1. Without closure every task is a
    group of its own (`pull` = 0) and links keep their own signed weights.
    """

    task: Codes  # (n_linked,) task of each member, sorted by group, then by task
    group: Codes  # (n_linked,) its group
    pull: float
    start: Offsets  # (n_groups + 1,) where the links of a group start
    other: Codes  # (2 · n_links,) the group at the other end
    weight: Floats  # (2 · n_links,) > 0 pulls, < 0 pushes

    @property
    def n_groups(self) -> int:
        return len(self.start) - 1


def lay_out(
    start: Offsets,
    code: Codes,
    role: Roles,
    n_codes: int,
    n_classes: int,
    weight: Floats | None = None,
) -> ByTask:
    """Cut responses, sorted by task, into chunks; count by code where chunks cost too much."""
    start = _sealed(start)
    code = _sealed(code)
    weight = None if weight is None else _sealed(np.ascontiguousarray(weight, dtype=np.float64))
    edges = chunk_edges(start, n_codes * n_classes * 8)
    n_wanted = _n_chunks(start)
    if len(edges) > 2 or n_wanted < 2:
        return ByTask(start, code, role, edges, n_codes, weight=weight)
    by_code = _by_code(start, code, n_codes, n_wanted, weight)
    return ByTask(start, code, role, _cut(start, n_wanted), n_codes, by_code, weight)


def rounder_for(n_tasks: float) -> float:
    """Return what rounds q so that sums over as many tasks are exact in any order.

    [eq:exact-sums]: 1.5 · 2^e with 2^e ≥ n_tasks. Multiples of 2^(e − 52) whose sum is below
    2^(e + 1) are added without rounding.
    """
    return float(1.5 * 2.0 ** max(1, (int(n_tasks) - 1).bit_length()))


def rounded(values: Floats, rounder: float | None) -> Floats:
    """Return values as multiples of what the last bit of the rounder stands for.

    >>> rounded(np.array([0.1, 0.7]), 1.5 * 2.0**50).tolist()
    [0.0, 0.75]
    """
    return values if rounder is None else np.asarray((values + rounder) - rounder)


def part_of(tasks: ByTask, at: Codes | slice, n_classes: int) -> ByTask:
    """Lay out some tasks by themselves, in the order of `at`; those of a slice are not copied.

    >>> start = np.array([0, 2, 3, 5])
    >>> code = np.array([1, 3, 0, 1, 3], dtype=np.int32)
    >>> whole = lay_out(start, code, np.zeros(3, np.int8), 4, 2)
    >>> part = part_of(whole, slice(1, 3), 2)
    >>> part.start.tolist(), part.code.tolist()
    ([0, 1, 3], [0, 1, 3])
    """
    if isinstance(at, slice):
        start = tasks.start[at.start : at.stop + 1]
        inside = slice(int(start[0]), int(start[-1]))
        start, code = start - inside.start, tasks.code[inside]
        weight = None if tasks.weight is None else tasks.weight[inside]
    else:
        start, code = responses_on(tasks, at)
        weight = weights_on(tasks, at)
    return ByTask(
        _sealed(start),
        _sealed(code),
        tasks.role[at],
        chunk_edges(start, tasks.n_codes * n_classes * 8),
        tasks.n_codes,
        weight=None if weight is None else _sealed(weight),
        rounder=tasks.rounder,
    )


def responses_on(tasks: SortedByTask, at: Codes) -> tuple[Offsets, Codes]:
    """Return the responses on some tasks, and where those on each begin, in the order of `at`."""
    start = _starts_on(tasks, at)
    return start, _gather(tasks.code, tasks, at, start)


def weights_on(tasks: SortedByTask, at: Codes) -> Floats | None:
    """Return the weights of `responses_on` the same tasks; None where each response has one."""
    if tasks.weight is None:
        return None
    return _gather(tasks.weight, tasks, at, _starts_on(tasks, at))


def weights_or_ones(weight: Floats | None, n_responses: int) -> Floats:
    """Return the weights of so many responses: 1 each, where they have none."""
    return np.ones(n_responses) if weight is None else weight


TIED = 1e-9  # probabilities that differ by less are equal: sums in another order differ so


def total_weights(start: Offsets, weight: Floats | None) -> Floats:
    """Return the number of responses of each task, by weight, (n_tasks,).

    >>> total_weights(np.array([0, 2, 3]), np.array([0.5, 1.0, 2.0])).tolist()
    [1.5, 2.0]
    """
    if weight is None:
        return np.subtract(start[1:], start[:-1], dtype=np.float64)
    sums = np.concatenate([[0.0], np.cumsum(weight)])
    return np.asarray(np.diff(sums[start]))


def _starts_on(tasks: SortedByTask, at: Codes) -> Offsets:
    return np.concatenate([[0], np.cumsum(tasks.start[at + 1] - tasks.start[at])])


def _gather(
    column: npt.NDArray[Any], tasks: SortedByTask, at: Codes, start: Offsets
) -> npt.NDArray[Any]:
    """Return what a column holds of the responses on some tasks; `start` is where they go."""
    out = np.empty(start[-1], dtype=column.dtype)
    for low in range(0, len(at), TASKS_AT_ONCE):  # places take more memory than responses
        high = min(low + TASKS_AT_ONCE, len(at))
        shift = tasks.start[at[low:high]] - start[low:high]
        place = np.arange(start[low], start[high])
        place += np.repeat(shift, np.diff(start[low : high + 1]))
        np.take(column, place, out=out[start[low] : start[high]])
    return out


def chunk_edges(start: Offsets, accumulator_bytes: int) -> Offsets:
    """Cut tasks into chunks of about equal work, as many as their accumulators may cost."""
    limit = min(ACCUMULATOR_BYTES, ACCUMULATOR_BYTES_A_RESPONSE * int(start[-1]))
    affordable = limit // max(accumulator_bytes, 1)
    return _cut(start, max(1, min(_n_chunks(start), affordable)))


def _sealed(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view that cannot be written to: kernels are compiled for that alone, and once."""
    view = column.view()
    view.flags.writeable = False
    return view


def _n_chunks(start: Offsets) -> int:
    """Return how many chunks are worth their while: a number of the input alone."""
    work = int(start[-1]) + len(start) - 1
    return max(1, min(MAX_CHUNKS, work // RESPONSES_PER_CHUNK))


def _cut(start: Offsets, n_parts: int) -> Offsets:
    """Cut tasks into parts of about equal work; a task without responses costs something too.

    The work up to a task is looked up where it is needed: a column of it takes as long as a sweep.
    """
    n_tasks = len(start) - 1
    wanted = np.linspace(0, int(start[-1]) + n_tasks, n_parts + 1)[1:-1].tolist()
    tasks = range(n_tasks + 1)
    cuts = [bisect_left(tasks, work, key=lambda task: int(start[task]) + task) for work in wanted]
    return np.array([0, *cuts, n_tasks], dtype=np.int64)


def _by_code(
    start: Offsets, code: Codes, n_codes: int, n_shards: int, weight: Floats | None = None
) -> ByCode:
    """Sort responses, given in the order of tasks, by code."""
    task = np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))
    first = np.zeros(n_codes + 1, dtype=np.int64)
    np.cumsum(np.bincount(code, minlength=n_codes), out=first[1:])
    order = np.argsort(code, kind="stable")
    edges = _cut(first, n_shards)
    return ByCode(first, task[order], edges, None if weight is None else _sealed(weight[order]))


def by_group(
    task: Codes, group: Codes, pull: float, links: tuple[Codes, Codes, Floats], n_groups: int
) -> ByGroup:
    """Lay out members by group, and links (left, right, weight) between groups from both ends."""
    left, right, weight = links
    members = np.lexsort((task, group))
    ends = np.concatenate([left, right])
    others = np.concatenate([right, left])
    order = np.argsort(ends, kind="stable")
    start = np.zeros(n_groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=n_groups), out=start[1:])
    return ByGroup(
        np.ascontiguousarray(task[members], dtype=np.int32),
        np.ascontiguousarray(group[members], dtype=np.int32),
        float(pull),
        start,
        others[order].astype(np.int32),
        np.concatenate([weight, weight])[order].astype(np.float64),
    )
