"""Links done exactly: linked tasks are inferred jointly, component by component.

Tasks that hard links tie are one node (`merging.py`); how components of nodes are settled is
planned once (`planning.py`), and so is where each link acts (`placement.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tiebreak.inference.merging import OPEN, Merged, SoftLinks
from tiebreak.inference.placement import Placement, place
from tiebreak.inference.planning import LinkReport, Plan, plan
from tiebreak.inference.vb import LinkStep
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import ByGroup, Codes, Floats
from tiebreak.kernels.network import HUGE_NODES, PARTS, in_task_order, members, speakers, tree_spans
from tiebreak.kernels.threads import for_each

DAMPING = 0.3
FIRST_PASSES = 40  # of messages in large components in the first sweep; later one a sweep
SETTLED = 1e-3  # change of beliefs below which messages count as settled
LAST_DAMPINGS, LAST_PASSES = (0.5, 0.8), 200  # tried where messages still move at the end
FALLBACK_SWEEPS = 100
LARGEST_WEIGHT = 50.0  # of a link in the fallback, where a hard one has no finite weight


@dataclass
class ExactLinks:
    """Joint inference of linked tasks: a `vb.LinkModel`. Messages stay warm between sweeps."""

    merged: Merged
    soft: SoftLinks
    log_odds: Floats  # (n_soft,) that the two tasks agree
    n_classes: int
    backend: Backend
    n_threads: int = 1
    plan: Plan = field(init=False)
    placement: Placement = field(init=False)

    may_cycle = False

    def __post_init__(self) -> None:
        self.plan = plan(self.merged, self.soft, self.n_classes)
        self.placement = place(self.merged, self.soft, self.plan)
        visit = self.plan.visit[self.merged.node]
        is_open = visit != OPEN
        open_tasks = self.merged.task[is_open], visit[is_open], self.merged.flip[is_open]
        self.members = members(*open_tasks, self.plan.network.n_nodes)
        self._members_by_task = in_task_order(self.members)
        self._trees = tree_spans(self.plan.network, self.plan.n_forest)
        n_nodes, n_edges = self.plan.network.n_nodes, len(self.plan.left)
        self.messages = np.zeros((2 * n_edges, self.n_classes))  # logs, or told together: shares
        self._together = n_nodes - self.plan.n_exact >= HUGE_NODES
        self._messages_together[:] = 1.0
        ways = (True, False) if self._together else ()
        self._speakers = {
            down: speakers(self.plan.network, self.plan.n_exact, down=down) for down in ways
        }
        self.belief = np.full((n_nodes, self.n_classes), 1.0 / self.n_classes)
        self.scores = np.zeros((n_nodes, self.n_classes))
        self._equal_in_cliques = np.zeros(n_edges)
        self._residual = 0.0
        self._down = True  # the way that messages last went in large components
        self._by_mean_field = False
        self.last_value: float | None = None

    @property
    def remembers(self) -> bool:
        """Whether messages of large components are kept from one update to the next."""
        return self.plan.n_exact < len(self.belief)

    @property
    def task(self) -> Codes:
        """The open linked tasks, in the order of their nodes."""
        return self.members.task

    def value(self, q: Floats) -> float | None:
        """Return the linked tasks' part of the bound at the last update; None before it."""
        return self.last_value

    def theta(self) -> Floats:
        """Return the log-odds that the ends of each edge are equal."""
        return self.placement.theta(self.log_odds)

    def set_log_odds(self, log_odds: Floats) -> None:
        """Change the log-odds that the two tasks of each soft link agree."""
        self.log_odds = log_odds

    def update(self, q: Floats, u: Floats) -> LinkStep:
        """Infer the linked tasks jointly from their scores, and set their rows of q."""
        self.backend.node_scores(u, self.members, self.scores, self.n_threads)
        self.placement.weigh(self.scores, self.log_odds)
        value = self._settle(self.theta()) + self.placement.constant(self.log_odds)
        self.last_value = value + self.placement.expected(self.belief, self.log_odds)
        change = self._spread(q)
        return LinkStep(max(change, self._residual), self.last_value)

    def _settle(self, theta: Floats) -> float:
        """Set the beliefs of all nodes; return the log partition less their expected scores."""
        forest = self._settle_trees(theta)
        _, small = self.backend.eliminate(
            self.scores, self.plan.cliques, theta, self.belief, self._equal_in_cliques
        )
        large, self._residual = 0.0, 0.0
        if self.plan.n_exact < len(self.belief):
            for _ in range(FIRST_PASSES if self.last_value is None else 1):
                self._down = not self._down
                self._residual, large = self._pass_large(DAMPING, theta, down=self._down)
                if self._residual < SETTLED:
                    break
        return forest + small + large - self._expected_score()

    def _expected_score(self) -> float:
        """Return the expected scores of nodes; those told together were taken off already."""
        rows = slice(self.plan.n_exact if self._together else len(self.belief))
        return self.backend.expected_score(self.belief[rows], self.scores[rows], self.n_threads)

    def _settle_trees(self, theta: Floats) -> float:
        """Set the beliefs of nodes in components without loops; return their log partition."""
        fixed = self.scores, self.plan.network, theta, self.messages, self.belief
        log_partition = np.zeros(len(self._trees))

        def settle(t: int) -> None:
            self.backend.pass_messages(*fixed, self._trees[t], 0.0, down=False)
            found = self.backend.pass_messages(*fixed, self._trees[t], 0.0, down=True)
            log_partition[t] = found[1]

        for_each(settle, len(self._trees), self.n_threads)
        return float(log_partition.sum())

    def _pass_large(self, damping: float, theta: Floats, *, down: bool) -> tuple[float, float]:
        """Pass messages once in large components; in huge ones together, on several threads."""
        span = self.plan.n_exact, len(self.belief)
        fixed = self.scores, self.plan.network, theta, self.messages, self.belief, span, damping
        if not self._together:
            return self.backend.pass_messages(*fixed, down=down)
        return self.backend.pass_together(
            *fixed, self._speakers[down], n_parts=PARTS, n_threads=self.n_threads
        )

    @property
    def _messages_together(self) -> Floats:
        """Messages that are probabilities: none, or all in large components."""
        network = self.plan.network
        return self.messages[network.start[self.plan.n_exact if self._together else -1] :]

    def _spread(self, q: Floats) -> float:
        """Give the linked tasks the beliefs of their nodes."""
        of = self.belief, self._members_by_task
        return self.backend.spread_beliefs(q, *of, self.n_threads)

    def finish(self, q: Floats) -> LinkReport:
        """Say how components were settled, after a last try where messages still move.

        More damping is tried first. The fallback is mean field: nodes of large components are
        updated in turn, from their last beliefs. Where messages rest, q has the last beliefs.
        """
        if self._residual < SETTLED:
            return self.plan.report
        theta = self.theta()
        for damping in LAST_DAMPINGS:
            if self._residual < SETTLED:
                break
            for turn in range(LAST_PASSES):
                self._residual, _ = self._pass_large(damping, theta, down=turn % 2 == 1)
        if self._residual >= SETTLED:
            network = self.plan.network
            weight = np.clip(theta[network.edge], -LARGEST_WEIGHT, LARGEST_WEIGHT)
            nodes = np.arange(len(self.belief), dtype=np.int32)
            alone = ByGroup(nodes, nodes, 0.0, network.start, network.other, weight)
            turns = nodes[self.plan.n_exact :].astype(np.int64)
            for _ in range(FALLBACK_SWEEPS):
                change = self.backend.update_in_turn(self.belief, self.scores, alone, 1.0, turns)
                if change < SETTLED:
                    break
            self._by_mean_field = True
        self._spread(q)
        return self.plan.report._replace(by_mean_field=self._by_mean_field)

    def entropy(self, q: Floats) -> float:
        """Return the joint entropy of the linked tasks at the last update."""
        assert self.last_value is not None  # asked for after an update
        return self.last_value - float(self.log_odds @ self.agreement(q))

    def agreement(self, q: Floats | None = None) -> Floats:
        """Return for each soft link the probability that its two tasks agree."""
        messages = self.messages
        if self._together:
            messages = messages.copy()
            messages[-len(self._messages_together) :] = np.log(self._messages_together)
        equal = self.backend.agreement(self.scores, self.plan.network, self.theta(), messages)
        in_cliques = self.plan.cliques.edge
        equal[in_cliques] = self._equal_in_cliques[in_cliques]
        return self.placement.agreement(equal, self.belief)
