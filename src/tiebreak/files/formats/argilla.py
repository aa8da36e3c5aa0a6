"""Argilla: records as nested JSON, flattened, or as a table of `to_datasets`."""

from __future__ import annotations

from typing import Any

from tiebreak.files.formats.protocol import (
    Head,
    IdType,
    Number,
    Record,
    RecordPlace,
    Records,
    first_text,
    need,
    need_name,
    optional,
)
from tiebreak.files.formats.rows import Rows

RESPONSES = ".responses"
USERS = ".responses.users"
STATUS = ".responses.status"
SUGGESTION = ".suggestion"
AGENT = ".suggestion.agent"
SCORE = ".suggestion.score"


class Argilla:
    """Nested records: `responses` and `suggestions` by question."""

    name = "argilla"
    title = "Argilla records"
    choosable: tuple[str, ...] = ()

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        return head.has("fields", "responses", "suggestions")

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        rows.remarks.append("this form does not tell drafts from submitted responses")
        for place, record in records():
            task = need(record, "id", IdType, place)
            responses = need(record, "responses", (dict, type(None)), place) or {}
            for question in responses:
                if rows.wants(question):
                    for answer in need(responses, question, (list, type(None)), place) or []:
                        _add(place, task, need_name(answer, "user_id", place), answer, rows)
            suggestions = need(record, "suggestions", (dict, type(None)), place) or {}
            for question in suggestions:
                suggestion = optional(suggestions, question, dict, place)
                if suggestion is not None and rows.wants(question):
                    _add_suggestion(place, task, suggestion, rows)
            rows.add_text(task, first_text(need(record, "fields", dict, place)))


def _add(place: RecordPlace, task: Any, user: str, answer: Record, rows: Rows) -> None:
    status = optional(answer, "status", str, place) or "submitted"  # the nested form has lost it
    if status.rpartition(".")[2] != "submitted":
        rows.drop(f"{status} (only submitted responses count)")
        return
    rows.add(place, task, user, need(answer, "value", object, place))


def _add_suggestion(place: RecordPlace, task: Any, suggestion: Record, rows: Rows) -> None:
    agent = optional(suggestion, "agent", IdType, place) or "suggestion"
    value = need(suggestion, "value", object, place)
    score = optional(suggestion, "score", (*Number, list), place)  # a list: one of each label
    if value is not None:
        rows.add(place, task, str(agent), value, confidence=None if score == [] else score)


class ArgillaFlat:
    """Flattened records: `<question>.responses`, `.responses.users`, `.responses.status`."""

    name = "argilla-flat"
    title = "Argilla records, flattened"
    choosable: tuple[str, ...] = ()

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        return any(key.endswith((USERS, AGENT)) for key in head.keys)

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        for place, record in records():
            task = need(record, "id", IdType, place)
            for question in _questions(record):
                if rows.wants(question):
                    _read_flat(place, task, question, record, rows)
            rows.add_text(task, first_text(_fields(record)))


def _questions(record: Record) -> list[str]:
    names = [k.removesuffix(RESPONSES) for k in record if k.endswith(RESPONSES)]
    names += [k.removesuffix(SUGGESTION) for k in record if k.endswith(SUGGESTION)]
    return list(dict.fromkeys(names))


def _fields(record: Record) -> dict[str, Any]:
    """Return what is shown to people: neither answers nor what Argilla adds."""
    own = ("id", "status", "_server_id", "inserted_at", "updated_at")
    return {k: v for k, v in record.items() if k not in own and "." not in k}


def _read_flat(place: RecordPlace, task: Any, question: str, record: Record, rows: Rows) -> None:
    values = record.get(question + RESPONSES)
    if values is not None:
        values = need(record, question + RESPONSES, list, place)
        users = need(record, question + USERS, list, place)
        states = optional(record, question + STATUS, list, place) or ["submitted"] * len(values)
        if not len(values) == len(users) == len(states):
            raise place.error(
                f"question {question!r} has {len(values)} responses, {len(users)} users and "
                f"{len(states)} states. Export the file again."
            )
        for value, user, status in zip(values, users, states, strict=True):
            answer = {"value": value, "status": status, "user": user}
            _add(place, task, need_name(answer, "user", place), answer, rows)
    value = record.get(question + SUGGESTION)
    if value is not None:
        suggestion = {
            "value": value,
            "agent": record.get(question + AGENT),
            "score": record.get(question + SCORE),
        }
        _add_suggestion(place, task, suggestion, rows)
