"""Label Studio: its JSON export of tasks with annotations, and JSON_MIN, CSV, TSV."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tiebreak.files.formats.protocol import (
    Head,
    IdType,
    Number,
    RecordPlace,
    Records,
    first_text,
    need,
    need_name,
    optional,
)
from tiebreak.files.formats.rows import Rows
from tiebreak.files.formats.times import seconds

SINGLE_VALUES = ("choices", "rating", "taxonomy", "number")  # types, and keys of values
REGION_KEYS = {"start", "x", "points", "startOffset"}  # in a value that is about part of a task
OWN_COLUMNS = {
    "annotation_id",
    "annotator",
    "created_at",
    "id",
    "lead_time",
    "updated_at",
    "agreement",
}
PREVIEW = 1000  # rows of JSON_MIN or CSV by which the columns of answers are found


class LabelStudio:
    """Tasks with `annotations`, each by one person, and `predictions`, each by one model."""

    name = "label-studio"
    title = "Label Studio"
    choosable: tuple[str, ...] = ()

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        return head.container in ("json", "document") and (
            head.has("annotations", "data") or head.has("completions", "data")
        )

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        for place, task in records():
            task_id = need(task, "id", IdType, place)
            key = "completions" if "completions" in task else "annotations"
            for annotation in need(task, key, list, place):
                _read_annotation(place, task_id, annotation, rows)
            predictions = need(task, "predictions", list, place) if "predictions" in task else []
            for prediction in predictions:
                _read_prediction(place, task_id, prediction, rows)
            for _ in optional(task, "drafts", list, place) or []:
                rows.drop("drafts")
            rows.add_text(task_id, first_text(need(task, "data", dict, place)))


@dataclass(slots=True)
class StudioTasks:
    """Tasks as they stand in an export, by id as text, and the questions that were answered."""

    name: str
    by_id: dict[str, tuple[Any, Mapping[str, Any]]] = field(default_factory=dict)  # id, data
    questions: dict[str, tuple[str, str]] = field(default_factory=dict)  # to_name, type

    def add(self, records: Records, wanted: Container[str]) -> None:
        """Take the tasks that are wanted, and the questions of all."""
        for place, task in records():
            task_id = need(task, "id", IdType, place)
            if str(task_id) in wanted:
                self.by_id[str(task_id)] = task_id, need(task, "data", dict, place)
            for part in task.get("annotations") or task.get("completions") or ():
                for result in need(part, "result", list, place):
                    if result.get("type") in (*SINGLE_VALUES, "pairwise"):
                        name = need(result, "from_name", str, place)
                        to = optional(result, "to_name", str, place) or "text"
                        self.questions.setdefault(name, (to, result["type"]))


def value_of(kind: str, label: str) -> dict[str, Any]:
    """Return a label in the form in which results of a type hold it.

    >>> value_of("choices", "cat"), value_of("rating", "4")
    ({'choices': ['cat']}, {'rating': 4})
    """
    if kind == "pairwise":
        return {"selected": label}
    if kind == "taxonomy":
        return {kind: [label.split(" / ")]}
    if kind == "choices":
        return {kind: [label]}
    number = float(label)
    return {kind: int(number) if number.is_integer() else number}


def _read_annotation(place: RecordPlace, task: Any, annotation: Any, rows: Rows) -> None:
    results = need(annotation, "result", list, place)
    if optional(annotation, "was_cancelled", bool, place):
        rows.drop("cancelled")
        return
    worker = _person(annotation, "completed_by", place)
    is_known = optional(annotation, "ground_truth", bool, place)
    time = seconds(annotation.get("updated_at") or annotation.get("created_at"))
    for question, label in _answers(place, results, rows):
        if not rows.wants(question):
            continue
        if is_known:
            rows.add_gold(place, task, label)
            rows.drop("ground truth (used as gold)")
        else:
            rows.add(place, task, worker, label, time=time)
    if not results:
        rows.add(place, task, worker, None, time=time)


def _person(record: Any, key: str, place: RecordPlace) -> str:
    """Return who answered: a number, a name, or an object with an address or a number."""
    worker = _unquoted(need(record, key, (int, str, dict), place))
    if not isinstance(worker, dict):
        return need_name({key: worker}, key, place)
    return optional(worker, "email", str, place) or need_name(worker, "id", place)


def _read_prediction(place: RecordPlace, task: Any, prediction: Any, rows: Rows) -> None:
    results = need(prediction, "result", list, place)
    worker = str(optional(prediction, "model_version", IdType, place) or "prediction")
    score = optional(prediction, "score", Number, place)
    for question, label in _answers(place, results, rows):
        if rows.wants(question):
            rows.add(place, task, worker, label, confidence=score)


def _answers(place: RecordPlace, results: list[Any], rows: Rows) -> Iterator[tuple[str, Any]]:
    """Yield the name of each question and the label given, of the kinds that are classes."""
    for result in results:
        kind = need(result, "type", str, place)
        if kind == "relation":
            continue  # between two regions
        question = need(result, "from_name", str, place)
        value = need(result, "value", dict, place)
        if kind == "pairwise":
            yield question, need(value, "selected", str, place)
        elif kind not in SINGLE_VALUES or REGION_KEYS & set(value):
            rows.is_no_class(question, kind)
        else:
            yield question, _label(need(value, kind, (list, int, float), place))


def _label(value: Any) -> Any:
    """Join the steps of a path through a taxonomy; all else stays as it is."""
    if isinstance(value, list) and any(isinstance(step, list) for step in value):
        return [" / ".join(map(str, path)) for path in value]
    return value


class LabelStudioTable:
    """JSON_MIN, CSV and TSV: one row per annotation, one column per question."""

    name = "label-studio-min"
    title = "Label Studio JSON_MIN or CSV"
    choosable: tuple[str, ...] = ()

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        return head.has("annotation_id", "annotator", "id", "lead_time")

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        questions = _question_columns(records)
        asked = rows.options.question
        if asked is not None and asked not in questions:
            questions = [*questions, asked]
        for place, row in records():
            task = need(row, "id", IdType, place)
            worker = _person(row, "annotator", place)
            time = seconds(row.get("updated_at") or row.get("created_at"))
            for question in questions:
                if question in row and rows.wants(question):
                    label = _min_label(row[question])
                    rows.add(place, task, worker, label, time=time)
                elif question not in row and asked in (question, None):
                    rows.add(place, task, worker, None, time=time)
            data = {k: v for k, v in row.items() if k not in OWN_COLUMNS and k not in questions}
            rows.add_text(task, first_text(data))


def _question_columns(records: Records) -> list[str]:
    """Find the columns of answers: those that differ between people on one task.

    The file does not say which columns are data and which are answers, but data are the same in
    every row of a task. Where nobody disagrees, columns of few values are left to choose from.
    """
    by_task: dict[Any, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    values: dict[str, set[str]] = defaultdict(set)
    n_rows = 0
    for place, row in islice(records(), PREVIEW):
        n_rows += 1
        task = need(row, "id", IdType, place)
        for column in row.keys() - OWN_COLUMNS:
            text = json.dumps(row[column], sort_keys=True, default=str)
            values[column].add(text)
            by_task[task][column].add(text)
    columns = list(values)
    varying = [c for c in columns if any(len(seen[c]) > 1 for seen in by_task.values())]
    few = [c for c in columns if len(values[c]) <= max(2, min(50, n_rows // 2))]
    return sorted(varying or few or columns)


def _min_label(value: Any) -> Any:
    """Read a cell: a label, or JSON with several choices or a rating."""
    value = _unquoted(value)
    if isinstance(value, Mapping):
        return _label(next((value[key] for key in SINGLE_VALUES if key in value), value))
    if isinstance(value, list):
        inner = [_min_label(one) if isinstance(one, Mapping) else one for one in value]
        return _label(inner)
    return value


def _unquoted(value: Any) -> Any:
    """Undo the JSON that CSV cells are written in, where they are: `"10"` or `[…]`."""
    if not isinstance(value, str) or value[:1] not in ('"', "[", "{"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
