"""What formats share: options, the head of a file, its records, and the rows made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data import ids
from tiebreak.data.ids import composed
from tiebreak.errors import InputError, ResponseError, note
from tiebreak.tables.options import ReadingOptions
from tiebreak.tables.plain import Head, KeepText, Records
from tiebreak.tables.source import RecordFinder, RecordPlace
from tiebreak.tables.table import Table, arrays, to_arrow
from tiebreak.wording import Source

IdType = (str, int)
Number = (int, float)
WORDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}
MTURK_TIME = "%a %b %d %H:%M:%S %Z %Y"  # Thu Oct 09 07:30:20 UTC 2025
YES = "yes"
NO = "no"


class Format(NamedTuple):
    """One way in which a tool writes labels.

    `read` adds every answer, known label and text to rows. `can_choose` are what the caller may
    choose of it: the column of a role, or "label in text".
    """

    name: str
    title: str  # as a person would call it
    looks_like: Callable[[Head], bool]
    read: Callable[[Records, Rows], None]
    can_choose: tuple[str, ...] = ()


class Imported(NamedTuple):
    """What a file of a tool holds: responses as a table, and the labels that it marks as true."""

    table: Table
    gold: dict[Hashable, Hashable]
    form: str


def need(record: Any, key: str, kind: type | tuple[type, ...], at: RecordPlace) -> Any:
    """Return a value that must be there and be of one kind.

    >>> need({"id": 7}, "id", (int, str), RecordPlace("a.json", "record", 1))
    7
    """
    if not isinstance(record, dict | Mapping):  # a dict is known at once
        raise InputError("object-expected", at=at, value=record)
    if key not in record:
        raise InputError("key-missing", at=at, key=key, keys=list(record))
    value = record[key]
    kinds = kind if isinstance(kind, tuple) else (kind,)
    is_odd = isinstance(value, bool) and not {bool, object} & set(kinds)  # Python counts it as 1
    if is_odd or not isinstance(value, kind):
        wanted = " or ".join(WORDS.get(k, k.__name__) for k in kinds)
        raise InputError("wrong-type", at=at, key=key, wanted=wanted, value=value)
    return value


def optional(record: Any, key: str, kind: type | tuple[type, ...], at: RecordPlace) -> Any:
    """Return a value that may be left out or null, and is of one kind where it is not.

    >>> optional({"score": None}, "score", float, RecordPlace("a.json", "record", 1))
    """
    if isinstance(record, Mapping) and record.get(key) is None:
        return None
    return need(record, key, kind, at)


def need_name(record: Any, key: str, at: RecordPlace) -> str:
    """Return a name or an id as text; an empty one is none.

    >>> need_name({"judge": "gpt"}, "judge", RecordPlace("a.json", "record", 1))
    'gpt'
    """
    name = str(need(record, key, IdType, at))
    if not name:
        raise InputError("value-empty", at=at, key=key)
    return name


def first_text(values: Mapping[str, Any]) -> str | None:
    """Return what to show for a task: its text, else the first value that is text.

    >>> first_text({"n": 1, "title": "A", "text": "good film"})
    'good film'
    """
    for key in ("text", "prompt", "question", "input"):
        if isinstance(values.get(key), str):
            return str(values[key])
    return next((value for value in values.values() if isinstance(value, str)), None)


def seconds(value: object) -> float | None:
    """Read a time as seconds; None where there is none or it cannot be read.

    >>> seconds("2025-10-09T07:30:20Z") == seconds("Thu Oct 09 07:30:20 UTC 2025")
    True
    >>> seconds(1759995020), seconds("yesterday"), seconds(None)
    (1759995020.0, None, None)
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and value:
        utc = value.replace(" PDT ", " UTC ").replace(" PST ", " UTC ")
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            try:
                value = datetime.strptime(utc, MTURK_TIME)
            except ValueError:
                return None
    if not isinstance(value, datetime):
        return None
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()


