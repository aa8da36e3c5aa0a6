"""Responses: who gave which label to which task."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tiebreak import names
from tiebreak.errors import OptionError, ResponseError, note
from tiebreak.names import MISSING, NOWHERE, Codes, Column, Names, Source

Repeats = Literal["last", "count", "error"]
REPEATS: tuple[Repeats, ...] = ("last", "count", "error")


@dataclass(frozen=True, slots=True, eq=False)
class Responses:
    """One row per response: worker[r] gave label[r] to task[r]; tasks[i] names task i.

    `classes` are sorted; `tasks` and `workers` stand in order of first appearance. A task may
    have no response at all. `frame` remembers the caller's kind of table.
    """

    task: Codes
    worker: Codes
    label: Codes
    tasks: Names
    workers: Names
    classes: Names
    n_empty: int = 0
    n_repeats: int = 0
    frame: str = field(default="pyarrow", repr=False)

    def __post_init__(self) -> None:
        lengths = len(self.task), len(self.worker), len(self.label)
        if len(set(lengths)) > 1:
            raise ResponseError(f"task, worker and label must be equally long; got {lengths}.")
        for codes in (self.task, self.worker, self.label):
            codes.flags.writeable = False

    @classmethod
    def from_columns(
        cls,
        task: Column,
        worker: Column,
        label: Column,
        *,
        tasks: Column | None = None,
        classes: Column | None = None,
        repeats: Repeats = "last",
        frame: str = "pyarrow",
        source: Source = NOWHERE,
    ) -> Responses:
        """Build from three columns of equal length; see `tiebreak.read_responses`."""
        if repeats not in REPEATS:
            raise OptionError.unknown("repeats", repeats, REPEATS)
        task_code, task_names = _encode_ids("task", task, source)
        worker_code, worker_names = _encode_ids("worker", worker, source)
        label_code, class_names = names.encode(label)
        if tasks is not None:
            task_names = names.merge(task_names, names.encode(tasks)[1])
        if classes is not None:
            class_names = names.merge(class_names, names.encode(classes)[1])
        if not len(class_names):
            raise ResponseError(
                f"{source.name or 'The table'} holds no label at all. "
                "Pass at least one row of task, worker, label."
            )
        class_names, new_code = sorted_classes(class_names)
        given = label_code != MISSING
        n_empty = int(len(given) - np.count_nonzero(given))
        if n_empty:
            note(f"{n_empty:,} rows have an empty label: no answer, not counted.")
            task_code, worker_code = task_code[given], worker_code[given]
            label_code = label_code[given]
        built = cls(
            task_code,
            worker_code,
            new_code[label_code],
            task_names,
            worker_names,
            class_names,
            n_empty=n_empty,
            frame=frame,
        )
        return built._settle_repeats(repeats)

    @classmethod
    def from_rows(
        cls, rows: Iterable[tuple[Hashable, Hashable, Hashable]], *, repeats: Repeats = "last"
    ) -> Responses:
        """Build from (task, worker, label) triples.

        >>> Responses.from_rows([("a", "ann", "cat"), ("b", "bob", "dog")])
        Responses(2 responses, 2 tasks, 2 workers, 2 classes)
        """
        columns = list(zip(*rows, strict=True))
        if not columns:
            raise ResponseError("There are no responses. Pass at least one (task, worker, label).")
        if len(columns) != 3:
            raise ResponseError(
                f"Each row must be (task, worker, label); got {len(columns)} parts."
            )
        return cls.from_columns(*columns, repeats=repeats)

    @property
    def n_responses(self) -> int:
        """How many labels were given."""
        return len(self.label)

    @property
    def n_tasks(self) -> int:
        """How many tasks there are, answered or not."""
        return len(self.tasks)

    @property
    def n_workers(self) -> int:
        """How many workers there are."""
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    def __repr__(self) -> str:
        return (
            f"Responses({self.n_responses:,} responses, {self.n_tasks:,} tasks, "
            f"{self.n_workers:,} workers, {self.n_classes:,} classes)"
        )

    def with_classes(self, others: Names) -> Responses:
        """Add classes that no worker used (a known label may name one)."""
        merged = names.merge(self.classes, others)
        if len(merged) == len(self.classes):
            return self
        classes, new_code = sorted_classes(merged)
        return replace(self, label=new_code[self.label], classes=classes)

    def _settle_repeats(self, repeats: Repeats) -> Responses:
        """Keep the last of several labels by one worker on one task, count them, or refuse."""
        pair = self.task.astype(np.int64) * self.n_workers + self.worker
        order = np.argsort(pair, kind="stable")
        is_last = np.ones(len(pair), dtype=bool)
        is_last[order[:-1]] = pair[order[1:]] != pair[order[:-1]]
        n_repeats = int(len(pair) - np.count_nonzero(is_last))
        if not n_repeats:
            return self
        if repeats == "error":
            first = int(np.flatnonzero(~is_last)[0])
            who, what = self.workers[self.worker[first]], self.tasks[self.task[first]]
            raise ResponseError(
                f"{n_repeats:,} responses repeat a worker on a task; the first is worker {who!r} "
                f"on task {what!r}.\nRemove them, or choose repeats='last' or repeats='count'."
            )
        if repeats == "count":
            note(f"{n_repeats:,} responses repeat a worker on a task; each counts as one more.")
            return replace(self, n_repeats=n_repeats)
        note(f"{n_repeats:,} responses repeat a worker on a task; the last one counts.")
        return replace(
            self,
            task=self.task[is_last],
            worker=self.worker[is_last],
            label=self.label[is_last],
            n_repeats=n_repeats,
        )


def sorted_classes(classes: Names) -> tuple[Names, Codes]:
    """Sort classes; labels that cannot be compared with each other are refused."""
    try:
        return names.sort(classes)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in classes})
        raise ResponseError(
            f"The labels mix types ({', '.join(kinds)}), so classes have no order. "
            "Give all labels as one type, for instance text."
        ) from None


def _encode_ids(what: str, column: Column, source: Source) -> tuple[Codes, Names]:
    """Encode a column in which every row must name something."""
    try:
        codes, found = names.encode(column)
    except TypeError as error:
        raise ResponseError(f"A {what} id cannot be used as an id: {error}.") from None
    nameless = np.flatnonzero(codes == MISSING)
    if len(nameless):
        places = "; ".join(source.where(int(row)) for row in nameless[:3])
        raise ResponseError(
            f"{len(nameless):,} rows name no {what} ({places}). "
            f"Fill in the {what} or remove the row."
        )
    return codes, found
