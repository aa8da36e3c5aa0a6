"""Exports of annotation tools: Label Studio, Argilla, Prodigy, doccano, MTurk and Toloka."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tiebreak.data.ids import composed
from tiebreak.errors import InputError
from tiebreak.tables.formats.records import (
    Format,
    IdType,
    Number,
    Rows,
    first_text,
    need,
    need_name,
    optional,
    seconds,
)
from tiebreak.tables.plain import MEMBER, Head, Record, Records
from tiebreak.tables.source import RecordPlace

# Label Studio: tasks with `annotations`, each by one person, and `predictions`, each by one model.

SINGLE_VALUES = ("choices", "rating", "taxonomy", "number")  # types, and keys of values
REGION_KEYS = {"start", "x", "points", "startOffset"}  # in a value that is about part of a task
STUDIO_COLUMNS = {
    *("annotation_id", "annotator", "created_at", "id", "lead_time", "updated_at", "agreement")
}
PREVIEW = 1000  # rows of JSON_MIN or CSV by which the columns of answers are found


def _is_label_studio(head: Head) -> bool:
    has_tasks = head.has("annotations", "data") or head.has("completions", "data")
    return head.container in ("json", "document") and has_tasks


def _read_label_studio(records: Records, rows: Rows) -> None:
    for at, task in records():
        task_id = need(task, "id", IdType, at)
        key = "completions" if "completions" in task else "annotations"
        for annotation in need(task, key, list, at):
            _read_annotation(at, task_id, annotation, rows)
        predictions = need(task, "predictions", list, at) if "predictions" in task else []
        for prediction in predictions:
            results = need(prediction, "result", list, at)
            worker = str(optional(prediction, "model_version", IdType, at) or "prediction")
            score = optional(prediction, "score", Number, at)
            for question, label in _studio_answers(at, results, rows):
                if rows.wants(question):
                    rows.add(at, task_id, worker, label, confidence=score)
        for _ in optional(task, "drafts", list, at) or []:
            rows.drop("drafts")
        rows.add_text(task_id, first_text(need(task, "data", dict, at)))


def _read_annotation(at: RecordPlace, task: Any, annotation: Any, rows: Rows) -> None:
    results = need(annotation, "result", list, at)
    if optional(annotation, "was_cancelled", bool, at):
        rows.drop("cancelled")
        return
    worker = _person(annotation, "completed_by", at)
    is_known = optional(annotation, "ground_truth", bool, at)
    time = seconds(annotation.get("updated_at") or annotation.get("created_at"))
    for question, label in _studio_answers(at, results, rows):
        if not rows.wants(question):
            continue
        if is_known:
            rows.add_gold(at, task, label)
            rows.drop("ground truth (used as gold)")
        else:
            rows.add(at, task, worker, label, time=time)
    if not results:
        rows.add(at, task, worker, None, time=time)


def _person(record: Any, key: str, at: RecordPlace) -> str:
    """Return who answered: a number, a name, or an object with an address or a number."""
    worker = _unquoted(need(record, key, (int, str, dict), at))
    if not isinstance(worker, dict):
        return need_name({key: worker}, key, at)
    return optional(worker, "email", str, at) or need_name(worker, "id", at)


def _studio_answers(at: RecordPlace, results: list[Any], rows: Rows) -> Iterator[tuple[str, Any]]:
    """Yield the name of each question and the label given, of the kinds that are classes."""
    for result in results:
        kind = need(result, "type", str, at)
        if kind == "relation":
            continue  # between two regions
        question = need(result, "from_name", str, at)
        value = need(result, "value", dict, at)
        if kind == "pairwise":
            yield question, need(value, "selected", str, at)
        elif kind not in SINGLE_VALUES or REGION_KEYS & set(value):
            rows.is_no_class(question, kind)
        else:
            yield question, _studio_label(need(value, kind, (list, int, float), at))


def _studio_label(value: Any) -> Any:
    """Join the steps of a path through a taxonomy; all else stays as it is."""
    if isinstance(value, list) and any(isinstance(step, list) for step in value):
        return [" / ".join(map(str, path)) for path in value]
    return value


@dataclass(slots=True)
class StudioTasks:
    """Tasks as they stand in an export, by id as text, and the questions that were answered."""

    name: str
    by_id: dict[str, tuple[Any, Mapping[str, Any]]] = field(default_factory=dict)  # id, data
    questions: dict[str, tuple[str, str]] = field(default_factory=dict)  # to_name, type

    def add(self, records: Records, wanted: Container[str]) -> None:
        """Take the tasks that are wanted, and the questions of all."""
        for at, task in records():
            task_id = need(task, "id", IdType, at)
            if str(task_id) in wanted:
                self.by_id[str(task_id)] = task_id, need(task, "data", dict, at)
            for part in task.get("annotations") or task.get("completions") or ():
                for result in need(part, "result", list, at):
                    if result.get("type") in (*SINGLE_VALUES, "pairwise"):
                        name = need(result, "from_name", str, at)
                        to = optional(result, "to_name", str, at) or "text"
                        self.questions.setdefault(name, (to, result["type"]))


def studio_value(kind: str, label: str) -> dict[str, Any]:
    """Return a label in the form in which results of a type hold it.

    >>> studio_value("choices", "cat"), studio_value("rating", "4")
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


