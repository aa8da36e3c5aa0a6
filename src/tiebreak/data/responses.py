"""The table of responses: sorted by task, one number per response."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tiebreak.arguments import COLUMN, SEVERAL, TEXT, checks, has_parts, optional
from tiebreak.data import messages  # noqa: F401  # registered
from tiebreak.data.ids import Column, Ids, variants
from tiebreak.errors import ResponseError
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import count_codes
from tiebreak.kernels.contract import repays_compiled_intake
from tiebreak.kernels.ingest import reference
from tiebreak.kernels.ingest.reference import Arranged, ResponseRows
from tiebreak.kernels.layout import Codes, Floats, Offsets, weights_or_ones
from tiebreak.wording import NOWHERE, Source, counted

if TYPE_CHECKING:
    from tiebreak.data.building import Repeats
    from tiebreak.data.runs import Runs

INT32_END = 2**31


@dataclass(frozen=True, slots=True, eq=False)
class Responses:
    """The responses of task i are code[start[i]:start[i + 1]]; tasks[i] names task i.

    A response is one number, code = worker · n_classes + label, and those of a task are sorted by
    it: four bytes per response, and the order that the sweeps need. `classes` are sorted; `tasks`
    and `workers` stand in order of first appearance. A task may have no response at all. `frame`
    remembers the caller's kind of table. `weight`, (n_responses,) above 0, says how often each
    response counts; None: once each. `runs` is what repeated runs showed, where responses have
    been weighed by them.

        tasks  a b    workers  ann bob    classes  x y

        task  worker  label        code    start
        a     ann     y        0 · 2 + 1      0
        b     ann     x        0 · 2 + 0      1
        b     bob     x        1 · 2 + 0          3
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
            raise ResponseError("bad-start", n=len(self.start), n_tasks=len(self.tasks))
        self.start.flags.writeable = False
        self.code.flags.writeable = False
        if self.weight is not None:
            check_length(self.weight, len(self.code))
            is_right = np.isfinite(self.weight) & (self.weight > 0.0)
            if not is_right.all():
                raise ResponseError("bad-weight", weight=self.weight[~is_right][0])
            self.weight.flags.writeable = False

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

        >>> named = Ids(["a", "b"]), Ids(["w"]), Ids(["x", "y"])
        >>> crowd = Responses.from_codes([1, 0], [0, 0], [1, 0], *named)
        >>> crowd.task_of_each().tolist(), crowd.label_of_each().tolist()
        ([0, 1], [0, 1])
        """
        rows = ResponseRows(*(np.asarray(each, dtype=np.int32) for each in (task, worker, label)))
        check_lengths([*map(len, rows)])
        same = np.arange(len(classes), dtype=np.int32)
        n_codes = (len(tasks), len(workers))
        given = None if weight is None else np.asarray(weight, dtype=np.float64)
        if given is not None:
            check_length(given, len(rows.task))
        made = arrange([rows], *n_codes, same, tell_rows=given is not None)
        sorted_weight = None if given is None else given[made.rows]
        return cls(made.start, made.code, tasks, workers, classes, weight=sorted_weight)

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
        from tiebreak.data.building import Builder, read_weights

        builder = Builder(repeats, source)
        weights = None if weight is None else read_weights(weight, source, 0)
        builder.add(task, worker, label, weight=weights)
        return builder.finish(tasks=tasks, classes=classes, frame=frame)

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
        if not rows:
            raise ResponseError("no-triples")
        for place, row in enumerate(rows):
            if not has_parts(row, 3):
                raise ResponseError("no-triple", row=place + 1, value=row)
        return cls.from_columns(*map(list, zip(*rows, strict=True)), repeats=repeats)

    def count_labels(self) -> Offsets:
        """Return how often each worker gave each label, (n_workers, n_classes); counted once.

        >>> Responses.from_rows([("a", "ann", "x"), ("b", "ann", "x")]).count_labels().tolist()
        [[2]]
        """
        if self._label_counts is None:
            by_code = count_codes(self.code, self.n_workers * self.n_classes)
            counts = _read_only(by_code.reshape(-1, self.n_classes))
            object.__setattr__(self, "_label_counts", counts)
            return counts
        return self._label_counts

    def weigh_labels(self) -> Floats:
        """Return how often each worker gave each label by weight, (n_workers, n_classes).

        >>> named = Ids(["a", "b"]), Ids(["w"]), Ids(["x"])
        >>> crowd = Responses.from_codes([0, 1], [0, 0], [0, 0], *named, weight=[2.0, 0.5])
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
        return replace(
            self,
            start=start,
            code=code,
            tasks=self.tasks.take(tasks),
            weight=layout.weights_on(self, tasks),
            n_empty=0,  # this and what follows is said of all tasks
            n_repeats=0,
            runs=None,
        )

    def with_tasks(self, others: Ids) -> Responses:
        """Add tasks that nobody answered."""
        tasks = self.tasks.merge(others)
        more = np.full(len(tasks) - len(self.tasks), len(self.code), dtype=np.int64)
        return replace(self, tasks=tasks, start=np.concatenate([self.start, more]))

    def in_classes(self, classes: Ids) -> Responses:
        """Return the responses in the codes of classes that have all of theirs, in some order."""
        if self.classes == classes:
            return self
        return self.recoded(classes, classes.codes(self.classes))

    def with_classes(self, others: Ids) -> Responses:
        """Add classes that no worker used (a known label may name one)."""
        merged = self.classes.merge(others)
        if len(merged) == len(self.classes):
            return self
        return self.in_classes(merged if self.is_class_ordered else merged.sorted()[0])

    def with_class_order(self, order: Ids) -> Responses:
        """Put the classes of `order` first, in that order, and the others after them.

        >>> Responses.from_rows([("a", "w", "low"), ("a", "v", "high")]).with_class_order(
        ...     Ids(["low", "high"])
        ... ).classes
        Ids(['low', 'high'], n=2)
        """
        first = Ids(order.values.cast(self.classes.values.type))
        made = self.in_classes(first.merge(self.classes))
        return replace(made, is_class_ordered=True)

    def with_folded_labels(self) -> Responses:
        """Join classes that differ only in case, spaces or Unicode form, under the commonest form.

        >>> rows = [("a", "ann", "Cat"), ("a", "bob", "cat"), ("b", "bob", "cat")]
        >>> Responses.from_rows(rows).with_folded_labels().classes
        Ids(['cat'], n=1)
        """
        groups = variants(self.classes)
        if not groups:
            return self
        count = np.bincount(self.label_of_each(), minlength=self.n_classes)
        form = np.arange(self.n_classes)
        for group in groups:
            codes = self.classes.codes(group)
            form[codes] = codes[np.argmax(count[codes])]
        kept, new_code = np.unique(form, return_inverse=True)
        return self.recoded(self.classes.take(kept), new_code.astype(np.int32))

    def recoded(self, classes: Ids, new_code: Codes) -> Responses:
        """Return the responses with other classes, of which new_code[k] is the former k."""
        worker = self.worker_of_each().astype(np.int64)
        code = worker * len(classes) + new_code[self.label_of_each()]
        code = code.astype(np.int64 if self.n_workers * len(classes) >= INT32_END else np.int32)
        weight = self.weight
        if (np.diff(new_code) < 0).any():  # another order of classes sorts codes in another way
            by_task = np.lexsort((code, self.task_of_each()))
            code = code[by_task]
            weight = None if weight is None else weight[by_task]
        return replace(self, code=code, classes=classes, weight=weight)


def check_lengths(lengths: Sequence[int]) -> None:
    """Refuse columns of different lengths."""
    if len(set(lengths)) > 1:
        raise ResponseError("unequal-responses", lengths=tuple(lengths))


def check_length(weight: Floats, n_responses: int) -> None:
    """Refuse weights that are not one per response."""
    if len(weight) != n_responses:
        raise ResponseError("unequal-weights", n=len(weight), n_responses=n_responses)


def arrange(
    parts: list[ResponseRows],
    n_tasks: int,
    n_workers: int,
    new_label: Codes,
    *,
    keep_last: bool = False,
    tell_rows: bool = False,
) -> Arranged:
    """Sort responses by task, compiled where there are many: `parts` is then used up.

    `tell_rows`: return also which rows they are, so that what goes with them can follow.
    """
    is_wide = n_workers * len(new_label) >= INT32_END
    is_small = not repays_compiled_intake(sum(len(part.task) for part in parts))
    if tell_rows or is_wide or is_small:
        return reference.arrange(parts, n_tasks, new_label, keep_last=keep_last)
    from tiebreak.kernels.ingest import sort_by_task

    return sort_by_task.arrange(parts, n_tasks, new_label, keep_last=keep_last)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
