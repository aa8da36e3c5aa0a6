"""Closed links: what follows from must- and cannot-links, in the user's own ids."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from tiebreak.data.ids import Ids
from tiebreak.links import graph as link_graph
from tiebreak.links.graph import Closure, LinkCodes
from tiebreak.links.graph.chains import Chains


@dataclass(frozen=True, slots=True, eq=False)
class ClosedLinks:
    """Groups of tasks that must be the same class, and which groups cannot be.

    `codes` and `closure` are the same in numbers, for the functions of `tiebreak.links.graph`.
    """

    tasks: Ids
    codes: LinkCodes = field(repr=False)
    closure: Closure = field(repr=False)

    @property
    def n_must(self) -> int:
        """How many pairs of tasks must be the same class."""
        return self.closure.n_must

    @property
    def n_cannot(self) -> int:
        """How many pairs of tasks cannot be the same class."""
        return self.closure.n_cannot

    def __repr__(self) -> str:
        return f"ClosedLinks({self.n_must:,} must, {self.n_cannot:,} cannot)"

    def groups(self) -> list[list[Hashable]]:
        """Return the groups of two or more tasks that must be the same class."""
        order = np.argsort(self.closure.group, kind="stable")
        parts = np.split(order, np.cumsum(self.closure.size)[:-1])
        return [self._named(part.tolist()) for part in parts if len(part) > 1]

    def cannot_pairs(self) -> list[tuple[Hashable, Hashable]]:
        """Return one pair per two groups that cannot be the same class: their first tasks."""
        closure = self.closure
        first = link_graph.first_members(closure.group, closure.n_groups)
        left = self._named(first[closure.left].tolist())
        right = self._named(first[closure.right].tolist())
        return list(zip(left, right, strict=True))

    def contradictions(self) -> list[list[Hashable]]:
        """Return, for each cannot-link that must-links contradict, the chain of must-links."""
        must = self.codes.keep(self.codes.is_hard & self.codes.must)
        chains = Chains.along(must, two_classes=False)
        left = self.codes.left[self.closure.conflicts].tolist()
        right = self.codes.right[self.closure.conflicts].tolist()
        found = (chains.shortest(*ends, same=True) for ends in zip(left, right, strict=True))
        return [self._named([steps[0].start, *(step.end for step in steps)]) for steps in found]

    def _named(self, codes: list[int]) -> list[Hashable]:
        return [self.tasks[code] for code in codes]
