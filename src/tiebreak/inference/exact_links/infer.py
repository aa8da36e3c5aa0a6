"""Links done exactly: linked tasks are inferred jointly, component by component.

Tasks that hard links make one are one node (`merging.py`), with all their responses (`pooling.py`);
how components of nodes are settled is planned once (`planning.py`), and so is where each link acts
(`placement.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tiebreak.inference.exact_links.merge import Merged, SoftLinks
from tiebreak.inference.exact_links.network_layout import HUGE_NODES, parts, tree_spans
from tiebreak.inference.exact_links.place import Placement, place
from tiebreak.inference.exact_links.plan import LinkReport, Plan, plan
from tiebreak.inference.exact_links.pool import Pool, pool
from tiebreak.inference.vb import LinkStep, Logs, Problem
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import LINKED, ByGroup, ByTask, Codes, Floats, Swept
from tiebreak.kernels.threads import for_each

DAMPING = 0.3
FIRST_PASSES = 40  # of messages in large components in the first sweep; later one a sweep
SETTLED = 1e-3  # change of beliefs below which messages count as settled
LAST_DAMPINGS, LAST_PASSES = (0.5, 0.8), 200  # tried where messages still move at the end
FALLBACK_SWEEPS = 100
LARGEST_WEIGHT = 50.0  # of a link in the fallback, where a hard one has no finite weight


@dataclass
class ExactLinks:
    """Joint inference of linked tasks: a `vb.LinkModel`. Messages stay warm between sweeps.

    Nodes that no link ties to others are settled like tasks; `belief` and `scores` are of the rest.
    """

    tasks: ByTask
    merged: Merged
    soft: SoftLinks
    log_odds: Floats  # (n_soft,) that the two tasks agree
    n_classes: int
    backend: Backend
    n_threads: int = 1
    takes_everyone: bool = False  # tasks without links too: see `pooling.pool`
    plan: Plan = field(init=False)
    pool: Pool = field(init=False)
    placement: Placement = field(init=False)

    may_cycle = False

    def __post_init__(self) -> None:
        self.plan = plan(self.merged, self.soft, self.n_classes)
        self.placement = place(self.merged, self.soft, self.plan)
        self.pool = pool(
            self.tasks, self.merged, self.plan, self.n_classes, everyone=self.takes_everyone
        )
        self._trees = tree_spans(self.plan.network, self.plan.n_forest)
        n_nodes, n_edges = self.plan.network.n_nodes, len(self.plan.left)
        self.messages = np.zeros((2 * n_edges, self.n_classes))  # logs; in parts, probabilities
        is_huge = n_nodes - self.plan.n_exact >= HUGE_NODES
        split = self.plan.network, self.plan.n_exact, self.n_classes
        self._parts = parts(*split) if is_huge else None
        self._probabilities[:] = 1.0
        shape = self.pool.nodes.n_tasks, self.n_classes
        self.q, self._u = np.full(shape, 1.0 / self.n_classes), np.empty(shape)  # of all nodes
        self.belief, self.scores = self.q[self.pool.n_alone :], self._u[self.pool.n_alone :]
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
        return self.pool.members.task

    def value(self, q: Floats) -> float | None:
        """Return the linked tasks' part of the bound at the last update; None before it."""
        return self.last_value

    def coupling(self) -> Floats:
        """Return the log-odds that the ends of each edge are equal."""
        return self.placement.coupling(self.log_odds)

    def set_log_odds(self, log_odds: Floats) -> None:
        """Change the log-odds that the two tasks of each soft link agree."""
        self.log_odds = log_odds

    def sweep(self, problem: Problem, q: Floats, u: Floats, logs: Logs) -> Swept:
        """Update the nodes; q and u are those of other tasks."""
        return self.infer(*logs)

    def infer(self, log_prior: Floats, log_table: Floats, *, counting: bool = True) -> Swept:
        """Score the nodes, infer them jointly, and count what their tasks then say."""
        pool, backend, n_threads = self.pool, self.backend, self.n_threads
        logs = pool.logs(log_prior, log_table)
        free = backend.sweep_tasks(
            self.q, self._u, pool.nodes, *logs, n_threads, counting=counting and pool.n_alone > 0
        )
        step = self.settle()
        change, self.last_value = max(free.change, step.change), free.entropy + step.value
        if not counting:
            return free._replace(change=change, entropy=self.last_value)
        is_tied = pool.nodes.role == LINKED
        counts, totals = backend.tally(self.q, pool.nodes, is_tied, n_threads)
        if pool.n_alone:
            counts += free.counts
        counts, totals = pool.folded(counts, totals + free.totals)
        return Swept(counts, totals, change, self.last_value, 0.0)

    def settle(self) -> LinkStep:
        """Infer the tied nodes jointly from their scores."""
        coupling = self.coupling()
        self.placement.weigh(self.scores, self.log_odds)
        change, forest = self._settle_trees(coupling)
        moved, small = self.backend.eliminate(
            self.scores, self.plan.cliques, coupling, self.belief, self._equal_in_cliques
        )
        large, self._residual = 0.0, 0.0
        change = max(change, moved)
        if self.remembers:
            for _ in range(FIRST_PASSES if self.last_value is None else 1):
                self._down = not self._down
                self._residual, large = self._pass_large(DAMPING, coupling, down=self._down)
                change = max(change, self._residual)
                if self._residual < SETTLED:
                    break
        value = forest + small + large - self._expected_score()
        value += self.placement.constant(self.log_odds)
        return LinkStep(change, value + self.placement.expected(self.belief, self.log_odds))

    def _expected_score(self) -> float:
        """Return the expected scores of nodes; those in parts were taken off already."""
        rows = slice(self.plan.n_exact if self._parts else len(self.belief))
        return self.backend.expected_score(self.belief[rows], self.scores[rows], self.n_threads)

    def _settle_trees(self, coupling: Floats) -> tuple[float, float]:
        """Set the beliefs of nodes in components without loops; return change, log partition."""
        fixed = self.scores, self.plan.network, coupling, self.messages, self.belief
        figures = np.zeros((len(self._trees), 2))

        def settle(t: int) -> None:
            on = *fixed, self._trees[t], 0.0
            self.backend.pass_messages(*on, down=False, update_beliefs=False)
            figures[t] = self.backend.pass_messages(*on, down=True)

        for_each(settle, len(self._trees), self.n_threads)
        return float(figures[:, 0].max(initial=0.0)), float(figures[:, 1].sum())

    def _pass_large(self, damping: float, coupling: Floats, *, down: bool) -> tuple[float, float]:
        """Pass messages once in large components; in huge ones in parts, on several threads."""
        span = self.plan.n_exact, len(self.belief)
        fixed = self.scores, self.plan.network, coupling, self.messages, self.belief
        if self._parts is None:
            return self.backend.pass_messages(*fixed, span, damping, down=down)
        return self.backend.pass_in_parts(
            *fixed, self._parts, damping, down=down, n_threads=self.n_threads
        )

    @property
    def _probabilities(self) -> Floats:
        """Messages that are probabilities: none, or all in large components."""
        network = self.plan.network
        return self.messages[network.start[self.plan.n_exact if self._parts else -1] :]

    def counted(self, q: Floats) -> tuple[Floats, Floats]:
        """Return what linked tasks add to counts and totals at q."""
        return self.pool.count_members(q, self.backend, self.n_threads)

    def gather(self, q: Floats) -> None:
        """Let nodes start from the rows of q of their tasks."""
        self.q[:] = self.pool.gather(q)

    def spread(self, q: Floats) -> None:
        """Give the linked tasks the beliefs of their nodes."""
        self.pool.spread(q, self.q)

    def finish(self) -> LinkReport:
        """Say how components were settled, after a last try where messages still move.

        More damping is tried first. The fallback is mean field: nodes of large components are
        updated in turn, from their last beliefs.
        """
        if self._residual < SETTLED:
            return self.plan.report
        coupling = self.coupling()
        for damping in LAST_DAMPINGS:
            if self._residual < SETTLED:
                break
            for turn in range(LAST_PASSES):
                self._residual, _ = self._pass_large(damping, coupling, down=turn % 2 == 1)
        if self._residual >= SETTLED:
            network = self.plan.network
            weight = np.clip(coupling[network.edge], -LARGEST_WEIGHT, LARGEST_WEIGHT)
            nodes = np.arange(len(self.belief), dtype=np.int32)
            alone = ByGroup(nodes, nodes, 0.0, network.start, network.other, weight)
            turns = nodes[self.plan.n_exact :].astype(np.int64)
            for _ in range(FALLBACK_SWEEPS):
                change = self.backend.update_in_turn(self.belief, self.scores, alone, 1.0, turns)
                if change < SETTLED:
                    break
            self._by_mean_field = True
        return self.plan.report._replace(by_mean_field=self._by_mean_field)

    def entropy(self, q: Floats) -> float:
        """Return the joint entropy of the linked tasks at the last update."""
        assert self.last_value is not None  # asked for after an update
        return self.last_value - float(self.log_odds @ self.agreement(q))

    def agreement(self, q: Floats | None = None) -> Floats:
        """Return for each soft link the probability that its two tasks agree."""
        messages = self.messages
        if self._parts is not None:
            messages = messages.copy()
            messages[-len(self._probabilities) :] = np.log(self._probabilities)
        equal = self.backend.agreement(self.scores, self.plan.network, self.coupling(), messages)
        in_cliques = self.plan.cliques.edge
        equal[in_cliques] = self._equal_in_cliques[in_cliques]
        return self.placement.agreement(equal, self.belief)
