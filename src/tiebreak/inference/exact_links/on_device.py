"""Exact links where sweeps run on a device: nodes are scored, inferred and counted there.

Links between random tasks make small trees, each a thread's work on the device. Scores of all other
tied nodes (large trees, components with loops) come here, and their beliefs go back. After the
last sweep the small trees are inferred here once more, in float64, so that whatever asks for
scores, messages or beliefs finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tiebreak.inference.exact_links.infer import ExactLinks, Rest
from tiebreak.inference.exact_links.plan import LinkReport
from tiebreak.inference.vb import LinkStep
from tiebreak.kernels.contract import NodeSweeper, sweeps_nodes
from tiebreak.kernels.layout import Floats, Swept
from tiebreak.kernels.network import small_trees
from tiebreak.kernels.sweeper import Logs

LARGEST_TREE = 256  # nodes: one thread goes from node to node, some µs each


@dataclass
class DeviceLinks(ExactLinks):
    """Joint inference of hard links on a device."""

    def __post_init__(self) -> None:
        super().__post_init__()
        assert not len(self.log_odds)  # links that may be wrong are weighed here
        n_forest = self.plan.n_forest
        self._forest, trees = small_trees(self.plan.network, n_forest, LARGEST_TREE)
        is_here = np.ones(len(self.belief), dtype=bool)
        is_here[self._forest.visit] = False
        self._rest = Rest(trees, np.flatnonzero(is_here).astype(np.int32))
        self._there: NodeSweeper | None = None
        self._fits = True
        self._last_logs: Logs | None = None  # of the last sweep there; None: all is known here

    def infer(self, log_prior: Floats, log_table: Floats, *, counting: bool = True) -> Swept:
        """Score the nodes, infer them jointly, and count their responses."""
        there = self._open() if counting else None
        if there is None:
            self._bring_here()
            return super().infer(log_prior, log_table, counting=counting)
        logs = self.pool.logs(log_prior, log_table)
        scores = there.score(logs)
        step = LinkStep(0.0, 0.0)
        rest = self._rest.visits
        if len(rest):
            self.scores[rest] = scores
            step = self.infer_tied(only=self._rest)
        swept = there.count(self.belief[rest])
        self._last_logs = logs
        # Before the first update beliefs have not seen the links: nothing has settled.
        change = np.inf if self.last_value is None else max(step.change, swept.change)
        self.last_value = swept.entropy + step.value
        counts, totals = self.pool.by_plain_code(swept.counts, swept.totals)
        return Swept(counts, totals - self._known_copies, change, self.last_value, 0.0)

    def _open(self) -> NodeSweeper | None:
        """Return the nodes on the device; None: they do not fit, and are swept here."""
        if self._there is None and self._fits:
            assert sweeps_nodes(self.backend)  # who has no device has `ExactLinks`
            given = (self.pool.nodes, self.q, self._forest, self.placement.forbidden)
            self._there = self.backend.open_nodes(*given)
            self._fits = self._there is not None
        return self._there

    def _bring_here(self) -> None:
        """Infer here what the last sweep inferred there."""
        if self._last_logs is None:
            return
        logs = self._last_logs
        self._last_logs = None
        self.backend.sweep_tasks(
            self.q, self._u, self.pool.nodes, *logs, self.n_threads, counting=False
        )
        self.placement.weigh(self.scores, self.log_odds)
        self._infer_trees(self.coupling(), self._trees)

    def infer_from(self, member_scores: Floats, *, is_last: bool = False) -> LinkStep:
        """Infer all nodes here, from class scores of their members."""
        self._last_logs = None
        return super().infer_from(member_scores, is_last=is_last)

    def gather(self, q: Floats) -> None:
        """Let nodes start from the rows of q of their tasks."""
        super().gather(q)
        self._start_there()

    def remember(self, memory: Mapping[str, Floats]) -> None:
        """Go on from what `memory` gave."""
        super().remember(memory)
        self._start_there()

    def _start_there(self) -> None:
        self._last_logs = None
        if self._there is not None:
            self._there.put(self.q)

    def memory(self) -> dict[str, Floats]:
        """Return what the next update depends on, and what is told of the last."""
        self._bring_here()
        return super().memory()

    def spread(self, q: Floats) -> None:
        """Give the linked tasks the beliefs of their nodes."""
        self._bring_here()
        super().spread(q)

    def finish(self) -> LinkReport:
        """Report how components were inferred, and give the device's memory back."""
        self._bring_here()
        if self._there is not None:
            self._there.close()
            self._there = None
        return super().finish()
