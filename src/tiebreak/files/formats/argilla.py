"""Argilla: records as nested JSON, flattened, or as a table of `to_datasets`."""

from __future__ import annotations

from typing import Any

from tiebreak.files.formats.protocol import (
    Head,
    IdType,
    Record,
    RecordPlace,
    Records,
    first_text,
    need,
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
                        user = need(answer, "user_id", IdType, place)
                        _add(place, task, str(user), answer, rows)
            suggestions = need(record, "suggestions", (dict, type(None)), place) or {}
            for question, suggestion in suggestions.items():
                if suggestion is not None and rows.wants(question):
                    _add_suggestion(place, task, suggestion, rows)
            rows.add_text(task, first_text(need(record, "fields", dict, place)))


def _add(place: RecordPlace, task: Any, user: str, answer: Record, rows: Rows) -> None:
    status = str(answer.get("status") or "submitted")  # the nested form has lost it
    if status.rpartition(".")[2] != "submitted":
        rows.drop(f"{status} (only submitted responses count)")
        return
    rows.add(place, task, user, need(answer, "value", object, place))


def _add_suggestion(place: RecordPlace, task: Any, suggestion: Record, rows: Rows) -> None:
    agent = suggestion.get("agent") or "suggestion"
    value = need(suggestion, "value", object, place)
    if value is not None:
        rows.add(place, task, str(agent), value, confidence=suggestion.get("score"))


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
        states = record.get(question + STATUS) or ["submitted"] * len(values)
        if not len(values) == len(users) == len(states):
            raise place.error(
                f"question {question!r} has {len(values)} responses, {len(users)} users and "
                f"{len(states)} states. Export the file again."
            )
        for value, user, status in zip(values, users, states, strict=True):
            _add(place, task, str(user), {"value": value, "status": status}, rows)
    value = record.get(question + SUGGESTION)
    if value is not None:
        suggestion = {
            "value": value,
            "agent": record.get(question + AGENT),
            "score": record.get(question + SCORE),
        }
        _add_suggestion(place, task, suggestion, rows)
