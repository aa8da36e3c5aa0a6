"""Wording: numbers with their nouns, and the first few of many, in messages."""

from __future__ import annotations

from collections.abc import Sequence


def counted(n: int, noun: str) -> str:
    """Put a number before a noun.

    >>> counted(1, "task"), counted(2000, "class")
    ('1 task', '2,000 classes')
    """
    ending = "" if n == 1 else "es" if noun.endswith("s") else "s"
    return f"{n:,} {noun}{ending}"


def first_few(words: Sequence[str], most: int) -> str:
    """Join the first few words, with an ellipsis where there are more.

    >>> first_few(["a", "b", "c"], 2), first_few(["a", "b"], 2)
    ('a, b, …', 'a, b')
    """
    return ", ".join([*words[:most], "…"] if len(words) > most else words)