@dataclass(slots=True)
class Rows:
    """Collects answers; `finish` makes a table of them and reports what became of the rest.

    Every answer is kept (with a label, or without one, which is "no answer"), or dropped for a
    reason that is counted.
    """

    name: str
    title: str
    options: ReadingOptions
    keep_text: KeepText | None = None
    task: list[Any] = field(default_factory=list)
    worker: list[Any] = field(default_factory=list)
    label: list[Any] = field(default_factory=list)
    file: list[tuple[str, str]] = field(default_factory=list)  # and the noun, "line" or "record"
    number: list[int] = field(default_factory=list)
    more: dict[str, list[Any]] = field(default_factory=dict)
    known: dict[Hashable, tuple[Any, RecordPlace]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    questions: Counter[str] = field(default_factory=Counter)
    other_questions: Counter[str] = field(default_factory=Counter)
    default_question: str | None = None  # read where the caller chooses none
    remarks: list[str] = field(default_factory=list)
    _same: dict[Any, Any] = field(default_factory=dict)

    def wants(self, question: str) -> bool:
        """Count a question; return whether its answers are the ones to keep."""
        self.questions[question] += 1
        return question == self.question

    def is_no_class(self, question: str, what: str) -> None:
        """Count an answer that can never be a class, such as a box drawn in an image."""
        self.other_questions[f"{question!r} ({what})"] += 1

    def add(self, at: RecordPlace, task: Any, worker: Any, label: Any, **more: Any) -> None:
        """Take one answer; a list of labels is one label, none, or a case for multi-label."""
        if worker is None or worker == "":
            raise InputError("no-worker", at=at)
        self.file.append(self._same.setdefault(at[:2], at[:2]))
        self.number.append(at.number)
        self.task.append(task)
        self.worker.append(self._once(worker))
        self.label.append(self._once(self._class_of(at, label)))
        for column in [key for key in more if key not in self.more]:
            self.more[column] = [None] * (len(self.task) - 1)
        for column, values in self.more.items():
            values.append(more.get(column))

    def add_gold(self, at: RecordPlace, task: Any, label: Any) -> None:
        """Take a label that the file marks as true."""
        label = self._class_of(at, label)
        if label is None:
            return
        before, there = self.known.setdefault(task, (label, at))
        if before != label:
            where = str(there) if there.file != at.file else f"{there.noun} {there.number:,}"
            raise InputError(
                "known-twice", at=at, task=task, label=label, before=before, where=where
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
        reasons = [f"{n:,} {reason}" for reason, n in self.dropped.items()]
        if not self.task:
            if self.known:
                reasons.append(f"{len(self.known):,} known labels and no other answer")
            raise ResponseError(
                "no-answers",
                file=self.name,
                format=self.title,
                reasons=reasons,
                others=list(self.other_questions),
            )
        self._report(reasons)
        gold: dict[Hashable, Hashable] = {t: label for t, (label, _) in self.known.items()}
        if self.options.multi_label:
            gold = self._split_labels(gold)
        self._sort_by_time()
        columns = {"task": self.task, "worker": self.worker, "label": self.label, **self.more}
        return Imported(arrays(columns, self._source()), gold, self.title)

    def _source(self) -> Source:
        numbers = np.array(self.number, dtype=np.int64)
        return Source(self.name, RecordFinder(self.name, "record", numbers, self.file))

    def _once(self, value: Any) -> Any:
        """Keep one copy of equal texts: workers and labels come again and again."""
        return self._same.setdefault(value, value) if isinstance(value, str) else value

    def _class_of(self, at: RecordPlace, label: Any) -> Any:
        is_list = isinstance(label, list | tuple)
        if isinstance(label, dict) or (is_list and any(isinstance(x, dict | list) for x in label)):
            raise InputError("no-class", at=at, value=label)
        if is_list and any(mark is None for mark in label):
            raise InputError("null-among-labels", at=at, value=label)
        if self.options.multi_label:
            marks = tuple(label) if is_list else () if label in (None, "") else (label,)
            return marks if is_list or marks else None
        if not is_list:
            return None if label == "" else label
        if len(label) > 1:
            raise InputError("several-labels", at=at, value=label)
        return label[0] if label else None

    def _check_question(self) -> None:
        asked = self.options.question
        questions = dict(self.questions)
        if asked is not None and asked not in questions:
            raise InputError("no-question", file=self.name, question=asked, questions=questions)
        is_default = self.question is not None and self.question == self.default_question
        if asked is None and len(questions) > 1 and not is_default:
            raise InputError("several-questions", file=self.name, questions=questions)

    def _report(self, reasons: list[str]) -> None:
        asked = self.options.question or self.default_question
        n_empty = sum(label is None for label in self.label)
        note(
            "answers-read",
            file=self.name,
            format=self.title,
            n_read=len(self.task) + self.dropped.total(),
            n_kept=len(self.task) - n_empty,
            n_empty=n_empty,
            dropped=reasons,
            left_out=[f"{n:,} of {kind}" for kind, n in self.other_questions.items()],
            n_known=len(self.known),
            not_read=[q for q in self.questions if q != asked] if asked is not None else [],
            is_asked=self.options.question is not None,
            remarks=list(self.remarks),
        )

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
        self.label = [answer for _, _, answer in rows]
        others: list[list[Any]] = [self.worker, self.file, self.number, *self.more.values()]
        for values in others:
            values[:] = [values[i] for i, _, _ in rows]
        return {
            composed((task, mark)): YES if mark in label else NO
            for task, label in gold.items()
            for mark in universe
        }

    def _sort_by_time(self) -> None:
        """Put answers of one worker to one task in order of time, so that the last is last."""
        times = self.more.get("time")
        if times is None or None in times:
            return
        source = self._source()
        task_code, _ = ids.encode(to_arrow("task", self.task, source))
        worker_code, workers = ids.encode(to_arrow("worker", self.worker, source))
        pair = task_code.astype(np.int64) * len(workers) + worker_code
        order = np.empty(len(pair), dtype=np.int64)
        order[np.argsort(pair, kind="stable")] = np.lexsort((np.array(times, dtype=float), pair))
        places = order.tolist()
        lists: list[list[Any]] = [self.task, self.worker, self.label, self.file, self.number]
        for values in [*lists, *self.more.values()]:
            values[:] = [values[i] for i in places]
