"""Rows: answers as a format finds them, with what was dropped, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiebreak import ids
from tiebreak.errors import InputError, ResponseError, note
from tiebreak.files.formats.protocol import (
    Imported,
    ImportOptions,
    KeepText,
    RecordPlace,
    shown,
)
from tiebreak.files.table import Table
from tiebreak.ids import Column, composed
from tiebreak.wording import Source, agreeing, counted

ONE_CLASS = (
    "tiebreak takes one class per answer. --multi-label (multi_label=True) makes one yes/no task "
    "of each label."
)
YES = "yes"
NO = "no"


@dataclass(frozen=True, slots=True)
class RecordFinder:
    """Callable: row (from 0) to the number of its record; it pickles, as sources must."""

    noun: str
    numbers: np.ndarray[Any, np.dtype[np.int64]]
    places: list[RecordPlace] | None = None  # of each row, where several files are read

    def __call__(self, row: int) -> int:
        """Return the number of the record in which a row stands."""
        return int(self.numbers[row])


class RecordSource(Source):
    """Where rows came from: names the record instead of the line."""

    __slots__ = ()

    def where(self, row: int) -> str:
        """Name the place of a row, counted from 0."""
        if isinstance(self.line_of, RecordFinder):
            if self.line_of.places is not None:
                return str(self.line_of.places[row])
            return f"{self.name}, {self.line_of.noun} {self.line_of(row):,}"
        return super().where(row)


@dataclass(slots=True)
class Rows:
    """Collects answers; `finish` makes a table of them and reports what became of the rest.

    Every answer is one of: kept (with a label, or without one, which is "no answer"), or
    dropped for a reason that is counted.
    """

    name: str
    title: str
    options: ImportOptions
    keep_text: KeepText | None = None
    task: list[Any] = field(default_factory=list)
    worker: list[Any] = field(default_factory=list)
    label: list[Any] = field(default_factory=list)
    number: list[int] = field(default_factory=list)
    places: list[RecordPlace] | None = None  # kept where several files are read
    noun: str = "record"
    more: dict[str, list[Any]] = field(default_factory=dict)
    known: dict[Hashable, tuple[Any, RecordPlace]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    questions: Counter[str] = field(default_factory=Counter)
    other_questions: Counter[str] = field(default_factory=Counter)
    default_question: str | None = None  # read where the caller chooses none
    remarks: list[str] = field(default_factory=list)
    _same: dict[Any, Any] = field(default_factory=dict)

    def wants(self, question: str) -> bool:
        """Count a question; tell whether its answers are the ones to keep."""
        self.questions[question] += 1
        return question == self.question

    def is_no_class(self, question: str, what: str) -> None:
        """Count an answer that can never be a class, such as a box drawn in an image."""
        self.other_questions[f"{question!r} ({what})"] += 1

    def add(self, place: RecordPlace, task: Any, worker: Any, label: Any, **more: Any) -> None:
        """Take one answer; a list of labels is one label, none, or a case for multi-label."""
        if worker is None or worker == "":
            raise place.error("the answer names no worker. Fill in who gave it, or remove it.")
        self.noun = place.noun
        self.number.append(place.number)
        if self.places is not None:
            self.places.append(place)
        self.task.append(task)
        self.worker.append(self._once(worker))
        self.label.append(self._once(self._class_of(place, label)))
        for column in [key for key in more if key not in self.more]:
            self.more[column] = [None] * (len(self.task) - 1)
        for column, values in self.more.items():
            values.append(more.get(column))

    def add_gold(self, place: RecordPlace, task: Any, label: Any) -> None:
        """Take a label that the file says is the true one."""
        label = self._class_of(place, label)
        if label is None:
            return
        before = self.known.setdefault(task, (label, place))
        if before[0] != label:
            there = f"{before[1].noun} {before[1].number:,}"
            if before[1].file != place.file:
                there = str(before[1])
            raise place.error(
                f"task {task!r} is known to be {label!r} here and {before[0]!r} in {there}. "
                "Keep one of them."
            )

    def add_text(self, task: Any, text: str | None) -> None:
        """Take what to show for a task, where somebody wants to know."""
        if text and self.keep_text is not None:
            self.keep_text(task, text)

    @property
    def question(self) -> str | None:
        """The question whose answers are kept; None before the first."""
        return self.options.question or self.default_question or next(iter(self.questions), None)

    def drop(self, reason: str) -> None:
        """Count an answer that is not used."""
        self.dropped[reason] += 1

    def finish(self) -> Imported:
        """Make a table; report how many answers were read, kept and dropped."""
        self._check_question()
        if not self.task:
            raise ResponseError(
                f"{self.name} ({self.title}) holds no answer that can be used{self._why_none()}."
            )
        self._report()
        gold: dict[Hashable, Hashable] = {t: label for t, (label, _) in self.known.items()}
        if self.options.multi_label:
            gold = self._split_labels(gold)
        self._sort_by_time()
        columns = {"task": self.task, "worker": self.worker, "label": self.label, **self.more}
        finder = RecordFinder(self.noun, np.array(self.number, dtype=np.int64), self.places)
        return Imported(table_of(columns, RecordSource(self.name, finder)), gold)

    def _once(self, value: Any) -> Any:
        """Keep one copy of equal texts: workers and labels come again and again."""
        return self._same.setdefault(value, value) if isinstance(value, str) else value

    def _class_of(self, place: RecordPlace, label: Any) -> Any:
        is_list = isinstance(label, list | tuple)
        if isinstance(label, dict) or (is_list and any(isinstance(x, dict | list) for x in label)):
            raise place.error(
                f"{shown(label)} is not one class: a ranking, a span or the like cannot be fused. "
                "Choose another question with --question NAME (question=)."
            )
        if is_list and any(mark is None for mark in label):
            raise place.error(f"one of the labels {shown(label)} is null. Fill it in or remove it.")
        if self.options.multi_label:
            marks = tuple(label) if is_list else () if label in (None, "") else (label,)
            return marks if is_list or marks else None
        if not is_list:
            return None if label == "" else label
        if len(label) > 1:
            raise place.error(f"the answer holds {len(label)} labels: {shown(label)}. {ONE_CLASS}")
        return label[0] if label else None

    def _check_question(self) -> None:
        asked = self.options.question
        listed = ", ".join(f"{q!r} ({n:,} answers)" for q, n in self.questions.items())
        if asked is not None and asked not in self.questions:
            there = listed or "none"
            raise InputError(f"{self.name} has no question {asked!r}. Its questions are: {there}.")
        if self.question is not None and self.question == self.default_question:
            return
        if asked is None and len(self.questions) > 1:
            first = next(iter(self.questions))
            raise InputError(
                f"{self.name} holds {len(self.questions)} questions: {listed}.\n"
                f"Choose one with --question {first!r} (question={first!r}). Where a command has "
                f"no such option, first write a table: tiebreak convert FILE --question {first!r} "
                "-o responses.csv"
            )

    def _why_none(self) -> str:
        reasons = [f"{n:,} {reason}" for reason, n in self.dropped.items()]
        if self.known:
            reasons.append(f"{len(self.known):,} known labels and no other answer")
        why = f" ({'; '.join(reasons)})" if reasons else ""
        if self.other_questions:
            kinds = ", ".join(self.other_questions)
            why += f". What it holds is not one class per task: {kinds}"
        return why

    def _report(self) -> None:
        n_kept = len(self.task)
        n_read = n_kept + self.dropped.total()
        n_empty = sum(label is None for label in self.label)
        parts = [f"read {counted(n_read, 'answer')}, kept {n_kept - n_empty:,}"]
        if n_empty:
            parts.append(f"{n_empty:,} without an answer")
        parts += [f"dropped {n:,} {reason}" for reason, n in self.dropped.items()]
        parts += [f"left out {n:,} of {kind}" for kind, n in self.other_questions.items()]
        if self.known:
            n = len(self.known)
            parts.append(f"{counted(n, 'task')} {agreeing(n, 'have')} a known label")
        asked = self.options.question or self.default_question
        others = [q for q in self.questions if q != asked]
        if asked is not None and others:
            how = "" if self.options.question else f" (--question {others[0]!r} reads one)"
            parts.append(f"questions not read: {', '.join(map(repr, others))}{how}")
        note(f"{self.name} ({self.title}): {'; '.join([*parts, *self.remarks])}.")

    def _split_labels(self, gold: dict[Hashable, Any]) -> dict[Hashable, Hashable]:
        """Make one yes/no task of each task and label.

        An answer {red, blue} on task 1, where green exists too, becomes
        (1 | blue, yes), (1 | green, no), (1 | red, yes).
        """
        marks = [mark for label in self.label if label is not None for mark in label]
        marks += [mark for label in gold.values() for mark in label]
        universe = sorted(set(marks), key=str)
        rows = [
            (i, mark, None if label is None else YES if mark in label else NO)
            for i, label in enumerate(self.label)
            for mark in universe
        ]
        self.task = [composed((self.task[i], mark)) for i, mark, _ in rows]
        self.worker = [self.worker[i] for i, _, _ in rows]
        self.label = [answer for _, _, answer in rows]
        self.number = [self.number[i] for i, _, _ in rows]
        if self.places is not None:
            self.places = [self.places[i] for i, _, _ in rows]
        self.more = {
            column: [values[i] for i, _, _ in rows] for column, values in self.more.items()
        }
        return {
            composed((task, mark)): YES if mark in label else NO
            for task, label in gold.items()
            for mark in universe
        }

    def _sort_by_time(self) -> None:
        """Put answers of one worker to one task in order of time, so that the last is last."""
        times = self.more.get("time")
        if times is None:
            return
        task_code, _ = ids.encode(column_of(self.task))
        worker_code, workers = ids.encode(column_of(self.worker))
        pair = task_code.astype(np.int64) * len(workers) + worker_code
        at = np.array([np.nan if t is None else t for t in times], dtype=np.float64)
        by_row = np.argsort(pair, kind="stable")
        by_time = np.lexsort((at, pair))  # NaN, a time that is not known, comes last: keep order
        order = np.empty(len(pair), dtype=np.int64)
        order[by_row] = by_time
        if np.array_equal(order, np.arange(len(order))) or np.isnan(at).any():
            return
        places = order.tolist()
        lists = [self.task, self.worker, self.label, self.number, *self.more.values()]
        for values in lists if self.places is None else [*lists, self.places]:
            values[:] = [values[i] for i in places]


def table_of(columns: dict[str, list[Any]], source: Source) -> Table:
    """Make a table of columns in memory."""
    values = [column_of(column) for column in columns.values()]
    return Table(tuple(columns), lambda positions: [values[i] for i in positions], source)


def column_of(values: list[Any]) -> Column:
    """Make an Arrow array of values of one type; others stay Python objects."""
    import pyarrow as pa

    kinds = {type(value) for value in values} - {type(None)}
    if not kinds <= {str} and not kinds <= {int} and not kinds <= {float, int}:
        return values
    try:
        return pa.array(values, pa.string() if not kinds else None)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return values  # whole numbers beyond 64 bits, or halves of characters
