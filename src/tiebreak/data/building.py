"""Building responses from columns, batch by batch, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tiebreak.data import ids
from tiebreak.data.ids import MISSING, Coder, Column, Ids
from tiebreak.data.weights import arrange_weighted, check_length
from tiebreak.errors import ResponseError, note
from tiebreak.kernels.arrays import default_threads, for_each
from tiebreak.kernels.contract import COMPILED_ROWS, repays_compiled_intake
from tiebreak.kernels.ingest import reference
from tiebreak.kernels.ingest.reference import Arranged, ResponseRows
from tiebreak.kernels.layout import Codes, Floats, Offsets
from tiebreak.options import require_word
from tiebreak.wording import NOWHERE, Source, agreeing, counted

Repeats = Literal["last", "count", "error", "vote", "runs"]
REPEATS: tuple[Repeats, ...] = ("last", "count", "error", "vote", "runs")
ROLES = ("task", "worker", "label")
SHOWN = 3  # rows named in a message
TOGETHER = 1 << 24  # rows whose codes are settled at a time
INT32_END = 2**31


class Built(NamedTuple):
    """What a builder makes: the fields of `Responses`, in their order."""

    start: Offsets
    code: Codes
    tasks: Ids
    workers: Ids
    classes: Ids
    n_empty: int
    n_repeats: int
    weight: Floats | None = None


class Builder:
    """Takes batches of rows, keeps their codes only, and sorts them by task at the end.

    >>> builder = Builder()
    >>> builder.add(["b", "a"], ["ann", "ann"], ["y", "x"])
    >>> builder.add(["b"], ["bob"], ["x"])
    >>> builder.finish().tasks
    Ids(['b', 'a'], n=2)
    """

    def __init__(self, repeats: Repeats = "last", source: Source = NOWHERE) -> None:
        require_word("repeats", repeats, REPEATS)
        self._repeats: Repeats = repeats
        self._source = source
        self._coders: tuple[Coder, ...] = ()
        self._parts: list[ResponseRows] = []
        self._recent: list[tuple[ResponseRows, Floats | None]] = []
        self._n_recent = 0
        self._weights: list[Floats] = []  # of each row that has a label; empty: none are given
        self._rows_without_id: dict[str, list[int]] = {"task": [], "worker": []}  # the first few
        self._n_without_id = {"task": 0, "worker": 0}
        self._n_rows = 0
        self._n_empty = 0

    @property
    def n_rows(self) -> int:
        """How many rows were taken."""
        return self._n_rows + self._n_recent

    def add(
        self, task: Column, worker: Column, label: Column, *, weight: Floats | None = None
    ) -> None:
        """Take some rows."""
        columns = task, worker, label
        if not self._coders:
            self._coders = tuple(ids.coder_for(column) for column in columns)
        rows = ResponseRows(*self._encode(columns))
        n_rows = len(rows.task)
        if weight is not None:
            check_length(weight, n_rows)
        self._recent.append((rows, weight))
        self._n_recent += n_rows
        if self._n_recent >= max(TOGETHER, 2 * max(map(len, self._coders))):
            self._settle()

    def _settle(self) -> None:
        """Make one part of the recent rows, in final codes: many small ones leave holes."""
        if not self._recent:
            return
        recent, weights = zip(*self._recent, strict=True)
        self._recent = []
        codes = []
        for coder, given in zip(self._coders, zip(*recent, strict=True), strict=True):
            joined = np.concatenate(given)
            final = coder.settle()
            codes.append(joined if final is None else final[joined])
        task, worker, label = codes
        self._find_rows_without_id("task", task)
        self._find_rows_without_id("worker", worker)
        self._n_rows += self._n_recent
        self._n_recent = 0
        has_label = label != MISSING
        weight = None if weights[0] is None else np.concatenate(weights)
        n_empty = int(len(label) - np.count_nonzero(has_label))
        if n_empty:
            self._n_empty += n_empty
            task, worker, label = (column[has_label] for column in (task, worker, label))
            weight = None if weight is None else weight[has_label]
        if weight is not None:
            self._weights.append(weight)
        # Codes wait in 16 and 8 bits where these can hold them; sorting makes one code of both.
        worker = _narrow(worker, len(self._coders[1]), np.uint16)
        label = _narrow(label, len(self._coders[2]), np.uint8)
        self._parts.append(ResponseRows(task, worker, label))

    def names(self) -> Iterator[Ids]:
        """Yield the ids seen so far: of tasks, workers and labels, one column at a time."""
        self._settle()
        return (coder.names() for coder in self._coders)

    def finish(self, *, tasks: Column | None = None, classes: Column | None = None) -> Built:
        """Sort what was taken in by task, and settle who answered twice.

        `tasks` and `classes` exist even where no row names them.
        """
        self._settle()
        self._refuse_rows_without_id()
        task_names, worker_names, class_names = (coder.names() for coder in self._coders)
        self._coders = ()  # their tables may be large, and are done with
        if tasks is not None:
            task_names = ids.merge(task_names, ids.encode(tasks)[1])
        if classes is not None:
            class_names = ids.merge(class_names, ids.encode(classes)[1])
        if not len(class_names):
            raise ResponseError(
                f"{self._source.name or 'The table'} holds no label at all. "
                "Pass at least one row of task, worker, label."
            )
        class_names, new_label = sorted_classes(class_names)
        if self._n_empty:
            n = self._n_empty
            rows = f"{counted(n, 'row')} {agreeing(n, 'have')}"
            note(f"{rows} an empty label: no answer, not counted.")
        arranged, weight = self._arrange(len(task_names), len(worker_names), new_label)
        built = Built(
            arranged.start,
            arranged.code,
            task_names,
            worker_names,
            class_names,
            self._n_empty,
            arranged.n_repeats,
            weight,
        )
        if built.n_repeats and self._repeats == "vote":
            return _vote(built)
        if built.n_repeats and self._repeats != "runs":  # these are told when they are weighed
            _report_repeats(built, self._repeats)
        return built

    def _arrange(
        self, n_tasks: int, n_workers: int, new_label: Codes
    ) -> tuple[Arranged, Floats | None]:
        parts = self._parts
        self._parts = []  # arranging uses the parts up: nobody else may hold on to them
        keep_last = self._repeats == "last"
        if self._weights:
            weight = np.concatenate(self._weights)
            return arrange_weighted(parts, weight, n_tasks, new_label, keep_last=keep_last)
        return arrange(parts, n_tasks, n_workers, new_label, keep_last=keep_last), None

    def _encode(self, columns: Sequence[Column]) -> list[Codes]:
        """Code the three columns, of a large batch side by side."""
        codes: list[Codes] = [np.empty(0, dtype=np.int32)] * 3

        def work(i: int) -> None:
            try:
                codes[i] = self._coders[i].add(columns[i])
            except (TypeError, ValueError) as error:
                raise ResponseError(f"A {ROLES[i]} cannot be used as an id: {error}.") from None

        for_each(work, 3, default_threads() if len(columns[0]) >= COMPILED_ROWS else 1)
        lengths = tuple(map(len, codes))
        if len(set(lengths)) > 1:
            raise ResponseError(f"task, worker and label must be equally long; got {lengths}.")
        return codes

    def _find_rows_without_id(self, what: str, codes: Codes) -> None:
        rows = np.flatnonzero(codes == MISSING)
        self._n_without_id[what] += len(rows)
        self._rows_without_id[what] += [self._n_rows + int(row) for row in rows[:SHOWN]]

    def _refuse_rows_without_id(self) -> None:
        for what, n in self._n_without_id.items():
            if n:
                shown = self._rows_without_id[what][:SHOWN]
                places = "; ".join(self._source.where(row) for row in shown)
                raise ResponseError(
                    f"{counted(n, 'row')} {agreeing(n, 'have')} no {what} id ({places}). "
                    f"Fill in the {what} or remove the row."
                )


def arrange(
    parts: list[ResponseRows], n_tasks: int, n_workers: int, new_label: Codes, *, keep_last: bool
) -> Arranged:
    """Sort responses by task, compiled where there are many: `parts` is then used up."""
    n_responses = sum(len(part.task) for part in parts)
    if not repays_compiled_intake(n_responses) or n_workers * len(new_label) >= INT32_END:
        return reference.arrange(parts, n_tasks, new_label, keep_last=keep_last)
    from tiebreak.kernels.ingest import sort_by_task

    return sort_by_task.arrange(parts, n_tasks, new_label, keep_last=keep_last)


class MixedLabelsError(ResponseError):
    """Labels of several types, which have no order; a reader knows where they stand."""


def sorted_classes(classes: Ids) -> tuple[Ids, Codes]:
    """Sort classes; labels that cannot be compared with each other are refused."""
    try:
        return ids.sort(classes)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in classes})
        raise MixedLabelsError(
            f"The labels mix types ({', '.join(kinds)}), so classes have no order. "
            "Give all labels as one type, for instance text."
        ) from None


def _narrow(codes: Codes, n: int, kind: type[np.unsignedinteger[Any]]) -> Any:
    """Keep codes below n in a narrower kind of number where that can hold them."""
    return codes.astype(kind) if n <= np.iinfo(kind).max + 1 else codes


def _vote(built: Built) -> Built:
    """Keep what each worker said most often on each task, and say how often that is nothing."""
    from tiebreak.data.voting import vote

    voted = vote(built.start, built.code, len(built.classes), built.weight)
    note(
        f"{built.n_repeats:,} responses repeat a worker on a task; the majority of a worker's "
        f"runs counts once (repeats='vote'), and {voted.n_ties:,} ties give no vote."
    )
    return built._replace(start=voted.start, code=voted.code, weight=voted.weight)


def _report_repeats(built: Built, repeats: Repeats) -> None:
    n = built.n_repeats
    found = f"{counted(n, 'response')} {agreeing(n, 'repeat')} a worker on a task"
    if repeats == "error":
        task, worker = _first_repeat(built)
        raise ResponseError(
            f"{found}; the first is worker "
            f"{built.workers[worker]!r} on task {built.tasks[task]!r}.\n"
            "Remove them, or choose repeats='last' or repeats='count'."
        )
    which = "each counts as one more" if repeats == "count" else "the last one counts"
    note(f"{found}; {which}.")


def _first_repeat(built: Built) -> tuple[int, int]:
    """Return the task and the worker of the first response that repeats the one before it."""
    worker = built.code // len(built.classes)
    task = np.repeat(np.arange(len(built.tasks)), np.diff(built.start))
    is_repeated = (np.diff(task) == 0) & (np.diff(worker) == 0)
    first = int(np.flatnonzero(is_repeated)[0])
    return int(task[first]), int(worker[first])
