"""Texts: what tasks look like, and what classes mean."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tiebreak.errors import InputError, note
from tiebreak.files.columns import CLASS_TEXTS, CONTENTS, TEXTS, Schema
from tiebreak.files.sources import ColumnNames, load_table
from tiebreak.ids import as_list
from tiebreak.wording import agreeing, counted


def read_texts(source: Any, *, columns: ColumnNames | None = None) -> dict[Hashable, str]:
    """Read what tasks look like: columns task and text. A task without a text is left out.

    Examples
    --------
    >>> read_texts([("a", "A cat."), ("b", None)])
    {'a': 'A cat.'}
    """
    return _texts_of(source, TEXTS, "task", columns)


def read_contents(
    source: Any, *, columns: ColumnNames | None = None
) -> dict[str, dict[Hashable, str]]:
    """Read all that a page can show of tasks: columns text, markdown, image, audio, as there are.

    Examples
    --------
    >>> read_contents({"task": ["a", "b"], "image": ["a.png", None]})
    {'image': {'a': 'a.png'}}
    """
    table, found = load_table(source, CONTENTS, columns, None)
    if len(found) == 1:
        raise InputError(
            f"{table.title}: nothing to show. Beside task it needs a column text, markdown, image "
            "or audio."
        )
    tasks = as_list(found.pop("task"))
    return {
        name: {
            task: str(value)
            for task, value in zip(tasks, as_list(column), strict=True)
            if task is not None and value is not None
        }
        for name, column in found.items()
    }


def read_class_texts(source: Any, *, columns: ColumnNames | None = None) -> dict[Hashable, str]:
    """Read what classes mean: columns class and text. A class without a text is left out.

    Examples
    --------
    >>> read_class_texts([("cat", "Any feline."), ("dog", None)])
    {'cat': 'Any feline.'}
    """
    return _texts_of(source, CLASS_TEXTS, "class", columns)


def _texts_of(
    source: Any, schema: Schema, name: str, columns: ColumnNames | None
) -> dict[Hashable, str]:
    _, found = load_table(source, schema, columns, None)
    rows = zip(as_list(found[name]), as_list(found["text"]), strict=True)
    given = [(key, str(text)) for key, text in rows if text is not None]
    texts = dict(given)
    if len(texts) < len(given):
        n = len(given) - len(texts)
        note(f"{counted(n, 'text')} {agreeing(n, 'are')} given twice: the last one of each counts.")
    return texts
