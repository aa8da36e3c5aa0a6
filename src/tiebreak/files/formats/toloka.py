"""Toloka: the TSV of assignments, with INPUT:, OUTPUT:, GOLDEN: and ASSIGNMENT: columns."""

from __future__ import annotations

from tiebreak.files.formats.protocol import (
    Head,
    Record,
    RecordPlace,
    Records,
    need_name,
)
from tiebreak.files.formats.rows import Rows
from tiebreak.files.formats.times import seconds
from tiebreak.ids import composed

INPUT = "INPUT:"
OUTPUT = "OUTPUT:"
GOLDEN = "GOLDEN:"
TASK = "ASSIGNMENT:task_id"
WORKER = "ASSIGNMENT:worker_id"
STATUS = "ASSIGNMENT:status"
DROPPED = ("REJECTED", "SKIPPED", "EXPIRED", "ACTIVE")


class Toloka:
    """One row per answer; rows between suites are blank."""

    name = "toloka"
    title = "Toloka assignments"
    choosable: tuple[str, ...] = ()

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        return any(key.startswith(OUTPUT) for key in head.keys)

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        for place, row in records():
            task = _task(place, row)
            for column, value in row.items():
                question = column.partition(":")[2]
                if column.startswith(GOLDEN) and value and _is_wanted(rows, question):
                    rows.add_gold(place, task, value)
                if column.startswith(OUTPUT) and rows.wants(question):
                    _read_answer(place, task, row, value, rows)
            texts = [value for key, value in row.items() if key.startswith(INPUT)]
            rows.add_text(task, texts[0] if texts else None)


def _is_wanted(rows: Rows, question: str) -> bool:
    """Tell whether known labels belong to the question; they may come before its answers."""
    return question == (rows.options.question or question)


def _read_answer(place: RecordPlace, task: str, row: Record, label: str, rows: Rows) -> None:
    status = str(row.get(STATUS, "")).upper()
    if status in DROPPED:
        rows.drop(status.lower())
        return
    worker = need_name(row, WORKER, place)
    time = row.get("ASSIGNMENT:submitted") or row.get("ASSIGNMENT:started")
    rows.add(place, task, worker, label, time=seconds(time))


def _task(place: RecordPlace, row: Record) -> str:
    """Return the id of a task, else what was shown."""
    if TASK in row:
        return need_name(row, TASK, place)
    inputs = [str(value) for key, value in row.items() if key.startswith(INPUT)]
    if not any(inputs):
        raise place.error(f"the row has neither {TASK} nor any {INPUT} column with a value.")
    return inputs[0] if len(inputs) == 1 else composed(inputs)
