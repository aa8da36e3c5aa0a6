"""Tables with lists: one row per task, with a list of workers and a list of their labels."""

from __future__ import annotations

from collections.abc import Iterable

from tiebreak.errors import InputError
from tiebreak.tables.columns import LABEL, TASK, WORKER, Role, squashed
from tiebreak.tables.formats.records import AnswerRows, Entries, Entry, Format, first_text
from tiebreak.tables.plain import Opened, Record

PLURALS = {"ies": "y", "es": "e", "s": ""}


def _is_lists(file: Opened) -> bool:
    lists = _lists(file.first)
    return bool(_named(lists, WORKER)) and bool(_named(lists, LABEL))


def _read_lists(records: Entries, rows: AnswerRows) -> None:
    for record in records():
        lists = _lists(record.values)
        found = _named(lists, WORKER)
        if not found:
            raise InputError("no-list-of-workers", at=record.at)
        workers = record.values[found[0]]
        task = _task(record)
        for question in (key for key in lists if key != found[0]):
            labels = record.values[question]
            if len(labels) == len(workers):
                if rows.wants(question):
                    for worker, label in zip(workers, labels, strict=True):
                        rows.add(record.at, task, worker, label)
            elif _named([question], LABEL):
                names = {"workers": found[0], "labels": question}
                n = len(workers), len(labels)
                raise InputError("lists-unequal", at=record.at, **names, n=n)
        rows.add_text(task, first_text(record.values))


def _lists(record: Record) -> list[str]:
    return [key for key, value in record.items() if isinstance(value, list)]


def _named(keys: Iterable[str], role: Role) -> list[str]:
    """Return the keys that name a role, in the plural or not."""

    def forms(name: str) -> set[str]:
        endings = ((end, one) for end, one in PLURALS.items() if name.endswith(end))
        return {name, *(name.removesuffix(end) + one for end, one in endings)}

    return [key for key in keys if forms(squashed(key)) & {role.name, *role.others}]


def _task(record: Entry) -> str | int:
    """Return the id of a row; its number where no column is one."""
    for words in ({TASK.name}, TASK.others, TASK.weak):
        for key, value in record.values.items():
            if squashed(key) in words and isinstance(value, str | int):
                return value
    return record.at.row + 1


FORMATS = (Format("list-columns", "table with lists", _is_lists, _read_lists),)