# Label Studio JSON_MIN, CSV and TSV: one row per annotation, one column per question.


def _read_studio_table(records: Records, rows: Rows) -> None:
    questions = _question_columns(records)
    asked = rows.options.question
    if asked is not None and asked not in questions:
        questions = [*questions, asked]
    for at, row in records():
        task = need(row, "id", IdType, at)
        worker = _person(row, "annotator", at)
        time = seconds(row.get("updated_at") or row.get("created_at"))
        for question in questions:
            if question in row and rows.wants(question):
                rows.add(at, task, worker, _cell_label(row[question]), time=time)
            elif question not in row and asked in (question, None):
                rows.add(at, task, worker, None, time=time)
        data = {k: v for k, v in row.items() if k not in STUDIO_COLUMNS and k not in questions}
        rows.add_text(task, first_text(data))


def _question_columns(records: Records) -> list[str]:
    """Find the columns of answers: those that differ between people on one task.

    The file does not say which columns are data and which are answers, but data are the same in
    every row of a task. Where nobody disagrees, columns of few values are left to choose from.
    """
    by_task: dict[Any, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    values: dict[str, set[str]] = defaultdict(set)
    n_rows = 0
    for at, row in islice(records(), PREVIEW):
        n_rows += 1
        task = need(row, "id", IdType, at)
        for column in row.keys() - STUDIO_COLUMNS:
            text = json.dumps(row[column], sort_keys=True, default=str)
            values[column].add(text)
            by_task[task][column].add(text)
    varying = [c for c in values if any(len(seen[c]) > 1 for seen in by_task.values())]
    few = [c for c in values if len(values[c]) <= max(2, min(50, n_rows // 2))]
    return sorted(varying or few or values)


def _cell_label(value: Any) -> Any:
    """Read a cell: a label, or JSON with several choices or a rating."""
    value = _unquoted(value)
    if isinstance(value, Mapping):
        return _studio_label(next((value[key] for key in SINGLE_VALUES if key in value), value))
    if isinstance(value, list):
        return _studio_label([_cell_label(v) if isinstance(v, Mapping) else v for v in value])
    return value


def _unquoted(value: Any) -> Any:
    """Undo the JSON that CSV cells are written in, where they are: `"10"` or `[…]`."""
    if not isinstance(value, str) or value[:1] not in ('"', "[", "{"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


# Argilla: nested records, or flattened as `to_datasets` makes them.

RESPONSES, SUGGESTION = ".responses", ".suggestion"
ARGILLA_OWN = ("id", "status", "_server_id", "inserted_at", "updated_at")


def _read_argilla(records: Records, rows: Rows) -> None:
    rows.remarks.append("this form does not tell drafts from submitted responses")
    for at, record in records():
        task = need(record, "id", IdType, at)
        responses = need(record, "responses", (dict, type(None)), at) or {}
        for question in responses:
            if rows.wants(question):
                for answer in need(responses, question, (list, type(None)), at) or []:
                    _add_response(at, task, need_name(answer, "user_id", at), answer, rows)
        suggestions = need(record, "suggestions", (dict, type(None)), at) or {}
        for question in suggestions:
            suggestion = optional(suggestions, question, dict, at)
            if suggestion is not None and rows.wants(question):
                _add_suggestion(at, task, suggestion, rows)
        rows.add_text(task, first_text(need(record, "fields", dict, at)))


def _add_response(at: RecordPlace, task: Any, user: str, answer: Record, rows: Rows) -> None:
    status = optional(answer, "status", str, at) or "submitted"  # the nested form has lost it
    if status.rpartition(".")[2] != "submitted":
        rows.drop(f"{status} (only submitted responses count)")
        return
    rows.add(at, task, user, need(answer, "value", object, at))


def _add_suggestion(at: RecordPlace, task: Any, suggestion: Record, rows: Rows) -> None:
    agent = optional(suggestion, "agent", IdType, at) or "suggestion"
    value = need(suggestion, "value", object, at)
    score = optional(suggestion, "score", (*Number, list), at)  # a list: one of each label
    if value is not None:
        rows.add(at, task, str(agent), value, confidence=None if score == [] else score)


def _read_argilla_flat(records: Records, rows: Rows) -> None:
    for at, record in records():
        task = need(record, "id", IdType, at)
        names = [k.removesuffix(RESPONSES) for k in record if k.endswith(RESPONSES)]
        names += [k.removesuffix(SUGGESTION) for k in record if k.endswith(SUGGESTION)]
        for question in dict.fromkeys(names):
            if rows.wants(question):
                _read_flat_question(at, task, question, record, rows)
        shown = {k: v for k, v in record.items() if k not in ARGILLA_OWN and "." not in k}
        rows.add_text(task, first_text(shown))


def _read_flat_question(
    at: RecordPlace, task: Any, question: str, record: Record, rows: Rows
) -> None:
    key = question + RESPONSES
    if record.get(key) is not None:
        values = need(record, key, list, at)
        users = need(record, f"{key}.users", list, at)
        states = optional(record, f"{key}.status", list, at) or ["submitted"] * len(values)
        lengths = len(values), len(users), len(states)
        if len(set(lengths)) > 1:
            raise InputError("argilla-lengths", at=at, question=question, lengths=lengths)
        for value, user, status in zip(values, users, states, strict=True):
            answer = {"value": value, "status": status, "user": user}
            _add_response(at, task, need_name(answer, "user", at), answer, rows)
    key = question + SUGGESTION
    if record.get(key) is not None:
        more = {name: record.get(f"{key}.{name}") for name in ("agent", "score")}
        _add_suggestion(at, task, {"value": record[key], **more}, rows)


# Prodigy: JSON lines of `db-out`. `accept` holds the choice, or `answer` says yes or no to `label`.

PRODIGY_ANSWERS = ("accept", "reject", "ignore")


def _read_prodigy(records: Records, rows: Rows) -> None:
    for at, record in records():
        answer = need(record, "answer", str, at)
        if answer not in PRODIGY_ANSWERS:
            raise InputError("prodigy-answer", at=at, value=answer, allowed=PRODIGY_ANSWERS)
        if answer == "ignore":
            rows.drop("ignored")
            continue
        names = [optional(record, key, IdType, at) for key in ("_annotator_id", "_session_id")]
        worker = str(names[0] or names[1] or "one annotator")
        time = seconds(record.get("_timestamp"))
        if "options" in record or isinstance(record.get("accept"), list):
            task = need(record, "_input_hash", IdType, at)
            if answer == "reject":
                rows.drop("rejected")
            else:
                rows.add(at, task, worker, need(record, "accept", list, at), time=time)
        else:
            if "label" not in record and (record.get("spans") or record.get("relations")):
                raise InputError("spans-marked", at=at)
            label = need(record, "label", str, at)
            task = need(record, "_task_hash", IdType, at)
            # Each label has a task hash of its own, so decisions on several labels stay apart.
            if rows.options.question is None or rows.wants(label):
                rows.add(at, task, worker, answer, time=time)
        rows.add_text(task, first_text(record))


# doccano: a zip archive with one file per person; the name of the file is the worker.

WITHOUT_USERS = "all"  # the file of a project in which people share their labels


def _is_doccano(head: Head) -> bool:
    keys = ("id", "label") if head.container == "zip" else ("id", "label", "Comments")
    return head.has(*keys)


def _read_doccano(records: Records, rows: Rows) -> None:
    for at, record in records():
        worker = record.get(MEMBER)
        if worker in (None, WITHOUT_USERS):
            raise InputError("doccano-without-users", file=at.file)
        task = need(record, "id", IdType, at)
        label = need(record, "label", (list, str, int, type(None)), at)
        if isinstance(label, list) and any(isinstance(one, list | dict) for one in label):
            raise InputError("spans-marked", at=at)
        # CSV joins several labels with #.
        rows.add(at, task, str(worker), label.split("#") if isinstance(label, str) else label)
        text = record.get("text") or record.get("filename")
        rows.add_text(task, text if isinstance(text, str) else None)


# Toloka: the TSV of assignments, with INPUT:, OUTPUT:, GOLDEN: and ASSIGNMENT: columns.

TOLOKA_TASK = "ASSIGNMENT:task_id"
TOLOKA_DROPPED = ("REJECTED", "SKIPPED", "EXPIRED", "ACTIVE")


def _read_toloka(records: Records, rows: Rows) -> None:
    for at, row in records():
        inputs = [value for key, value in row.items() if key.startswith("INPUT:")]
        if TOLOKA_TASK in row:
            task = need_name(row, TOLOKA_TASK, at)
        elif not any(inputs):
            raise InputError("toloka-task", at=at, column=TOLOKA_TASK)
        else:
            task = inputs[0] if len(inputs) == 1 else composed(inputs)
        for column, value in row.items():
            question = column.partition(":")[2]
            is_wanted = question == (rows.options.question or question)
            if column.startswith("GOLDEN:") and value and is_wanted:
                rows.add_gold(at, task, value)  # it may come before the question's answers
            if column.startswith("OUTPUT:") and rows.wants(question):
                status = str(row.get("ASSIGNMENT:status", "")).upper()
                if status in TOLOKA_DROPPED:
                    rows.drop(status.lower())
                    continue
                worker = need_name(row, "ASSIGNMENT:worker_id", at)
                time = row.get("ASSIGNMENT:submitted") or row.get("ASSIGNMENT:started")
                rows.add(at, task, worker, value, time=seconds(time))
        rows.add_text(task, inputs[0] if inputs else None)


# MTurk: the CSV of batch results, in each of the ways in which templates write answers.
#
# Answer.sentiment            Positive                    a field
# Answer.sentiment.label      Positive                    a crowd element
# Answer.sentiment.good       true                        radio buttons or check boxes
# Answer.taskAnswers          [{"sentiment": {…}}]        all of it as JSON
# Answer.x1, Answer.x2, …     beside Input.x1, Input.x2   several items per HIT

ANSWER = "Answer."
TASK_ANSWERS = "Answer.taskAnswers"
TRUTHS = {"true": True, "false": False}
NUMBERED = re.compile(r"(?P<base>.*?\D)_?(?P<item>\d+)")


def _read_mturk(records: Records, rows: Rows) -> None:
    for at, row in records():
        hit = need(row, str(rows.options.named.get("task", "HITId")), str, at)
        worker = need(row, "WorkerId", str, at)
        if not hit:
            raise InputError("value-empty", at=at, key="task")
        if row.get("AssignmentStatus") == "Rejected":
            rows.drop("rejected")
            continue
        time = seconds(row.get("SubmitTime"))
        inputs = _input_items(row)
        for field_name, label in _fields(at, row).items():
            numbered = NUMBERED.fullmatch(field_name)
            if numbered and numbered["item"] in inputs and len(inputs) > 2:
                question, item = numbered["base"], numbered["item"]
            else:
                question, item = field_name, None
            task = hit if item is None else f"{hit}#{item}"
            if rows.wants(question):
                rows.add(at, task, worker, label, time=time)
                rows.add_text(task, inputs.get(item))


def _input_items(row: Record) -> dict[str | None, str]:
    """Return the first input, and the first input of each numbered item."""
    found: dict[str | None, str] = {}
    for key, value in row.items():
        if key.startswith("Input."):
            found.setdefault(None, value)
            numbered = NUMBERED.fullmatch(key)
            if numbered:
                found.setdefault(numbered["item"], value)
    return found


def _fields(at: RecordPlace, row: Record) -> dict[str, Any]:
    """Return what was filled in, by field: a text, or the list of options that were marked."""
    if row.get(TASK_ANSWERS):
        try:
            answers = json.loads(row[TASK_ANSWERS])
        except ValueError as error:
            raise InputError("mturk-json", at=at, key=TASK_ANSWERS, reason=error) from None
        forms = answers if isinstance(answers, list) else [answers]
        if not all(isinstance(form, Mapping) for form in forms):
            raise InputError("mturk-json", at=at, key=TASK_ANSWERS, reason="objects are expected")
        return {name: _form_value(value) for form in forms for name, value in form.items()}
    plain: dict[str, Any] = {}
    marks: dict[str, dict[str, bool | None]] = defaultdict(dict)
    for key, value in row.items():
        if not key.startswith(ANSWER) or key == TASK_ANSWERS:
            continue
        name, dot, option = key.removeprefix(ANSWER).rpartition(".")
        if not dot or option == "label":
            plain[name if dot else option] = value
        else:
            marks[name][option] = TRUTHS.get(value.strip().lower())
    return plain | {name: _marked(options) for name, options in marks.items()}


def _form_value(value: Any) -> Any:
    """Read {"label": "Positive"}, {"yes": true, "no": false} or a bare value."""
    if not isinstance(value, Mapping):
        return value
    if "label" in value:
        return value["label"]
    if value and all(isinstance(mark, bool) for mark in value.values()):
        return _marked(value)
    return dict(value)


def _marked(options: Mapping[str, bool | None]) -> Any:
    """Return the options that are marked; a lone box "on" is a yes or no."""
    if set(options) == {"on"}:
        mark = options["on"]
        return None if mark is None else "yes" if mark else "no"
    return [option for option, mark in options.items() if mark]


FORMATS = (
    Format("label-studio", "Label Studio", _is_label_studio, _read_label_studio),
    Format(
        "label-studio-min",
        "Label Studio JSON_MIN or CSV",
        lambda head: head.has("annotation_id", "annotator", "id", "lead_time"),
        _read_studio_table,
    ),
    Format(
        "argilla",
        "Argilla records",
        lambda head: head.has("fields", "responses", "suggestions"),
        _read_argilla,
    ),
    Format(
        "argilla-flat",
        "Argilla records, flattened",
        lambda head: any(k.endswith((".responses.users", ".suggestion.agent")) for k in head.keys),
        _read_argilla_flat,
    ),
    Format(
        "prodigy",
        "Prodigy",
        lambda head: head.has("_task_hash", "answer") or head.has("_input_hash", "answer"),
        _read_prodigy,
    ),
    Format(
        "mturk",
        "MTurk batch results",
        lambda head: head.has("HITId", "WorkerId") and any(k.startswith(ANSWER) for k in head.keys),
        _read_mturk,
        ("task",),  # an Input.* column, where one item is in several HITs
    ),
    Format(
        "toloka",
        "Toloka assignments",
        lambda head: any(key.startswith("OUTPUT:") for key in head.keys),
        _read_toloka,
    ),
    Format("doccano", "doccano", _is_doccano, _read_doccano),
)
