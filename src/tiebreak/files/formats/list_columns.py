"""Tables with lists: one row per task, with a list of workers and a list of their labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tiebreak.files.columns import LABEL, TASK, WORKER, Role, squashed
from tiebreak.files.formats.protocol import Head, Record, Records, first_text
from tiebreak.files.formats.rows import Rows

PLURALS = {"ies": "y", "es": "e", "s": ""}


class ListColumns:
    """Hugging Face datasets and Parquet files such as (id, annotators, annotations)."""

    name = "list-columns"
    title = "table with lists"
    choosable: tuple[str, ...] = ()

    def looks_like(self, head: Head) -> bool:
        """Tell by content whether a file is of this format."""
        lists = [key for key, value in head.record.items() if isinstance(value, list)]
        return bool(_named(lists, WORKER)) and bool(_named(lists, LABEL))

    def read(self, records: Records, rows: Rows) -> None:
        """Add every answer, known label and text to `rows`."""
        for place, record in records():
            lists = [key for key, value in record.items() if isinstance(value, list)]
            workers = _named(lists, WORKER)
            if not workers:
                raise place.error("there is no list of workers, as the first row has one.")
            people = record[workers[0]]
            task = _task(record, place.number)
            for question in (key for key in lists if key != workers[0]):
                labels = record[question]
                if len(labels) != len(people):
                    if question in _named(lists, LABEL):
                        raise place.error(
                            f"{workers[0]!r} holds {len(people)} workers, but {question!r} "
                            f"{len(labels)} labels. Make them equally many."
                        )
                    continue
                if rows.wants(question):
                    for worker, label in zip(people, labels, strict=True):
                        rows.add(place, task, worker, label)
            rows.add_text(task, first_text(record))


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
