"""Folding: names that differ only in case, spaces or Unicode form are one name."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable


def fold(name: Hashable) -> Hashable:
    """Return what a name is compared by; what is not text stays.

    >>> fold(" New  York "), fold("ＮＥＷ york"), fold(3)
    ('new york', 'new york', 3)
    """
    if not isinstance(name, str):
        return name
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def variants(names: Iterable[Hashable]) -> list[list[Hashable]]:
    """Return the groups of names that folding joins, of two or more.

    >>> variants(["cat", "dog", "Cat"])
    [['cat', 'Cat']]
    """
    groups: dict[Hashable, list[Hashable]] = {}
    for name in names:
        groups.setdefault(fold(name), []).append(name)
    return [group for group in groups.values() if len(group) > 1]
