"""Joint inference of linked tasks, component by component: belief propagation and elimination.

Tasks that hard links make one are one node (`plan.merge`), with all their responses (`place.pool`);
how components of nodes are inferred is planned once (`plan.plan`), and so is where each link acts
(`place.place`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tiebreak.inference.exact_links.numbers import TaskCodes
from tiebreak.inference.exact_links.place import Placement, Pool, place, pool
from tiebreak.inference.exact_links.plan import LinkReport, Merged, Plan, plan
from tiebreak.inference.vb import LinkStep
from tiebreak.kernels.arrays import entropy, for_each, softmax
from tiebreak.kernels.contract import Backend
from tiebreak.kernels.layout import FREE, LINKED, ByGroup, ByTask, Codes, Floats, Swept
from tiebreak.kernels.network import tree_spans
from tiebreak.kernels.sweeper import Logs, Sweeper
from tiebreak.links.graph import LinkCodes

DAMPING = 0.3
FIRST_PASSES = 40  # of messages in large components in the first sweep; later one per sweep
CONVERGED = 1e-3  # change of beliefs below which messages count as converged
SETTLED = 1e-9  # the same where no sweep follows
LAST_DAMPINGS = (0.5, 0.8)  # tried where messages still move at the end,
LAST_PASSES = 200  # so many passes each
FALLBACK_SWEEPS = 100
LARGEST_WEIGHT = 50.0  # of a link in the fallback, where a hard one has no finite weight


@dataclass
class ExactLinks:
    """Joint inference of linked tasks: a `vb.LinkModel`. Messages stay warm between sweeps.

    Row p of `q` is pool node p, row v of `belief` and `scores` is visit v; these are views of the
    rows from `pool.n_alone` on. Nodes before those have no links to others and are updated like
    tasks.
    """

    tasks: ByTask
    merged: Merged
    soft: LinkCodes  # the links that may be wrong, between tasks
    log_odds: Floats  # (n_soft,) that the two tasks agree
    n_classes: int
    backend: Backend
    n_threads: int = 1
    takes_everyone: bool = False  # tasks without links too: see `place.pool`
    unit: Codes | None = None  # (n_tasks,) equal for copies of one task; None: there are none
    plan: Plan = field(init=False)
    pool: Pool = field(init=False)
    placement: Placement = field(init=False)

    may_cycle = False
    remembered: ClassVar[tuple[str, ...]] = ("q", "_u", "messages", "_equal_in_cliques")

    def __post_init__(self) -> None:
        self.plan = plan(self.merged, self.soft, self.n_classes)
        self.placement = place(self.merged, self.soft, self.plan)
        self.pool = pool(
            self.tasks,
            self.merged,
            self.plan,
            self.n_classes,
            self.unit,
            everyone=self.takes_everyone,
        )
        self._known_copies = self._count_known_copies()
        network = self.plan.network
        n_edges = len(self.plan.left_visit)
        self._trees = tree_spans(network, self.plan.n_forest)
        self.messages = np.ones((2 * n_edges, self.n_classes))
        shape = (self.pool.nodes.n_tasks, self.n_classes)
        self.q = np.full(shape, 1.0 / self.n_classes)
        self._u = np.empty(shape)
        self.belief = self.q[self.pool.n_alone :]
        self.scores = self._u[self.pool.n_alone :]
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
    def task(self) -> TaskCodes:
        """The open linked tasks, in the order of their nodes."""
        return self.pool.task

    def value(self, q: Floats) -> float | None:
        """Return the linked tasks' part of the bound at the last update; None before it."""
        return self.last_value

    def coupling(self) -> Floats:
        """Return the log-odds that the ends of each edge are equal."""
        return self.placement.coupling(self.log_odds)

    def set_log_odds(self, log_odds: Floats) -> None:
        """Change the log-odds that the two tasks of each soft link agree."""
        self.log_odds = log_odds

    def sweep(self, sweeper: Sweeper, scores: Floats, logs: Logs) -> Swept:
        """Update the nodes; q and scores are those of other tasks."""
        return self.infer(*logs)

    def infer(self, log_prior: Floats, log_table: Floats) -> Swept:
        """Score the nodes, infer them jointly, and count their responses."""
        pool = self.pool
        logs = pool.logs(log_prior, log_table)
        alone = self.backend.sweep_tasks(self.q, self._u, pool.nodes, *logs, self.n_threads)
        step = self.infer_tied()
        change = max(alone.change, step.change)
        if self.last_value is None:
            change = np.inf  # beliefs have not seen the links yet: nothing has settled
        self.last_value = alone.entropy + step.value
        is_tied = pool.nodes.role == LINKED
        counts, totals = self.backend.tally(self.q, pool.nodes, is_tied, self.n_threads)
        if pool.n_alone:
            counts += alone.counts
        counts, totals = pool.by_plain_code(counts, totals + alone.totals)
        return Swept(counts, totals - self._known_copies, change, self.last_value)

    def reset(self) -> None:
        """Forget messages and values, as before the first update."""
        self.messages[:] = 1.0
        self._residual = 0.0
        self._down = True
        self.last_value = None

    def memory(self) -> dict[str, Floats]:
        """Return what the next update depends on, and what is told of the last."""
        figures = np.array([self._residual, self._down, self.last_value], dtype=np.float64)
        return {name: getattr(self, name) for name in self.remembered} | {"figures": figures}

    def remember(self, memory: Mapping[str, Floats]) -> None:
        """Go on from what `memory` gave."""
        for name in self.remembered:
            getattr(self, name)[:] = memory[name]
        self._residual, down, self.last_value = memory["figures"].tolist()
        self._down = bool(down)

    def _count_known_copies(self) -> Floats:
        """Count known tasks, by class, as far as their copies pay the prior for them.

        Those that are nodes of the pool share it there.
        """
        counted = np.zeros(self.n_classes)
        if self.unit is None:
            return counted
        known = self.merged.known()
        apart = ~np.isin(known.task, self.pool.task)
        n_copies = np.bincount(self.unit)[self.unit[known.task[apart]]]
        np.add.at(counted, known.label[apart], 1.0 - 1.0 / n_copies)
        return counted

    def infer_from(self, member_scores: Floats, *, is_last: bool = False) -> LinkStep:
        """Infer all nodes from class scores of their members, (n_members, n_classes).

        `is_last`: no sweep follows, so that messages in large components are passed until they
        converge.
        """
        self._u[:] = self.pool.add_up(member_scores)
        free = np.flatnonzero(self.pool.nodes.role == FREE)  # those without links to others
        new = softmax(self._u[free])
        change = float(np.abs(new - self.q[free]).max(initial=0.0))
        self.q[free] = new
        step = self.infer_tied(is_last=is_last)
        return LinkStep(max(change, step.change), entropy(new) + step.value)

    def infer_tied(self, *, is_last: bool = False) -> LinkStep:
        """Infer the tied nodes jointly from their scores."""
        coupling = self.coupling()
        self.placement.weigh(self.scores, self.log_odds)
        forest_change, forest_log_partition = self._infer_trees(coupling)
        small_change = 0.0
        small_log_partition = 0.0
        if self.plan.report.small:
            small_change, small_log_partition = self.backend.eliminate(
                self.scores, self.plan.cliques, coupling, self.belief, self._equal_in_cliques
            )
        large_change, large_log_partition = self._infer_large(coupling, is_last=is_last)
        value = forest_log_partition + small_log_partition + large_log_partition
        value -= self.backend.expected_score(self.belief, self.scores, self.n_threads)
        value += self.placement.constant(self.log_odds)
        value += self.placement.expected(self.belief, self.log_odds)
        return LinkStep(max(forest_change, small_change, large_change), value)

    def _infer_trees(self, coupling: Floats) -> tuple[float, float]:
        """Set the beliefs of nodes in components without loops; return change, log partition."""
        fixed = (self.scores, self.plan.network, coupling, self.messages, self.belief)
        figures = np.zeros((len(self._trees), 2))

        def infer_span(t: int) -> None:
            on = (*fixed, self._trees[t], 0.0)
            self.backend.pass_messages(*on, down=False, update_beliefs=False)
            figures[t] = self.backend.pass_messages(*on, down=True)

        for_each(infer_span, len(self._trees), self.n_threads)
        return float(figures[:, 0].max(initial=0.0)), float(figures[:, 1].sum())

    def _infer_large(self, coupling: Floats, *, is_last: bool) -> tuple[float, float]:
        """Pass messages in large components; return the largest change and the log partition."""
        largest_change = 0.0
        log_partition = 0.0
        self._residual = 0.0
        if self.remembers:
            n_passes = FIRST_PASSES if self.last_value is None else 1
            for _ in range(LAST_PASSES if is_last else n_passes):
                self._down = not self._down
                change, log_partition = self._pass_large(DAMPING, coupling, down=self._down)
                self._residual = change
                largest_change = max(largest_change, change)
                if change < (SETTLED if is_last else CONVERGED):
                    break
        return largest_change, log_partition

    def _pass_large(self, damping: float, coupling: Floats, *, down: bool) -> tuple[float, float]:
        """Pass messages once in large components."""
        fixed = (self.scores, self.plan.network, coupling, self.messages, self.belief)
        span = (self.plan.n_exact, len(self.belief))
        change, log_partition = self.backend.pass_messages(*fixed, span, damping, down=down)
        return change, log_partition

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
        """Report how components were inferred, after a last try where messages still move.

        More damping is tried first, then mean field.
        """
        if self._residual < CONVERGED:
            return self.plan.report
        coupling = self.coupling()
        for damping in LAST_DAMPINGS:
            if self._residual < CONVERGED:
                break
            for turn in range(LAST_PASSES):
                self._residual, _ = self._pass_large(damping, coupling, down=turn % 2 == 1)
        if self._residual >= CONVERGED:
            self._fall_back_to_mean_field(coupling)
        return self.plan.report._replace(by_mean_field=self._by_mean_field)

    def _fall_back_to_mean_field(self, coupling: Floats) -> None:
        """Update the nodes of large components in turn, from their last beliefs."""
        network = self.plan.network
        weight = np.clip(coupling[network.edge], -LARGEST_WEIGHT, LARGEST_WEIGHT)
        visits = np.arange(len(self.belief), dtype=np.int32)
        groups = ByGroup(visits, visits, 0.0, network.start, network.other, weight)
        turns = visits[self.plan.n_exact :].astype(np.int64)
        for _ in range(FALLBACK_SWEEPS):
            change = self.backend.update_in_turn(self.belief, self.scores, groups, 1.0, turns)
            if change < CONVERGED:
                break
        self._by_mean_field = True

    def entropy(self) -> float:
        """Return the joint entropy of the linked tasks at the last update."""
        assert self.last_value is not None  # asked for after an update
        return self.last_value - float(self.log_odds @ self.agreement())

    def agreement(self) -> Floats:
        """Return for each soft link the probability that its two tasks agree."""
        network = self.plan.network
        equal = self.backend.agreement(self.scores, network, self.coupling(), self.messages)
        in_cliques = self.plan.cliques.edge
        equal[in_cliques] = self._equal_in_cliques[in_cliques]
        return self.placement.agreement(equal, self.belief)
