"""The rows of a fit: tasks, or one row for all tasks with the same responses.

A jury of five judges and three classes can give 243 patterns of responses, however many tasks it
saw. Tasks with equal responses have equal q after every sweep, so that one row stands for all.

Example: tasks a, b, c, d with responses (x, y), (x, x), (x, y), (x, y) have two patterns, with a
and b the first tasks that have them:

    row = [0, 1, 0, 0]    copies = [3, 1]    first = [0, 1]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.data import Responses
from tiebreak.data.gold import GoldCodes
from tiebreak.inference.inputs import Inputs
from tiebreak.kernels import layout
from tiebreak.kernels.layout import FREE, ByTask, Codes, Floats, Mask, Offsets
from tiebreak.links.graph import Implications

LEAST_TASKS = 10_000  # below, sweeps take no time
LARGEST_SHARE = 0.25  # of patterns among tasks: a pattern takes two passes where a task takes one
WINDOWS = 16  # of tasks: the sample that says whether to look at all of them
WINDOW = 512  # tasks
SAMPLE_SHARE = 0.5
BLOCK = 1 << 20  # responses at a time: memory stays small beside the responses themselves

Keys = npt.NDArray[np.uint64]


class Rows(NamedTuple):
    """Responses by row. Where each task is a row of its own, all else is None."""

    laid: ByTask
    copies: Floats | None = None  # (n_rows,) how many tasks each stands for
    row: Codes | None = None  # (n_tasks,) the row of each task
    first: Codes | None = None  # (n_rows,) the first task of each row

    def to_tasks(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each task the value of its row."""
        return values if self.row is None else values[self.row]

    def to_rows(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each row the value of its first task."""
        return values if self.first is None else values[self.first]

    def mean(self, values: Floats) -> Floats:
        """Return for each row the mean over its tasks."""
        if self.row is None or self.copies is None:
            return values
        sums = np.empty((len(self.copies), values.shape[1]))
        for k, column in enumerate(values.T):
            sums[:, k] = np.bincount(self.row, column, len(self.copies))
        return np.asarray(sums / self.copies[:, None])

    def gold(self, gold: GoldCodes | None) -> GoldCodes | None:
        """Return gold by row."""
        if gold is None or self.row is None:
            return gold
        return gold._replace(task=self.row[gold.task])

    def implied(self, implied: Implications | None) -> Implications | None:
        """Return what links imply by row: each task that has a link has a row of its own."""
        if implied is None or self.row is None:
            return implied
        return implied.renumbered(self.row)


def lay_out(responses: Responses) -> ByTask:
    """Cut responses, which are sorted by task, into chunks for the kernels: one row a task."""
    n_classes = responses.n_classes
    role = np.full(responses.n_tasks, FREE, dtype=np.int8)
    n_codes = responses.n_workers * n_classes
    given = responses.start, responses.code, role, n_codes, n_classes
    return layout.lay_out(*given, responses.weight)


def rows_of(inputs: Inputs, start: Floats | None = None) -> Rows:
    """Return the rows of a fit; tasks with links or a known class have rows of their own.

    `start`, (n_tasks, …), is where q starts, if it is not a function of the responses alone.
    """
    crowd = inputs.responses
    tasks = lay_out(crowd)
    if tasks.n_tasks < LEAST_TASKS or tasks.weight is not None or inputs.remote is not None:
        return Rows(tasks)
    single = np.zeros(crowd.n_tasks, dtype=bool)
    if inputs.link_codes is not None:
        single[inputs.link_codes.left] = single[inputs.link_codes.right] = True
    if inputs.gold_codes is not None:
        single[inputs.gold_codes.task] = True
    return find_patterns(tasks, crowd.n_classes, single, start)


def find_patterns(tasks: ByTask, n_classes: int, single: Mask, start: Floats | None = None) -> Rows:
    """Find equal response patterns where that pays, decided on a sample first.

    Parameters
    ----------
    tasks
        Responses by task, sorted within each task, without weights.
    single
        (n_tasks,) tasks that keep a row of their own.
    start
        (n_tasks, n_classes) where q starts, if it is not a function of the responses alone. Tasks
        that start apart are not equal, and then nothing is made one.
    """
    whole = Rows(tasks)
    salt = _salt(tasks.n_codes)
    if _distinct_in_sample(tasks, salt) > SAMPLE_SHARE:
        return whole
    found = _by_representative(tasks, n_classes, _representatives(_keys(tasks, salt), single))
    if found.laid.n_tasks > LARGEST_SHARE * tasks.n_tasks or not _are_equal(tasks, found):
        return whole
    if start is not None and not np.array_equal(found.to_tasks(found.to_rows(start)), start):
        return whole
    return found


def _salt(n_codes: int) -> Keys:
    """Return one random number per code; a task's key is the sum over its responses."""
    return np.random.default_rng(0).integers(0, 2**64, n_codes, dtype=np.uint64)


def _distinct_in_sample(tasks: ByTask, salt: Keys) -> float:
    """Return the share of different patterns in windows spread over all tasks."""
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


def _representatives(keys: Keys, single: Mask) -> Codes:
    """Return for each task the first one with its key; itself where it stays single."""
    import pyarrow as pa

    representative = np.arange(len(keys), dtype=np.int32)
    others = representative[~single]
    encoded = pa.array(keys[~single]).dictionary_encode()
    code = encoded.indices.to_numpy(zero_copy_only=False)
    first = np.empty(len(encoded.dictionary), dtype=np.int32)
    first[code[::-1]] = others[::-1]  # of several values for one place the last one stays
    representative[~single] = first[code]
    return representative


def _by_representative(tasks: ByTask, n_classes: int, representative: Codes) -> Rows:
    """Lay out one pattern for each task that represents itself, in the order of tasks."""
    is_own = representative == np.arange(len(representative), dtype=np.int32)
    first = np.flatnonzero(is_own).astype(np.int32)
    pattern = (np.cumsum(is_own, dtype=np.int32) - 1)[representative]
    laid_out = layout.part_of(tasks, first, n_classes)
    return Rows(laid_out, np.bincount(pattern).astype(np.float64), pattern, first)


def _are_equal(tasks: ByTask, found: Rows) -> bool:
    """Compare each task with its pattern, response by response: equal keys are no proof."""
    assert found.row is not None  # made by `_by_representative`
    few = found.laid
    length = np.diff(few.start)
    for low, high in _blocks(tasks.start):
        start = tasks.start[low : high + 1]
        pattern = found.row[low:high]
        if not np.array_equal(np.diff(start), length[pattern]):
            return False
        offset = np.repeat(few.start[pattern] - start[:-1], length[pattern])
        place = offset + np.arange(start[0], start[-1])
        if not np.array_equal(few.code[place], tasks.code[start[0] : start[-1]]):
            return False
    return True
