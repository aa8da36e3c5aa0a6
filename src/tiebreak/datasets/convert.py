"""Convert: a public copy into our columns, task ids and classes.

The copies have the columns item,worker,label and item,truth, number tasks from 0 and may number
classes in their own way. Of several answers of a worker to a task, the last one counts.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from tiebreak.datasets.catalogue import Entry, Info, PublicFile
from tiebreak.errors import FileError

if TYPE_CHECKING:
    from tiebreak.gold import Gold
    from tiebreak.responses import Responses

KEPT_NOTHING = (
    "Nothing was kept. Its checksum is right, so our catalogue is wrong: please report it."
)


def convert(entry: Entry, labels: bytes, truths: bytes) -> tuple[Responses, Gold]:
    """Make responses and gold of the two files of a public copy.

    Raises FileError where they are not what the catalogue says.
    """
    from tiebreak.gold import Gold
    from tiebreak.responses import Responses

    copy = entry.copy
    last: dict[tuple[str, str], str] = {}
    for item, worker, code in _rows(copy.responses, labels, ["item", "worker", "label"]):
        key = (_task(entry, copy.responses, item), worker)
        last.pop(key, None)  # an answer given again stands where it was given last
        last[key] = _class(entry, copy.responses, code)
    known = [
        (_task(entry, copy.gold, item), _class(entry, copy.gold, code))
        for item, code in _rows(copy.gold, truths, ["item", "truth"])
    ]
    responses = Responses.from_columns([t for t, _ in last], [w for _, w in last], [*last.values()])
    gold = Gold.from_columns([task for task, _ in known], [label for _, label in known])
    wrong = wrong_counts(responses, gold, entry.info)
    if wrong:
        raise FileError(f"Converted, {entry.info.name} has {wrong}. {KEPT_NOTHING}")
    return responses, gold


def wrong_counts(responses: Responses, gold: Gold, info: Info) -> str:
    """List the counts that are not as the catalogue says; empty if all are.

    >>> from tiebreak import Gold, Responses
    >>> from tiebreak.datasets import info
    >>> responses = Responses.from_rows([("7", "ann", "0"), ("8", "ann", "1")])
    >>> wrong_counts(responses, Gold.from_dict({"7": "0"}), info("rte"))[:39]
    '2 tasks (expected 800), 1 workers (expe'
    """
    counts = {
        "n_tasks": responses.n_tasks,
        "n_workers": responses.n_workers,
        "n_classes": responses.with_classes(gold.classes).n_classes,
        "n_responses": responses.n_responses,
        "n_gold": len(gold),
    }
    return ", ".join(
        f"{count:,} {name.removeprefix('n_')} (expected {getattr(info, name):,})"
        for name, count in counts.items()
        if count != getattr(info, name)
    )


def _rows(file: PublicFile, content: bytes, header: list[str]) -> list[list[str]]:
    """Parse a file whose header and number of rows are known."""
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
    if rows[:1] != [header]:
        raise _unexpected(file, f"its header is {rows[:1]}, expected {[header]}")
    ragged = next((n for n, row in enumerate(rows, 1) if len(row) != len(header)), None)
    if ragged is not None:
        raise _unexpected(file, f"line {ragged} has not {len(header)} fields")
    if len(rows) - 1 != file.rows:
        raise _unexpected(file, f"it has {len(rows) - 1:,} rows, expected {file.rows:,}")
    return rows[1:]


def _task(entry: Entry, file: PublicFile, item: str) -> str:
    """Number a task as its source does."""
    if not item.isdecimal():
        raise _unexpected(file, f"task {item!r} is not a number")
    return str(int(item) + entry.copy.first_task)


def _class(entry: Entry, file: PublicFile, code: str) -> str:
    """Translate a code of the copy into our class."""
    table = entry.copy.classes or {name: name for name in entry.info.classes}
    if code not in table:
        raise _unexpected(file, f"label {code!r} is none of {', '.join(table)}")
    return table[code]


def _unexpected(file: PublicFile, what: str) -> FileError:
    return FileError(f"{file.path} is not as the catalogue says: {what}. {KEPT_NOTHING}")
