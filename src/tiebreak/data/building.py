"""Building responses from columns, batch by batch, in bounded memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from tiebreak.data.confidence import scaled
from tiebreak.data.ids import MISSING, Column, Encoder, Ids, as_numbers, encode
from tiebreak.data.responses import Responses, arrange, check_length, check_lengths
from tiebreak.data.runs import Extras, vote, weigh
from tiebreak.errors import InputError, ResponseError, note
from tiebreak.kernels.arrays import default_threads, for_each
from tiebreak.kernels.contract import COMPILED_ROWS
from tiebreak.kernels.ingest.reference import ResponseRows
from tiebreak.kernels.layout import Floats
from tiebreak.options import require_word
from tiebreak.wording import NOWHERE, Source

Repeats = Literal["last", "count", "error", "vote", "runs"]
REPEATS: tuple[Repeats, ...] = ("last", "count", "error", "vote", "runs")
IDS = ("task", "worker", "label")
SHOWN = 3  # rows named in a message
TOGETHER = 1 << 22  # names of batches that wait to be told apart


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
        self._encoders = defaultdict[str, Encoder](Encoder)  # by role
        self._recent: list[dict[str, Floats]] = []  # numbers by role, of rows yet to be settled
        self._n_recent = 0
        self._n_settled = 0
        self._n_empty = 0
        self._parts: list[ResponseRows] = []  # in final codes
        self._extras: list[dict[str, Any]] = []  # arrays by role, of the rows in parts

    @property
    def n_rows(self) -> int:
        """How many rows were taken."""
        return self._n_settled + self._n_recent

    def add(self, task: Column, worker: Column, label: Column, **more: Any) -> None:
        """Take some rows; what is given beside task, worker and label is given in each batch.

        That are the columns `order`, of presentation, and `group`, the family of the worker, and
        the numbers `weight` and `confidence`: what the worker stated, NaN where nothing.
        """
        numbers = {role: each for role, each in more.items() if each is not None}
        columns = {"task": task, "worker": worker, "label": label}
        columns |= {role: numbers.pop(role) for role in ("order", "group") if role in numbers}
        wanted = list(columns)
        n_rows = dict.fromkeys(wanted, 0)

        def encode_column(i: int) -> None:
            role = wanted[i]
            try:
                n_rows[role] = self._encoders[role].add(columns[role])
            except InputError:
                raise
            except (TypeError, ValueError) as error:
                raise ResponseError("bad-id", role=role, reason=error) from None

        is_large = hasattr(task, "__len__") and len(task) >= COMPILED_ROWS
        for_each(encode_column, len(wanted), default_threads() if is_large else 1)
        check_lengths([n_rows[role] for role in IDS])
        if "weight" in numbers:
            check_length(numbers["weight"], n_rows["task"])
        self._recent.append(numbers)
        self._n_recent += n_rows["task"]
        each = self._encoders.values()
        if sum(e.n_waiting for e in each) >= max(TOGETHER, 2 * sum(map(len, each))):
            self._settle()

    def names(self) -> Iterator[Ids]:
        """Yield the ids seen so far: of tasks, workers and labels, one column at a time."""
        self._settle()
        return (self._encoders[role].names() for role in IDS)

    def finish(
        self,
        *,
        tasks: Column | None = None,
        classes: Column | None = None,
        frame: str = "pyarrow",
    ) -> Responses:
        """Sort what was taken in by task, settle who answered twice, and weigh runs.

        `tasks` and `classes` exist even where no row names them.
        """
        task_names, workers, class_names = self.names()
        orders = self._encoders["order"].names()
        groups = self._encoders["group"].names()
        self._encoders.clear()  # the tables of ids may be large
        if tasks is not None:
            task_names = task_names.merge(encode(tasks)[1])
        if classes is not None:
            class_names = class_names.merge(encode(classes)[1])
        title = self._source.name or "The table"
        if not len(class_names):
            raise ResponseError("no-label", table=title)
        class_names, new_label = class_names.sorted()
        if self._n_empty:
            note("empty-labels", n=self._n_empty)
        extras = {
            role: np.concatenate([each[role] for each in self._extras])
            for role in (self._extras[0] if self._extras else {})
        }
        group_of = {}
        if len(groups):  # of each worker: what the rows say, the first where they differ
            worker = np.concatenate([part.worker for part in self._parts])
            is_given = extras["group"] != MISSING
            who, first = np.unique(worker[is_given], return_index=True)
            found = groups.take(extras["group"][is_given][first])
            group_of = dict(zip(who.tolist(), map(str, found), strict=True))
        parts, self._parts = self._parts, []  # arranging uses them up: nobody else may hold them
        keep_last = self._repeats == "last"
        n_codes = (len(task_names), len(workers))
        made = arrange(parts, *n_codes, new_label, keep_last=keep_last, tell_rows=bool(extras))
        extras = {role: each[made.rows] for role, each in extras.items()}
        responses = Responses(
            made.start,
            made.code,
            task_names,
            workers,
            class_names,
            self._n_empty,
            made.n_repeats,
            frame,
            weight=extras.get("weight"),
        )
        stated = extras.get("confidence")
        if made.n_repeats and self._repeats != "runs":
            if stated is not None:
                why = "is used with repeats='runs' only"
                note("confidence-unused", table=title, reason=why)
            return _settle_repeats(responses, self._repeats)
        if stated is not None:
            stated = scaled(stated, title)
        more = Extras(extras.get("order"), [*map(str, orders)], stated, group_of)
        return weigh(responses, more) if self._repeats == "runs" or more.is_given else responses

    def _settle(self) -> None:
        """Make one part of the recent rows, in final codes: many small ones leave holes."""
        import pyarrow as pa

        if not self._recent:
            return
        recent, self._recent = self._recent, []
        rows = {role: np.concatenate([each[role] for each in recent]) for role in recent[0]}
        rows |= {role: each.settle() for role, each in self._encoders.items()}
        for role in ("task", "worker"):
            missing = np.flatnonzero(rows[role] == MISSING)
            if len(missing):
                places = [self._source.where(self._n_settled + int(r)) for r in missing[:SHOWN]]
                raise ResponseError("no-id-in-row", role=role, n=len(missing), places=places)
        self._n_settled += self._n_recent
        self._n_recent = 0
        has_label = rows["label"] != MISSING
        n_empty = len(has_label) - int(np.count_nonzero(has_label))
        if n_empty:
            self._n_empty += n_empty
            rows = {role: each[has_label] for role, each in rows.items()}
        task, worker, label = (rows.pop(role) for role in IDS)
        task = task.astype(np.int32, copy=False)  # the others as narrow as they come
        self._parts.append(ResponseRows(task, worker, label))
        self._extras.append(rows)
        pa.default_memory_pool().release_unused()  # what encoding took


def read_weights(column: Column, source: Source, first_row: int) -> Floats:
    """Return a column of weights as numbers, 1 where it is empty; refuse what is not above 0.

    >>> read_weights(["2", None, "0.5"], Source("r.csv"), 0)
    array([2. , 1. , 0.5])
    """
    numbers, is_given = as_numbers(column)
    weight = np.where(is_given, numbers, 1.0)
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight > 0.0)))
    if len(wrong):
        row = int(wrong[0])
        value = column[row].as_py() if hasattr(column[row], "as_py") else column[row]
        raise ResponseError("bad-weight-in-row", where=source.where(first_row + row), value=value)
    return weight


def _settle_repeats(responses: Responses, repeats: Repeats) -> Responses:
    """Report how repeats count, or refuse them; runs are reported when they are weighed."""
    n = responses.n_repeats
    if repeats == "vote":
        voted, n_ties = vote(responses)
        note("repeats-voted", n=n, n_ties=n_ties)
        return voted
    if repeats == "error":
        worker = responses.worker_of_each()
        task = responses.task_of_each()
        first = int(np.flatnonzero((np.diff(task) == 0) & (np.diff(worker) == 0))[0])
        raise ResponseError(
            "repeats",
            n=n,
            worker=responses.workers[int(worker[first])],
            task=responses.tasks[int(task[first])],
        )
    if repeats == "count":
        note("repeats-counted", n=n)
    elif repeats == "last":
        note("repeats-last", n=n)
    return responses
