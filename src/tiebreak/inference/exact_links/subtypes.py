"""Exact links where classes have subtypes: tasks of a node share a class, not a subtype.

A node cannot be one task with all its responses then (`place.pool`). Each member is scored alone,
its class scores (the log of the sum over subtypes) are added up to the node, nodes are inferred as
ever, and the subtypes of each member follow from its class: [eq:subtype-links].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tiebreak.inference.exact_links.infer import ExactLinks
from tiebreak.kernels import layout
from tiebreak.kernels.arrays import softmax
from tiebreak.kernels.layout import FREE, Floats, Swept


@dataclass
class SubtypeLinks(ExactLinks):
    """Joint inference of linked tasks whose classes have `n_subtypes` subtypes each."""

    n_subtypes: int = 1

    remembered: ClassVar[tuple[str, ...]] = (*ExactLinks.remembered, "_member_q")

    def __post_init__(self) -> None:
        super().__post_init__()
        n_states = self.n_classes * self.n_subtypes
        members = layout.part_of(self.tasks, self.pool.task, n_states)
        self._members = members._replace(role=np.full(members.n_tasks, FREE, dtype=np.int8))
        self._member_q: Floats = np.full((members.n_tasks, n_states), 1.0 / n_states)

    def infer(self, log_prior: Floats, log_table: Floats) -> Swept:
        """Score the members, infer their nodes jointly, and count the members' responses."""
        scores = self.backend.score_tasks(self._members, log_prior, log_table)
        by_class = scores.reshape(len(scores), self.n_classes, self.n_subtypes)
        step = self.infer_from(np.logaddexp.reduce(by_class, axis=2))
        within = softmax(by_class.reshape(-1, self.n_subtypes)).reshape(by_class.shape)
        of_class = self.pool.members_of(self.q)
        logs = np.log(np.where(within > 0.0, within, 1.0))
        entropy_within = -(of_class[:, :, None] * within * logs).sum()
        q = np.asarray((of_class[:, :, None] * within).reshape(scores.shape))
        change = max(step.change, float(np.abs(q - self._member_q).max(initial=0.0)))
        if self.last_value is None:
            change = np.inf  # beliefs have not seen the links yet
        self._member_q = q
        self.last_value = step.value + float(entropy_within)
        everyone = np.ones(len(q), dtype=bool)
        counts, totals = self.backend.tally(q, self._members, everyone, self.n_threads)
        return Swept(counts, totals, change, self.last_value)

    def counted(self, q: Floats) -> tuple[Floats, Floats]:
        """Return what linked tasks add to counts and totals at q."""
        everyone = np.ones(len(self.pool.task), dtype=bool)
        counts, totals = self.backend.tally(
            q[self.pool.task], self._members, everyone, self.n_threads
        )
        return counts, totals

    def gather(self, q: Floats) -> None:
        """Let nodes start from the classes of their tasks in q."""
        by_class = q.reshape(len(q), self.n_classes, self.n_subtypes).sum(axis=2)
        self.q[:] = self.pool.gather(by_class)
        self._member_q = q[self.pool.task]

    def spread(self, q: Floats) -> None:
        """Give the linked tasks their states."""
        q[self.pool.task] = self._member_q
