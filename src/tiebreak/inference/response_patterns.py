"""Equal rows: tasks with the same responses become one row that counts for all of them.

A jury of five judges and three classes can give 243 different rows, however many tasks it saw.
Tasks with equal responses have equal q after every sweep, so that one of them says what all do.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.gold import GoldCodes
from tiebreak.kernels import layout
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import FREE, ByTask, Codes, Floats, Mask, Offsets, Swept
from tiebreak.kernels.reference import entropy
from tiebreak.link_graph import Implications, LinkCodes

LEAST_TASKS = 10_000  # below, sweeps take no time
LARGEST_SHARE = 0.25  # of rows among tasks: a row takes two passes where a task takes one
WINDOWS, WINDOW = 16, 512  # of tasks: the sample that says whether to look at all of them
SAMPLE_SHARE = 0.5
BLOCK = 1 << 20  # responses at a time: memory stays small beside the responses themselves

Keys = npt.NDArray[np.uint64]


class Rows(NamedTuple):
    """Tasks by row. Where equal ones do not pay, each task is a row: the last three are None."""

    tasks: ByTask  # one a row
    copies: Floats | None = None  # (n_rows,) how many tasks have this row
    row: Codes | None = None  # (n_tasks,) the row of each task
    head: Codes | None = None  # (n_rows,) the first task of each row

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each task the value of its row."""
        return values if self.row is None else values[self.row]

    def gather(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each row the value of its first task."""
        return values if self.head is None else values[self.head]

    def gold(self, gold: GoldCodes | None) -> GoldCodes | None:
        """Return gold by row."""
        if gold is None or self.row is None:
            return gold
        return gold._replace(task=self.row[gold.task])

    def links(self, links: LinkCodes | None) -> LinkCodes | None:
        """Return links by row; rows stand in the order of their tasks, so left stays left."""
        if links is None or self.row is None:
            return links
        return links._replace(left=self.row[links.left], right=self.row[links.right])

    def implied(self, implied: Implications | None) -> Implications | None:
        """Return what links imply by row: each task that has a link has a row of its own."""
        if implied is None or self.row is None:
            return implied
        return implied.renumbered(self.row)


def rows_of(tasks: ByTask, n_classes: int, alone: Mask, start: Floats | None = None) -> Rows:
    """Collapse equal rows where that pays, decided on a sample first.

    Parameters
    ----------
    tasks
        Responses by task, sorted within each task.
    alone
        (n_tasks,) tasks that keep a row of their own: those with a link or a known class.
    start
        (n_tasks, n_classes) where q starts, if it is not a function of the responses alone. Tasks
        that start apart are not equal, and then nothing collapses.
    """
    whole = Rows(tasks)
    if tasks.n_tasks < LEAST_TASKS:
        return whole
    salt = _salt(tasks.n_codes)
    if _distinct_in_sample(tasks, salt) > SAMPLE_SHARE:
        return whole
    rows = _by_head(tasks, n_classes, _heads(_keys(tasks, salt), alone))
    if rows.tasks.n_tasks > LARGEST_SHARE * tasks.n_tasks or not _are_equal(tasks, rows):
        return whole
    if start is not None and not np.array_equal(rows.spread(rows.gather(start)), start):
        return whole
    return rows


def special(n_tasks: int, links: LinkCodes | None, gold: GoldCodes | None) -> Mask:
    """Say which tasks have a link or a known class."""
    found = np.zeros(n_tasks, dtype=bool)
    if links is not None:
        found[links.left] = found[links.right] = True
    if gold is not None:
        found[gold.task] = True
    return found


def recount(
    swept: Swept,
    q: Floats,
    tasks: ByTask,
    copies: Floats,
    logs: tuple[Floats, Floats],
    backend: Backend,
    n_threads: int = 1,
) -> Swept:
    """Return what a sweep over rows gives when each counts for its tasks: [eq:equal-rows].

    Σ log Σ exp(u) of the free tasks is Σ ⟨q, u⟩ + H(q), and Σ ⟨q, u⟩ is a sum over counts.
    """
    chosen = tasks.is_counted
    counts, totals = backend.tally(weigh(q, copies), tasks, chosen, n_threads)
    uncertainty = counted_entropy(q, tasks.role == FREE, copies)
    expected = sum(_dot(n, log) for n, log in zip((totals, counts), logs, strict=True))
    return Swept(counts, totals, swept.change, uncertainty, expected + uncertainty)


def weigh(q: Floats, copies: Floats | None) -> Floats:
    """Return q times the number of tasks that each row counts for."""
    return q if copies is None else q * copies[:, None]


def counted_entropy(q: Floats, chosen: Mask, copies: Floats | None) -> float:
    """Return Σ H(q) over the tasks of the chosen rows."""
    if copies is None:
        return entropy(q[chosen])
    logs = np.log(np.where(q[chosen] > 0.0, q[chosen], 1.0))
    return float(-(weigh(q[chosen], copies[chosen]) * logs).sum())


def _dot(counts: Floats, logs: Floats) -> float:
    """Return Σ counts · logs, where what is impossible and was not counted adds nothing."""
    return float((counts * np.where(np.isfinite(logs), logs, 0.0)).sum())


def _salt(n_codes: int) -> Keys:
    """Return one random number a code; a task's key is the sum over its responses."""
    return np.random.default_rng(0).integers(0, 2**64, n_codes, dtype=np.uint64)


def _distinct_in_sample(tasks: ByTask, salt: Keys) -> float:
    """Return the share of different rows in windows spread over all tasks."""
    ends = np.linspace(min(WINDOW, tasks.n_tasks), tasks.n_tasks, WINDOWS).astype(np.int64)
    parts = [_keys_between(tasks, salt, max(0, end - WINDOW), end) for end in np.unique(ends)]
    sample = np.concatenate(parts)
    return len(np.unique(sample)) / len(sample)


def _keys(tasks: ByTask, salt: Keys) -> Keys:
    return np.concatenate([_keys_between(tasks, salt, *block) for block in _blocks(tasks.start)])


def _keys_between(tasks: ByTask, salt: Keys, low: int, high: int) -> Keys:
    """Return the keys of tasks low … high − 1: equal where their responses are."""
    start = tasks.start[low : high + 1]
    sums = np.zeros(start[-1] - start[0] + 1, dtype=np.uint64)
    np.cumsum(salt[tasks.code[start[0] : start[-1]]], out=sums[1:])  # wraps, and so does −
    return np.asarray(np.diff(sums[start - start[0]]), dtype=np.uint64)


def _blocks(start: Offsets) -> Iterator[tuple[int, int]]:
    """Cut tasks into blocks of about as many responses each."""
    cuts = np.searchsorted(start, np.arange(0, start[-1], BLOCK))
    edges = np.unique(np.concatenate([[0], cuts, [len(start) - 1]])).tolist()
    yield from pairwise(edges)


def _heads(keys: Keys, alone: Mask) -> Codes:
    """Return for each task the first one with its key; itself where it stays alone."""
    import pyarrow as pa

    head = np.arange(len(keys), dtype=np.int32)
    together = head[~alone]
    encoded = pa.array(keys[~alone]).dictionary_encode()
    code = encoded.indices.to_numpy(zero_copy_only=False)
    first = np.empty(len(encoded.dictionary), dtype=np.int32)
    first[code[::-1]] = together[::-1]  # of several values for one place the last one stays
    head[~alone] = first[code]
    return head


def _by_head(tasks: ByTask, n_classes: int, head: Codes) -> Rows:
    """Lay out one row for each task that is its own head, in the order of tasks."""
    is_head = head == np.arange(len(head), dtype=np.int32)
    heads = np.flatnonzero(is_head).astype(np.int32)
    row = (np.cumsum(is_head, dtype=np.int32) - 1)[head]
    small = layout.part_of(tasks, heads, n_classes)
    return Rows(small, np.bincount(row).astype(np.float64), row, heads)


def _are_equal(tasks: ByTask, rows: Rows) -> bool:
    """Compare each task with its row, response by response: equal keys are no proof."""
    assert rows.row is not None  # made by `_by_head`
    small, length = rows.tasks, np.diff(rows.tasks.start)
    for low, high in _blocks(tasks.start):
        start, row = tasks.start[low : high + 1], rows.row[low:high]
        if not np.array_equal(np.diff(start), length[row]):
            return False
        at = np.repeat(small.start[row] - start[:-1], length[row]) + np.arange(start[0], start[-1])
        if not np.array_equal(small.code[at], tasks.code[start[0] : start[-1]]):
            return False
    return True
