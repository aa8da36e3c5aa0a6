"""Open tasks: what a stream remembers of the tasks that may still change.

A task has a slot. Its responses are a chain, the last one first, so that one more costs nothing
and those of some tasks are found without a pass over all:

    slot         0    1        head      4    3      the last response of each
    response     0    1    2    3    4
    code         1    3    0    1    2
    previous    -1   -1    0    1    2      slot 0: responses 4, 2, 0; slot 1: 3, 1
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tiebreak.kernels.layout import Codes, Floats, Offsets, weights_or_ones

NONE = -1
GONE = -1  # the code of a response that a later one has replaced
FIRST_ROOM = 1024


class GrowingArray:
    """An array that grows at its end; `now` is what it holds."""

    def __init__(self, dtype: type[Any], fill: float, shape: tuple[int, ...] = ()) -> None:
        self._room = np.full((FIRST_ROOM, *shape), fill, dtype=dtype)
        self._fill = fill
        self.n = 0

    @property
    def now(self) -> npt.NDArray[Any]:
        """What it holds: a view that may be written to."""
        return self._room[: self.n]

    def extend(self, values: npt.ArrayLike) -> None:
        """Append values."""
        added = np.asarray(values)
        self.grow(len(added))
        self._room[self.n - len(added) : self.n] = added

    def grow(self, n: int) -> None:
        """Append n entries that hold what new ones do."""
        needed = self.n + n
        if needed > len(self._room):
            size = max(needed, 2 * len(self._room))
            room = np.full((size, *self._room.shape[1:]), self._fill, dtype=self._room.dtype)
            room[: self.n] = self.now
            self._room = room
        self.n = needed

    def keep(self, at: npt.NDArray[Any]) -> None:
        """Keep the entries at these places, in this order, and no more room than they need."""
        kept = self.now[at]
        self._room = np.full(
            (max(FIRST_ROOM, 2 * len(kept)), *kept.shape[1:]), self._fill, dtype=kept.dtype
        )
        self._room[: len(kept)] = kept
        self.n = len(kept)


class ResponseChains(NamedTuple):
    """The responses of some slots: those of the i-th are start[i] to start[i + 1]."""

    start: Offsets
    response: Offsets  # where each lies among all responses
    code: Codes
    weight: Floats | None


class OpenTasks:
    """Tasks by slot, with their responses and what they are believed to be."""

    def __init__(self, n_states: int) -> None:
        self.names: list[Hashable] = []
        self._slot: dict[Hashable, int] = {}
        self.q = GrowingArray(np.float64, 0.0, (n_states,))  # zeros: never visited
        self.known = GrowingArray(np.int32, NONE)  # the class of a gold task
        self.reported = GrowingArray(np.int32, NONE)  # the label that was reported last
        self.touched = GrowingArray(np.int64, 0)  # the batch that touched it last
        self.counted = GrowingArray(np.int32, 0)  # its responses that are among the counts
        self.n_dropped = GrowingArray(np.float64, 0.0)  # responses that only counts remember
        self.evidence: GrowingArray | None = None  # what those said, as log scores by state
        self._head = GrowingArray(np.int64, NONE)
        self._count = GrowingArray(np.int64, 0)
        self.code = GrowingArray(np.int32, GONE)
        self._previous = GrowingArray(np.int64, NONE)
        self.weight: GrowingArray | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_responses(self) -> int:
        """How many responses there are, replaced ones too."""
        return self.code.n

    def slots(self, names: Sequence[Hashable]) -> Codes:
        """Return the slots of tasks; a new one is made for each that has none."""
        index = self._slot
        before = len(index)
        found = codes_in(index, names)
        n_new = len(index) - before
        if n_new:
            self.names += list(index)[before:] if n_new > before else _last(index, n_new)
            for column in self._columns():
                column.grow(n_new)
        return found

    def slot_of(self, name: Hashable) -> int | None:
        """Return the slot of a task, None where there is none."""
        return self._slot.get(name)

    def _columns(self) -> list[GrowingArray]:
        columns = [self.q, self.known, self.reported, self.touched, self.counted, self.n_dropped]
        columns += [self._head, self._count]
        return columns if self.evidence is None else [*columns, self.evidence]

    def add(self, slot: Codes, code: Codes, weight: Floats | None = None) -> None:
        """Append responses, the last of a task at the head of its chain."""
        first = self.code.n
        order = np.argsort(slot, kind="stable")
        sorted_slot = slot[order]
        place = first + order
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = sorted_slot[1:] != sorted_slot[:-1]
        before = np.empty(len(order), dtype=np.int64)
        before[1:] = place[:-1]
        before[is_first] = self._head.now[sorted_slot[is_first]]
        previous = np.empty(len(order), dtype=np.int64)
        previous[order] = before
        is_last = np.append(is_first[1:], True) if len(order) else is_first
        self._head.now[sorted_slot[is_last]] = place[is_last]
        n_added = np.diff(np.append(np.flatnonzero(is_first), len(order)))
        self._count.now[sorted_slot[is_last]] += n_added
        self.code.extend(code)
        self._previous.extend(previous)
        if weight is not None and self.weight is None:
            self.weight = GrowingArray(np.float64, 1.0)
            self.weight.grow(first)
        if self.weight is not None:
            self.weight.extend(weights_or_ones(weight, len(code)))

    def chains(self, slots: Codes) -> ResponseChains:
        """Return the responses of these slots, the last one of each first."""
        count = self._count.now[slots]
        start = np.zeros(len(slots) + 1, dtype=np.int64)
        np.cumsum(count, out=start[1:])
        response = np.empty(start[-1], dtype=np.int64)
        at = self._head.now[slots]
        row = np.arange(len(slots))
        depth = 0
        while len(row):
            has_one = at != NONE
            row = row[has_one]
            at = at[has_one]
            response[start[row] + depth] = at
            at = self._previous.now[at]
            depth += 1
        code = self.code.now[response]
        if (code == GONE).any():
            kept = code != GONE
            start = np.concatenate([[0], np.cumsum(kept)])[start]
            response = response[kept]
            code = code[kept]
        weight = None if self.weight is None else self.weight.now[response]
        return ResponseChains(start, response, code, weight)

    def n_responses_of(self, slots: Codes | Offsets) -> Offsets:
        """Return how many responses each slot has, replaced ones too."""
        return np.asarray(self._count.now[slots])

    def widen(self, n_more: int) -> None:
        """Add states, which no task is in so far; dropped responses said them as little as any."""
        q = np.pad(self.q.now, [(0, 0), (0, n_more)])
        self.q = GrowingArray(np.float64, 0.0, (q.shape[1],))
        self.q.extend(q)
        if self.evidence is not None:
            rows = self.evidence.now
            least = np.repeat(rows.min(axis=1, keepdims=True), n_more, axis=1)
            self.evidence = GrowingArray(np.float64, 0.0, (q.shape[1],))
            self.evidence.extend(np.concatenate([rows, least], axis=1))

    def keep(self, slots: Codes) -> Codes:
        """Forget all tasks but these, and renumber; return the new slot of each former one."""
        chains = self.chains(slots)
        slot_of_each = np.repeat(np.arange(len(slots), dtype=np.int32), np.diff(chains.start))
        new_slot = np.full(len(self), NONE, dtype=np.int32)
        new_slot[slots] = np.arange(len(slots), dtype=np.int32)
        for column in self._columns():
            column.keep(slots)
        self.names = [self.names[slot] for slot in slots.tolist()]
        self._slot = {name: slot for slot, name in enumerate(self.names)}
        self._head.now[:] = NONE
        self._count.now[:] = 0
        nothing = np.empty(0, dtype=np.int64)
        self.code.keep(nothing)
        self._previous.keep(nothing)
        if self.weight is not None:
            self.weight.keep(nothing)
        in_time = np.argsort(chains.response, kind="stable")
        weight = None if chains.weight is None else chains.weight[in_time]
        self.add(slot_of_each[in_time], chains.code[in_time], weight)
        return new_slot


def codes_in(index: dict[Hashable, int], names: Sequence[Hashable]) -> Codes:
    """Return the codes of names; those that have none get the next ones, and are added.

    >>> index = {"a": 0}
    >>> codes_in(index, ["b", "a", "b"]).tolist(), index
    ([1, 0, 1], {'a': 0, 'b': 1})
    """
    for name in [name for name in names if name not in index]:
        index.setdefault(name, len(index))
    return np.fromiter(map(index.__getitem__, names), dtype=np.int32, count=len(names))


def _last(index: dict[Hashable, int], n: int) -> list[Hashable]:
    """Return the last n keys of a dictionary, in its order."""
    backwards = reversed(index)
    return [next(backwards) for _ in range(n)][::-1]
