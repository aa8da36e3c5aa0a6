"""Offers: questions of any kind that one could ask, and what each is worth."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tiebreak.data.frames import as_frame


class Offer(NamedTuple):
    """A question that one could ask: what it is expected to put right, and what it costs.

    `other` is the second task of "same", `label` the class of "is" (or, of "same", the class that
    the other task is an example of), `worker` who is to give a "vote".
    """

    kind: str  # "same", "label", "is" or "vote"
    task: Hashable
    other: Hashable | None = None
    label: Hashable | None = None
    worker: Hashable | None = None
    gain: float = float("nan")  # labels put right, as expected
    cost: float = 1.0

    @property
    def worth(self) -> float:
        """Labels put right for one unit of cost."""
        return self.gain / self.cost


@dataclass(frozen=True, slots=True, eq=False)
class Offers(Sequence[Offer]):
    """Questions to ask, the best first."""

    rows: tuple[Offer, ...]
    frame: str = field(default="pyarrow", repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: Any) -> Any:
        return self.rows[at]

    def __iter__(self) -> Iterator[Offer]:
        return iter(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Offers) and other.rows == self.rows

    __hash__ = None  # type: ignore[assignment]  # compared by content

    def __repr__(self) -> str:
        return f"Offers({len(self):,} questions)"

    def columns(self) -> dict[str, Any]:
        """Return kind, task, other, label, worker, gain, cost and worth as columns."""
        found: dict[str, Any] = {
            name: [getattr(row, name) for row in self.rows]
            for name in ("kind", "task", "other", "label", "worker")
        }
        found["gain"] = np.array([row.gain for row in self.rows], dtype=np.float64)
        found["cost"] = np.array([row.cost for row in self.rows], dtype=np.float64)
        found["worth"] = np.array([row.worth for row in self.rows], dtype=np.float64)
        return found

    def to_frame(self) -> Any:
        """Return the questions as a table of the caller's kind."""
        return as_frame(self.columns(), self.frame)
