"""Exports of annotation tools: Label Studio, Argilla, Prodigy, doccano, MTurk and Toloka."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import PurePath
from typing import Any

import numpy as np

from tiebreak.data.ids import composed
from tiebreak.errors import InputError, note
from tiebreak.tables.formats.records import (
    ID,
    NULL,
    NUMBER,
    AnswerRows,
    Entries,
    Entry,
    Format,
    first_text,
    seconds,
    with_ending,
    with_keys,
)
from tiebreak.tables.formats.spans import MOST_UNMATCHED, Marked, Span, aligned, as_bio
from tiebreak.tables.plain import MEMBER, Opened, Record
from tiebreak.tables.source import CONLL, Place

# Label Studio: tasks with `annotations`, each by one person, and `predictions`, each by one model.

SINGLE_VALUES = ("choices", "rating", "taxonomy", "number")  # types, and keys of values
REGION_KEYS = {"start", "x", "points", "startOffset"}  # in a value that is about part of a task
STUDIO_COLUMNS = {
    *("annotation_id", "annotator", "created_at", "id", "lead_time", "updated_at", "agreement")
}
PREVIEW = 1000  # rows of JSON_MIN or CSV by which the columns of answers are found


def _is_label_studio(file: Opened) -> bool:
    has_tasks = file.has("annotations", "data") or file.has("completions", "data")
    return file.container in ("json", "document") and has_tasks


def annotations_of(task: Entry) -> Iterator[Entry]:
    """Yield what people said of a task."""
    return task.entries("completions" if "completions" in task.values else "annotations")


def _read_label_studio(records: Entries, rows: AnswerRows) -> None:
    for task in records():
        task_id = task.need("id", *ID)
        text = first_text(task.need("data", dict))
        for said in annotations_of(task):
            results = said.need("result", list)
            if said.get("was_cancelled", bool):
                rows.drop("cancelled")
                continue
            worker = _person(said, "completed_by")
            time = seconds(said.values.get("updated_at") or said.values.get("created_at"))
            _add_results(rows, said, (task_id, worker, text), time=time)
            if not results:
                rows.add(said.at, task_id, worker, None, time=time)
        for said in task.entries("predictions", is_needed=False):
            worker = str(said.get("model_version", *ID) or "prediction")
            score = said.get("score", *NUMBER)
            _add_results(rows, said, (task_id, worker, text), confidence=score)
        for _ in task.get("drafts", list) or ():
            rows.drop("drafts")
        rows.add_text(task_id, text)


def _add_results(
    rows: AnswerRows, said: Entry, given: tuple[Any, str, str | None], **more: Any
) -> None:
    """Take the classes that an annotation names, and what it marks in the text of a task."""
    task, worker, text = given
    is_known = bool(said.get("ground_truth", bool))
    for question, label in _studio_answers(said, rows):
        if not rows.wants(question):
            continue
        if is_known:
            rows.add_gold(said.at, task, label)
            rows.drop("ground truth (used as gold)")
        else:
            rows.add(said.at, task, worker, label, **more)
    by_question: dict[str | None, list[Span]] = {}
    for result in said.entries("result"):
        if result.values.get("type") == "labels":
            value = result.entry("value")
            begin, end = (value.get(key, int) for key in ("start", "end"))
            if begin is None or end is None:
                continue  # of HTML, audio and the like: they have other ends
            found = by_question.setdefault(result.need("from_name", str), [])
            found += [(begin, end, str(label)) for label in value.need("labels", list)]
    if text is None or (said.values["result"] and not by_question):
        return
    for asked, spans in (by_question or {None: []}).items():  # who marks nothing answers, too
        rows.add_spans(Marked(said.at, task, worker, asked, spans, is_known), text)


def _person(record: Entry, key: str) -> str:
    """Return who answered: a number, a name, or an object with an address or a number."""
    worker = _unquoted(record.need(key, str, int, dict))
    if not isinstance(worker, dict):
        return Entry(record.at, {key: worker}).name(key)
    person = Entry(record.at, worker)
    return person.get("email", str) or person.name("id")


def _studio_answers(annotation: Entry, rows: AnswerRows) -> Iterator[tuple[str, Any]]:
    """Yield the name of each question and the label given, of the kinds that are classes."""
    for result in annotation.entries("result"):
        kind = result.need("type", str)
        if kind == "relation":
            continue  # between two regions
        question = result.need("from_name", str)
        value = Entry(result.at, result.need("value", dict))
        if kind == "pairwise":
            yield question, value.need("selected", str)
        elif kind not in SINGLE_VALUES or REGION_KEYS & set(value.values):
            rows.is_no_class(question, kind)
        else:
            yield question, _studio_label(value.need(kind, list, int, float))


def _studio_label(value: Any) -> Any:
    """Join the steps of a path through a taxonomy; all else stays as it is."""
    if isinstance(value, list) and any(isinstance(step, list) for step in value):
        return [" / ".join(map(str, path)) for path in value]
    return value


# Label Studio JSON_MIN, CSV and TSV: one row per annotation, one column per question.


def _read_studio_table(records: Entries, rows: AnswerRows) -> None:
    questions = _question_columns(records)
    asked = rows.options.question
    if asked is not None and asked not in questions:
        questions = [*questions, asked]
    for row in records():
        task = row.need("id", *ID)
        worker = _person(row, "annotator")
        time = seconds(row.values.get("updated_at") or row.values.get("created_at"))
        for question in questions:
            if question in row.values and rows.wants(question):
                rows.add(row.at, task, worker, _cell_label(row.values[question]), time=time)
            elif question not in row.values and asked in (question, None):
                rows.add(row.at, task, worker, None, time=time)
        own = {*STUDIO_COLUMNS, *questions}
        rows.add_text(task, first_text({k: v for k, v in row.values.items() if k not in own}))


def _question_columns(records: Entries) -> list[str]:
    """Find the columns of answers: those that differ between people on one task.

    The file does not say which columns are data and which are answers, but data are the same in
    every row of a task. Where nobody disagrees, columns of few values are left to choose from.
    """
    values: dict[str, set[str]] = defaultdict(set)
    of_task: dict[tuple[str, Any], set[str]] = defaultdict(set)
    n_rows = 0
    for row in islice(records(), PREVIEW):
        n_rows += 1
        task = row.need("id", *ID)
        for column in row.values.keys() - STUDIO_COLUMNS:
            text = json.dumps(row.values[column], sort_keys=True, default=str)
            values[column].add(text)
            of_task[column, task].add(text)
    varying = {column for (column, _), seen in of_task.items() if len(seen) > 1}
    few = {c for c in values if len(values[c]) <= max(2, min(50, n_rows // 2))}
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

ARGILLA_OWN = ("id", "status", "_server_id", "inserted_at", "updated_at")


def _read_argilla(records: Entries, rows: AnswerRows) -> None:
    rows.remarks.append("this form does not tell drafts from submitted responses")
    for record in records():
        _read_argilla_record(record, rows)


def _read_argilla_flat(records: Entries, rows: AnswerRows) -> None:
    for record in records():
        _read_argilla_record(_nested(record), rows)


def _read_argilla_record(record: Entry, rows: AnswerRows) -> None:
    task = record.need("id", *ID)
    text = first_text(record.need("fields", dict))

    def add(question: str, who: str, value: Any, **more: Any) -> None:
        # A list of spans; an empty list may be one.
        if isinstance(value, list) and all(isinstance(x, Mapping) and "start" in x for x in value):
            spans = _spans_in(value, record.at, "start", "end")
            rows.add_spans(Marked(record.at, task, who, question, spans), text)
            if value:
                return
        rows.add(record.at, task, who, value, **more)

    responses = Entry(record.at, record.need("responses", dict, NULL) or {})
    for question in filter(rows.wants, responses.values):
        for answer in responses.entries(question, is_needed=False):
            user = answer.name("user_id")
            status = answer.get("status", str) or "submitted"  # the nested form has lost it
            if status.rpartition(".")[2] == "submitted":
                add(question, user, answer.need("value", object))
            else:
                rows.drop(f"{status} (only submitted responses count)")
    suggestions = Entry(record.at, record.need("suggestions", dict, NULL) or {})
    for question in suggestions.values:
        if suggestions.get(question, dict) is not None and rows.wants(question):
            suggestion = suggestions.entry(question)
            value = suggestion.need("value", object)
            score = suggestion.get("score", *NUMBER, list)  # a list: one of each label
            if value is not None:
                agent = str(suggestion.get("agent", *ID) or "suggestion")
                add(question, agent, value, confidence=None if score == [] else score)
    rows.add_text(task, text)


def _spans_in(values: list[Any], at: Place, begin: str, end: str) -> list[Span]:
    """Read spans that are objects with these keys, and a label."""
    entries = [Entry(at, value) for value in values]
    return [(e.need(begin, int), e.need(end, int), str(e.need("label", *ID))) for e in entries]


def _nested(record: Entry) -> Entry:
    """Undo the flattening: `mood.responses`, `mood.responses.users`, `mood.suggestion` …"""
    responses: dict[str, Any] = {}
    suggestions: dict[str, Any] = {}
    for key in record.values:
        question, _, what = key.rpartition(".")
        if what == "responses" and record.values[key] is not None:
            values = record.need(key, list)
            users = record.need(f"{key}.users", list)
            states = record.get(f"{key}.status", list) or ["submitted"] * len(values)
            lengths = len(values), len(users), len(states)
            if len(set(lengths)) > 1:
                raise InputError(
                    "argilla-lengths", at=record.at, question=question, lengths=lengths
                )
            responses[question] = [
                {"value": value, "user_id": user, "status": status}
                for value, user, status in zip(values, users, states, strict=True)
            ]
        elif what == "suggestion" and record.values[key] is not None:
            more = {name: record.values.get(f"{key}.{name}") for name in ("agent", "score")}
            suggestions[question] = {"value": record.values[key], **more}
    fields = {k: v for k, v in record.values.items() if k not in ARGILLA_OWN and "." not in k}
    nested = {"responses": responses, "suggestions": suggestions, "fields": fields}
    return Entry(record.at, {**record.values, **nested})


# Prodigy: JSON lines of `db-out`. `accept` holds the choice, or `answer` says yes or no to `label`.

PRODIGY_ANSWERS = ("accept", "reject", "ignore")


def _read_prodigy(records: Entries, rows: AnswerRows) -> None:
    for record in records():
        at, values = record
        answer = record.need("answer", str)
        if answer not in PRODIGY_ANSWERS:
            raise InputError("prodigy-answer", at=at, value=answer, allowed=PRODIGY_ANSWERS)
        if answer == "ignore":
            rows.drop("ignored")
            continue
        names = [record.get(key, *ID) for key in ("_annotator_id", "_session_id")]
        worker = str(names[0] or names[1] or "one annotator")
        time = seconds(values.get("_timestamp"))
        if "label" not in values and ("spans" in values or "tokens" in values):
            task = record.need("_input_hash", *ID)
            if answer == "reject":
                rows.drop("rejected")
                continue
            spans = _spans_in(record.get("spans", list) or [], at, "start", "end")
            tokens = [
                (each.need("start", int), each.need("end", int))
                for each in record.entries("tokens", is_needed=False)
            ]
            marked = Marked(at, task, worker, "spans", spans)
            rows.add_spans(marked, record.get("text", str), tokens or None)
        elif "options" in values or isinstance(values.get("accept"), list):
            task = record.need("_input_hash", *ID)
            if answer == "reject":
                rows.drop("rejected")
            else:
                rows.add(at, task, worker, record.need("accept", list), time=time)
        else:
            label = record.need("label", str)
            task = record.need("_task_hash", *ID)
            # Each label has a task hash of its own, so decisions on several labels stay apart.
            if rows.options.question is None or rows.wants(label):
                rows.add(at, task, worker, answer, time=time)
        rows.add_text(task, first_text(values))


# doccano: a zip archive with one file per person; the name of the file is the worker.

WITHOUT_USERS = "all"  # the file of a project in which people share their labels


def _is_doccano(file: Opened) -> bool:
    has_answers = file.has("label") or file.has("entities")
    return file.has("id") and has_answers and (file.container == "zip" or "Comments" in file.keys)


def _read_doccano(records: Entries, rows: AnswerRows) -> None:
    for record in records():
        worker = record.values.get(MEMBER)
        if worker in (None, WITHOUT_USERS):
            raise InputError("doccano-without-users", file=record.at.source.name)
        task = record.need("id", *ID)
        text = record.values.get("text") or record.values.get("data")
        if "entities" in record.values:
            found = record.need("entities", list)
            spans = _spans_in(found, record.at, "start_offset", "end_offset")
            rows.add_spans(Marked(record.at, task, str(worker), "spans", spans), text)
            rows.add_text(task, text)
            continue
        label = record.need("label", list, str, int, NULL)
        if isinstance(label, list) and all(isinstance(x, list) and len(x) == 3 for x in label):
            spans = [(int(a), int(b), str(name)) for a, b, name in label]
            question = "spans" if spans else None
            rows.add_spans(Marked(record.at, task, str(worker), question, spans), text)
            if spans:
                continue
        if isinstance(label, str):  # CSV joins several labels with #
            label = label.split("#")
        rows.add(record.at, task, str(worker), label)
        rows.add_text(task, text or record.values.get("filename"))


# Toloka: the TSV of assignments, with INPUT:, OUTPUT:, GOLDEN: and ASSIGNMENT: columns.

TOLOKA_TASK = "ASSIGNMENT:task_id"
TOLOKA_DROPPED = ("REJECTED", "SKIPPED", "EXPIRED", "ACTIVE")


def _read_toloka(records: Entries, rows: AnswerRows) -> None:
    for record in records():
        at, row = record
        inputs = [value for key, value in row.items() if key.startswith("INPUT:")]
        if TOLOKA_TASK in row:
            task = record.name(TOLOKA_TASK)
        elif any(inputs):
            task = inputs[0] if len(inputs) == 1 else composed(inputs)
        else:
            raise InputError("toloka-task", at=at, column=TOLOKA_TASK)
        status = str(row.get("ASSIGNMENT:status", "")).upper()
        for column, value in row.items():
            question = column.partition(":")[2]
            is_wanted = question == (rows.options.question or question)
            if column.startswith("GOLDEN:") and value and is_wanted:
                rows.add_gold(at, task, value)  # it may come before the question's answers
            if not column.startswith("OUTPUT:") or not rows.wants(question):
                continue
            if status in TOLOKA_DROPPED:
                rows.drop(status.lower())
            else:
                worker = record.name("ASSIGNMENT:worker_id")
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


def _is_mturk(file: Opened) -> bool:
    return file.has("HITId", "WorkerId") and any(key.startswith(ANSWER) for key in file.keys)


def _read_mturk(records: Entries, rows: AnswerRows) -> None:
    for record in records():
        at, row = record
        hit = record.need(str(rows.options.named.get("task", "HITId")), str)
        worker = record.need("WorkerId", str)
        if not hit:
            raise InputError("value-empty", at=at, key="task")
        if row.get("AssignmentStatus") == "Rejected":
            rows.drop("rejected")
            continue
        time = seconds(row.get("SubmitTime"))
        inputs: dict[str | None, str] = {}  # the first, and the first of each numbered item
        for key in [key for key in row if key.startswith("Input.")]:
            inputs.setdefault(None, row[key])
            if numbered := NUMBERED.fullmatch(key):
                inputs.setdefault(numbered["item"], row[key])
        for question, label in _mturk_answers(at, row).items():
            task, item = hit, None
            numbered = NUMBERED.fullmatch(question)
            if numbered and numbered["item"] in inputs and len(inputs) > 2:
                question, item = numbered["base"], numbered["item"]
                task = f"{hit}#{item}"
            if rows.wants(question):
                rows.add(at, task, worker, label, time=time)
                rows.add_text(task, inputs.get(item))


def _mturk_answers(at: Place, row: Record) -> dict[str, Any]:
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
    if isinstance(value, Mapping) and "label" in value:
        return value["label"]
    if isinstance(value, Mapping) and value and {*map(type, value.values())} == {bool}:
        return _marked(value)
    return value


def _marked(options: Mapping[str, bool | None]) -> Any:
    """Return the options that are marked; a lone box "on" is a yes or no."""
    if set(options) == {"on"}:
        return {True: "yes", False: "no", None: None}[options["on"]]
    return [option for option, mark in options.items() if mark]


# CoNLL: one file a worker, or one column a worker under a header.

TAG = re.compile(r"O|[BIESLU]-.+")


def _read_conll(records: Entries, rows: AnswerRows) -> None:
    sentences = [(entry.at, entry.values["lines"]) for entry in records()]
    file = sentences[0][0].source.name if sentences else ""
    names: list[str] = []
    if sentences and not any(map(TAG.fullmatch, sentences[0][1][0][1:])):
        names = sentences[0][1].pop(0)  # a header: a name above each column
        sentences = [each for each in sentences if each[1]]
    for at, lines in sentences:
        for fields in lines:
            if len(fields) < 2 or len(fields) != len(lines[0]):
                raise InputError("conll-line", at=at, value=" ".join(fields))
    n_columns = len(sentences[0][1][0]) if sentences else 0
    of_tags = [
        k
        for k in range(1, n_columns)
        if all(TAG.fullmatch(fields[k]) for _, lines in sentences for fields in lines)
    ]
    if not of_tags:
        raise InputError("conll-no-tags", file=file)
    stem = PurePath(file).name.partition(".")[0]
    for k in of_tags:
        worker = names[k] if names else stem if len(of_tags) == 1 else f"{stem} {k}"
        tags, scheme = as_bio([[fields[k] for fields in lines] for _, lines in sentences])
        if scheme is not None:
            note("tags-turned", file=file, scheme=scheme)
        _add_sentences(rows, file, worker, sentences, tags)


def _add_sentences(
    rows: AnswerRows,
    file: str,
    worker: str,
    sentences: list[tuple[Place, Any]],
    tags: list[list[str]],
) -> None:
    """Take the tags of one worker, by the tokens of the first worker who has the sentence."""
    n_lost = n_tokens = 0
    for n, ((at, lines), said) in enumerate(zip(sentences, tags, strict=True)):
        words = [fields[0] for fields in lines]
        known = rows.spans.texts.setdefault(n, " ".join(words)).split(" ")
        ends = np.cumsum([len(word) + 1 for word in known])
        tokens = [(int(b) - len(w) - 1, int(b) - 1) for w, b in zip(known, ends, strict=True)]
        place = aligned(known, words)
        kept = [None if i is None else said[i] for i in place]
        n_tokens += len(words)
        n_lost += len(words) - sum(i is not None for i in place)
        rows.spans.add(Marked(at, n, worker, "tags", [], tags=kept), rows.spans.texts[n], tokens)
    if n_lost > MOST_UNMATCHED * n_tokens:
        raise InputError("tokens-differ", file=file, worker=worker, n=n_lost, n_tokens=n_tokens)
    if n_lost:
        note("tokens-dropped", n=n_lost)


FORMATS = (
    Format("conll", "CoNLL", lambda file: file.container == CONLL, _read_conll),
    Format("label-studio", "Label Studio", _is_label_studio, _read_label_studio),
    Format(
        "label-studio-min",
        "Label Studio JSON_MIN or CSV",
        with_keys("annotation_id", "annotator", "id", "lead_time"),
        _read_studio_table,
    ),
    Format(
        "argilla", "Argilla records", with_keys("fields", "responses", "suggestions"), _read_argilla
    ),
    Format(
        "argilla-flat",
        "Argilla records, flattened",
        with_ending(".responses.users", ".suggestion.agent"),
        _read_argilla_flat,
    ),
    Format(
        "prodigy",
        "Prodigy",
        lambda file: "answer" in file.keys and bool({"_task_hash", "_input_hash"} & {*file.keys}),
        _read_prodigy,
    ),
    # The task may be an Input.* column, where one item is in several HITs.
    Format("mturk", "MTurk batch results", _is_mturk, _read_mturk, can_choose=("task",)),
    Format(
        "toloka",
        "Toloka assignments",
        lambda file: any(key.startswith("OUTPUT:") for key in file.keys),
        _read_toloka,
    ),
    Format("doccano", "doccano", _is_doccano, _read_doccano),
)
