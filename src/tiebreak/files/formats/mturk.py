"""MTurk: the CSV of batch results, in each of the ways in which templates write answers.

Answer.sentiment            Positive                    a field
Answer.sentiment.label      Positive                    a crowd element
Answer.sentiment.good       true                        radio buttons or check boxes
Answer.taskAnswers          [{"sentiment": {…}}]        all of it as JSON
Answer.x1, Answer.x2, …     beside Input.x1, Input.x2   several items per HIT
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tiebreak.files.formats.protocol import Head, Record, RecordPlace, Records, need
from tiebreak.files.formats.rows import Rows
from tiebreak.files.formats.times import seconds

ANSWER = "Answer."
INPUT = "Input."
TASK_ANSWERS = "Answer.taskAnswers"
TRUTHS = {"true": True, "false": False}
NUMBERED = re.compile(r"(?P<base>.*?\D)_?(?P<item>\d+)")


class MTurk:
    """One row per assignment: HIT, worker, status, inputs and answers."""

    name = "mturk"
    title = "MTurk batch results"
    choosable: tuple[str, ...] = ("task",)  # an Input.* column, where one item is in several HITs

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        return head.has("HITId", "WorkerId") and any(key.startswith(ANSWER) for key in head.keys)

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        for place, row in records():
            hit = need(row, str(rows.options.columns.get("task", "HITId")), str, place)
            worker = need(row, "WorkerId", str, place)
            if not hit:
                raise place.error("the task is empty. Complete the row or remove it.")
            if row.get("AssignmentStatus") == "Rejected":
                rows.drop("rejected")
                continue
            time = seconds(row.get("SubmitTime"))
            inputs = _input_items(row)
            for (question, item), label in _answers(place, row, set(inputs)).items():
                task = hit if item is None else f"{hit}#{item}"
                if rows.wants(question):
                    rows.add(place, task, worker, label, time=time)
                    rows.add_text(task, inputs.get(item))


def _input_items(row: Record) -> dict[str | None, str]:
    """Return the first input, and the first input of each numbered item."""
    found: dict[str | None, str] = {}
    for key, value in row.items():
        if key.startswith(INPUT):
            found.setdefault(None, value)
            numbered = NUMBERED.fullmatch(key)
            if numbered:
                found.setdefault(numbered["item"], value)
    return found


def _answers(
    place: RecordPlace, row: Record, items: set[str | None]
) -> dict[tuple[str, str | None], Any]:
    """Return the label by question and, where a HIT has several, by item."""
    fields = _fields(place, row)
    answers = {}
    for field, value in fields.items():
        numbered = NUMBERED.fullmatch(field)
        if numbered and numbered["item"] in items and len(items) > 2:
            answers[numbered["base"], numbered["item"]] = value
        else:
            answers[field, None] = value
    return answers


def _fields(place: RecordPlace, row: Record) -> dict[str, Any]:
    """Return what was filled in, by field: a text, or the list of options that were marked."""
    if row.get(TASK_ANSWERS):
        return _from_json(place, row[TASK_ANSWERS])
    plain: dict[str, Any] = {}
    marks: dict[str, dict[str, bool | None]] = defaultdict(dict)
    for key, value in row.items():
        if not key.startswith(ANSWER) or key == TASK_ANSWERS:
            continue
        field, dot, option = key.removeprefix(ANSWER).rpartition(".")
        if not dot or option == "label":
            plain[field if dot else option] = value
        else:
            marks[field][option] = TRUTHS.get(value.strip().lower())
    return plain | {field: _marked(options) for field, options in marks.items()}


def _from_json(place: RecordPlace, text: str) -> dict[str, Any]:
    try:
        answers = json.loads(text)
    except ValueError as error:
        raise place.error(f"{TASK_ANSWERS} is not JSON: {error}.") from None
    forms = answers if isinstance(answers, list) else [answers]
    if not all(isinstance(form, Mapping) for form in forms):
        raise place.error(f"{TASK_ANSWERS} must hold objects, one per form.")
    return {field: _value(value) for form in forms for field, value in form.items()}


def _value(value: Any) -> Any:
    """Read {"label": "Positive"}, {"yes": true, "no": false} or a bare value."""
    if not isinstance(value, Mapping):
        return value
    if "label" in value:
        return value["label"]
    if value and all(isinstance(mark, bool) for mark in value.values()):
        return _marked(dict(value))
    return dict(value)


def _marked(options: Mapping[str, bool | None]) -> Any:
    """Return the options that are marked; a lone box "on" is a yes or no."""
    if set(options) == {"on"}:
        mark = options["on"]
        return None if mark is None else "yes" if mark else "no"
    return [option for option, mark in options.items() if mark]
