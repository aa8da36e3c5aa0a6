"""Texts: what tasks look like, for people who are asked about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiebreak.errors import InputError, note
from tiebreak.files.columns import Kind, Role, find_columns
from tiebreak.files.schemas import TASK
from tiebreak.files.sources import as_table
from tiebreak.ids import MISSING, Ids

TEXTS = Kind("texts", InputError, (TASK, Role("text", frozenset({"content", "body", "snippet"}))))
SHOWN_TASKS = 3  # in a message


def read_texts(source: Any, tasks: Ids) -> dict[int, str]:
    """Read what tasks look like: a mapping of task to text, or a table of task, text.

    Returns texts by code of task.

    >>> read_texts({"a": "A cat.", "b": "A dog."}, Ids(["b", "a"]))
    {1: 'A cat.', 0: 'A dog.'}
    """
    if isinstance(source, Mapping) and not _is_columns(source):
        names = list(source)
        texts = list(source.values())
    else:
        table = as_table(source, TEXTS.names, 2)
        positions = find_columns(table, TEXTS)
        names, texts = (list(Ids(column)) for column in table.read(list(positions.values())))
    codes = tasks.codes(names).tolist()
    unknown = [task for task, code in zip(names, codes, strict=True) if code == MISSING]
    if unknown:
        shown = ", ".join(map(repr, unknown[:SHOWN_TASKS]))
        note(f"{len(unknown):,} texts are of tasks without responses ({shown}): not used.")
    return {
        code: str(text)
        for code, text in zip(codes, texts, strict=True)
        if code != MISSING and text is not None
    }


def _is_columns(source: Mapping[Any, Any]) -> bool:
    return {"task", "text"} <= set(source) and not isinstance(source["task"], str)
