"""Open tasks: what a stream remembers of the tasks that may still change, by slot."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.data import Responses
from tiebreak.data.responses import INT32_END
from tiebreak.kernels import layout
from tiebreak.kernels.layout import Codes
from tiebreak.life.update import SortedRows, merge

NONE = -1


class OpenTasks:
    """Tasks by slot: their responses, sorted by slot, and what they are believed to be.

    `state` has one row a task:

    q            what it is believed to be; zeros: never visited
    evidence     what responses said that only counts remember, as log scores; zeros: nothing
    n_dropped    how many these were, by weight
    known        the class of a gold task, else `NONE`
    reported     the label that was reported last
    touched      the batch that touched it last
    """

    def __init__(self, responses: Responses, n_states: int) -> None:
        self._room = _blank(0, n_states)
        self.slot: dict[Hashable, int] = {}
        self.names: list[Hashable] = []
        self.rows = SortedRows(np.zeros(1, np.int64), np.zeros(0, responses.code.dtype), None)
        self.slots(responses.tasks)
        self.rows = SortedRows(responses.start, responses.code, responses.weight)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def state(self) -> npt.NDArray[Any]:
        """What is known of each task: a view that may be written to."""
        return self._room[: len(self)]

    @property
    def n_responses(self) -> int:
        """How many responses there are."""
        return len(self.rows.code)

    def slots(self, names: Iterable[Hashable]) -> Codes:
        """Return the slots of tasks; a new one is made for each that has none."""
        n_former = len(self)
        found = codes_in(self.slot, names)
        n_new = len(self.slot) - n_former
        if n_new:
            newest = reversed(self.slot)
            self.names += [next(newest) for _ in range(n_new)][::-1]
            end = np.full(n_new, self.rows.start[-1])
            self.rows = self.rows._replace(start=np.concatenate([self.rows.start, end]))
            if len(self) > len(self._room):  # twice the room, so that growth costs little
                more = _blank(max(n_new, n_former), self.state["q"].shape[1])
                self._room = np.concatenate([self._room[:n_former], more])
        return found

    def on(self, slots: Codes) -> SortedRows:
        """Return the responses on some tasks, in their order."""
        start, code = layout.responses_on(self.rows, slots)
        return SortedRows(start, code, layout.weights_on(self.rows, slots))

    def add(self, slot: Codes, worker: Codes, label: Codes, n_classes: int) -> None:
        """Take responses; the last one of a worker on a task counts."""
        pair = slot.astype(np.int64) * (1 + int(worker.max())) + worker
        _, from_end = np.unique(pair[::-1], return_index=True)
        kept = len(pair) - 1 - from_end
        code = worker[kept].astype(np.int64) * n_classes + label[kept]
        self.rows, _ = merge(self.rows, slot[kept], code, None, n_classes)

    def recode(self, n_classes: int, n_more: int, n_states: int) -> None:
        """Add classes and states at the end, which no task is in so far."""
        worker, label = np.divmod(self.rows.code, n_classes)
        code = worker.astype(np.int64) * (n_classes + n_more) + label
        kind = np.int64 if int(code.max(initial=0)) >= INT32_END else np.int32
        self.rows = self.rows._replace(code=code.astype(kind))
        former = self.state
        self._room = _blank(len(self), n_states)
        for name in former.dtype.names or ():
            if name not in ("q", "evidence"):
                self._room[name] = former[name]
        n_former = former["q"].shape[1]
        self._room["q"][:, :n_former] = former["q"]
        self._room["evidence"][:, :n_former] = former["evidence"]
        # Dropped responses said the new states as little as any.
        self._room["evidence"][:, n_former:] = former["evidence"].min(axis=1, keepdims=True)

    def keep(self, slots: Codes) -> None:
        """Forget all tasks but these, and number them anew."""
        self.rows = self.on(slots)
        self._room = self.state[slots]
        self.names = [self.names[slot] for slot in slots.tolist()]
        self.slot = {name: slot for slot, name in enumerate(self.names)}


def codes_in(index: dict[Hashable, int], names: Iterable[Hashable]) -> Codes:
    """Return the codes of names; those that have none get the next ones, and are added.

    >>> index = {"a": 0}
    >>> codes_in(index, ["b", "a", "b"]).tolist(), index
    ([1, 0, 1], {'a': 0, 'b': 1})
    """
    return np.array([index.setdefault(name, len(index)) for name in names], dtype=np.int32)


def _blank(n: int, n_states: int) -> npt.NDArray[Any]:
    """Return the state of tasks of which nothing is known."""
    made = np.zeros(
        n,
        dtype=[
            ("q", np.float64, (n_states,)),
            ("evidence", np.float64, (n_states,)),
            ("n_dropped", np.float64),
            ("known", np.int32),
            ("reported", np.int32),
            ("touched", np.int64),
        ],
    )
    made["known"] = made["reported"] = NONE
    return made
