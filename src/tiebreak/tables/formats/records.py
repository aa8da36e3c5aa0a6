"""What formats share: parts of records that know their place, and the rows made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data.ids import composed
from tiebreak.errors import InputError, ResponseError, note
from tiebreak.tables.formats.spans import Marked, SpanAnswers
from tiebreak.tables.options import ReadingOptions
from tiebreak.tables.plain import KeepText, Opened
from tiebreak.tables.responses import Long
from tiebreak.tables.source import Place
from tiebreak.tables.table import Table, arrays, in_order, to_arrow
from tiebreak.wording import Source

ID = (str, int)
NUMBER = (int, float)
NULL = type(None)
WORDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NULL: "null",
}
MTURK_TIME = "%a %b %d %H:%M:%S %Z %Y"  # Thu Oct 09 07:30:20 UTC 2025


class Entry(NamedTuple):
    """A record, or an object inside one, and the place to name where it is not as it should be."""

    at: Place
    values: Mapping[str, Any]

    def need(self, key: str, *kinds: type) -> Any:
        """Return a value that must be there and be of one of some types.

        >>> Entry(Place(Source("a.json"), 0), {"id": 7}).need("id", str, int)
        7
        """
        if key not in self.values:
            raise InputError("key-missing", at=self.at, key=key, keys=list(self.values))
        value = self.values[key]
        is_odd = isinstance(value, bool) and not {bool, object} & {*kinds}  # Python counts it as 1
        if is_odd or not isinstance(value, kinds):
            wanted = " or ".join(WORDS.get(kind, kind.__name__) for kind in kinds)
            raise InputError("wrong-type", at=self.at, key=key, wanted=wanted, value=value)
        return value

    def get(self, key: str, *kinds: type) -> Any:
        """Return a value of one of some types, or None where it is left out or null."""
        return None if self.values.get(key) is None else self.need(key, *kinds)

    def name(self, key: str) -> str:
        """Return a name or an id as text, which must not be empty."""
        name = str(self.need(key, *ID))
        if not name:
            raise InputError("value-empty", at=self.at, key=key)
        return name

    def entry(self, key: str) -> Entry:
        """Return an object that must be there."""
        return self._entry(self.need(key, object))

    def entries(self, key: str, *, is_needed: bool = True) -> Iterator[Entry]:
        """Yield the objects of a list."""
        for value in self.need(key, list) if is_needed else self.get(key, list) or ():
            yield self._entry(value)

    def _entry(self, value: Any) -> Entry:
        if not isinstance(value, dict | Mapping):  # a dict is known at once
            raise InputError("object-expected", at=self.at, value=value)
        return Entry(self.at, value)


Entries = Callable[[], Iterator[Entry]]  # the records of a file; each call reads from the start


class Format(NamedTuple):
    """One way in which a tool writes labels.

    `read` adds every answer, known label and text to rows. `can_choose` are what the caller may
    choose of it: the column of a role, or "label in text".
    """

    name: str
    title: str  # as a person would call it
    looks_like: Callable[[Opened], bool]
    read: Callable[[Entries, AnswerRows], None]
    can_choose: tuple[str, ...] = ()


def with_keys(*keys: str) -> Callable[[Opened], bool]:
    """Recognise files whose records, or columns, have all these keys."""
    return lambda file: file.has(*keys)


def with_ending(*endings: str) -> Callable[[Opened], bool]:
    """Recognise files with a key that ends in one of these ways."""
    return lambda file: any(key.endswith(endings) for key in file.keys)


def first_text(values: Mapping[str, Any]) -> str | None:
    """Return what to show for a task: its text, else the first value that is text.

    >>> first_text({"n": 1, "title": "A", "text": "good film"})
    'good film'
    """
    named = (values.get(key) for key in ("text", "prompt", "question", "input"))
    return next((value for value in (*named, *values.values()) if isinstance(value, str)), None)


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


class AnswerRows:
    """Collects answers; `finish` makes a table of them and reports what became of the rest.

    Every answer is kept (with a label, or without one, which is "no answer"), or dropped for a
    reason that is counted.
    """

    def __init__(
        self, name: str, title: str, options: ReadingOptions, keep_text: KeepText | None = None
    ) -> None:
        self.name = name
        self.title = title
        self.options = options
        self.default_question: str | None = None  # read where the caller chooses none
        self.questions: Counter[str] = Counter()
        self.remarks: list[str] = []
        self.columns: dict[str, list[Any]] = {"task": [], "worker": [], "label": []}
        self.spans = SpanAnswers()
        self._keep_text = keep_text
        self._places: list[Place] = []
        self._known: dict[Hashable, tuple[Any, Place]] = {}
        self._dropped: Counter[str] = Counter()
        self._other_questions: Counter[str] = Counter()
        self._same: dict[str, str] = {}

    @property
    def question(self) -> str | None:
        """The question whose answers are kept; None before the first."""
        return self.options.question or self.default_question or next(iter(self.questions), None)

    def wants(self, question: str) -> bool:
        """Count a question; return whether its answers are the ones to keep."""
        self.questions[question] += 1
        return question == self.question

    def is_no_class(self, question: str, what: str) -> None:
        """Count an answer that can never be a class, such as a box drawn in an image."""
        self._other_questions[f"{question!r} ({what})"] += 1

    def drop(self, reason: str) -> None:
        """Count an answer that is not used."""
        self._dropped[reason] += 1

    def add(self, at: Place, task: Any, worker: Any, label: Any, **more: Any) -> None:
        """Take one answer; a list of labels is one label, none, or a case for multi-label."""
        if worker is None or worker == "":
            raise InputError("no-worker", at=at)
        # Workers and labels come again and again: one copy of each text is kept.
        worker, label = self._once(worker), self._once(self._class_of(at, label))
        for column in more:
            if column not in self.columns:
                self.columns[column] = [None] * len(self._places)
        self._places.append(at)
        answer = {"task": task, "worker": worker, "label": label, **more}
        for column, values in self.columns.items():
            values.append(answer.get(column))

    def add_gold(self, at: Place, task: Any, label: Any) -> None:
        """Take a label that the file marks as true."""
        label = self._class_of(at, label)
        if label is None:
            return
        before, there = self._known.setdefault(task, (label, at))
        if before != label:
            fields = {"at": at, "task": task, "label": label, "before": before, "where": there}
            raise InputError("known-twice", **fields)

    def add_spans(
        self, marked: Marked, text: str | None, tokens: list[tuple[int, int]] | None = None
    ) -> None:
        """Take the spans that somebody marked in a text; none is an answer, too."""
        if text is None:
            raise InputError("spans-without-text", at=marked.at)
        wrong = next((s for s in marked.spans if not 0 <= s[0] < s[1] <= len(text)), None)
        if wrong is not None:
            raise InputError("span-outside-text", at=marked.at, span=wrong, n=len(text))
        self.spans.add(marked, text, tokens)

    def add_text(self, task: Any, text: object) -> None:
        """Take what to show for a task, where somebody wants to know."""
        if self._keep_text is not None and text and isinstance(text, str):
            self._keep_text(task, text)

    def finish(self, classes: list[str] | None = None) -> Long:
        """Make a table; report how many answers were read, kept and dropped.

        `classes` are those that the file itself keeps, in their order.
        """
        asked, questions = self.options.question, dict(self.questions)
        marked = self.spans.questions()
        has_labels = any(label is not None for label in self.columns["label"]) or self._known
        if marked and (asked in marked if asked is not None else not has_labels):
            return self._of_spans(marked)
        if asked is not None and asked not in questions:
            raise InputError("no-question", file=self.name, question=asked, questions=questions)
        if len(questions) > 1 and not asked and not self.default_question:
            raise InputError("several-questions", file=self.name, questions=questions)
        reasons = [f"{n:,} {reason}" for reason, n in self._dropped.items()]
        if not self._places:
            self._refuse_empty(reasons)
        chosen = asked or self.default_question
        n_empty = sum(label is None for label in self.columns["label"])
        note(
            "answers-read",
            file=self.name,
            format=self.title,
            n_read=len(self._places) + self._dropped.total(),
            n_kept=len(self._places) - n_empty,
            n_empty=n_empty,
            dropped=reasons,
            left_out=[f"{n:,} of {kind}" for kind, n in self._other_questions.items()],
            n_known=len(self._known),
            not_read=[q for q in questions if q != chosen] if chosen is not None else [],
            is_asked=asked is not None,
            remarks=list(self.remarks),
        )
        gold: dict[Hashable, Hashable] = {task: label for task, (label, _) in self._known.items()}
        if self.options.multi_label:
            gold = self._split_labels(gold)
        self._sort_by_time()
        source = Source(self.name, self._places.__getitem__)
        columns: dict[str, Any] = dict(self.columns)
        if classes and not self.options.multi_label:
            columns["label"] = in_order(to_arrow("label", columns["label"], source), classes)
        return self._long(arrays(columns, source), gold)

    def _long(self, table: Table, gold: dict[Hashable, Hashable], **more: Any) -> Long:
        rest = replace(self.options, columns=None, order_column=None)
        return Long(table, rest, True, gold, self.title, **more)

    def _of_spans(self, questions: list[str]) -> Long:
        """Make a table of tokens: one tag of each annotator on each."""
        asked = self.options.question
        if asked is None and len(questions) > 1:
            counts = {
                each: sum(m.question == each for m in self.spans.marked) for each in questions
            }
            raise InputError("several-questions", file=self.name, questions=counts)
        self.options.refuse(["multi_label"], self.name, "it marks spans")
        columns, places, sequences, gold = self.spans.make_tokens(
            asked or questions[0], self.options.nested
        )
        note(
            "spans-read",
            file=self.name,
            format=self.title,
            n_spans=sum(len(m.spans) for m in self.spans.marked if not m.is_known),
            n_texts=len(self.spans.texts),
            n_tokens=len(sequences["task"]),
            dropped=[f"{n:,} {reason}" for reason, n in self._dropped.items()],
        )
        source = Source(self.name, places.__getitem__)
        return self._long(arrays(columns, source), gold, sequences=sequences)

    def _refuse_empty(self, reasons: list[str]) -> None:
        if self._known:
            reasons = [*reasons, f"{len(self._known):,} known labels and no other answer"]
        others = list(self._other_questions)
        fields = {"file": self.name, "format": self.title, "reasons": reasons, "others": others}
        raise ResponseError("no-answers", **fields)

    def _once(self, value: Any) -> Any:
        return self._same.setdefault(value, value) if isinstance(value, str) else value

    def _class_of(self, at: Place, label: Any) -> Any:
        is_list = isinstance(label, list | tuple)
        marks = label if is_list else () if label is None or label == "" else (label,)
        for mark in marks:
            if mark is None:
                raise InputError("null-among-labels", at=at, value=label)
            if isinstance(mark, dict | list):
                raise InputError("no-class", at=at, value=label)
        if self.options.multi_label:  # an empty list is an answer: no label applies
            return tuple(marks) if is_list or marks else None
        if len(marks) > 1:
            raise InputError("several-labels", at=at, n=len(marks), value=label)
        return marks[0] if marks else None

    def _split_labels(self, gold: Mapping[Hashable, Any]) -> dict[Hashable, Hashable]:
        """Make one yes/no task of each task and label.

        An answer {red, blue} on task 1, where green exists too, becomes
        (1 | blue, yes), (1 | green, no), (1 | red, yes).
        """
        labels = self.columns["label"]
        answers = [*(label for label in labels if label is not None), *gold.values()]
        marks = sorted({mark for label in answers for mark in label}, key=str)
        answer = {True: "yes", False: "no"}
        tasks = [composed((task, mark)) for task in self.columns["task"] for mark in marks]
        split = [None if k is None else answer[mark in k] for k in labels for mark in marks]
        self._take([i for i in range(len(labels)) for _ in marks])
        self.columns |= {"task": tasks, "label": split}
        return {
            composed((task, mark)): answer[mark in label]
            for task, label in gold.items()
            for mark in marks
        }

    def _sort_by_time(self) -> None:
        """Put answers of one worker to one task in order of time, so that the last is last."""
        times = self.columns.get("time", [None])
        if None in times:
            return
        codes: dict[Any, int] = {}
        pairs = zip(self.columns["task"], self.columns["worker"], strict=True)
        code = [codes.setdefault(pair, len(codes)) for pair in pairs]
        if len(codes) < len(code):
            order = np.empty(len(code), dtype=np.int64)
            order[np.argsort(code, kind="stable")] = np.lexsort((times, code))
            self._take(order.tolist())

    def _take(self, rows: list[int]) -> None:
        self._places = [self._places[row] for row in rows]
        for column, values in self.columns.items():
            self.columns[column] = [values[row] for row in rows]
