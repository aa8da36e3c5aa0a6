"""Prodigy: JSON lines of `db-out`, from the choice interface or binary decisions."""

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
    optional,
)
from tiebreak.files.formats.rows import Rows
from tiebreak.files.formats.times import seconds

ANSWERS = ("accept", "reject", "ignore")
REGIONS = ("spans", "relations")


class Prodigy:
    """One line per decision; `accept` holds the choice, or `answer` says yes or no to `label`."""

    name = "prodigy"
    title = "Prodigy"
    choosable: tuple[str, ...] = ()

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        return head.has("_task_hash", "answer") or head.has("_input_hash", "answer")

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        for place, record in records():
            answer = need(record, "answer", str, place)
            if answer not in ANSWERS:
                raise place.error(f"'answer' must be one of {', '.join(ANSWERS)}, got {answer!r}.")
            if answer == "ignore":
                rows.drop("ignored")
                continue
            if "options" in record or isinstance(record.get("accept"), list):
                task = _read_choice(place, record, rows)
            else:
                task = _read_binary(place, record, rows)
            rows.add_text(task, first_text(record))


def _worker(place: RecordPlace, record: Record) -> str:
    """Return who answered; a session is called <dataset>-<name>."""
    names = [optional(record, key, IdType, place) for key in ("_annotator_id", "_session_id")]
    return str(names[0] or names[1] or "one annotator")


def _read_choice(place: RecordPlace, record: Record, rows: Rows) -> Any:
    task = need(record, "_input_hash", (int, str), place)
    if record["answer"] == "reject":
        rows.drop("rejected")
        return task
    chosen = need(record, "accept", list, place)
    rows.add(place, task, _worker(place, record), chosen, time=seconds(record.get("_timestamp")))
    return task


def _read_binary(place: RecordPlace, record: Record, rows: Rows) -> Any:
    if "label" not in record and any(record.get(key) for key in REGIONS):
        raise place.error("it marks spans of a text. Export a task of choices or textcat.")
    label = need(record, "label", str, place)
    task = need(record, "_task_hash", (int, str), place)
    # Each label has a task hash of its own, so decisions on several labels stay apart.
    if rows.options.question is None or rows.wants(label):
        time = seconds(record.get("_timestamp"))
        rows.add(place, task, _worker(place, record), record["answer"], time=time)
    return task
