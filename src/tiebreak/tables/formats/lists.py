"""Tables with lists: one row per task, with a list of workers and a list of their labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tiebreak.errors import InputError
from tiebreak.tables.columns import LABEL, TASK, WORKER, Role, squashed
from tiebreak.tables.formats.records import Format, Rows, first_text
from tiebreak.tables.plain import Head, Record, Records

PLURALS = {"ies": "y", "es": "e", "s": ""}


def _is_lists(head: Head) -> bool:
    lists = _lists(head.record)
    return bool(_named(lists, WORKER)) and bool(_named(lists, LABEL))


def _read_lists(records: Records, rows: Rows) -> None:
    for at, record in records():
        lists = _lists(record)
        workers = _named(lists, WORKER)
        if not workers:
            raise InputError("no-list-of-workers", at=at)
        people = record[workers[0]]
        task = _task(record, at.number)
        for question in (key for key in lists if key != workers[0]):
            labels = record[question]
            if len(labels) != len(people):
                if question in _named(lists, LABEL):
                    n = len(people), len(labels)
                    raise InputError(
                        "lists-unequal", at=at, workers=workers[0], labels=question, n=n
                    )
                continue
            if rows.wants(question):
                for worker, label in zip(people, labels, strict=True):
                    rows.add(at, task, worker, label)
        rows.add_text(task, first_text(record))


def _lists(record: Record) -> list[str]:
    return [key for key, value in record.items() if isinstance(value, list)]


def _named(keys: Iterable[str], role: Role) -> list[str]:
    """Return the keys that name a role, in the plural or not."""
    return [key for key in keys if _singulars(squashed(key)) & {role.name, *role.others}]


def _singulars(name: str) -> set[str]:
    endings = ((end, one) for end, one in PLURALS.items() if name.endswith(end))
    return {name, *(name.removesuffix(end) + one for end, one in endings)}


def _task(record: Record, number: int) -> Any:
    """Return the id of a row; its number where no column is one."""
    for words in ({TASK.name}, TASK.others, TASK.weak):
        for key, value in record.items():
            if squashed(key) in words and isinstance(value, str | int):
                return value
    return number


FORMATS = (Format("list-columns", "table with lists", _is_lists, _read_lists),)
