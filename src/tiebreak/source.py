"""Source: where rows came from, so that an error can name the file and the line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Source(NamedTuple):
    """The file or table that rows came from, and the line of each row where it has lines.

    >>> Source("links.csv", lambda row: row + 2).where(0)
    'links.csv, line 2'
    """

    name: str = ""
    line_of: Callable[[int], int] | None = None

    def where(self, row: int) -> str:
        """Name the place of a row, counted from 0."""
        if self.line_of is None:
            return f"{self.name}, row {row + 1}" if self.name else f"row {row + 1}"
        return f"{self.name}, line {self.line_of(row)}"


NOWHERE = Source()
