"""The table of responses: sorted by task, one number per response."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import COLUMN, SEVERAL, TEXT, checks, optional
from tiebreak.data import ids
from tiebreak.data.building import (
    INT32_END,
    Builder,
    Built,
    Repeats,
    arrange,
    sorted_classes,
)
from tiebreak.data.ids import Column, Ids, is_arrow
from tiebreak.data.weights import arrange_weighted, check_length, read_weights
from tiebreak.errors import ResponseError
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import count_codes
from tiebreak.kernels.ingest.reference import ResponseRows
from tiebreak.kernels.layout import Codes, Floats, Offsets, weights_or_ones
from tiebreak.wording import NOWHERE, Source, counted

if TYPE_CHECKING:
    from tiebreak.data.runs import Runs


@dataclass(frozen=True, slots=True, eq=False)
class Responses:
    """The responses of task i are code[start[i]:start[i + 1]]; tasks[i] names task i.

    A response is one number, code = worker · n_classes + label, and those of a task are sorted by
    it: four bytes per response, and the order that the sweeps need. `classes` are sorted; `tasks`
    and `workers` stand in order of first appearance. A task may have no response at all. `frame`
    remembers the caller's kind of table. `weight`, (n_responses,) above 0, says how often each
    response counts; None: once each. `runs` is what repeated runs showed, where responses have
    been weighed by them.
    """

    start: Offsets
    code: Codes
    tasks: Ids
    workers: Ids
    classes: Ids
    n_empty: int = 0
    n_repeats: int = 0
    frame: str = field(default="pyarrow", repr=False)
    is_class_ordered: bool = field(default=False, repr=False)  # not sorted: as a frame orders them
    weight: Floats | None = field(default=None, repr=False)
    runs: Runs | None = field(default=None, repr=False)
    _label_counts: Offsets | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.start) != len(self.tasks) + 1:
            raise ResponseError(
                f"start must have one entry more than there are tasks, {len(self.tasks):,}; "
                f"got {len(self.start):,}."
            )
        for array in (self.start, self.code):
            array.flags.writeable = False
        if self.weight is not None:
            _check_weights(self.weight, len(self.code))

    @classmethod
    def from_codes(
        cls,
        task: npt.ArrayLike,
        worker: npt.ArrayLike,
        label: npt.ArrayLike,
        tasks: Ids,
        workers: Ids,
        classes: Ids,
        *,
        weight: npt.ArrayLike | None = None,
    ) -> Responses:
        """Build from codes, one row per response, and the names that they stand for.

        `weight` says how often each response counts; None: once each.

        >>> crowd = Responses.from_codes([1, 0], [0, 0], [1, 0], Ids("ab"), Ids("w"), Ids("xy"))
        >>> crowd.task_of_each().tolist(), crowd.label_of_each().tolist()
        ([0, 1], [0, 1])
        """
        columns = [np.asarray(column, dtype=np.int32) for column in (task, worker, label)]
        lengths = tuple(map(len, columns))
        if len(set(lengths)) > 1:
            raise ResponseError(f"task, worker and label must be equally long; got {lengths}.")
        same = np.arange(len(classes), dtype=np.int32)
        parts = [ResponseRows(*columns)]
        in_order: Floats | None = None
        if weight is None:
            arranged = arrange(parts, len(tasks), len(workers), same, keep_last=False)
        else:
            given = np.asarray(weight, dtype=np.float64)
            check_length(given, lengths[0])
            arranged, in_order = arrange_weighted(parts, given, len(tasks), same, keep_last=False)
        return cls(arranged.start, arranged.code, tasks, workers, classes, weight=in_order)

    @classmethod
    def from_built(cls, built: Built, frame: str = "pyarrow") -> Responses:
        """Take what a builder has made."""
        return cls(*built[:-1], frame=frame, weight=built.weight)

    @classmethod
    @checks(
        task=COLUMN,
        worker=COLUMN,
        label=COLUMN,
        tasks=optional(COLUMN),
        classes=optional(SEVERAL),
        weight=optional(COLUMN),
        frame=TEXT,
    )
    def from_columns(
        cls,
        task: Column,
        worker: Column,
        label: Column,
        *,
        tasks: Column | None = None,
        classes: Column | None = None,
        weight: Column | None = None,
        repeats: Repeats = "last",
        frame: str = "pyarrow",
        source: Source = NOWHERE,
    ) -> Responses:
        """Build from columns of equal length; see `tiebreak.read_responses`."""
        builder = Builder(repeats, source)
        weights = None if weight is None else read_weights(weight, source, 0)
        builder.add(task, worker, label, weight=weights)
        made = cls.from_built(builder.finish(tasks=tasks, classes=classes), frame)
        if repeats == "runs":
            from tiebreak.data.weighing import weigh

            return weigh(made)
        return made

    @classmethod
    @checks(rows=SEVERAL)
    def from_rows(
        cls, rows: Iterable[tuple[Hashable, Hashable, Hashable]], *, repeats: Repeats = "last"
    ) -> Responses:
        """Build from (task, worker, label) triples.

        >>> Responses.from_rows([("a", "ann", "cat"), ("b", "bob", "dog")])
        Responses(2 responses, 2 tasks, 2 workers, 2 classes)
        """
        rows = list(rows)
        try:
            columns = list(zip(*rows, strict=True))
        except (TypeError, ValueError):
            raise ResponseError(
                "Each row must be (task, worker, label); some are not, or are longer than others."
            ) from None
        if not columns:
            raise ResponseError("There are no responses. Pass at least one (task, worker, label).")
        if len(columns) != 3:
            raise ResponseError(
                f"Each row must be (task, worker, label); got {len(columns)} parts."
            )
        return cls.from_columns(*columns, repeats=repeats)

    def count_labels(self) -> Offsets:
        """Return how often each worker gave each label, (n_workers, n_classes); counted once.

        >>> Responses.from_rows([("a", "ann", "x"), ("b", "ann", "x")]).count_labels().tolist()
        [[2]]
        """
        if self._label_counts is None:
            by_code = count_codes(self.code, self.n_workers * self.n_classes)
            counts = by_code.reshape(-1, self.n_classes)
            counts.flags.writeable = False
            object.__setattr__(self, "_label_counts", counts)
            return counts
        return self._label_counts

    def weigh_labels(self) -> Floats:
        """Return how often each worker gave each label by weight, (n_workers, n_classes).

        >>> rows = [0, 1], [0, 0], [0, 0]
        >>> crowd = Responses.from_codes(*rows, Ids("ab"), Ids("w"), Ids("x"), weight=[2.0, 0.5])
        >>> crowd.count_labels().tolist(), crowd.weigh_labels().tolist()
        ([[2]], [[2.5]])
        """
        if self.weight is None:
            return self.count_labels().astype(np.float64)
        by_code = np.bincount(self.code, self.weight, self.n_workers * self.n_classes)
        return np.asarray(by_code, np.float64).reshape(-1, self.n_classes)

    @property
    def n_responses(self) -> int:
        """How many labels were given."""
        return len(self.code)

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

    @property
    def n_given(self) -> int:
        """How many responses were read; runs that were joined into one response count each."""
        return self.n_responses if self.runs is None else self.runs.n_given

    def size(self) -> str:
        """Say how many responses there are, by whom, on how many tasks, and how often each.

        >>> Responses.from_rows([("a", "ann", "x"), ("b", "bob", "y")]).size()
        '2 responses, 2 tasks, 2 workers'
        """
        given = counted(self.n_given, "response")
        tasks = counted(self.n_tasks, "task")
        if self.runs is None or self.runs.most_times < 2:
            return f"{given}, {tasks}, {counted(self.n_workers, 'worker')}"
        workers = counted(len(self.runs.workers), "worker")  # orders of one are no other worker
        noun = "answer" if any(each.n_both for each in self.runs.workers) else "run"
        least, most = self.runs.least_times, self.runs.most_times
        times = counted(most, noun) if least == most else f"{least:,} to {counted(most, noun)}"
        return f"{given} by {workers} on {tasks}, {times} each"

    def task_of_each(self) -> Codes:
        """Make the column of tasks, (n_responses,): one code per response."""
        each = np.arange(self.n_tasks, dtype=np.int32)
        return _read_only(np.repeat(each, np.diff(self.start)))

    def worker_of_each(self) -> Codes:
        """Make the column of workers, (n_responses,): one code per response."""
        return _read_only((self.code // self.n_classes).astype(np.int32, copy=False))

    def label_of_each(self) -> Codes:
        """Make the column of labels, (n_responses,): one code per response."""
        return _read_only((self.code % self.n_classes).astype(np.int32, copy=False))

    def weight_of_each(self) -> Floats:
        """Return the weight of each response, (n_responses,): 1, where none was given."""
        return weights_or_ones(self.weight, self.n_responses)

    def of(self, task: int) -> tuple[Codes, Codes]:
        """Return the workers and the labels of one task's responses, in codes.

        >>> crowd = Responses.from_rows([("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x")])
        >>> workers, labels = crowd.of(1)
        >>> workers.tolist(), labels.tolist()
        ([0, 1], [1, 0])
        """
        code = self.code[self.start[task] : self.start[task + 1]]
        worker, label = np.divmod(code, self.n_classes)
        return worker.astype(np.int32, copy=False), label.astype(np.int32, copy=False)

    def __repr__(self) -> str:
        return (
            f"Responses({self.n_responses:,} responses, {self.n_tasks:,} tasks, "
            f"{self.n_workers:,} workers, {self.n_classes:,} classes)"
        )

    def write(self, target: Any, *, format: str | None = None) -> None:
        """Write task, worker, label and weight to a file, by its name CSV, TSV, JSON or Parquet.

        A name that ends in ``.tb`` makes a folder of plain arrays, which fits start from at once.
        """
        from tiebreak.tables import write_responses

        write_responses(target, self, format=format)

    def on_tasks(self, tasks: npt.NDArray[Any]) -> Responses:
        """Return the responses on some tasks alone, in the order of these.

        >>> crowd = Responses.from_rows([("a", "ann", "x"), ("b", "ann", "y"), ("b", "bob", "x")])
        >>> crowd.on_tasks(np.array([1]))
        Responses(2 responses, 1 tasks, 2 workers, 2 classes)
        """
        start, code = layout.responses_on(self, tasks)
        weight = layout.weights_on(self, tasks)
        names = Ids(self.tasks.take(tasks))
        kept = replace(self, start=start, code=code, tasks=names, weight=weight)
        return replace(kept, n_empty=0, n_repeats=0, runs=None)  # these are said of all tasks

    def in_classes(self, classes: Ids) -> Responses:
        """Return the responses in the codes of classes that have all of theirs, in some order."""
        if self.classes == classes:
            return self
        return self._with_codes(classes, classes.codes(self.classes))

    def with_tasks(self, others: Ids) -> Responses:
        """Add tasks that nobody answered."""
        tasks = ids.merge(self.tasks, others)
        more = np.full(len(tasks) - len(self.tasks), len(self.code), dtype=np.int64)
        return replace(self, tasks=tasks, start=np.concatenate([self.start, more]))

    def with_classes(self, others: Ids) -> Responses:
        """Add classes that no worker used (a known label may name one)."""
        merged = ids.merge(self.classes, others)
        if len(merged) == len(self.classes):
            return self
        if self.is_class_ordered:
            return self._with_codes(merged, np.arange(len(self.classes), dtype=np.int32))
        classes, new_code = sorted_classes(merged)
        # Classes keep their order among each other, and so do codes.
        return self._with_codes(classes, new_code)

    def with_class_order(self, order: Ids) -> Responses:
        """Put the classes of `order` first, in that order, and the others after them.

        >>> Responses.from_rows([("a", "w", "low"), ("a", "v", "high")]).with_class_order(
        ...     Ids(["low", "high"])
        ... ).classes
        Ids(['low', 'high'], n=2)
        """
        classes = Ids(ids.as_list(ids.merge(Ids(list(order)), Ids(list(self.classes))).values))
        if is_arrow(self.classes.values):
            import pyarrow as pa

            classes = Ids(pa.array(list(classes), type=self.classes.values.type))
        made = self._with_codes(classes, classes.codes(self.classes))
        # Codes of a task are sorted, and another order of classes sorts them otherwise.
        by_task = np.lexsort((made.code, made.task_of_each()))
        weight = None if self.weight is None else self.weight[by_task]
        return replace(made, code=made.code[by_task], is_class_ordered=True, weight=weight)

    def with_folded_labels(self) -> Responses:
        """Join classes that differ only in case, spaces or Unicode form, under the commonest form.

        >>> rows = [("a", "ann", "Cat"), ("a", "bob", "cat"), ("b", "bob", "cat")]
        >>> Responses.from_rows(rows).with_folded_labels().classes
        Ids(['cat'], n=1)
        """
        groups = ids.variants(self.classes)
        if not groups:
            return self
        count = np.bincount(self.label_of_each(), minlength=self.n_classes)
        new_code = np.arange(self.n_classes, dtype=np.int32)
        for group in groups:
            codes = self.classes.codes(group)
            new_code[codes] = codes[np.argmax(count[codes])]
        kept = np.unique(new_code)
        label = np.searchsorted(kept, new_code).astype(np.int32)[self.label_of_each()]
        classes = Ids(self.classes.take(kept))
        made = Responses.from_codes(
            self.task_of_each(),
            self.worker_of_each(),
            label,
            self.tasks,
            self.workers,
            classes,
            weight=self.weight,
        )
        return replace(  # all else stays as it is
            self, start=made.start, code=made.code, classes=classes, weight=made.weight
        )

    def _with_codes(self, classes: Ids, new_code: Codes) -> Responses:
        """Return the responses with other classes, of which new_code[k] is the former k."""
        worker = self.worker_of_each().astype(np.int64)
        code = worker * len(classes) + new_code[self.label_of_each()]
        is_wide = self.n_workers * len(classes) >= INT32_END
        return replace(self, code=code if is_wide else code.astype(np.int32), classes=classes)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


def _check_weights(weight: Floats, n_responses: int) -> None:
    """Refuse weights that are not one positive number per response."""
    check_length(weight, n_responses)
    if not (np.isfinite(weight).all() and (weight > 0.0).all()):
        wrong = weight[~(np.isfinite(weight) & (weight > 0.0))][0]
        raise ResponseError(f"Weights of responses must be above 0 and finite; got {wrong}.")
    weight.flags.writeable = False
