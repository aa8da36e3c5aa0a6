"""Building responses from columns, batch by batch, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tiebreak import ids
from tiebreak.errors import OptionError, ResponseError, note
from tiebreak.ids import MISSING, NOWHERE, Coder, Codes, Column, Source
from tiebreak.kernels.contract import COMPILED_ROWS
from tiebreak.kernels.ingest.reference import Part
from tiebreak.kernels.threads import default_threads, for_each
from tiebreak.responses.arranging import arrange
from tiebreak.responses.table import REPEATS, Repeats, Responses, sorted_classes

ROLES = ("task", "worker", "label")
SHOWN = 3
TOGETHER = 1 << 24  # rows whose codes lie in one array


class Builder:
    """Takes batches of rows, keeps their codes only, and makes responses of them.

    >>> builder = Builder()
    >>> builder.add(["b", "a"], ["ann", "ann"], ["y", "x"])
    >>> builder.add(["b"], ["bob"], ["x"])
    >>> builder.finish()
    Responses(3 responses, 2 tasks, 2 workers, 2 classes)
    """

    def __init__(self, repeats: Repeats = "last", source: Source = NOWHERE) -> None:
        if repeats not in REPEATS:
            raise OptionError.unknown("repeats", repeats, REPEATS)
        self._repeats, self._source = repeats, source
        self._coders: tuple[Coder, ...] = ()
        self._parts: list[Part] = []
        self._recent: list[Part] = []
        self._nameless: dict[str, list[int]] = {"task": [], "worker": []}
        self._n_nameless = {"task": 0, "worker": 0}
        self._n_rows = self._n_empty = 0

    def add(self, task: Column, worker: Column, label: Column, *, is_large: bool = False) -> None:
        """Take some rows; `is_large` says that many more may follow."""
        columns = task, worker, label
        if not self._coders:
            n_rows = COMPILED_ROWS if is_large else None
            self._coders = tuple(ids.coder_for(column, n_rows) for column in columns)
        task_code, worker_code, label_code = self._encode(columns)
        self._find_nameless("task", task_code)
        self._find_nameless("worker", worker_code)
        self._n_rows += len(label_code)
        given = label_code != MISSING
        n_empty = int(len(given) - np.count_nonzero(given))
        if n_empty:
            self._n_empty += n_empty
            task_code, worker_code = task_code[given], worker_code[given]
            label_code = label_code[given]
        worker = _narrow(worker_code, len(self._coders[1]), np.uint16)
        label = _narrow(label_code, len(self._coders[2]), np.uint8)
        self._recent.append(Part(task_code, worker, label))
        if sum(len(part.task) for part in self._recent) >= TOGETHER:
            self._join()

    def finish(
        self,
        *,
        tasks: Column | None = None,
        classes: Column | None = None,
        frame: str = "pyarrow",
    ) -> Responses:
        """Sort what was taken in by task, and settle who answered twice."""
        self._refuse_nameless()
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
        class_names, new_code = sorted_classes(class_names)
        if self._n_empty:
            note(f"{self._n_empty:,} rows have an empty label: no answer, not counted.")
        self._join()
        parts, self._parts = self._parts, []
        keep_last = self._repeats == "last"
        counts = len(task_names), len(worker_names)
        start, code, n_repeats = arrange(parts, *counts, new_code, keep_last=keep_last)
        built = Responses(
            start, code, task_names, worker_names, class_names, self._n_empty, n_repeats, frame
        )
        if n_repeats:
            _tell_repeats(built, self._repeats)
        return built

    def _join(self) -> None:
        """Make one part of the recent ones: many small arrays leave holes between them."""
        if len(self._recent) > 1:
            columns = zip(*self._recent, strict=True)
            self._recent = [Part(*(np.concatenate(column) for column in columns))]
        self._parts += self._recent
        self._recent = []

    def _encode(self, columns: Sequence[Column]) -> list[Codes]:
        """Code the three columns, of a large batch side by side."""
        codes: list[Codes] = [np.empty(0, dtype=np.int32)] * 3

        def work(i: int) -> None:
            try:
                codes[i] = self._coders[i].add(columns[i])
            except TypeError as error:
                raise ResponseError(f"A {ROLES[i]} cannot be used as an id: {error}.") from None

        for_each(work, 3, default_threads() if len(columns[0]) >= COMPILED_ROWS else 1)
        lengths = tuple(map(len, codes))
        if len(set(lengths)) > 1:
            raise ResponseError(f"task, worker and label must be equally long; got {lengths}.")
        return codes

    def _find_nameless(self, what: str, codes: Codes) -> None:
        rows = np.flatnonzero(codes == MISSING)
        self._n_nameless[what] += len(rows)
        self._nameless[what] += [self._n_rows + int(row) for row in rows[:SHOWN]]

    def _refuse_nameless(self) -> None:
        for what, n in self._n_nameless.items():
            if n:
                shown = self._nameless[what][:SHOWN]
                places = "; ".join(self._source.where(row) for row in shown)
                raise ResponseError(
                    f"{n:,} rows name no {what} ({places}). Fill in the {what} or remove the row."
                )


def _narrow(codes: Codes, n: int, kind: type[np.unsignedinteger[Any]]) -> Any:
    """Keep codes below n in a narrower kind of number where that can hold them."""
    return codes.astype(kind) if n <= np.iinfo(kind).max + 1 else codes


def _tell_repeats(responses: Responses, repeats: Repeats) -> None:
    n = responses.n_repeats
    if repeats == "error":
        again = (np.diff(responses.task) == 0) & (np.diff(responses.worker) == 0)
        first = int(np.flatnonzero(again)[0])
        who = responses.workers[int(responses.worker[first])]
        what = responses.tasks[int(responses.task[first])]
        raise ResponseError(
            f"{n:,} responses repeat a worker on a task; the first is worker {who!r} "
            f"on task {what!r}.\nRemove them, or choose repeats='last' or repeats='count'."
        )
    counted = "each counts as one more" if repeats == "count" else "the last one counts"
    note(f"{n:,} responses repeat a worker on a task; {counted}.")
