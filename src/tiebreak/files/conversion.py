"""Conversion: any file of responses as plain columns, with its texts and known labels."""

from __future__ import annotations

import csv
import io
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from tiebreak.errors import InputError, OptionError
from tiebreak.files.atomic_write import open_target
from tiebreak.files.columns import RESPONSES
from tiebreak.files.content import format_of_name
from tiebreak.files.formats import FormatOptions, import_options, import_table, import_texts
from tiebreak.files.formats.protocol import KeepText
from tiebreak.files.multi_label import split_labels
from tiebreak.files.response_table import find_response_columns, joined
from tiebreak.files.shown_order import turn_back, with_order_column
from tiebreak.files.writers import write_table
from tiebreak.ids import Column

__all__ = ["Converted", "read_columns", "read_texts", "write_known", "write_table", "writing_texts"]

DELIMITERS = {"csv": ",", "tsv": "\t"}


class Converted(NamedTuple):
    """Columns task, worker, label and those of runs, order, confidence … that the file has."""

    columns: dict[str, Column]
    gold: dict[Hashable, Hashable]

    @property
    def n_rows(self) -> int:
        """How many responses there are."""
        return len(self.columns["task"])


def read_columns(
    source: Any,
    columns: Mapping[str, object] | None,
    form: str | None,
    options: FormatOptions,
    keep_text: KeepText | None = None,
) -> Converted:
    """Read every response of a file, repeats and all, as columns."""
    choices = import_options(columns, options)
    imported = import_table(source, form, choices, RESPONSES.names, keep_text)
    table = imported.table
    named = None if imported.is_named else with_order_column(columns, options)
    found = find_response_columns(table, named, *imported.composed(options), tell_use=False)
    if not imported.is_named:
        table = turn_back(table, found, choices.turned)
    if choices.multi_label and not imported.is_named:
        table = split_labels(table, found, choices).table
        found = find_response_columns(table, None, tell_use=False)
    n_task = len(found.task)
    n_worker = len(found.worker)
    loaded = table.read([*found.task, *found.worker, found.label, *found.extras.values()])
    converted: dict[str, Column] = {
        "task": joined(loaded[:n_task]),
        "worker": joined(loaded[n_task : n_task + n_worker]),
        "label": loaded[n_task + n_worker],
    }
    converted |= dict(zip(found.extras, loaded[n_task + n_worker + 1 :], strict=True))
    return Converted(converted, imported.gold)


def read_texts(source: Any, form: str | None, options: FormatOptions) -> dict[Hashable, str] | None:
    """Return what to show for each task of an export; None where the file is a plain table."""
    texts: dict[Hashable, str] = {}

    def keep(task: Hashable, text: str) -> None:
        texts.setdefault(task, text)

    is_export = import_texts(source, form, import_options(None, options), keep)
    return texts if is_export else None


@contextmanager
def writing_texts(target: str) -> Iterator[KeepText]:
    """Write task and text as they come, so that texts of any size need no memory."""
    kind, is_packed = format_of_name(target)
    if kind not in DELIMITERS or is_packed:
        raise OptionError(f"Texts are written as CSV or TSV; {target} is neither. Rename it.")
    seen: set[Hashable] = set()
    with open_target(target) as out:
        text_out = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text_out, delimiter=DELIMITERS[kind], lineterminator="\n")
        writer.writerow(("task", "text"))

        def keep(task: Hashable, text: str) -> None:
            if task not in seen:
                seen.add(task)
                writer.writerow((task, text))

        yield keep
        if not seen:
            raise InputError(f"The file holds no texts of tasks, so {target} is not written.")
        text_out.detach()


def write_known(target: str, source: str, gold: Mapping[Hashable, Hashable]) -> None:
    """Write the labels that a file says are true."""
    if not gold:
        raise InputError(f"{source} names no known label, so {target} is not written.")
    write_table(target, {"task": list(gold), "label": list(gold.values())})
